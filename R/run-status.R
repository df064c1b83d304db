# One line that says how far a run is, for who waits at the console. Private.

# A function to be told each effect. It shows nothing in scripts, for the first two
# seconds, and while a person is asked.
run_status <- function(run_id, frame = parent.frame()) {
  if (!rlang::is_interactive()) return(function(effect) NULL)
  steps <- calls <- 0
  shown <- -Inf
  bar <- NULL
  function(effect) {
    steps <<- steps + (effect == "plan")
    calls <<- calls + (effect == "call")
    if (effect == "ask") {
      if (!is.null(bar)) cli::cli_progress_done(id = bar, .envir = frame)
      bar <<- NULL
    } else if (effect == "plan" && now() > shown + 0.2) {
      shown <<- now()
      if (is.null(bar)) {
        bar <<- cli::cli_progress_bar(format = "{cli::pb_spin} {cli::pb_status}", .envir = frame)
      }
      cli::cli_progress_update(status = status_text(run_id, steps, calls), id = bar, .envir = frame)
    }
  }
}

status_text <- function(run_id, steps, calls) {
  sprintf("Run %s: %g %s, %g %s", substr(run_id, 1L, 12L), steps, if (steps == 1) "step" else "steps",
    calls, if (calls == 1) "call" else "calls")
}

# lapply() with a bar at the console.
each <- function(x, label, f) {
  if (!rlang::is_interactive()) return(lapply(x, f))
  frame <- rlang::current_env()
  bar <- cli::cli_progress_bar(label, total = length(x), .envir = frame)
  lapply(x, function(item) {
    cli::cli_progress_update(id = bar, .envir = frame)
    f(item)
  })
}
