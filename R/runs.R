# Runs of a suite: what each case's system answered and recorded. Made here only.
#
# `trajectory` is a list of character vectors of records (JSON): none, one or
# several a case. With `file` the records stay in that file and are streamed.
new_agent_runs <- function(case_id, status, output = NA_character_, error = NA_character_,
                           trajectory = NULL, ..., file = NULL, latency_ms = NULL) {
  n <- length(case_id)
  trajectory <- if (is.null(trajectory) && is.null(file)) rep(list(character()), n) else trajectory
  if (is.null(output)) output <- NA_character_
  if (is.null(error)) error <- NA_character_
  if (is.character(trajectory)) trajectory <- lapply(trajectory, \(x) x[!is.na(x)])
  structure(
    list(
      case_id = as.character(case_id), status = rep_len(status, n),
      output = rep_len(output, n), error = rep_len(error, n), trajectory = trajectory,
      file = file, latency_ms = latency_ms, ...
    ),
    class = "agent_runs"
  )
}

#' Read trajectories that were recorded elsewhere
#'
#' Use it to judge what another program recorded. A line of the file is
#' `{"case_id": ..., "trajectory": ...}` with an `agent_trajectory/v1` record or null.
#' The file is not read here: [evaluate()] streams it, so it may be larger than
#' memory, and it must stay in its place.
#'
#' Criteria that look at the answer need the answers as well: a JSONL file with the
#' keys `case_id`, `status` (`OK`, `ERROR`, `TIMEOUT` or `NOT_RUN`), `output` and
#' `error`, and optionally `latency_ms`, or a data frame with these columns. Without
#' answers every case that has a record counts as answered.
#'
#' @param file Path of a JSONL file of trajectories.
#' @param outputs Path of a JSONL file of answers, a data frame, or `NULL`.
#' @param ... Must be empty.
#' @param strict Whether a line of `outputs` that cannot be used is an error. With
#'   `FALSE` such lines are set aside and listed in `problems`.
#' @returns An `agent_runs` object for [evaluate()].
#' @export
#' @examples
#' file <- tempfile(fileext = ".jsonl")
#' write_trajectories(
#'   list(a = agent_trajectory(list(agent_step("tool_call", tool_name = "search")))), file
#' )
#' cases <- suite(data.frame(id = "a", input = "q"), list(criterion_tool_called("search")))
#' evaluate(cases, read_trajectories(file))
read_trajectories <- function(file, outputs = NULL, ..., strict = TRUE) {
  check_readable(file)
  check_dots_empty()
  answers <- read_outputs(outputs, strict)
  new_agent_runs(
    case_id = answers$case_id, status = answers$status, output = answers$output,
    error = answers$error, trajectory = NULL, file = normalizePath(file),
    latency_ms = answers$latency_ms, problems = answers$problems,
    answers = !is.null(outputs)
  )
}

read_outputs <- function(outputs, strict, call = caller_env()) {
  if (is.null(outputs)) return(list(case_id = character(), status = character()))
  if (is.data.frame(outputs)) return(outputs_of_frame(outputs, call))
  check_readable(outputs, "outputs", call)
  columns <- unwrap_core(rs_read_outputs(normalizePath(outputs), outputs, strict), call)
  columns$problems <- problem_rows(columns$problems, outputs)
  if (all(is.nan(columns$latency_ms))) columns$latency_ms <- NULL
  columns
}

outputs_of_frame <- function(x, call) {
  missing <- setdiff("case_id", names(x))
  if (length(missing) || anyNA(x$case_id) || anyDuplicated(x$case_id)) {
    stop_warrant(
      "`outputs` must have a column `case_id` in which no id is missing or repeated.",
      "input", "invalid_outputs", argument = "outputs", call = call
    )
  }
  status <- if (is.null(x$status)) rep("OK", nrow(x)) else as.character(x$status)
  unknown <- setdiff(status, run_statuses)
  if (length(unknown)) {
    stop_warrant(
      c(
        sprintf("`outputs$status` must be one of %s.", paste(run_statuses, collapse = ", ")),
        x = sprintf("It also has %s.", paste(unknown, collapse = ", "))
      ),
      "input", "invalid_outputs", argument = "outputs", call = call
    )
  }
  json <- function(column) {
    if (is.null(column)) return(rep(NA_character_, nrow(x)))
    vapply(seq_len(nrow(x)), \(i) unwrap_core(rs_to_json(column[[i]]), call), "")
  }
  error <- json(x$error)
  list(
    case_id = as.character(x$case_id), status = status, output = json(x$output),
    error = ifelse(error == "null", NA, error), latency_ms = x$latency_ms
  )
}

