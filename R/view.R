#' Look at a run as a page
#'
#' Writes what happened in a run as one HTML page, for reading and for handing on: goal
#' and answer, limits used, every step with arguments, results and outcomes, what was
#' refused and by which rule, who approved what and when, pauses, and what
#' [verify_audit()] finds. It tells the run as its store has it now, which may be more
#' than `run` itself, when that was made earlier.
#'
#' The page is one file that fetches nothing and has no script; a content security policy
#' in it refuses both. What models, tools and people wrote is escaped, and characters that
#' cannot be seen or that reorder text are spelled out (`U+202E`). Literal secrets are
#' shown as `<redacted>`. The same run gives the same bytes. Everything else that the run
#' kept is on the page in clear, so hand it on as you would the store.
#'
#' @param run A run, a store, or a trail (the path of a file, an [audit_jsonl()] sink or
#'   lines of a journal). In a trail arguments, results and answers stand by address only:
#'   the page then tells what happened and not with which values. A trail that is broken is shown,
#'   with its faults.
#' @param file The file to write; one in the session's temporary folder by default. A file
#'   that is there is replaced.
#' @param ... Must be empty.
#' @param run_id Which run of the store or trail; may be left out where there is one.
#' @param evaluation An evaluation (see [evaluate()]) that judged this run: the page then
#'   has the verdicts of its case, with reason and evidence.
#' @param case_id The case. May be left out where the evaluation has one case, or holds
#'   this run's trajectory as the record of just one.
#' @param max_bytes How many bytes of a value are shown at most; what is cut is said, with
#'   the size of the whole.
#' @param open Whether to open the page in a browser.
#' @returns The path of the file, invisibly. Errors: `warrant_error_input`, and those of
#'   reading the store or the file.
#' @seealso [verify_audit()], [tool_log()], [inspect_case()]
#' @examples
#' half <- agent_tool(function(x) x / 2, "half", "Half of a number.",
#'   parameters = list(x = list(type = "number")), side_effects = "none"
#' )
#' planner <- function(state, tools) {
#'   if (length(state$steps)) decide_finish("done") else decide_act("half", list(x = 3))
#' }
#' run <- run_agent(agent(half, planner), "halve three")
#' page <- view_run(run, open = FALSE)
#' file.size(page)
#' @export
view_run <- function(run, file = NULL, ..., run_id = NULL, evaluation = NULL, case_id = NULL,
                     max_bytes = 20000, open = interactive()) {
  check_dots_empty()
  check_string(file, null = TRUE)
  check_string(run_id, null = TRUE)
  check_string(case_id, null = TRUE)
  check_count(max_bytes, min = 1, infinite = FALSE)
  check_flag(open)
  kept <- page_source(run, run_id)
  case <- if (!is.null(evaluation)) judged_case(evaluation, case_id, run)
  about <- list(max_bytes = as.numeric(max_bytes), version = package_version_text())
  page <- unwrap_core(rs_run_page(kept$lines, kept$content, page_audit(kept), case, about))
  path <- write_page(page, page_path(file, kept$run_id))
  if (open) utils::browseURL(path)
  invisible(path)
}

package_version_text <- function() as.character(utils::packageVersion("warrant"))

# The lines of one run, and its content where it is at hand.
page_source <- function(run, run_id, call = caller_env()) {
  if (inherits(run, "agent_run")) {
    check_own_run(run_id, run$run_id, call)
    return(read_kept(run$store, run$run_id, call))
  }
  if (is_store(run)) {
    return(read_kept(run, which_run(run$runs(), run_id, call), call))
  }
  trail_of_run(run, run_id, call)
}

# A file has lines of its own, which link runs; lines that are no records are no run's.
trail_of_run <- function(trail, run_id, call) {
  source <- audit_source(trail, "run", call)
  lines <- if (length(source$paths)) read_lines(source$paths, call) else source$lines
  columns <- unwrap_core(rs_audit_records(character(), lines), call)
  of_file <- columns$run[columns$event == "link"]
  run_id <- which_run(setdiff(columns$run, of_file), run_id, call)
  list(
    run_id = run_id, lines = lines[columns$line[columns$run == run_id]], content = NULL,
    not_checked = if (length(of_file)) "other lines of the file, which verify_audit() reads"
  )
}

