#' Decide about a call that waits for a person
#'
#' When a call needs a person and nobody is there to ask, the run pauses and
#' `run$pending` says what is asked: the tool, its arguments, why, and until when.
#' `approve_tool_call()` records the decision in the run's store, here or in another
#' process; [resume_run()] then goes on. `approval()` is the same decision as a value,
#' for somebody who does not have the store: hand it to `resume_run(approvals = )`.
#'
#' An approval is bound to one request: to the run, the step, the tool with its
#' specification, the arguments, the policy, and all that was recorded before. It is used
#' up when the call starts. When the tool or the policy is another one at the time of
#' the resume, the outcome is `approval_stale` and nothing runs. A request that has
#' expired is never answered: with `human_gate(tool, ttl_s = 60)` a decision after 61
#' seconds is an error, and the outcome is `approval_expired`. No answer is no consent.
#'
#' With `"edit"` the call runs with your arguments, which are checked like any others and
#' recorded as yours. If the planner asks for the original again in this run, it is
#' refused.
#'
#' @param run A run that waits.
#' @param decision `"approve"`, `"reject"` or `"edit"`.
#' @param call Which request, where several wait: its place in `run$pending`, or its
#'   `request` digest.
#' @param approver Who decides, for the record.
#' @param arguments The arguments that shall run instead, for `"edit"`.
#' @param reason Why, for `"reject"`; the planner is shown it.
#' @param digest The `request` digest of a request.
#' @param granted `TRUE` or `FALSE`.
#' @returns `approve_tool_call()` gives the run as it stands then. `approval()` gives a list
#'   of class `agent_approval`. A decision that does not fit a request that waits is an
#'   error of class `warrant_error_approval`.
#' @examples
#' notes <- character()
#' write_note <- agent_tool(function(text) notes <<- c(notes, text), "write_note", "Keep a note.",
#'   parameters = list(text = list(type = "string")), side_effects = "write"
#' )
#' planner <- function(state, tools) {
#'   if (length(state$steps)) decide_finish("done") else decide_act("write_note", list(text = "hi"))
#' }
#' a <- agent(write_note, planner, policy = agent_policy(allow_effects = "write"))
#' run <- run_agent(a, "note something")
#' run$pending
#' run <- approve_tool_call(run, "approve", approver = "reviewer 1")
#' run <- resume_run(a, run)
#' run$steps[[1]]$outcome
#' notes
#' @export
approve_tool_call <- function(run, decision, call = NULL, approver, arguments = NULL, reason = NULL) {
  check_class(run, "agent_run", "run_agent(), resume_run() or read_run()")
  if (missing(approver)) stop_type(NULL, "approver", "the name of who decides", rlang::current_env())
  answer <- new_approval(NULL, decision, approver, arguments, reason)
  store <- run$store
  token <- named_for(store$lock(run$run_id))
  on.exit(store$unlock(token))
  kept <- read_kept(store, run$run_id)
  check_unedited(run, kept)
  # Others may have decided since this copy was made.
  now <- new_run(store, view_of(kept))
  answer$request <- which_request(if (is.null(call)) now else run, call)
  kept <- record_decision(store, token, run$run_id, kept, answer)
  new_run(store, view_of(kept), trail_head(run))
}

#' @rdname approve_tool_call
#' @export
approval <- function(digest, granted, approver, arguments = NULL, reason = NULL) {
  check_digest(digest)
  check_flag(granted)
  if (!granted && !is.null(arguments)) {
    stop_type(arguments, "arguments", "left out when the call is not granted", rlang::current_env())
  }
  decision <- if (!granted) "reject" else if (is.null(arguments)) "approve" else "edit"
  new_approval(digest, decision, approver, arguments, reason)
}

#' Ask in the console
#'
#' For `agent(approver = )`: shows each request and asks `y`, `n` or `e` (edit the
#' arguments as JSON). An empty line is no answer, and the run pauses. Without an
#' interactive session it gives no answer either.
#'
#' @param approver Your name, for the record.
#' @param ask A function that shows a prompt and returns the line that was typed.
#' @returns A function of a request.
#' @examples
#' asks <- approve_interactively("me", ask = function(prompt) "y")
#' request <- list(tool = "write_note", arguments = list(text = "hi"), side_effects = "write")
#' asks(request)
#' @export
approve_interactively <- function(approver = Sys.info()[["user"]], ask = NULL) {
  check_string(approver)
  check_function(ask, null = TRUE)
  function(request) {
    if (is.null(ask)) {
      if (!rlang::is_interactive()) return(NULL)
      ask <- function(prompt) readline(prompt)
    }
    writeLines(format_question(request))
    typed <- tolower(trimws(ask("Run it? (y / n / edit) ")))
    if (typed %in% c("y", "yes")) return(list(decision = "approve", approver = approver))
    if (typed %in% c("n", "no")) {
      reason <- trimws(ask("Why not? "))
      return(list(decision = "reject", approver = approver, reason = if (nzchar(reason)) reason))
    }
    if (typed %in% c("e", "edit")) {
      arguments <- rs_from_json(ask("Arguments as JSON: "))
      if (is.list(arguments) && !inherits(arguments, "warrant_fault")) {
        return(list(decision = "edit", approver = approver, arguments = arguments))
      }
      writeLines("That is no JSON object; nothing was decided.")
    }
    NULL
  }
}

# ---- requests and decisions ------------------------------------------------------

