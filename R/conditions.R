# The only file that raises errors. Codes are the core's; an error of R's own
# checks has the code of its kind.

stop_warrant <- function(message, kind, code = kind, ..., call = caller_env()) {
  rlang::abort(
    message,
    class = unique(c(
      paste0("warrant_error_", code), paste0("warrant_error_", kind), "warrant_error"
    )),
    ...,
    call = call
  )
}

# Hands on a value of the core, or raises the error it recorded.
unwrap_core <- function(x, call = caller_env()) {
  if (inherits(x, "warrant_fault")) raise_fault(x, call)
  x
}

# What a store or a trail raises names the function that the user called.
named_for <- function(expr, call = caller_env()) {
  tryCatch(expr, warrant_error = function(e) raise_again(e, call))
}

raise_again <- function(e, call) {
  e$call <- rlang::error_call(call)
  rlang::cnd_signal(e)
}

raise_fault <- function(fault, call) {
  facts <- if (identical(fault$facts, "{}")) list() else unwrap_core(rs_from_json(fault$facts))
  args <- list(
    message = upper_first(fault$message), kind = fault$kind, code = fault$code,
    call = call
  )
  # `call` may be a call: do.call() would evaluate it.
  do.call(stop_warrant, c(args, facts[setdiff(names(facts), c("", names(args)))]), quote = TRUE)
}

# Not by toupper(): in a Turkish locale that of "i" is another letter.
upper_first <- function(x) {
  first <- chartr("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", substr(x, 1, 1))
  paste0(first, substr(x, 2, nchar(x)), if (!grepl("[.?!]$", x)) ".")
}
