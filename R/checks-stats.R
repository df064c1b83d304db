check_flag <- function(x, arg = deparse(substitute(x)), call = caller_env()) {
  if (is.logical(x) && length(x) == 1 && !is.na(x)) return(invisible(x))
  stop_warrant(
    c(sprintf("`%s` must be TRUE or FALSE.", arg)), "input", "not_a_flag", argument = arg, call = call
  )
}