new_approval_request <- function(x, cores = NULL) {
  x["expires_at"] <- list(if (!is.null(x$expires_ms)) {
    as.POSIXct(x$expires_ms / 1000, origin = "1970-01-01", tz = "UTC")
  })
  x$expires_ms <- NULL
  core <- cores[[x$tool]]
  if (!is.null(core)) x["description"] <- list(core$spec$description)
  x$arguments <- shown_arguments(x$arguments)
  structure(x, class = "approval_request")
}

#' @export
format.approval_request <- function(x, ...) {
  c("<approval_request>", format_question(x), paste0("* request: ", substr(x$request, 1, 8)))
}

#' @export
print.approval_request <- function(x, ...) {
  writeLines(format(x, ...))
  invisible(x)
}

format_question <- function(x) {
  why <- c(
    policy = "the policy asks for tools that change something",
    tool = "the tool always asks",
    unknown_effect = "an equal call ran out of time, and what it did is not known"
  )
  c(
    if (length(x$prompt)) x$prompt,
    paste0("* tool: ", x$tool, " (", x$side_effects, ")"),
    paste0("* arguments: ", one_line(x$arguments)),
    if (length(x$reason)) paste0("* why: ", why[[x$reason]]),
    if (length(x$expires_at)) paste0("* until: ", format(x$expires_at, "%Y-%m-%d %H:%M:%S UTC"))
  )
}

format_request <- function(x) paste0(x$tool, " ", one_line(x$arguments))

new_approval <- function(request, decision, approver, arguments, reason, call = caller_env()) {
  words <- c("approve", "reject", "edit")
  if (!is.character(decision) || length(decision) != 1L || !decision %in% words) {
    stop_type(decision, "decision", paste("one of", paste(dQuote(words, FALSE), collapse = ", ")), call)
  }
  check_string(approver, call = call)
  check_string(reason, null = TRUE, call = call)
  if (decision == "edit") {
    if (is.null(arguments)) stop_type(NULL, "arguments", "given for an edit", call)
    check_arguments(arguments, call)
  } else if (!is.null(arguments)) {
    stop_type(arguments, "arguments", "left out unless the decision is \"edit\"", call)
  }
  structure(
    list(
      request = request, decision = decision, approver = approver, arguments = arguments,
      reason = reason, decided_ms = now_ms()
    ),
    class = "agent_approval"
  )
}

#' @export
format.agent_approval <- function(x, ...) {
  c(
    paste0("<agent_approval> ", x$decision), paste0("* request: ", substr(x$request, 1, 8)),
    paste0("* approver: ", x$approver)
  )
}

#' @export
print.agent_approval <- function(x, ...) {
  writeLines(format(x, ...))
  invisible(x)
}

check_approvals <- function(x, call = caller_env()) {
  if (is.null(x)) return(list())
  if (inherits(x, "agent_approval")) x <- list(x)
  good <- is.list(x) && all(vapply(x, is_approval, NA))
  if (!good) stop_type(x, "approvals", "made by approval(): one, or a list", call)
  for (decision in x) {
    check_digest(decision$request, "approvals", call)
    # Whoever kept the decision in a file may have edited it.
    new_approval(
      decision$request, decision$decision, decision$approver, decision$arguments, decision$reason, call
    )
  }
  x
}

is_approval <- function(x) inherits(x, "agent_approval") && is.list(x)

check_digest <- function(x, arg = caller_arg(x), call = caller_env()) {
  if (is.character(x) && length(x) == 1L && grepl("^[0-9a-f]{64}$", x)) return(invisible(x))
  stop_type(x, arg, "the digest of a request: 64 lowercase hex digits", call)
}

# What an approver answered, for the core.
decision_for_core <- function(answer, call = caller_env()) {
  if (answer$decision == "none") return(list(decision = NULL))
  approver <- if (is.null(answer$approver)) "approver" else check_string(answer$approver, "approver", call = call)
  list(
    decision = answer$decision, approver = approver, arguments = answer$arguments,
    reason = answer$reason, decided_ms = now_ms()
  )
}

which_request <- function(run, call, error_call = caller_env()) {
  wrong <- function(message, ...) {
    stop_warrant(c(message, ...), "approval", code = "which_request", run_id = run$run_id, call = error_call)
  }
  open <- vapply(run$pending, function(p) p$request, "")
  if (is.character(call) && length(call) == 1L) return(check_digest(call, "call", error_call))
  if (is.numeric(call) && length(call) == 1L && call %in% seq_along(open)) return(open[[call]])
  if (!is.null(call)) wrong("`call` must be a place in `run$pending` or a request digest.")
  if (length(open) == 1L) return(open)
  if (length(open) == 0L) wrong("The run has no request that waits for a decision.")
  wrong(
    "`call` must say which request is meant.",
    x = sprintf("%d wait: %s.", length(open), paste(vapply(run$pending, format_request, ""), collapse = "; "))
  )
}

record_decision <- function(store, token, run_id, kept, decision, audit = NULL, call = caller_env()) {
  out <- unwrap_core(
    rs_run_decide(kept$lines, kept$content, decision$request, unclass(decision), now_ms()), call
  )
  keep <- out$keep
  named_for(
    {
      store$append(run_id, keep$lines, keep$expect_head, keep$head, keep$content, token, TRUE)
      if (!is.null(audit)) audit$append(keep$lines)
    },
    call
  )
  if (out$expired) {
    stop_warrant(
      c("The request has expired; a decision comes too late.",
        i = "The call did not run and will not. Resume the run to go on without it."),
      "approval", code = "approval_expired", request = decision$request, call = call
    )
  }
  kept$lines <- c(kept$lines, keep$lines)
  kept$content <- c(kept$content, keep$content)
  kept
}
