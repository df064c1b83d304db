#' Describe a step of an agent
#'
#' Use it to build the trajectory of an agent that runs its own loop: one step for
#' each thing it did. Steps get their `index` from their place in
#' [agent_trajectory()].
#'
#' Tool calls and tool results name their tool. A handoff names the agent that hands
#' over and the one that takes over. Either every step of a trajectory names its agent
#' or none does. Calls made in parallel stand side by side and share a mark,
#' `metadata = list(batch = 1)`: criteria compare such calls as a set.
#'
#' @param kind What happened: `"message"`, `"tool_call"`, `"tool_result"`,
#'   `"observation"`, `"decision"`, `"final"` or `"handoff"`.
#' @param ... Must be empty.
#' @param tool_name,call_id,agent,to_agent Texts that are not empty, or `NULL`.
#' @param arguments,result Any value with a JSON form; see [hash_content()] for how R
#'   values become JSON.
#' @param error Text of the error of a call that failed, or `NULL`.
#' @param latency_ms Time it took in milliseconds, or `NULL`.
#' @param metadata A named list of notes.
#' @returns An `agent_step`, a list. It is checked in [agent_trajectory()].
#' @export
#' @examples
#' agent_step("tool_call", tool_name = "lookup_order", arguments = list(id = "ord-7"))
agent_step <- function(kind, ..., tool_name = NULL, arguments = NULL, result = NULL,
                       error = NULL, call_id = NULL, agent = NULL, to_agent = NULL,
                       latency_ms = NULL, metadata = list()) {
  check_dots_empty()
  fields <- list(
    kind = kind, tool_name = tool_name, arguments = object_if_empty(arguments),
    result = result, error = error, call_id = call_id, agent = agent,
    to_agent = to_agent, latency_ms = latency_ms
  )
  fields <- fields[!vapply(fields, is.null, NA)]
  if (length(metadata)) fields$metadata <- metadata
  structure(fields, class = "agent_step")
}

# No arguments are `{}`; an R list without elements would be `[]`.
object_if_empty <- function(x) {
  if (is.list(x) && length(x) == 0 && !is.data.frame(x)) structure(list(), names = character()) else x
}

#' Record the check of a constraint
#'
#' Use it in [agent_trajectory()] when the system itself checked that a rule was kept,
#' such as that nothing was deleted. [criterion_constraints()] judges these checks.
#'
#' @param name Name of the constraint. Several checks may have one name.
#' @param passed Whether it held.
#' @param ... Must be empty.
#' @param detail A text, or `NULL`.
#' @param step_index The step it is about, or `NULL`.
#' @returns A `constraint_check`, a list. It is checked in [agent_trajectory()].
#' @export
#' @examples
#' constraint_check("no_deletion", FALSE, step_index = 3)
constraint_check <- function(name, passed, ..., detail = NULL, step_index = NULL) {
  check_dots_empty()
  fields <- list(name = name, passed = passed, detail = detail, step_index = as_index(step_index))
  structure(fields[!vapply(fields, is.null, NA)], class = "constraint_check")
}

#' Record where a run could be resumed
#'
#' Part of the format `agent_trajectory/v1`: a place in the trajectory from which the
#' run can be taken up again. No criterion reads it.
#'
#' @param checkpoint_id Id, unique in the trajectory.
#' @param kind `"tool_result"`, `"tool_arguments"` or `"checkpoint"`.
#' @param ... Must be empty.
#' @param step_index The step it is about, or `NULL`.
#' @param description A text, or `NULL`.
#' @param payload Any value with a JSON form.
#' @returns An `agent_checkpoint`, a list. It is checked in [agent_trajectory()].
#' @export
#' @examples
#' agent_checkpoint("after-lookup", "tool_result", step_index = 2)
agent_checkpoint <- function(checkpoint_id, kind = c("tool_result", "tool_arguments", "checkpoint"),
                             ..., step_index = NULL, description = NULL, payload = NULL) {
  check_dots_empty()
  fields <- list(
    checkpoint_id = checkpoint_id, kind = arg_match(kind), step_index = as_index(step_index),
    description = description, payload = payload
  )
  structure(fields[!vapply(fields, is.null, NA)], class = "agent_checkpoint")
}

#' @export
print.agent_step <- function(x, ...) print_part(x)

#' @export
print.constraint_check <- function(x, ...) print_part(x)

#' @export
print.agent_checkpoint <- function(x, ...) print_part(x)

print_part <- function(x) {
  values <- vapply(unclass(x), \(value) tryCatch(unwrap_core(rs_to_json(value)), error = \(e) "?"), "")
  lines <- if (length(values)) cut_text(sprintf("* %s: %s", names(values), values), 78)
  writeLines(c(sprintf("<%s>", class(x)[1]), lines))
  invisible(x)
}

# R numbers are doubles: a whole one is an integer in the record.
as_index <- function(x) {
  whole <- is.numeric(x) && length(x) == 1 && is.finite(x) && x == round(x) && abs(x) < 2^31
  if (whole) as.integer(x) else x
}

