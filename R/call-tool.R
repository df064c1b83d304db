# The one place in the package that runs a tool.

#' Call a tool under its policy
#'
#' Checks the arguments, takes one call of the budget, asks a person where the
#' tool requires it, runs the function under its time limit, bounds and hashes the
#' result, and logs the call. What goes wrong in this is a value, not an error:
#' look at `status`.
#'
#' @param tool A tool made by [agent_tool()].
#' @param arguments The arguments: JSON text, as a model sends it, or a named
#'   list. A list is read by the tool's schema, so `list(tags = "a")` is an array
#'   of one where the schema says array.
#' @param approver Who is asked before a call of a gated tool, and before one that
#'   equals a call of which it is not known what it did (it was `timed_out` or
#'   `interrupted`, and the tool is not idempotent): a function of the request, a
#'   list with `tool`, `prompt`, `arguments`, `side_effects`, `description` and
#'   `reason` (`"tool"` or `"unknown_effect"`). It answers `"approve"` (or `TRUE`), `"reject"` (or `FALSE`),
#'   `list(decision = "reject", reason = "...")`, `list(decision = "edit",
#'   arguments = list(...))`, or `NULL` for no answer. With nobody to ask nothing
#'   runs.
#' @returns A `tool_result`: a list with `status` (the outcomes are listed in
#'   `system.file("spec", "outcomes.md", package = "warrant")`), `content` (the
#'   text for the model), `value` (what the function returned, when it was
#'   `executed`), `arguments_hash`, `result_hash` (of the whole result),
#'   `shown_hash` (of the text), `truncated`, `bytes`, `duration_s`,
#'   `error_class`, `warnings` and `messages`.
#'
#'   Errors are for the caller's mistakes: `warrant_error_input` for what is not a
#'   tool or has no JSON form, `warrant_error_approval` for an approver that answers something else,
#'   `warrant_error_secret` for a secret that is not set. A Ctrl-C stays an
#'   interrupt.
#' @examples
#' half <- agent_tool(function(x) x / 2, "half", "Half of a number.",
#'                    parameters = list(x = list(type = "number")), side_effects = "none")
#' call_tool(half, '{"x": 5}')
#' call_tool(half, list(x = "five"))$content
#' @export
call_tool <- function(tool, arguments = list(), approver = NULL) {
  core <- tool_core(tool)
  if (!is.list(arguments)) check_arguments(arguments)
  if (!is.null(approver)) check_function(approver)
  run_call(core, arguments, approver)
}

# Where a call comes from. `approved`: whoever calls has asked already (a run).
new_context <- function(origin = 0, step = 0, round = 0, approved = FALSE, why = "", timeout_s = NULL) {
  list(
    origin = origin, step = step, round = round, approved = approved, why = why,
    timeout_s = timeout_s
  )
}
no_context <- new_context()
loop_context <- new_context(why = "loop")

run_call <- function(core, arguments, approver = NULL, context = no_context, call = caller_env()) {
  begun <- rs_call_begin(
    core$ptr, arguments, if (!is.null(the$clock)) the$clock(), context$approved,
    context$origin, context$step, context$round
  )
  if (is.null(begun$call)) {
    if (!is.null(begun$status)) return(begun)
    if (!identical(begun$code, "not_a_tool")) unwrap_core(begun, call)
    # A tool that was saved and read back is made live again first.
    tool_ptr(core)
    return(run_call(core, arguments, approver, context, call))
  }
  ptr <- core$ptr
  number <- begun$call
  texts <- if (core$redacts) redacted_arguments(core, begun$args)
  if (length(texts)) unwrap_core(rs_call_shown(number, texts), call)
  started <- is.null(begun$recorded)
  open <- TRUE
  on.exit(if (open) leave_call(ptr, number, started))
  if (!started) {
    answer <- ask(core, begun, texts, approver, call)
    open <- FALSE
    if (answer$decision == "edit") {
      rs_call_drop(number)
      context$approved <- TRUE
      return(run_call(core, answer$arguments, NULL, context, call))
    }
    end <- unwrap_core(rs_call_decided(ptr, number, answer$decision, answer$reason %or% context$why))
    if (!is.null(end)) return(end)
    open <- started <- TRUE
    begun$used <- rs_tool_calls(ptr)
  }
  core$count$calls <- begun$used
  out <- perform(core, begun$args, context$timeout_s)
  if (length(core$secrets)) out <- without_secrets(core, out, begun$args)
  if (!is.null(core$redact$result) && out$how == "executed") {
    out <- with_redacted_result(core, out, context$kept)
  }
  open <- FALSE
  end <- rs_call_finish(ptr, number, out$how, out$value, out$class, out$warnings, out$messages)
  if (is.null(end$status)) unwrap_core(end, call) else end
}

# The person, or an error of the approver, ended the call: it is a row all the same.
leave_call <- function(ptr, number, started) {
  if (started) rs_call_abandon(ptr, number) else rs_call_decided(ptr, number, "none", "")
}

