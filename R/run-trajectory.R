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
  steps <- do.call(c, c(list(list()), lapply(x$steps, trajectory_steps)))
  if (!is.null(x$answer)) steps <- c(steps, list(agent_step("final", result = x$answer)))
  judged <- isTRUE(attr(x, "judged"))
  agent_trajectory(
    steps,
    terminal_status = switch(x$status,
      completed = if (judged) "success" else "unknown",
      failed = "failure",
      "unknown"
    ),
    truncated = !x$status %in% c("completed", "failed"),
    step_limit = if (is.finite(x$limits$steps)) x$limits$steps
  )
}

trajectory_steps <- function(step) {
  if (step$decision == "finish") {
    note <- list(answer = step$answer, outcome = "answer_rejected")
    return(list(agent_step("decision", metadata = note)))
  }
  several <- length(step$actions) > 1L
  out <- list()
  for (i in seq_along(step$actions)) {
    action <- step$actions[[i]]
    note <- c(list(step = step$step), if (several) list(batch = step$step))
    out <- c(out, if (action$attempts > 0L) {
      called_steps(action, paste0(step$step, ".", i), note)
    } else {
      asked <- list(tool = action$tool, arguments = action$arguments, outcome = action$outcome)
      list(agent_step("decision", metadata = c(note, asked)))
    })
  }
  out
}

called_steps <- function(action, id, note) {
  note$outcome <- action$outcome
  result <- agent_step("tool_result",
    tool_name = action$tool, call_id = id, result = action$result, error = action$error,
    metadata = note
  )
  list(
    agent_step("tool_call",
      tool_name = action$tool, call_id = id, arguments = action$arguments, metadata = note
    ),
    if (!is.na(action$outcome)) result
  )[c(TRUE, !is.na(action$outcome))]
}
