#' Check what an agent is asked, does and answers
#'
#' A guardrail is a function of yours that looks at the goal of a run (`stage =
#' "input"`), at each call (`"tool"`) or at the answer (`"output"`), and says whether it
#' will do. Give them to [agent()]. They look once, at one place, before anything
#' happens: all calls of a step are checked before the first of them starts.
#'
#' `check` is called with one value, or with a second argument `context` where it has
#' one: a list of `goal`, `run_id`, `steps` (as a planner sees them), `step`, and `called`,
#' the names of the tools called so far, with those that stand before this call in the
#' same step. The value is the goal, the answer, or for a call a list:
#'
#' * `when`: `"before"` it starts and again `"after"` it returned;
#' * `tool`, `side_effects` and `arguments`, parsed and valid: a named list;
#' * `result`: only after a call that executed, in the normal form.
#'
#' It returns `TRUE` when all is well; `FALSE`, or a text that says why, when not. What
#' follows then says `on_fail`:
#'
#' * `"block"`: the call does not start, or its result is withheld
#'   (`guardrail_blocked`, and the planner is told so). A goal or an answer that is
#'   blocked ends the run `failed` with `stop_reason` `"guardrail_blocked"`.
#' * `"warn"`: it goes on, and the planner is told.
#' * `"flag"`: it goes on, and it is recorded.
#'
#' A check that raises an error, or returns anything else, blocks, whatever `on_fail` says.
#' Each verdict is in the journal, and in the column `guardrails` of [tool_log()]. The
#' journal also says which guardrails are in force, with a digest of their code, when a run
#' starts and when it is resumed with others; [verify_audit()] finds a call or an
#' answer that one of them did not look at. Whatever was approved before a pause, the
#' guardrails of the agent that resumes look at it again.
#'
#' `guardrail_flow()` is a rule over the run so far: once a tool of `after` was called,
#' calls of the tools `never` are blocked. [criterion_flow()] judges the same of runs that
#' are over. Example: with `after = "read_mail"` and `never = "send_mail"`, mail may be sent
#' until some was read. In one step that asks for both, what stands first decides: to
#' read and then send is blocked, to send and then read is not.
#'
#' @param name Its name, in records and texts.
#' @param check A function of a value, and of `context` where it wants that.
#' @param on_fail What happens when a check fails.
#' @param stage What it looks at: one of them, or several.
#' @param ... For `guardrails()`, guardrails with different names; else must be empty.
#' @param after,never Names of tools.
#' @returns `guardrail()` and `guardrail_flow()` a list of class `agent_guardrail`,
#'   `guardrails()` a list of class `agent_guardrails`.
#' @seealso [agent()], [criterion_flow()]
#' @examples
#' small <- guardrail("small_orders", stage = "tool", check = function(call) {
#'   if (call$tool != "order" || call$arguments$n <= 10) TRUE else "At most 10 at once."
#' })
#' order <- agent_tool(function(n) paste("ordered", n), "order", "Order some.",
#'   parameters = list(n = list(type = "integer")), side_effects = "none"
#' )
#' planner <- function(state, tools) {
#'   if (length(state$steps)) decide_finish("done") else decide_act("order", list(n = 500))
#' }
#' run <- run_agent(agent(order, planner, guardrails = small), "order pears")
#' tool_log(run)[c("name", "status", "guardrails")]
#' guardrail_flow(after = "read_mail", never = "send_mail")
#' @export
guardrail <- function(name, check, on_fail = c("block", "warn", "flag"),
                      stage = c("input", "output", "tool"), ...) {
  check_string(name)
  check_function(check)
  check_dots(...)
  if (missing(stage)) {
    stop_warrant(
      c("`stage` must say what the guardrail looks at.",
        i = "It is \"input\", \"output\", \"tool\", or several of them."),
      "input", argument = "stage"
    )
  }
  new_guardrail(name, check, one_of(on_fail, c("block", "warn", "flag")), check_stage(stage))
}

#' @rdname guardrail
#' @export
guardrails <- function(...) {
  as_guardrails(list(...))
}

#' @rdname guardrail
#' @export
guardrail_flow <- function(after, never, ..., name = NULL, on_fail = c("block", "warn", "flag")) {
  check_tool_names(after)
  check_tool_names(never)
  check_dots(...)
  if (is.null(name)) name <- paste0("no_", never[[1]], "_after_", after[[1]])
  check_string(name)
  check <- function(call, context) {
    if (call$when == "after" || !call$tool %in% never) return(TRUE)
    before <- intersect(after, context$called)
    if (length(before) == 0L) return(TRUE)
    paste0("`", call$tool, "` must not be called after `", before[[1]], "`.")
  }
  rail <- new_guardrail(name, check, one_of(on_fail, c("block", "warn", "flag")), "tool")
  rail$flow <- list(after = after, never = never)
  rail
}

