# Started by the package as a worker process. The session sends the code that
# the worker runs as the first message; see R/isolation-worker.R.
local({
  dyn.load(commandArgs(TRUE)[[1]])
  # Looked up by name at every use: loading the package here loads its library
  # a second time.
  native <- function(name, ...) .Call(paste0("wrap__rs_", name), ..., PACKAGE = "warrant")
  native("template_begin")
  code <- unserialize(native("template_next"))
  code$worker_serve(native)
})
