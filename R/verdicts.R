#' Look at the verdicts of single cases
#'
#' @param ev An evaluation, see [evaluate()].
#' @param ... Must be empty.
#' @returns A tibble with a row for each case and criterion: case_id, criterion,
#'   verdict (`pass`, `fail`, `missing`, `excluded`), reason (a code for the last two,
#'   else `NA`), the list column evidence (what was found, as a named list; `NULL` where
#'   nothing was kept) and the list column steps (indexes of the steps it rests on).
#' @export
#' @examples
#' cases <- suite(data.frame(id = "a", input = "q"), list(criterion_max_steps(1)))
#' two <- agent_trajectory(list(agent_step("message"), agent_step("final")))
#' verdicts(evaluate(cases, list(a = two)))
verdicts <- function(ev, ...) {
  check_evaluation(ev)
  check_dots_empty()
  verdict_rows(ev, seq_along(ev$case_id))
}

verdict_rows <- function(ev, rows) {
  criteria <- colnames(ev$codes)
  n <- length(criteria)
  codes <- as.integer(t(ev$codes[rows, , drop = FALSE])) + 1L
  reason <- ev$reasons[codes]
  reason[!nzchar(reason)] <- NA_character_
  kept <- function(name, none) {
    if (is.null(ev$evidence)) return(rep(list(none), length(codes)))
    columns <- lapply(ev$evidence, \(x) as.list(x[[name]][rows]))
    unlist(do.call(Map, c(list, unname(columns))), recursive = FALSE, use.names = FALSE)
  }
  texts <- kept("text", NA_character_)
  tibble(
    case_id = rep(ev$case_id[rows], each = n), criterion = rep(criteria, length(rows)),
    verdict = ev$words[codes], reason = reason,
    evidence = lapply(texts, \(text) if (!is.na(text)) unwrap_core(rs_from_json(text))),
    steps = kept("steps", integer())
  )
}

#' Inspect one case of an evaluation
#'
#' Shows what the system was given, what it did and answered, and why each verdict is
#' what it is. For runs from a file the record is read from there again.
#'
#' @inheritParams verdicts
#' @param case_id Id of the case.
#' @returns An `agent_case`: a list with id, input, expected, metadata, status, output,
#'   error, trajectory (an `agent_trajectory`, several in a list, or `NULL`),
#'   verdicts (as [verdicts()] gives them) and the JSON texts of the values in json.
#' @export
#' @examples
#' cases <- suite(data.frame(id = "a", input = "q"), list(criterion_max_steps(1)))
#' two <- agent_trajectory(list(agent_step("message"), agent_step("final")))
#' inspect_case(evaluate(cases, list(a = two)), "a")
inspect_case <- function(ev, case_id, ...) {
  check_evaluation(ev)
  check_dots_empty()
  at <- match(case_id, ev$case_id)
  if (length(at) != 1 || is.na(at)) {
    stop_warrant(
      c(
        "`case_id` must be the id of one case of the evaluation.",
        x = if (length(case_id) == 1) {
          sprintf("There is no case \"%s\".", case_id)
        } else {
          sprintf("%d ids were given.", length(case_id))
        }
      ),
      "input", "unknown_case", argument = "case_id", call = caller_env(0)
    )
  }
  read <- function(text) if (!is.null(text) && !is.na(text)) unwrap_core(rs_from_json(text))
  cases <- ev$suite$cases
  records <- lapply(case_records(ev, at), \(text) {
    tryCatch(as_record(text), warrant_error = \(e) text)
  })
  structure(
    list(
      id = ev$case_id[at], input = read(cases$input[at]), expected = read(cases$expected[at]),
      metadata = read(cases$metadata[at]), status = run_statuses[ev$answers$status[at] + 1L],
      output = read(ev$answers$output[at]), error = read(ev$answers$error[at]),
      trajectory = if (length(records) == 1) records[[1]] else if (length(records)) records,
      verdicts = verdict_rows(ev, at),
      json = list(
        input = cases$input[at], expected = cases$expected[at], output = ev$answers$output[at],
        error = ev$answers$error[at],
        evidence = vapply(ev$evidence, \(x) as.character(x$text[at]), "", USE.NAMES = FALSE)
      )
    ),
    class = "agent_case"
  )
}

case_records <- function(ev, at, call = caller_env()) {
  file <- if (length(ev$file) > 1) ev$file[at] else ev$file
  offset <- ev$offsets[at]
  if (length(offset) == 0 || is.nan(offset)) return(ev$answers$records[[at]])
  if (!file.exists(file)) {
    stop_warrant(
      c("The file of trajectories must still be in its place.", x = sprintf("%s is not there.", file)),
      "input", "no_such_file", file = file, call = call
    )
  }
  con <- base::file(file, "rb")
  on.exit(close(con))
  seek(con, offset)
  line <- readLines(con, 1, warn = FALSE, encoding = "UTF-8")
  if (length(line) == 0 || !identical(line_id(line), ev$case_id[at])) {
    stop_warrant(
      c("The file of trajectories must be as it was.", x = sprintf("%s has changed.", file)),
      "input", "file_changed", file = file, call = call
    )
  }
  line_record(line)
}

line_id <- function(line) as.character(unwrap_core(rs_from_json(line))$case_id)

# The record of a line as its own text; nothing where it is null.
line_record <- function(line) {
  record <- unwrap_core(rs_line_record(line))
  if (is.na(record)) NULL else record
}

#' @export
format.agent_case <- function(x, ...) {
  texts <- x$json[setdiff(names(x$json), "evidence")]
  shown <- Filter(\(text) !is.null(text) && !is.na(text) && text != "null", texts)
  lines <- c(
    sprintf("<agent_case> %s %s", x$id, x$status),
    cut_text(sprintf("* %s: %s", names(shown), unlist(shown)), 78)
  )
  record <- if (inherits(x$trajectory, "agent_trajectory")) {
    format(x$trajectory)
  } else if (length(x$trajectory)) {
    sprintf("%d trajectories", length(x$trajectory))
  } else {
    "no trajectory"
  }
  c(lines, record, "* verdicts:", verdict_lines(x$verdicts, x$json$evidence))
}

verdict_lines <- function(rows, evidence) {
  why <- vapply(seq_len(nrow(rows)), \(i) {
    if (!is.na(rows$reason[i])) return(rows$reason[i])
    if (i > length(evidence) || is.na(evidence[i])) "" else evidence[i]
  }, "")
  steps <- vapply(rows$steps, \(s) {
    if (length(s)) sprintf(" (step %s)", paste(first_few(s, 5), collapse = ", ")) else ""
  }, "")
  width <- max(nchar(rows$criterion), 0)
  cut_text(sprintf("  %-8s %-*s %s", rows$verdict, width, rows$criterion, paste0(cut_text(why, 50), steps)), 110)
}

#' @export
print.agent_case <- function(x, ...) {
  writeLines(format(x))
  invisible(x)
}
