# Driving a run: the core says what comes next, R does it.

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
