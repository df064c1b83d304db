#' Look at the calls of tools
#'
#' One row for each call, refused or run, in the order the calls began. The log
#' of a tool is shared by its copies in the session, and is not saved with the
#' tool: calls that ran in a worker process come back with its results, so pass
#' those.
#'
#' @param x A tool, a result of [call_tool()], or a list of them.
#' @param ... For methods.
#' @returns A tibble of class `tool_log` (`ggplot2::autoplot()` draws it) with the columns `run_id`, `span_id`, `agent_id`, `step`,
#'   `round` (these are `NA` outside a run), `name`, `arguments_hash`,
#'   `result_hash`, `shown_hash`, `arguments`, `result` (`NA` with
#'   `record = "hashes"`), `status`, `truncated`, `bytes`, `duration_s`, `ts`, and
#'   the list columns `error_class`, `warnings`, `messages`, `guardrails` and `late` (how
#'   an attempt ended that a new owner of the run had given up; see [run_agent()]). No
#'   calls are zero rows. Anything else than a tool or result is an error of class
#'   `warrant_error_input`.
#' @examples
#' half <- agent_tool(function(x) x / 2, "half", "Half of a number.",
#'                    parameters = list(x = list(type = "number")), side_effects = "none")
#' invisible(lapply(list(1, "two"), function(x) call_tool(half, list(x = x))))
#' tool_log(half)[c("name", "arguments", "result", "status")]
#' @export
tool_log <- function(x, ...) {
  UseMethod("tool_log")
}

#' @export
tool_log.agent_tool <- function(x, ...) tool_log.list(list(x))

#' @export
tool_log.tool_result <- function(x, ...) tool_log.list(list(x))

#' @export
tool_log.list <- function(x, ...) {
  if (length(x) && all(vapply(x, inherits, NA, "tool_result"))) return(log_of_results(x))
  ptrs <- lapply(x, function(tool) tool_ptr(tool_core(tool, "x", call = quote(tool_log()))))
  as_log(unwrap_core(rs_tool_log(ptrs)))
}

#' @export
tool_log.default <- function(x, ...) {
  stop_type(x, "x", "a tool, a tool result, or a list of them", quote(tool_log()))
}

as_log <- function(columns) {
  columns$ts <- as.POSIXct(columns$ts, origin = "1970-01-01", tz = "UTC")
  if (is.null(columns$late)) columns$late <- rep(list(character()), length(columns$name))
  tibble::new_tibble(columns, nrow = length(columns$name), class = "tool_log")
}

log_of_results <- function(results) {
  text <- function(field) vapply(results, function(r) as.character(r[[field]] %or% NA), "")
  number <- function(field) vapply(results, function(r) as.numeric(r[[field]] %or% NA), 0)
  texts <- function(field) lapply(results, function(r) as.character(r[[field]]))
  as_log(list(
    run_id = text("run_id"), span_id = text("span_id"), agent_id = text("agent_id"),
    step = as.integer(number("step")), round = as.integer(number("round")), name = text("tool"),
    arguments_hash = text("arguments_hash"), result_hash = text("result_hash"),
    shown_hash = text("shown_hash"), arguments = text("arguments"), result = text("content"),
    status = text("status"), truncated = vapply(results, function(r) r$truncated, NA),
    bytes = number("bytes"), duration_s = number("duration_s"), ts = number("ts"),
    error_class = texts("error_class"), warnings = texts("warnings"), messages = texts("messages"),
    guardrails = texts("guardrails")
  ))
}
