# Process isolation where no process can be forked: a fresh R for each call, that
# reads its order from a file and writes its reply to another.

fresh_call <- function(bundle, args, timeout_s) {
  dir <- tempfile("warrant-call")
  dir.create(dir)
  id <- NULL
  on.exit({
    if (is.numeric(id)) suspendInterrupts(rs_fresh_kill(id))
    unlink(dir, recursive = TRUE)
  })
  files <- file.path(dir, c(order = "order", ready = "ready", reply = "reply", output = "output"))
  names(files) <- c("order", "ready", "reply", "output")
  id <- start_fresh(bundle, args, files)
  if (is.character(id)) return(new_process_result("error", condition = simpleError(id)))
  end <- await_fresh(id, files, if (is.null(timeout_s)) Inf else timeout_s)
  if (end$status == "late_start") {
    text <- paste("the worker process was not ready within", worker_bounds$start_s, "seconds")
    return(new_process_result("error", condition = simpleError(text)))
  }
  end$output <- readBin(files[["output"]], "raw", worker_bounds$output)
  end$dropped <- max(0, file.size(files[["output"]]) - worker_bounds$output)
  if (end$status == "replied") end$reply <- readBin(files[["reply"]], "raw", file.size(files[["reply"]]))
  read_end(end, NULL)
}

start_fresh <- function(bundle, args, files) {
  request <- new_request(bundle, args)
  order <- list(code = worker_code(), bundle = bundle$bytes, lib_paths = .libPaths(), request = request)
  saveRDS(order, files[["order"]], compress = FALSE)
  script <- system.file("worker", "once.R", package = "warrant")
  options <- c("--vanilla", "--no-echo", paste0("--file=", script), "--args")
  unwrap_core(rs_fresh_start(
    file.path(R.home("bin"), "R"), c(options, files[c("order", "ready", "reply")]), files[["output"]]
  ))
}

# The time starts when the process says that it is ready.
await_fresh <- function(id, files, timeout_s) {
  give_up <- rs_monotonic() + worker_bounds$start_s
  started <- NULL
  repeat {
    code <- unwrap_core(rs_fresh_wait(id, 5L))
    time <- rs_monotonic()
    if (is.null(started) && file.exists(files[["ready"]])) started <- time
    elapsed_s <- if (is.null(started)) 0 else time - started
    if (!is.null(code)) {
      status <- if (file.exists(files[["reply"]])) "replied" else "died"
      return(list(status = status, code = code, elapsed_s = elapsed_s))
    }
    if (elapsed_s >= timeout_s) return(list(status = "timed_out", elapsed_s = elapsed_s))
    if (is.null(started) && time > give_up) return(list(status = "late_start"))
    # Looks for an interrupt.
    Sys.sleep(0)
  }
}
