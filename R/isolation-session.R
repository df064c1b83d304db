# Time limits of calls that run in the session: see ?isolation.

# Calls f() under a deadline: its value, or an object of class
# `warrant_timed_out`. Errors, warnings, messages and the person's own Ctrl-C go
# where they would go without it. Without a limit of its own, and with none
# outside, this is f().
limit_call <- function(f, timeout_s = NULL) {
  if (is.null(timeout_s) || timeout_s == Inf) {
    if (the$watching == 0L) return(f())
    timeout_s <- Inf
  }
  suspendInterrupts(watched(f, timeout_s))
}

new_timed_out <- function(whose, interrupted, elapsed_s) {
  structure(
    list(whose = whose, interrupted = interrupted, elapsed_s = elapsed_s),
    class = "warrant_timed_out"
  )
}

is_timed_out <- function(x) inherits(x, "warrant_timed_out")

# Interrupts are let in only while f() runs. The calling handlers decide before
# anything is unwound: an error goes on untouched unless the deadline has passed,
# and the code that tidies up is given time. An interrupt that comes while they
# decide, and the person's, are left to the exiting handler.
watched <- function(f, timeout_s) {
  the$watching <- the$watching + 1L
  id <- rs_watch_arm(timeout_s)
  open <- TRUE
  on.exit(if (open) end_watch(id))
  stopped <- FALSE
  value <- tryCatch(
    withCallingHandlers(
      allowInterrupts(f()),
      interrupt = function(cnd) if (rs_watch_stop(id, TRUE) != 0L) signalCondition(deadline),
      error = function(cnd) if (rs_watch_stop(id, FALSE) != 0L) signalCondition(deadline)
    ),
    interrupt = function(cnd) {
      stopped <<- inherits(cnd, "warrant_deadline") || rs_watch_stop(id, TRUE) != 0L
      if (!stopped) allowInterrupts(rlang::interrupt())
    }
  )
  open <- FALSE
  end <- end_watch(id)
  if (end[[1]] == 0) return(value)
  new_timed_out(c("own", "outer")[[end[[1]]]], stopped && end[[2]] != 0, end[[4]])
}

deadline <- structure(
  class = c("warrant_deadline", "interrupt", "condition"),
  list(message = "the time limit has passed", call = NULL)
)

# Disarms with interrupts suspended, takes what the watchdog may have left
# pending, and leaves the person's interrupt pending where there is one.
end_watch <- function(id) {
  the$watching <- the$watching - 1L
  end <- rs_watch_disarm(id)
  if (end[[2]] != 0) {
    drain_interrupt()
    if (end[[3]] != 0) rlang::interrupt()
  }
  end
}

# Sys.sleep(0) looks for a pending interrupt and does nothing else.
drain_interrupt <- function() {
  tryCatch(allowInterrupts(Sys.sleep(0)), interrupt = function(cnd) NULL)
}