# Runs the function: the one handler. What it gives is data.
perform <- function(core, args, timeout_s = NULL) {
  said <- new.env(parent = emptyenv())
  timeout_s <- if (is.null(core$timeout_s)) timeout_s else core$timeout_s
  if (core$isolation == "process") return(perform_apart(core, args, timeout_s))
  out <- tryCatch(
    withCallingHandlers(
      if (is.null(timeout_s) && the$watching == 0L) {
        list(do.call(core$raw_fn, args))
      } else {
        list(limit_call(function() do.call(core$raw_fn, args), timeout_s))
      },
      warning = function(cnd) {
        note(said, "warnings", cnd)
        tryInvokeRestart("muffleWarning")
      },
      message = function(cnd) {
        note(said, "messages", cnd)
        tryInvokeRestart("muffleMessage")
      }
    ),
    error = function(cnd) cnd
  )
  if (inherits(out, "condition")) return(raised(out, said))
  value <- out[[1]]
  if (is_timed_out(value)) return(timed_out(core, value, timeout_s, said))
  list(how = "executed", value = value, class = NULL, warnings = said$warnings, messages = said$messages)
}

raised <- function(cnd, said) {
  while (inherits(cnd$parent, "condition")) cnd <- cnd$parent
  list(
    how = "error", value = plain(conditionMessage(cnd)), class = class(cnd),
    warnings = said$warnings, messages = said$messages
  )
}

timed_out <- function(core, end, timeout_s, said) {
  limit <- if (identical(end$whose, "outer")) {
    "the time limit of the call around it"
  } else {
    sprintf("its time limit of %g s", timeout_s)
  }
  how <- if (isTRUE(end$interrupted)) "was stopped at" else "passed"
  text <- paste0(
    "\"", core$spec$name, "\" ", how, " ", limit, "; it has no result.",
    if (!core$governance$idempotent) " Whether it had an effect is not known."
  )
  list(how = "timed_out", value = text, class = NULL, warnings = said$warnings, messages = said$messages)
}

# A worker process gives conditions as data.
perform_apart <- function(core, args, timeout_s) {
  out <- process_call(core$bundle, args, timeout_s)
  said <- new.env(parent = emptyenv())
  said$warnings <- vapply(out$warnings, function(w) plain(w$message), "")
  said$messages <- c(
    vapply(out$messages, function(m) sub("\n$", "", plain(m$message)), ""),
    if (length(out$output) && any(nzchar(out$output))) paste(out$output, collapse = "\n")
  )
  switch(out$status,
    ok = list(
      how = "executed", value = out$value, class = NULL,
      warnings = said$warnings, messages = said$messages
    ),
    timed_out = timed_out(core, list(whose = out$whose, interrupted = TRUE), timeout_s, said),
    raised(out$condition, said)
  )
}

# Keeps what was said, bounded: 50 texts of 1,000 characters.
note <- function(said, what, cnd) {
  kept <- said[[what]]
  if (length(kept) < 50L) {
    text <- sub("\n$", "", plain(conditionMessage(cnd)))
    said[[what]] <- c(kept, substr(text, 1L, 1000L))
  }
}

# Text without the escape codes of a terminal.
plain <- function(x) {
  x <- paste(enc2utf8(as.character(x)), collapse = "\n")
  if (grepl("\033", x, fixed = TRUE)) cli::ansi_strip(x) else x
}

ask <- function(core, begun, texts, approver, call) {
  if (is.null(approver)) return(list(decision = "none"))
  args <- begun$args
  args[intersect(core$secrets, names(args))] <- "<redacted>"
  texts <- texts[!is.na(texts)]
  args[names(texts)] <- texts
  answer <- approver(list(
    tool = core$spec$name, description = core$spec$description, prompt = core$spec$prompt,
    arguments = args, side_effects = core$governance$side_effects, reason = begun$reason
  ))
  as_decision(answer, call)
}

# A person's decision: approve, reject, edit, or none.
as_decision <- function(answer, call = caller_env()) {
  if (is.null(answer)) return(list(decision = "none"))
  if (isTRUE(answer)) return(list(decision = "approve"))
  if (isFALSE(answer)) return(list(decision = "reject"))
  if (is.character(answer)) answer <- list(decision = answer)
  decision <- if (is.list(answer)) answer$decision
  good <- is.character(decision) && length(decision) == 1L && decision %in% c("approve", "reject", "edit")
  if (good && decision == "edit") good <- is.list(answer$arguments)
  if (good) return(answer)
  stop_warrant(
    c("An approver must answer \"approve\", \"reject\", a list with `decision`, or NULL.",
      i = "An edit is list(decision = \"edit\", arguments = list(...))."),
    "approval", code = "approver_answer", call = call
  )
}

check_arguments <- function(arguments, call = caller_env()) {
  text <- is.character(arguments) && length(arguments) == 1L && !is.na(arguments)
  if (text || is.list(arguments)) return(invisible(arguments))
  stop_type(arguments, "arguments", "JSON text or a named list", call)
}

#' @export
format.tool_result <- function(x, ...) {
  lines <- strsplit(x$content, "\n", fixed = TRUE)[[1]]
  if (length(lines) > 4L) lines <- c(lines[1:3], sprintf("... (%d lines in all)", length(lines)))
  long <- nchar(lines) > 100L
  lines[long] <- paste0(substr(lines[long], 1L, 97L), "...")
  c(
    paste0("<tool_result> ", x$tool, ": ", x$status, if (x$truncated) ", cut to its bound"),
    lines,
    paste0(
      sprintf("* %g bytes in %.3g s", x$bytes, x$duration_s),
      if (!is.null(x$result_hash) && !is.na(x$result_hash)) paste0("; result ", substr(x$result_hash, 1L, 8L))
    )
  )
}

#' @export
print.tool_result <- function(x, ...) {
  writeLines(format(x, ...))
  invisible(x)
}
