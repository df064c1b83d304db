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

# ---- driving: the core says what comes next, R does it ---------------------------

new_drive <- function(agent, store, core, goal, steps) {
  drive <- new.env(parent = emptyenv())
  drive$agent <- agent
  drive$store <- store
  drive$audit <- agent$audit
  drive$handle <- core$handle
  drive$run_id <- core$run_id
  drive$goal <- goal
  drive$steps <- growing_list(steps)
  drive$cards <- tool_cards(agent)
  drive$cores <- lapply(agent$tools, tool_core)
  drive$redacts <- any(vapply(drive$cores, function(core) core$redacts, NA))
  drive$origin <- unwrap_core(rs_origin(core$run_id, ""))
  drive$looked_at <- list()
  drive
}

drive_run <- function(drive, token = NULL, call = caller_env()) {
  drive$token <- if (is.null(token)) named_for(drive$store$lock(drive$run_id), call) else token
  on.exit(drive$store$unlock(drive$token))
  lost <- function(e) stop_lost(drive, e, call)
  named <- function(e) raise_again(e, call)
  tryCatch(drive_on(drive),
    warrant_error_not_owner = lost, warrant_error_stale_head = lost,
    warrant_error_store = named, warrant_error_audit = named
  )
}

drive_on <- function(drive) {
  out <- rs_run_next(drive$handle, now_ms())
  tell <- run_status(drive$run_id)
  repeat {
    unwrap_core(out, quote(run_agent()))
    tell(out$effect)
    if (!is.null(out$keep)) keep_records(drive, out$keep)
    if (!is.null(out$closed)) drive$steps$add(out$closed)
    out <- switch(out$effect,
      plan = do_plan(drive, out$about),
      call = do_call(drive, out$about),
      ask = do_ask(drive, out$about),
      check = do_check(drive, out$about),
      judge = do_judge(drive, out$about),
      break
    )
  }
  view <- unwrap_core(rs_run_view(drive$handle))
  view$steps <- drive$steps$get()
  view["goal"] <- list(drive$goal)
  view$judged <- !is.null(drive$agent$done)
  new_run(drive$store, view, if (is.null(drive$audit)) "" else view$head)
}

# The store first, then the trail.
keep_records <- function(drive, keep) {
  drive$keeping <- keep
  drive$store$append(
    drive$run_id, keep$lines, keep$expect_head, keep$head, c(drive$extra, keep$content),
    drive$token, keep$sync
  )
  drive$extra <- NULL
  if (!is.null(drive$audit) && length(keep$lines)) drive$audit$append(keep$lines)
}

do_plan <- function(drive, left) {
  state <- planner_state(drive, left)
  waited_s <- the$waited_s
  decision <- tryCatch(drive$agent$planner(state, drive$cards), error = identity)
  # Gives the steps free to grow in place, unless the planner kept the state.
  state$steps <- NULL
  if (the$waited_s > waited_s) rs_run_waited(drive$handle, the$waited_s - waited_s)
  if (length(drive$lost)) take_late(drive)
  if (inherits(decision, "error")) {
    # A model that cannot be reached says nothing of the run: it is taken up again.
    if (isTRUE(decision$resumable)) {
      decision$run_id <- drive$run_id
      rlang::cnd_signal(decision)
    }
    return(fail_run(drive, "planner_failed", plain(conditionMessage(decision))))
  }
  if (!inherits(decision, "agent_decision")) {
    text <- paste0(
      "A planner must return decide_act() or decide_finish(), not ", friendly(decision), "."
    )
    return(fail_run(drive, "invalid_decision", text))
  }
  if (drive$redacts) decision <- with_redacted(decision, drive$cores)
  out <- rs_run_decided(drive$handle, unclass(decision), now_ms())
  # Made by hand, or with a value without a JSON form: nothing was decided.
  if (inherits(out, "warrant_fault") && out$kind == "input") {
    return(fail_run(drive, "invalid_decision", out$message))
  }
  out
}

planner_state <- function(drive, left = NULL) {
  list(goal = drive$goal, steps = drive$steps$get(), left = left, run_id = drive$run_id)
}

# R appends to a list in place while nothing else refers to it, and copies it else.
# A binding of an environment that is changed as `e$x[[i]] <- y` always counts as shared.
growing_list <- function(items) {
  list(
    add = function(item) {
      items[[length(items) + 1L]] <<- item
      invisible(NULL)
    },
    get = function() items
  )
}

fail_run <- function(drive, reason, text) rs_run_failed(drive$handle, reason, text, now_ms())

do_call <- function(drive, call) {
  drive$calling <- call$tool
  if (needs_lease(drive$store)) {
    hold_s <- if (is.null(call$timeout_s)) 60 else call$timeout_s + 60
    drive$store$renew(drive$token, hold_s)
  }
  context <- new_context(drive$origin, call$step, approved = TRUE, timeout_s = call$timeout_s)
  core <- drive$cores[[call$tool]]
  if (!is.null(core$redact$result)) context$kept <- new.env(parent = emptyenv())
  outer <- the$call_key
  on.exit(the$call_key <- outer)
  the$call_key <- call$key
  # What call_tool() raises is a fault of its caller; here it is how the call ended.
  result <- tryCatch(
    run_call(core, call$arguments, NULL, context),
    warrant_error = identity
  )
  end <- check_result(drive, call, call_end(result))
  if (length(context$kept$value)) end$hidden <- json_or_null(context$kept$value[[1]])
  if (length(drive$lost)) take_late(drive)
  rs_run_called(drive$handle, call$action, call$attempt, end, now_ms())
}

