#' Record what an agent does, as it does it
#'
#' For a system that runs its own loop: call it inside the function given to
#' [run_suite()], once for each step or for several at a time. All calls during one
#' case add to one trajectory. Outside [run_suite()] it checks what it is given and
#' records nothing, so a system can be tried by itself.
#'
#' Anything malformed stops the whole run, also when the system catches the error: a
#' trajectory that is wrong must not become a missing case.
#'
#' @param ... Steps ([agent_step()]), checks ([constraint_check()]), checkpoints
#'   ([agent_checkpoint()]), or a whole trajectory. Steps are numbered in the order in
#'   which they come.
#' @param terminal_status `"success"`, `"failure"` or `"unknown"`; the last one given
#'   counts.
#' @param truncated Whether the trajectory stops before the agent did.
#' @param step_limit The agent's own limit on steps, if it has one.
#' @returns `NULL`, invisibly.
#' @export
#' @examples
#' desk <- function(case) {
#'   record_trajectory(agent_step("tool_call", tool_name = "lookup", arguments = list(id = 7)))
#'   record_trajectory(
#'     agent_step("tool_result", tool_name = "lookup", result = "open"),
#'     terminal_status = "success"
#'   )
#'   "open"
#' }
#' cases <- suite(
#'   data.frame(id = "a", input = "order 7"),
#'   list(criterion_tool_called("lookup"))
#' )
#' run_suite(cases, agent_system(desk, records = "agent_trajectory/v1"))
record_trajectory <- function(..., terminal_status = NULL, truncated = NULL,
                              step_limit = NULL) {
  recorder <- the$recorder
  if (is.null(recorder)) recorder <- new_recorder()
  withCallingHandlers(
    {
      add_parts(recorder, list(...))
      settings <- list(
        terminal_status = terminal_status, truncated = truncated, step_limit = step_limit
      )
      settings <- settings[!vapply(settings, is.null, NA)]
      recorder$settings[names(settings)] <- settings
    },
    warrant_error = function(e) recorder$fault <- or_else(recorder$fault, e)
  )
  invisible(NULL)
}

new_recorder <- function() {
  recorder <- new.env(parent = emptyenv())
  recorder$steps <- recorder$constraints <- recorder$checkpoints <- list()
  recorder$whole <- list()
  recorder$settings <- list()
  recorder$fault <- NULL
  recorder$run_ids <- character()
  recorder
}

add_parts <- function(recorder, parts, call = caller_env(2)) {
  slots <- c(
    agent_step = "steps", constraint_check = "constraints", agent_checkpoint = "checkpoints",
    agent_trajectory = "whole"
  )
  for (part in parts) {
    if (inherits(part, "agent_run")) {
      recorder$run_ids <- c(recorder$run_ids, part$run_id)
      recorder$store <- part$store
      part <- as_trajectory(part)
    }
    slot <- slots[names(slots) %in% class(part)]
    if (length(slot) == 0) {
      stop_warrant(
        c(
          "`...` must hold steps, checks, checkpoints or a trajectory.", x = class_words(part),
          i = "Make them with agent_step(), constraint_check() or agent_checkpoint()."
        ),
        "trajectory", "not_a_part", call = call
      )
    }
    recorder[[slot[[1]]]] <- c(recorder[[slot[[1]]]], list(part))
  }
}

# JSON of what was recorded: nothing, one trajectory, or (wrongly) several.
recorded_json <- function(recorder) {
  parts <- c(recorder$steps, recorder$constraints, recorder$checkpoints, recorder$settings)
  own <- if (length(parts)) {
    list(do.call(agent_trajectory, c(
      list(recorder$steps, constraints = recorder$constraints, checkpoints = recorder$checkpoints),
      recorder$settings
    )))
  }
  vapply(c(recorder$whole, own), trajectory_json, "")
}