run_statuses <- c("OK", "ERROR", "TIMEOUT", "NOT_RUN")

#' Write trajectories to a file
#'
#' One line a record, in the form that [read_trajectories()] reads and other programs
#' exchange. The file is written beside its place and then moved there, so a crash
#' leaves no torn file.
#'
#' @param x A named list of [agent_trajectory()]s (the names are the case ids), or
#'   runs, as `run_suite()` gives them.
#' @param file Path of the file to write.
#' @param ... Must be empty.
#' @param outputs Path of a second file for status, answer and error of each case;
#'   only for runs.
#' @returns `x`, invisibly.
#' @export
#' @inherit read_trajectories examples
write_trajectories <- function(x, file, ..., outputs = NULL) {
  check_dots_empty()
  lines <- if (inherits(x, "agent_runs")) record_lines(x) else list_lines(x)
  write_whole(lines, file)
  if (!is.null(outputs)) write_whole(output_lines(x), outputs)
  invisible(x)
}

list_lines <- function(x, call = caller_env()) {
  named <- !is.null(names(x)) && all(nzchar(names(x))) && !anyDuplicated(names(x))
  if (!is.list(x) || !named || !all(vapply(x, inherits, NA, "agent_trajectory"))) {
    stop_warrant(
      c(
        "`x` must be runs, or a list of trajectories with a name each.",
        i = "The names are the ids of the cases."
      ),
      "input", "invalid_trajectories", argument = "x", call = call
    )
  }
  record_line(names(x), vapply(x, trajectory_json, ""))
}

record_line <- function(id, json) sprintf("{\"case_id\":%s,\"trajectory\":%s}", json_strings(id), json)

json_strings <- function(x) vapply(x, \(text) unwrap_core(rs_to_json(text)), "", USE.NAMES = FALSE)

record_lines <- function(x) {
  if (!is.null(x$file)) return(readLines(x$file, encoding = "UTF-8", warn = FALSE))
  records <- lapply(x$trajectory, \(texts) if (length(texts)) texts else "null")
  record_line(rep(x$case_id, lengths(records)), unlist(records))
}

output_lines <- function(x) {
  or_null <- function(text) ifelse(is.na(text), "null", text)
  sprintf(
    "{\"case_id\":%s,\"error\":%s,\"output\":%s,\"status\":\"%s\"}",
    json_strings(x$case_id), or_null(x$error), or_null(x$output), x$status
  )
}

write_whole <- function(lines, file) {
  beside <- paste0(file, ".part")
  on.exit(unlink(beside))
  con <- base::file(beside, "wb")
  tryCatch(writeLines(enc2utf8(lines), con, useBytes = TRUE), finally = close(con))
  file.rename(beside, file)
}

#' @export
print.agent_runs <- function(x, ...) {
  head <- if (is.null(x$file)) sprintf("%d cases", length(x$case_id)) else x$file
  writeLines(paste("<agent_runs>", head))
  status <- table(factor(x$status, run_statuses))
  status <- status[status > 0]
  if (length(status)) writeLines(paste("* answers:", paste(status, names(status), collapse = ", ")))
  if (is.null(x$file)) {
    n <- lengths(x$trajectory)
    writeLines(sprintf("* trajectories: %d cases with one, %d with none, %d with several", sum(n == 1), sum(n == 0), sum(n > 1)))
  } else {
    writeLines(sprintf("* trajectories: streamed from the file (%.1f MB)", file.size(x$file) / 1e6))
  }
  invisible(x)
}

check_readable <- function(file, arg = deparse(substitute(file)), call = caller_env()) {
  text <- is.character(file) && length(file) == 1 && !is.na(file)
  if (text && file.exists(file) && !dir.exists(file)) return(invisible(file))
  stop_warrant(
    c(
      sprintf("`%s` must be the path of a file that exists.", arg),
      x = if (text) sprintf("%s is not there.", file) else class_words(file)
    ),
    "input", "no_such_file", argument = arg, call = call
  )
}