# Guardrails look before anything happens.
do_check <- function(drive, about) {
  rails <- rails_of(drive$agent$guardrails, about$stage)
  if (about$stage == "tool") drive$looked_at[[as.character(about$action)]] <- about$arguments
  value <- switch(about$stage,
    input = drive$goal,
    output = about$value,
    tool = checked_call(drive, about$tool, about$arguments)
  )
  context <- planner_state(drive)
  context$left <- NULL
  context$called <- as.character(about$called)
  found <- findings(rails, value, context)
  context$steps <- NULL
  action <- if (is.null(about$action)) 0 else about$action
  rs_run_checked(drive$handle, about$stage, action, found, now_ms())
}

checked_call <- function(drive, tool, arguments) {
  list(
    when = "before", tool = tool, arguments = arguments,
    side_effects = drive$cards[[tool]]$side_effects
  )
}

# They look again at what came back; what they refuse is withheld.
check_result <- function(drive, call, end) {
  if (length(drive$agent$guardrails) == 0L) return(end)
  rails <- rails_of(drive$agent$guardrails, "tool")
  if (length(rails) == 0L || end$status != "executed") return(end)
  arguments <- drive$looked_at[[as.character(call$action)]]
  looked_at <- checked_call(drive, call$tool, arguments)
  looked_at$when <- "after"
  looked_at["result"] <- list(normal_form(end$value))
  context <- planner_state(drive)
  context$left <- NULL
  context$called <- call$tool
  found <- findings(rails, looked_at, context)
  context$steps <- NULL
  unwrap_core(rs_run_checked(drive$handle, "result", call$action, found, now_ms()))
  why <- blocking(found)
  if (is.null(why)) return(end)
  text <- paste("BLOCKED:", why, "The call did run; its result is withheld.")
  list(
    status = "guardrail_blocked", text = text, bytes = nchar(text, "bytes"),
    duration_s = end$duration_s
  )
}

needs_lease <- function(store) !inherits(store, c("memory_store", "file_store"))

# How a call ended, in the words of the core.
call_end <- function(result) {
  if (inherits(result, "error")) {
    text <- paste("ERROR:", plain(conditionMessage(result)))
    return(list(
      status = "error", text = text, bytes = nchar(text, "bytes"),
      notes = list(error_class = I(class(result)), warnings = I(character()), messages = I(character()))
    ))
  }
  result <- unclass(result)
  executed <- result$status == "executed"
  status <- if (result$status %in% c("executed", "timed_out", "tool_exhausted")) result$status else "error"
  value <- result$value
  if (executed && result$truncated) value <- shown_value(result)
  said <- result$truncated || length(result$error_class) + length(result$warnings) +
    length(result$messages) > 0L
  end <- list(
    status = status, bytes = result$bytes, duration_s = result$duration_s,
    truncated = result$truncated,
    text = if (!executed) result$content,
    notes = if (said) {
      list(
        error_class = I(result$error_class), warnings = I(result$warnings),
        messages = I(result$messages), result_hash = result$result_hash,
        shown_hash = result$shown_hash
      )
    }
  )
  if (executed) end["value"] <- list(value)
  end
}

# What is left of a result that was cut: text, or whole items as JSON.
shown_value <- function(result) {
  value <- result$value
  if (is.character(value) && length(value) == 1L && !inherits(value, "json")) return(result$content)
  parsed <- rs_from_json(result$content)
  if (inherits(parsed, "warrant_fault")) result$content else structure(result$content, class = "json")
}

do_ask <- function(drive, request) {
  decision <- tryCatch(
    decision_for_core(as_decision(drive$agent$approver(new_approval_request(request, drive$cores)))),
    error = function(e) {
      bad <- inherits(e, "warrant_error_approver_answer")
      stop_approver(drive, conditionMessage(e), if (bad) "approver_answer" else "approver_failed")
    }
  )
  out <- rs_run_answered(drive$handle, request$request, decision, now_ms())
  if (!inherits(out, "warrant_fault")) return(out)
  # It expired while the approver thought; that is recorded, and the run goes on.
  if (out$code == "approval_expired") return(rs_run_next(drive$handle, now_ms()))
  if (out$kind == "approval") stop_approver(drive, out$message, out$code)
  out
}

# No answer is no consent: the run stays where it is, to be taken up again.
stop_approver <- function(drive, found, code) {
  stop_warrant(
    c("The approver must give an answer that can be used.", x = plain(found),
      i = paste0("Nothing ran. resume_run(agent, \"", drive$run_id, "\") asks again.")),
    "approval", code = code, run_id = drive$run_id, call = quote(run_agent())
  )
}

do_judge <- function(drive, answer) {
  verdict <- tryCatch(drive$agent$done(answer, planner_state(drive)), error = identity)
  if (isTRUE(verdict) || isFALSE(verdict)) {
    return(rs_run_judged(drive$handle, verdict, now_ms()))
  }
  text <- if (inherits(verdict, "error")) {
    plain(conditionMessage(verdict))
  } else {
    paste0("`done` must answer TRUE or FALSE, not ", friendly(verdict), ".")
  }
  fail_run(drive, "done_failed", text)
}

# Sys.time() makes a date-time first.
now_ms <- function() {
  if (is.null(the$clock)) rs_clock_ms() else floor(the$clock() * 1000)
}

json_or_null <- function(x) {
  text <- rs_to_json(x)
  if (inherits(text, "warrant_fault")) NULL else text
}

normal_form <- function(x) unwrap_core(rs_from_json(unwrap_core(rs_to_json(x))))
