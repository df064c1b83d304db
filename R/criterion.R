# Criteria as R values. The core checks parameters and settles the name.

new_criterion <- function(type, params, criterion = NULL, on_execution_error = "missing",
                          fn = NULL, call = caller_env()) {
  fields <- c(
    sprintf("\"type\":%s", unwrap_core(rs_to_json(type), call)),
    if (!is.null(criterion)) sprintf("\"criterion\":%s", unwrap_core(rs_to_json(criterion), call)),
    sprintf("\"on_execution_error\":%s", unwrap_core(rs_to_json(on_execution_error), call)),
    json_fields(params, call)
  )
  criterion_of_json(paste0("{", paste(fields, collapse = ","), "}"), !is.null(criterion), fn, call)
}

# Parameters that are NULL are left out.
json_fields <- function(params, call) {
  params <- params[!vapply(params, is.null, NA)]
  vapply(names(params), \(name) {
    paste0("\"", name, "\":", unwrap_core(rs_to_json(params[[name]]), call))
  }, "")
}

criterion_of_json <- function(json, explicit, fn = NULL, call = caller_env()) {
  checked <- unwrap_core(rs_check_declaration("evaluator", json), call)
  fields <- unwrap_core(rs_from_json(checked))
  structure(
    list(
      type = fields$type, criterion = fields$criterion, params = fields$config,
      on_execution_error = fields$on_execution_error, explicit = explicit, fn = fn,
      json = json
    ),
    class = "agent_criterion"
  )
}

# A criterion from an evaluator as a suite file declares it. Lists of one that
# became a vector are lists again.
criterion_from_spec <- function(x, call = caller_env()) {
  if (is.character(x$constraints)) x$constraints <- as.list(x$constraints)
  if (is.list(x$permissions)) {
    x$permissions <- lapply(x$permissions, \(tools) if (is.character(tools)) as.list(tools) else tools)
    x$permissions <- object_if_empty(x$permissions)
  }
  checked <- criterion_of_json(unwrap_core(rs_to_json(x), call), !is.null(x$criterion), call = call)
  if (is.null(x$criterion)) checked$json <- unwrap_core(rs_to_json(x[names(x) != "criterion"]), call)
  checked
}

# The declaration for the core, under the name that is settled.
criterion_json <- function(x, settled = TRUE) {
  if (x$explicit || !settled) return(x$json)
  name <- unwrap_core(rs_to_json(x$criterion))
  paste0("{\"criterion\":", name, ",", sub("{", "", x$json, fixed = TRUE))
}

#' @export
print.agent_criterion <- function(x, ...) {
  writeLines(sprintf("<agent_criterion> %s (%s)", x$criterion, x$type))
  params <- x$params[!vapply(x$params, is.null, NA)]
  if (length(params)) {
    values <- vapply(params, \(value) unwrap_core(rs_to_json(value)), "")
    writeLines(paste("*", cut_text(paste(names(params), values, sep = ": "), 74)))
  }
  if (x$on_execution_error == "fail") writeLines("* a case whose system did not answer fails")
  invisible(x)
}

#' Judge by a function of your own
#'
#' Use it where no ready criterion asks the right question. The function is called
#' with the arguments it names among `case` (a list with `id`, `input`, `expected`
#' and `metadata`), `output` (the answer) and `trajectory` (an [agent_trajectory()],
#' or `NULL` where there is not exactly one), once for each case that was answered.
#'
#' It answers `TRUE` (pass), `FALSE` (fail), `NA` (cannot be told: *missing*, with the
#' reason `no_answer`) or `excluded("reason")`. Any other answer, and an error, make
#' the case *missing* with the reason `evaluator_error`, and are listed in the
#' evaluation's `problems`. Missing cases stay in the denominator and widen the
#' interval; excluded ones leave it.
#'
#' @param fn The function.
#' @param criterion Name of the criterion; it is the id of its rate.
#' @param ... Must be empty.
#' @param on_execution_error What a case counts as whose system raised an error or ran
#'   out of time: `"missing"` or `"fail"`.
#' @returns An `agent_criterion` for [suite()].
#' @export
#' @examples
#' criterion(function(output) nchar(output) < 100, "short_answer")
criterion <- function(fn, criterion, ..., on_execution_error = c("missing", "fail")) {
  check_dots_empty()
  check_function(fn)
  check_function_arguments(fn)
  new_criterion("function", list(), criterion, arg_match(on_execution_error), fn)
}

function_arguments <- c("case", "output", "trajectory")

check_function_arguments <- function(fn, call = caller_env()) {
  arguments <- formals(args(fn))
  required <- names(arguments)[vapply(arguments, \(x) is.symbol(x) && !nzchar(x), NA)]
  other <- setdiff(required, c(function_arguments, "..."))
  if (length(other) == 0) return(invisible(fn))
  stop_warrant(
    c(
      "The arguments of `fn` must be among case, output and trajectory.",
      x = sprintf("It also needs %s.", paste(other, collapse = ", "))
    ),
    "input", "invalid_function", argument = "fn", call = call
  )
}

#' Leave a case out of a criterion
#'
#' The answer of a function given to [criterion()] for a case that the criterion does
#' not apply to. Such a case leaves the denominator and is counted under its reason.
#'
#' @param reason A short code in snake case.
#' @returns An `agent_excluded` value.
#' @export
#' @examples
#' criterion(
#'   function(case, output) {
#'     if (is.null(case$expected)) return(excluded("nothing_expected"))
#'     identical(output, case$expected)
#'   },
#'   "same_answer"
#' )
excluded <- function(reason) {
  if (!is.character(reason) || length(reason) != 1 || is.na(reason) || !grepl("^[a-z][a-z0-9_]*$", reason)) {
    stop_warrant(
      "`reason` must be a short code of lower-case letters, digits and underscores.",
      "input", "invalid_reason", argument = "reason", call = caller_env(0)
    )
  }
  structure(list(reason = reason), class = "agent_excluded")
}
