# Checks of arguments: each returns invisibly or raises an error that names the
# argument. Private.

check_string <- function(x, arg = caller_arg(x), null = FALSE, empty = FALSE, call = caller_env()) {
  good <- is.character(x) && length(x) == 1L && !is.na(x) && (empty || nzchar(x))
  if (good || null && is.null(x)) return(invisible(x))
  stop_type(x, arg, if (null) "one string or NULL" else "one string", call)
}

check_flag <- function(x, arg = caller_arg(x), call = caller_env()) {
  if (is.logical(x) && length(x) == 1L && !is.na(x)) return(invisible(x))
  stop_type(x, arg, "TRUE or FALSE", call)
}

check_number <- function(x, arg = caller_arg(x), min = -Inf, null = FALSE, call = caller_env()) {
  good <- is.numeric(x) && length(x) == 1L && !is.na(x) && x >= min
  if (good || null && is.null(x)) return(invisible(x))
  what <- paste0("one number", if (min > -Inf) paste(" of at least", min), if (null) " or NULL")
  stop_type(x, arg, what, call)
}

check_count <- function(x, arg = caller_arg(x), min = 0, infinite = TRUE, call = caller_env()) {
  good <- is.numeric(x) && length(x) == 1L && !is.na(x) && x >= min &&
    (x == trunc(x) && x <= 2^53 || infinite && x == Inf)
  if (good) return(invisible(x))
  stop_type(x, arg, paste0("a whole number of at least ", min, if (infinite) ", or Inf"), call)
}

check_names <- function(x, arg = caller_arg(x), null = FALSE, call = caller_env()) {
  good <- is.character(x) && !anyNA(x) && all(nzchar(x))
  if (good || null && is.null(x)) return(invisible(x))
  stop_type(x, arg, "a character vector without NA or empty strings", call)
}

check_function <- function(x, arg = caller_arg(x), null = FALSE, call = caller_env()) {
  if (is.function(x) || null && is.null(x)) return(invisible(x))
  stop_type(x, arg, if (null) "a function or NULL" else "a function", call)
}

check_dots <- function(..., call = caller_env()) {
  if (...length() == 0L) return(invisible())
  names <- names(list(...))
  found <- if (length(names) && any(nzchar(names))) {
    paste0("`", paste(names[nzchar(names)], collapse = "`, `"), "`")
  } else {
    "an unnamed argument"
  }
  stop_warrant(
    c("Arguments after `...` must be spelled out in full.", x = paste0("Found ", found, ".")),
    "input", call = call
  )
}

# The same, of the dots of the caller.
check_dots_empty <- function(call = caller_env()) {
  eval(quote(check_dots(..., call = environment())), call)
}

# One of the choices that the caller's own default lists; the first when nothing
# was given.
arg_match <- function(arg, call = caller_env()) {
  name <- deparse(substitute(arg))
  choices <- eval(formals(sys.function(sys.parent()))[[name]], call)
  one_of(arg, choices, name, call)
}

stop_type <- function(x, arg, what, call) {
  stop_warrant(
    c(paste0("`", arg, "` must be ", what, "."), x = paste0("Found ", friendly(x), ".")),
    "input", argument = arg, call = call
  )
}

# What was found, in words, and short.
friendly <- function(x) {
  if (is.null(x)) return("NULL")
  if (is.function(x)) return("a function")
  if (is.atomic(x) && length(x) == 1L) {
    return(paste0(if (is.character(x)) dQuote(substr(x, 1, 60), FALSE) else format(x)))
  }
  if (is.object(x)) return(paste0("an object of class <", class(x)[[1]], ">"))
  sprintf("%s of length %d", typeof(x), length(x))
}

caller_arg <- function(x) {
  arg <- eval.parent(substitute(substitute(x)))
  if (is.symbol(arg)) as.character(arg) else paste(deparse(arg, nlines = 1L), collapse = " ")
}

one_of <- function(x, choices, arg = caller_arg(x), call = caller_env()) {
  if (identical(x, choices)) return(choices[[1]])
  if (is.character(x) && length(x) == 1L && x %in% choices) return(x)
  stop_type(x, arg, paste("one of", paste(dQuote(choices, FALSE), collapse = ", ")), call)
}
