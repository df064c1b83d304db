#' Judge how agents worked together
#'
#' The *route* of a trajectory is the list of agents that held the task, in order; a
#' receiver of a handoff is on it also when it never acts. A trajectory whose steps do
#' not name their agents has none and is *missing* (`no_agent_identity`).
#'
#' * `criterion_route()`: the route is the case's `expected$route`. A case that declares
#'   none is *excluded* (`no_declared_route`).
#' * `criterion_tool_permissions()`: each agent called only its own tools. An agent that
#'   is not named may call nothing.
#' * `criterion_max_handoffs()`: the task changed hands at most `max_handoffs` times.
#'
#' @param permissions A named list: for each agent the names of its tools, which may
#'   be none.
#' @param max_handoffs A whole number from 0.
#' @inheritParams criterion_tool_called
#' @returns An `agent_criterion` for [suite()].
#' @export
#' @examples
#' criterion_route()
#' criterion_tool_permissions(list(triage = character(), billing = "issue_refund"))
#' criterion_max_handoffs(2)
criterion_route <- function(..., criterion = NULL, on_execution_error = c("missing", "fail")) {
  check_dots_empty()
  new_criterion("agent_route", list(), criterion, arg_match(on_execution_error))
}

#' @rdname criterion_route
#' @export
criterion_tool_permissions <- function(permissions, ..., criterion = NULL,
                                       on_execution_error = c("missing", "fail")) {
  check_dots_empty()
  if (is.list(permissions)) permissions <- lapply(object_if_empty(permissions), as.list)
  new_criterion(
    "agent_tool_permissions", list(permissions = permissions), criterion,
    arg_match(on_execution_error)
  )
}

#' @rdname criterion_route
#' @export
criterion_max_handoffs <- function(max_handoffs, ..., criterion = NULL,
                                   on_execution_error = c("missing", "fail")) {
  check_dots_empty()
  new_criterion(
    "agent_max_handoffs", list(max_handoffs = max_handoffs), criterion,
    arg_match(on_execution_error)
  )
}
