#' Run an agent, and take up a run again
#'
#' `run_agent()` starts a run and drives it until it ends or waits for a person.
#' `resume_run()` takes up a run that waits, or whose process was killed, here or on
#' another machine. `read_run()` looks at a run in a store, without driving it.
#'
#' A run is `completed`, `stopped` (a limit; `stop_reason` names it), `failed`
#' (`stop_reason` is `planner_failed`, `invalid_decision`, `done_failed` or
#' `guardrail_blocked`), `awaiting_approval`, or `running`: then somebody drives it, or its
#' driver vanished and it can be resumed. A refused call, a failed tool and a spent limit
#' are no errors. A model whose endpoint fails is one (`warrant_error_model`, with the
#' `run_id`): it says nothing of the run, which can be resumed.
#'
#' Whoever drives a run owns it. A second driver is told so by an error of class
#' `warrant_error_already_running`; a driver that dies gives the run free. A Ctrl-C
#' leaves the run as it is, to be resumed.
#'
#' A call is recorded and charged before it starts. If the process vanishes during a
#' call, a resume starts it again when the tool is `idempotent`, through every gate
#' and at most three times in all; any other call is not repeated, its outcome is
#' `interrupted`. Tools can tell attempts of one call by [call_key()].
#'
#' A lease (`dbi_store()`) can be lost while its owner lives, as on a machine that was
#' suspended. If another owner has given up a call that then ends after all, the
#' end no longer counts: it is kept as `late_result` in the journal (once the run
#' has ended, beside it), stands in the column `late` of [tool_log()], and the late
#' `run_agent()` raises `warrant_error_late_result`, whose fields say which call it was
#' (`step`, `action`, `attempt`), its `outcome` and `result`, and what was `kept`. With
#' `memory_store()` and `file_store()` nothing comes late: their lock ends with the
#' process only.
#'
#' With [memory_store()] a run lives in its session, and in the run object: a copy that
#' was saved with [saveRDS()] is on its own, so to resume two copies runs the pending
#' action twice. With a `file_store()` or `dbi_store()` the store is what counts, and the
#' action runs once. An agent with an `audit` trail also refuses an old copy.
#'
#' @param agent An agent made by [agent()]. To resume, define it as before: tools whose
#'   specification or policy changed make what was approved stale.
#' @param goal What the run is for: any value that has a JSON form.
#' @param run_id An id of your own, or `NULL` for a random one. One that the store or
#'   the audit trail holds already is refused.
#' @param run A run, or the id of one in the agent's store.
#' @param approvals Decisions made by [approval()]: one, or a list.
#' @param secrets Values of secret or redacted arguments that were given before the
#'   pause: a vector, or a list of values, in any order (names do not count). Of these only
#'   keyed digests were kept, by which each finds its place. A call that lacks its secret
#'   is `interrupted`. What was given by [secret_env()] is read again by itself.
#' @param store A store.
#' @returns A list of class `agent_run`: `run_id`, `status`, `stop_reason`, `answer`,
#'   `error`, `goal`, `steps` (as a planner sees them, with one that is under way),
#'   `pending` (requests that wait for a person), `used`, `limits`, `audit_head` and
#'   `store`. Errors: `warrant_error_state` for a run that is owned, was edited, or does
#'   not fit the trail; `warrant_error_store` for a store that cannot be read or written;
#'   `warrant_error_input` for a run that cannot be set up.
#' @seealso [agent()], [approve_tool_call()], [tool_log()], [verify_audit()],
#'   [replay_run()]
#' @examples
#' double <- agent_tool(function(x) 2 * x, "double", "Twice a number.",
#'   parameters = list(x = list(type = "number")), side_effects = "none"
#' )
#' planner <- function(state, tools) {
#'   last <- length(state$steps)
#'   if (last == 3) return(decide_finish(state$steps[[last]]$result))
#'   decide_act("double", list(x = if (last) state$steps[[last]]$result else state$goal))
#' }
#' run <- run_agent(agent(double, planner), 5)
#' run
#' tool_log(run)[c("step", "arguments", "result")]
#' @export
run_agent <- function(agent, goal, run_id = NULL) {
  check_class(agent, "agent", "agent()")
  if (!is.null(run_id)) {
    check_run_id(run_id)
    if (!is.null(agent$audit) && agent$audit$has_run(run_id)) stop_run_exists(run_id)
  }
  started <- unwrap_core(
    rs_run_start(run_setup(agent), tool_pointers(agent), run_id, goal, now_ms())
  )
  drive <- new_drive(agent, agent$store, started$run, normal_form(goal), list())
  # Kept beside the content: the key, and whether an answer is judged.
  drive$extra <- c(
    stats::setNames(started$key, started$key_name), if (!is.null(agent$done)) c(done = "true")
  )
  drive_run(drive)
}

#' @rdname run_agent
#' @export
resume_run <- function(agent, run, approvals = NULL, secrets = NULL) {
  check_class(agent, "agent", "agent()")
  approvals <- check_approvals(approvals)
  secrets <- check_secrets(secrets)
  store <- if (inherits(run, "agent_run")) run$store else agent$store
  run_id <- if (inherits(run, "agent_run")) run$run_id else check_run_id(run, "run")
  token <- named_for(store$lock(run_id))
  unlock <- TRUE
  on.exit(if (unlock) store$unlock(token))
  kept <- read_kept(store, run_id)
  if (inherits(run, "agent_run")) check_unedited(run, kept) else view_of(kept)
  if (!is.null(agent$audit)) {
    named_for(agent$audit$complete(run_id, kept$lines, trail_head(run)))
  }
  for (decision in approvals) {
    kept <- record_decision(store, token, run_id, kept, decision, agent$audit)
  }
  resumed <- unwrap_core(rs_run_resume(
    run_setup(agent), tool_pointers(agent), kept$lines, kept$content, secrets, now_ms()
  ))
  drive <- new_drive(agent, store, resumed$run, resumed$goal, resumed$steps)
  if (needs_lease(store)) drive$lost <- resumed$lost
  unlock <- FALSE
  drive_run(drive, token)
}

#' @rdname run_agent
#' @export
read_run <- function(store, run_id) {
  check_class(store, "warrant_store", "memory_store(), file_store(), dbi_store() or new_store()")
  check_run_id(run_id)
  new_run(store, view_of(read_kept(store, run_id)))
}

#' Name the call that is under way
#'
#' For a tool that writes to a service which drops repeats: the key is the same each
#' time one and the same call of a run is attempted, and no other call has it.
#'
#' @returns A string, or `NULL` outside a run and in a worker process.
#' @examples
#' call_key()
#' @export
call_key <- function() the$call_key

#' Put the steps of a run into a prompt
#'
#' @param state The state a planner is given, or a run.
#' @returns JSON text: an array with `step`, `decision`, `tool`, `arguments`, `outcome`,
#'   `result` and `error` for each action, and the answer of each answer that was not
#'   accepted. `[]` at the start.
#' @examples
#' observations(list(goal = "x", steps = list()))
#' @export
observations <- function(state) {
  if (!is.list(state) || !is.list(state$steps)) {
    stop_type(state, "state", "the state of a planner, or a run", rlang::current_env())
  }
  rows <- list()
  for (step in state$steps) {
    if (step$decision == "finish") {
      rows <- c(rows, list(step[c("step", "decision", "answer", "error")]))
    } else {
      head <- list(step = step$step, decision = step$decision)
      fields <- c("tool", "arguments", "outcome", "result", "error")
      rows <- c(rows, lapply(step$actions, function(action) c(head, action[fields])))
    }
  }
  unwrap_core(rs_to_json(rows))
}