read_lines <- function(path, call) {
  if (!file.exists(path) || dir.exists(path)) {
    stop_warrant(
      c("`run` must be a run, a store, or the path of a trail.", x = paste0(path, " is no file.")),
      "audit", code = "audit_open", path = path, call = call
    )
  }
  readLines(path, warn = FALSE, encoding = "UTF-8")
}

which_run <- function(known, run_id, call) {
  if (!is.null(run_id) && run_id %in% known) return(run_id)
  if (is.null(run_id) && length(known) == 1L) return(known)
  found <- paste(utils::head(known, 5L), collapse = ", ")
  stop_warrant(
    c(
      if (is.null(run_id)) "`run_id` must say which run." else "`run_id` must be a run that is there.",
      x = if (length(known) == 0L) "There is none." else sprintf("There are %d: %s%s.", length(known), found, if (length(known) > 5L) ", ..." else "")
    ),
    "input", code = "which_run", run_id = run_id, call = call
  )
}

check_own_run <- function(run_id, own, call) {
  if (is.null(run_id) || run_id == own) return(invisible(own))
  stop_warrant(
    c("`run_id` must be the run's own, or left out.", x = sprintf("It is %s, the run is %s.", run_id, own)),
    "input", code = "which_run", run_id = run_id, call = call
  )
}

page_audit <- function(kept) {
  store <- if (!is.null(kept$content)) content_store(kept)
  report <- verify_audit(kept$lines, content = store)
  not_checked <- paste(c(attr(report, "not_checked"), kept$not_checked), collapse = "; ")
  list(
    state = attr(report, "state"), kind = report$kind, what = report$what,
    seq = as.numeric(report$seq), not_checked = not_checked
  )
}

# What was read once is not asked of the store again.
content_store <- function(kept) {
  store <- list(get_content = function(run_id, names = NULL) {
    if (is.null(names)) return(kept$content)
    stats::setNames(unname(kept$content[names]), names)
  })
  class(store) <- "warrant_store"
  store
}

page_path <- function(file, run_id) {
  if (is.null(file)) return(tempfile(paste0("run-", substr(run_id, 1L, 12L), "-"), fileext = ".html"))
  path.expand(enc2utf8(file))
}

# Written beside its place and moved there, so nobody opens half a page.
write_page <- function(page, path, call = caller_env()) {
  beside <- paste0(path, ".part")
  on.exit(unlink(beside))
  done <- tryCatch(
    {
      con <- base::file(beside, "wb")
      tryCatch(writeLines(page, con, sep = "", useBytes = TRUE), finally = close(con))
      file.rename(beside, path)
    },
    error = function(e) FALSE, warning = function(w) FALSE
  )
  if (!done) {
    stop_warrant(
      c("`file` must be a place that can be written to.", x = paste0(path, " cannot.")),
      "input", code = "cannot_write", path = path, call = call
    )
  }
  normalizePath(path)
}

# ---- the case that judged it ------------------------------------------------------

judged_case <- function(evaluation, case_id, run, call = caller_env()) {
  if (!inherits(evaluation, "agent_evaluation")) {
    stop_type(evaluation, "evaluation", "an evaluation, or NULL", call)
  }
  if (is.null(case_id)) case_id <- case_of_run(evaluation, run, call)
  rows <- inspect_case(evaluation, case_id)
  verdicts <- rows$verdicts
  evidence <- as.character(rows$json$evidence)
  steps <- vapply(verdicts$steps, function(s) paste(s, collapse = ", "), "")
  list(
    id = rows$id, criterion = verdicts$criterion, verdict = verdicts$verdict,
    reason = verdicts$reason, evidence = rep_len(if (length(evidence)) evidence else NA_character_, nrow(verdicts)),
    steps = steps
  )
}

case_of_run <- function(evaluation, run, call) {
  ids <- evaluation$case_id
  if (length(ids) == 1L) return(ids)
  records <- evaluation$answers$records
  found <- if (inherits(run, "agent_run") && is.list(records)) {
    own <- trajectory_json(as_trajectory(run))
    ids[vapply(records, function(texts) own %in% texts, NA)]
  }
  if (length(found) == 1L) return(found)
  stop_warrant(
    c(
      "`case_id` must say which case of the evaluation this run is.",
      x = sprintf("It has %d, and %s holds this run's trajectory.", length(ids), if (length(found)) "more than one" else "none")
    ),
    "input", code = "which_case", call = call
  )
}
