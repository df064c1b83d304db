#' Judge the answer
#'
#' `criterion_contains()` passes when the answer contains the expected text: case
#' counts, nothing is trimmed. `criterion_equals()` passes when the answer is the
#' expected value: the same JSON, so that `1` is `1.0` and the order of keys is nothing.
#'
#' The answer is the system's output, or the part of it at `field`. What is expected is
#' the case's `expected`: at `expected_field` where given, else at `field` where
#' `expected` has fields, else the whole. A case that expects nothing there is
#' *excluded* (`no_expected`); one whose output lacks the field is *missing*
#' (`missing_output_field`). For `contains`, anything but text is looked at as its
#' JSON text (`true`, `1`), and null is the empty text, which every answer contains.
#'
#' @param criterion Name of the criterion; it is the id of its rate.
#' @param field,expected_field Dotted paths such as `"answer.items.0"`, or `NULL`.
#' @param ... Must be empty.
#' @param on_execution_error What a case counts as whose system raised an error or ran
#'   out of time: `"missing"` (it stays in the denominator and widens the interval) or
#'   `"fail"`.
#' @returns An `agent_criterion` for [suite()].
#' @export
#' @examples
#' criterion_contains("answer_correct", field = "answer")
#' criterion_equals("total", field = "total")
criterion_contains <- function(criterion, field = NULL, expected_field = NULL, ...,
                               on_execution_error = c("missing", "fail")) {
  check_dots_empty()
  new_criterion(
    "contains", list(field = field, expected_field = expected_field), criterion,
    arg_match(on_execution_error)
  )
}

#' @rdname criterion_contains
#' @export
criterion_equals <- function(criterion, field = NULL, expected_field = NULL, ...,
                             on_execution_error = c("missing", "fail")) {
  check_dots_empty()
  new_criterion(
    "equals", list(field = field, expected_field = expected_field), criterion,
    arg_match(on_execution_error)
  )
}
