#' Make a trajectory of a run
#'
#' The `agent_trajectory/v1` record of a run, to be judged by [evaluate()]. A call that
#' started is a `tool_call` and a `tool_result`; an action that was refused, waits or was
#' rejected is a `decision` with its tool, arguments and outcome in `metadata`; an answer
#' is `final`, one that `done` did not accept a `decision`.
#'
#' A run that was `completed` under a `done` criterion is a success; without one nobody
#' has said so, and the status is unknown. A run that `failed` is a failure. A run that was
#' stopped, or waits, or goes on is truncated, and unknown.
#'
#' @param x A run.
#' @param ... For methods.
#' @returns An [agent_trajectory()].
#' @examples
#' half <- agent_tool(function(x) x / 2, "half", "Half of a number.",
#'   parameters = list(x = list(type = "number")), side_effects = "none"
#' )
#' planner <- function(state, tools) {
#'   if (length(state$steps)) decide_finish("done") else decide_act("half", list(x = 3))
#' }
#' as.data.frame(as_trajectory(run_agent(agent(half, planner), "halve")))
#' @export
as_trajectory <- function(x, ...) {
  UseMethod("as_trajectory")
}

#' @export
as_trajectory.default <- function(x, ...) {
  stop_type(x, "x", "a run", quote(as_trajectory()))
}

#' @rdname as_trajectory
#' @export
as_trajectory.agent_run <- function(x, ...) {
  kept <- read_kept(x$store, x$run_id)
  new_agent_trajectory(unwrap_core(rs_run_trajectory(kept$lines, kept$content, x$audit_head)))
}