check_tool_names <- function(x, arg = caller_arg(x), call = caller_env()) {
  check_names(x, arg, call = call)
  if (length(x) == 0L) stop_type(x, arg, "at least one name of a tool", call)
}

new_guardrail <- function(name, check, on_fail, stage) {
  structure(
    list(name = name, check = check, on_fail = on_fail, stage = stage),
    class = "agent_guardrail"
  )
}

check_stage <- function(stage, call = caller_env()) {
  words <- c("input", "output", "tool")
  if (is.character(stage) && length(stage) && all(stage %in% words)) return(unique(stage))
  stop_type(stage, "stage", "some of \"input\", \"output\", \"tool\"", call)
}

# Guardrails from one, several, or none.
as_guardrails <- function(x, arg = "guardrails", call = caller_env()) {
  if (is.null(x)) x <- list()
  if (inherits(x, "agent_guardrail")) x <- list(x)
  if (inherits(x, "agent_guardrails")) return(x)
  if (!is.list(x)) stop_type(x, arg, "made by guardrail() or guardrails()", call)
  flat <- unlist(lapply(x, function(one) if (inherits(one, "agent_guardrails")) unclass(one) else list(one)), FALSE)
  if (!all(vapply(flat, inherits, NA, "agent_guardrail"))) {
    stop_type(x, arg, "made by guardrail() or guardrails()", call)
  }
  names <- vapply(flat, function(one) one$name, "")
  if (anyDuplicated(names)) {
    twice <- unique(names[duplicated(names)])
    stop_warrant(
      c("Guardrails must have different names.", x = paste0("Twice: ", paste(twice, collapse = ", "), ".")),
      "input", code = "guardrail_name_twice", names = twice, call = call
    )
  }
  structure(as.list(flat), class = "agent_guardrails")
}

# What the journal says of a guardrail.
guardrail_facts <- function(rail) {
  list(
    digest = hash_content(capture_digest(rail$check, list())$digest), name = rail$name,
    on_fail = rail$on_fail, stages = I(rail$stage)
  )
}

rails_of <- function(rails, stage) {
  Filter(function(rail) stage %in% rail$stage, unclass(rails))
}

# What the guardrails of a stage say of a value: a list of findings for the core.
findings <- function(rails, value, context) {
  lapply(unname(rails), function(rail) {
    said <- tryCatch(
      if (wants_context(rail$check)) rail$check(value, context) else rail$check(value),
      error = identity
    )
    finding(rail, said)
  })
}

wants_context <- function(check) {
  names <- names(formals(args(check)))
  "context" %in% names || length(setdiff(names, "...")) > 1L
}

finding <- function(rail, said) {
  verdict <- rail$on_fail
  text <- NULL
  if (isTRUE(said)) {
    verdict <- "pass"
  } else if (is.character(said) && length(said) == 1L && !is.na(said)) {
    text <- said
  } else if (!isFALSE(said)) {
    verdict <- "block"
    text <- if (inherits(said, "error")) {
      paste("The check failed:", plain(conditionMessage(said)))
    } else {
      paste0("The check must answer TRUE, FALSE or a text, not ", friendly(said), ".")
    }
  }
  list(name = rail$name, verdict = verdict, text = text)
}

# The words of the first finding that blocks, or NULL.
blocking <- function(found) {
  for (one in found) {
    if (one$verdict == "block") {
      return(paste0("The guardrail `", one$name, "` refused", if (length(one$text)) ": ", one$text, if (!length(one$text)) "."))
    }
  }
  NULL
}

#' @export
format.agent_guardrail <- function(x, ...) {
  c(
    paste0("<agent_guardrail> ", x$name),
    paste0("* looks at: ", paste(x$stage, collapse = ", ")),
    paste0("* when it fails: ", x$on_fail),
    if (!is.null(x$flow)) {
      paste0(
        "* after ", paste(x$flow$after, collapse = ", "), " never ", paste(x$flow$never, collapse = ", ")
      )
    }
  )
}

#' @export
print.agent_guardrail <- function(x, ...) {
  writeLines(format(x, ...))
  invisible(x)
}

#' @export
print.agent_guardrails <- function(x, ...) {
  writeLines(c("<agent_guardrails>", paste0("* ", vapply(x, function(rail) {
    paste0(rail$name, " (", paste(rail$stage, collapse = ", "), "): ", rail$on_fail)
  }, ""))))
  invisible(x)
}
