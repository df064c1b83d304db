#' Judge which tools were called
#'
#' These read the one trajectory of a case. A case without one is *missing*. On a
#' trajectory that was cut (`truncated`) they decide only what no continuation could
#' change, and are otherwise *missing* (`truncated_trajectory`).
#'
#' * `criterion_tool_called()`: the tool was called at least `min_calls` times.
#' * `criterion_no_tool_loop()`: no call was repeated more than `max_repeats` times in a
#'   row. Calls are equal when tool and arguments are; what stands between them is
#'   nothing. With `same_result`, only when the results are equal too: a call that is
#'   repeated while its result changes is polling.
#' * `criterion_tool_sequence()`: the called tools relate to the case's
#'   `expected$tools` as `match` says. A case that declares no tools is *excluded*
#'   (`no_declared_tools`); an empty declaration says that none is called.
#' * `criterion_no_undeclared_tool()`: no tool beyond `expected$tools` was called.
#' * `criterion_flow()`: after a call of one of the tools `after`, none of the tools
#'   `never` was called: what [guardrail_flow()] holds while a run goes on. Refused calls
#'   were not made; calls made in parallel count in the order of the record.
#'
#' @details
#' `match` is `"exact"` (the same in order), `"unordered"` (the same in any order),
#' `"subset"` (nothing called beyond the declared) or `"superset"` (everything declared
#' was called). Calls that were made in parallel (see [agent_step()]) have no order
#' among them. With `arguments`, entries of `expected$tools` may be lists of `name` and
#' `arguments`, which must be equal (`"exact"`) or contained in the call's
#' (`"subset"`); pairs are chosen so that as many as possible fit. Two called tools
#' `f(q = 1, p = 2)` and `f(z = 0)` fit the declared `f()` and `f(q = 1)` under
#' `"subset"`, although the first call would fit both.
#'
#' @param tool_name Name of the tool.
#' @param ... Must be empty.
#' @param min_calls,max_repeats Whole numbers from 1.
#' @param same_result Whether equal results are needed to make a repetition.
#' @param match How calls and declared tools must relate.
#' @param arguments Whether declared arguments are compared.
#' @param after,never Names of tools.
#' @param criterion Name of the criterion; `NULL` for the usual name. Where two
#'   criteria of a suite have one usual name, the second gets a number.
#' @inheritParams criterion_contains
#' @returns An `agent_criterion` for [suite()].
#' @export
#' @examples
#' criterion_tool_called("lookup_order")
#' criterion_no_tool_loop(max_repeats = 3)
#' criterion_tool_sequence(match = "superset", arguments = "subset")
#' criterion_no_undeclared_tool()
#' criterion_flow(after = "read_mail", never = "send_mail")
criterion_tool_called <- function(tool_name, ..., min_calls = 1, criterion = NULL,
                                  on_execution_error = c("missing", "fail")) {
  check_dots_empty()
  new_criterion(
    "agent_tool_called", list(tool_name = tool_name, min_calls = min_calls), criterion,
    arg_match(on_execution_error)
  )
}

#' @rdname criterion_tool_called
#' @export
criterion_no_tool_loop <- function(..., max_repeats = 2, same_result = FALSE, criterion = NULL,
                                   on_execution_error = c("missing", "fail")) {
  check_dots_empty()
  new_criterion(
    "agent_no_tool_loop", list(max_repeats = max_repeats, same_result = same_result),
    criterion, arg_match(on_execution_error)
  )
}

#' @rdname criterion_tool_called
#' @export
criterion_tool_sequence <- function(..., match = c("exact", "unordered", "subset", "superset"),
                                    arguments = c("ignore", "exact", "subset"),
                                    criterion = NULL,
                                    on_execution_error = c("missing", "fail")) {
  check_dots_empty()
  new_criterion(
    "agent_tool_sequence", list(match = arg_match(match), arguments = arg_match(arguments)),
    criterion, arg_match(on_execution_error)
  )
}

#' @rdname criterion_tool_called
#' @export
criterion_no_undeclared_tool <- function(..., criterion = NULL,
                                         on_execution_error = c("missing", "fail")) {
  check_dots_empty()
  new_criterion("agent_no_undeclared_tool", list(), criterion, arg_match(on_execution_error))
}

#' @rdname criterion_tool_called
#' @export
criterion_flow <- function(after, never, ..., criterion = NULL,
                           on_execution_error = c("missing", "fail")) {
  check_dots_empty()
  check_names(after)
  check_names(never)
  new_criterion(
    "agent_flow", list(after = as.list(after), never = as.list(never)), criterion,
    arg_match(on_execution_error)
  )
}

#' Judge how a run went
#'
#' * `criterion_max_steps()`: at most `max_steps` steps of any kind.
#' * `criterion_constraints()`: the checks that the system recorded
#'   ([constraint_check()]) held. Named constraints that were not checked, and a case
#'   without any check, are *excluded*, unless a check failed.
#'
#' @param max_steps A whole number from 1.
#' @param constraints Names of constraints; none for all that were recorded.
#' @inheritParams criterion_tool_called
#' @returns An `agent_criterion` for [suite()].
#' @export
#' @examples
#' criterion_max_steps(10)
#' criterion_constraints("no_deletion")
criterion_max_steps <- function(max_steps, ..., criterion = NULL,
                                on_execution_error = c("missing", "fail")) {
  check_dots_empty()
  new_criterion(
    "agent_max_steps", list(max_steps = max_steps), criterion, arg_match(on_execution_error)
  )
}

#' @rdname criterion_max_steps
#' @export
criterion_constraints <- function(constraints = character(), ..., criterion = NULL,
                                  on_execution_error = c("missing", "fail")) {
  check_dots_empty()
  new_criterion(
    "agent_constraints_satisfied", list(constraints = as.list(constraints)), criterion,
    arg_match(on_execution_error)
  )
}