#' Put a trajectory together
#'
#' A trajectory is the record `agent_trajectory/v1` of what an agent did on one case.
#' Every rule of the format is checked here; the error names the JSON pointer and the
#' rule, and is of class `warrant_error_trajectory`.
#'
#' A record that stops before the agent did is `truncated`. Criteria decide on such a
#' prefix only what no continuation could change; otherwise the case is *missing*.
#'
#' @param steps A list of [agent_step()]s, in order.
#' @param ... Must be empty.
#' @param terminal_status How the agent ended: `"success"`, `"failure"` or `"unknown"`.
#' @param truncated Whether the record stops before the agent did.
#' @param step_limit The agent's own limit on steps, or `NULL`. Nothing reads it.
#' @param constraints A list of [constraint_check()]s.
#' @param checkpoints A list of [agent_checkpoint()]s.
#' @returns An `agent_trajectory`: a list with `steps`, `terminal_status`, `truncated`,
#'   `step_limit`, `constraints`, `checkpoints`, and the record itself as canonical
#'   JSON in `json`. `as.data.frame()` gives a row a step.
#' @export
#' @examples
#' agent_trajectory(
#'   list(
#'     agent_step("tool_call", tool_name = "lookup_order", arguments = list(id = "ord-7")),
#'     agent_step("tool_result", tool_name = "lookup_order", result = list(total = 30)),
#'     agent_step("final", result = "refunded")
#'   ),
#'   terminal_status = "success",
#'   constraints = list(constraint_check("no_deletion", TRUE))
#' )
agent_trajectory <- function(steps = list(), ..., terminal_status = c("unknown", "success", "failure"),
                             truncated = FALSE, step_limit = NULL, constraints = list(),
                             checkpoints = list()) {
  check_dots_empty()
  terminal_status <- arg_match(terminal_status)
  check_parts(steps, "agent_step")
  check_parts(constraints, "constraint_check")
  check_parts(checkpoints, "agent_checkpoint")
  record <- list(
    steps = Map(\(step, i) c(list(index = i), unclass(step)), unname(steps), seq_along(steps)),
    terminal_status = terminal_status, truncated = truncated, step_limit = as_index(step_limit),
    constraints = lapply(unname(constraints), unclass),
    checkpoints = lapply(unname(checkpoints), unclass)
  )
  as_record(unwrap_core(rs_to_json(record)), caller_env(0))
}

check_parts <- function(x, class, arg = deparse(substitute(x)), call = caller_env()) {
  if (is.list(x) && !is.object(x) && all(vapply(x, inherits, NA, class))) return(invisible(x))
  stop_warrant(
    c(
      sprintf("`%s` must be a list of what %s() makes.", arg, class),
      x = class_words(x)
    ),
    "input", "invalid_parts", argument = arg, call = call
  )
}

# A trajectory from the JSON text of its record, checked.
as_record <- function(json, call = caller_env()) {
  new_agent_trajectory(unwrap_core(rs_trajectory_check(json), call))
}

# `json` is a checked record in canonical form.
new_agent_trajectory <- function(json) {
  record <- unwrap_core(rs_from_json(json))
  defaults <- list(
    steps = list(), terminal_status = "unknown", truncated = FALSE, step_limit = NULL,
    constraints = list(), checkpoints = list()
  )
  fields <- lapply(names(defaults), \(name) if (is.null(record[[name]])) defaults[[name]] else record[[name]])
  names(fields) <- names(defaults)
  structure(c(fields, list(json = json)), class = "agent_trajectory")
}

trajectory_json <- function(x) x$json

#' @export
format.agent_trajectory <- function(x, ...) {
  n <- length(x$steps)
  head <- c(
    "<agent_trajectory>", x$terminal_status, if (isTRUE(x$truncated)) "(truncated)",
    paste0("\u00b7 ", n, if (n == 1) " step" else " steps")
  )
  shown <- if (n > 8) 7 else n
  rows <- vapply(seq_len(shown), \(i) step_line(x$steps[[i]], i), "")
  checks <- vapply(x$constraints, \(check) paste0(check$name, if (isTRUE(check$passed)) " held" else " failed"), "")
  c(
    paste(head, collapse = " "), rows,
    if (shown < n) sprintf("  ... %d more; see as.data.frame()", n - shown),
    if (length(checks)) paste("* checks:", paste(checks, collapse = ", "))
  )
}

step_line <- function(step, index) {
  value <- switch(step$kind,
    tool_call = step$arguments,
    tool_result = if (is.null(step$error)) step$result else paste("ERROR:", step$error),
    step$result
  )
  who <- if (!is.null(step$to_agent)) {
    paste(step$agent, "->", step$to_agent)
  } else {
    step$agent
  }
  text <- if (!is.null(value)) unwrap_core(rs_to_json(value))
  words <- c(sprintf("%3d", index), who, step$kind, step$tool_name, text)
  cut_text(gsub("[[:cntrl:]]+", " ", paste(words, collapse = " ")), 76)
}

cut_text <- function(x, width) {
  ifelse(nchar(x) > width, paste0(substr(x, 1, width - 3), "..."), x)
}

#' @export
print.agent_trajectory <- function(x, ...) {
  writeLines(format(x))
  invisible(x)
}

#' @export
as.data.frame.agent_trajectory <- function(x, ...) {
  text <- function(name, json = FALSE) {
    vapply(x$steps, \(step) {
      value <- step[[name]]
      if (is.null(value)) NA_character_ else if (json) unwrap_core(rs_to_json(value)) else value
    }, "")
  }
  data.frame(
    index = seq_along(x$steps), kind = text("kind"), tool_name = text("tool_name"),
    agent = text("agent"), to_agent = text("to_agent"), call_id = text("call_id"),
    arguments = text("arguments", TRUE), result = text("result", TRUE), error = text("error")
  )
}
