# Stops the package's wall clock at `at` (seconds since 1970) until the calling
# test ends. Gives a function that moves it on by some seconds.
local_clock <- function(at = 0, env = parent.frame()) {
  the <- asNamespace("warrant")$the
  before <- the$clock
  do.call("on.exit", list(bquote(assign("clock", .(before), envir = .(the))), add = TRUE, after = FALSE), envir = env)
  time <- at
  the$clock <- function() time
  invisible(function(seconds) {
    time <<- time + seconds
    invisible(time)
  })
}
