#' Judge runs by the criteria of a suite
#'
#' Gives each case of the suite a verdict on each criterion and counts them, over all
#' cases and in each group of each slice. [metrics()], [slices()] and [decide()] read
#' the counts, [verdicts()] and [inspect_case()] the single cases.
#'
#' A verdict is `pass`, `fail`, `missing` or `excluded`. A case is *excluded* from a
#' criterion when it declares nothing about it, and leaves the denominator. It is
#' *missing* when nothing that was recorded decides: the system raised an error, there
#' is no trajectory, or only the beginning of one. Missing cases stay in the
#' denominator, are counted by reason and widen the interval: of 40 cases with 33
#' passes and one missing, the interval reaches from what 33 passes of 40 to what 34
#' passes of 40 would allow.
#'
#' @section Large files:
#' Runs from [read_trajectories()] are streamed: the file is read in blocks and judged
#' on all cores, and what is kept of a case is its verdicts. Ctrl-C stops between
#' blocks. `keep = "evidence"` keeps as well what each verdict rests on; by default
#' that is done up to 10,000 cases. Criteria that are R functions need the records
#' themselves and a second pass over the file.
#'
#' @section What is refused:
#' Before anything is computed: a case that a criterion cannot use (such as
#' `expected$tools` that is no list of names), a record that breaks a rule of the
#' format, a torn line, two records for one case, a case that is in the suite or in
#' the runs only. The error names file, line, case and field. With `strict = FALSE`
#' such records are set aside: their cases are *missing* (`invalid_trajectory`,
#' `several_trajectories` or `no_trajectory`), and `problems` of the result lists them.
#'
#' @param suite A suite, see [suite()] and [read_suite()].
#' @param runs Runs of it, from [run_suite()] or [read_trajectories()], or a named list
#'   of [agent_trajectory()]s.
#' @param ... Must be empty.
#' @param strict Whether records that cannot be used are an error.
#' @param keep `"evidence"`, `"verdicts"` alone, or `"auto"`.
#' @param progress Whether to show a progress bar while trajectories are judged.
#' @returns An `agent_evaluation`. It is plain data: it can be saved and read back.
#'   `problems` is a data frame of the records that were set aside, with file, line,
#'   case_id, pointer, rule and error_kind.
#' @export
#' @examples
#' cases <- suite(
#'   data.frame(id = c("a", "b"), input = c("order 1", "order 2")),
#'   list(criterion_tool_called("lookup"), criterion_max_steps(2))
#' )
#' call <- agent_step("tool_call", tool_name = "lookup")
#' ev <- evaluate(cases, list(
#'   a = agent_trajectory(list(call)),
#'   b = agent_trajectory(list(call, call, call))
#' ))
#' verdicts(ev)
evaluate <- function(suite, runs, ..., strict = TRUE, keep = c("auto", "evidence", "verdicts"),
                     progress = interactive()) {
  check_dots_empty()
  check_suite(suite)
  check_flag(strict)
  check_flag(progress)
  keep <- arg_match(keep)
  runs <- as_runs(runs)
  spec <- suite_spec(suite)
  answers <- align_answers(suite, runs, strict)
  n <- length(suite$cases$id)
  evidence <- keep == "evidence" || (keep == "auto" && n <= 10000)
  here <- environment()
  work <- function(evidence, given) {
    judge_runs(spec, suite, runs, answers, given, evidence, strict, progress, here)
  }
  functions <- Filter(\(x) x$type == "function", suite$criteria)
  given <- function_verdicts(functions, suite, runs, answers, work)
  found <- work(evidence, given)
  new_agent_evaluation(found, suite, runs, answers, given, spec)
}

# The suite as the core reads it: criteria under their settled names.
suite_spec <- function(suite, settled = TRUE) {
  criteria <- vapply(suite$criteria, criterion_json, "", settled = settled)
  metrics <- vapply(suite$metrics, \(x) {
    unwrap_core(rs_to_json(list(id = x$id, type = "quantile", source = x$source, quantile = x$quantile)))
  }, "")
  sprintf(
    "{\"evaluators\":[%s],\"metrics\":[%s],\"slices\":%s,\"min_slice_support\":%s}",
    paste(criteria, collapse = ","), paste(metrics, collapse = ","),
    unwrap_core(rs_to_json(as.list(suite$slices))),
    unwrap_core(rs_to_json(suite$min_slice_support))
  )
}

# Checks a suite as a whole, settles the names of its criteria and refuses cases
# that a criterion cannot use.
check_suite_parts <- function(suite, call = caller_env()) {
  spec <- suite_spec(suite, settled = FALSE)
  resolved <- unwrap_core(rs_from_json(unwrap_core(rs_suite_check(spec), call)))
  for (i in seq_along(suite$criteria)) {
    suite$criteria[[i]]$criterion <- resolved$evaluators[[i]]$criterion
  }
  unwrap_core(rs_eval_begin(suite_spec(suite), case_columns_of(suite), FALSE, TRUE), call)
  suite
}

case_columns_of <- function(suite) {
  cases <- suite$cases
  list(
    id = cases$id, expected = cases$expected, metadata = cases$metadata,
    group_id = cases$group_id, status = integer(length(cases$id))
  )
}

as_runs <- function(runs, call = caller_env()) {
  if (inherits(runs, "agent_runs")) return(runs)
  if (is.list(runs) && !is.null(names(runs)) && all(vapply(runs, inherits, NA, "agent_trajectory"))) {
    return(new_agent_runs(names(runs), "OK", trajectory = lapply(unname(runs), trajectory_json)))
  }
  stop_warrant(
    c(
      "`runs` must be runs of the suite, or a named list of trajectories.",
      x = class_words(runs),
      i = "run_suite() makes runs, read_trajectories() reads them."
    ),
    "input", "not_runs", argument = "runs", call = call
  )
}

# Answers in the order of the suite's cases, and what was set aside.
align_answers <- function(suite, runs, strict, call = caller_env()) {
  ids <- suite$cases$id
  problems <- runs$problems
  twice <- runs$case_id[duplicated(runs$case_id)]
  unknown <- setdiff(runs$case_id, ids)
  lacking <- if (is.null(runs$file) || isTRUE(runs$answers)) setdiff(ids, runs$case_id)
  found <- list(
    duplicate_record = twice, unknown_case = unknown, no_record = lacking
  )
  rules <- c(
    duplicate_record = "a case must be run once", unknown_case = "the case must be one of the suite",
    no_record = "every case of the suite must be in the runs"
  )
  for (code in names(found)) {
    if (length(found[[code]]) == 0) next
    if (strict) stop_on_ids(found[[code]], code, rules[[code]], call)
    problems <- rbind(problems, problem_rows(list(
      line = NA_real_, case_id = found[[code]], pointer = "", rule = rules[[code]], error_kind = code
    )))
  }
  at <- match(ids, runs$case_id)
  several <- ids %in% twice
  status <- match(runs$status, run_statuses)[at] - 1L
  # A case that nothing says anything about was not run; one of a file without
  # answers is taken as answered.
  status[is.na(status)] <- if (is.null(runs$file) || isTRUE(runs$answers)) 3L else 0L
  records <- if (is.null(runs$file)) runs$trajectory[at] else rep(list(character()), length(ids))
  records[several] <- lapply(ids[several], \(id) unlist(runs$trajectory[runs$case_id == id]))
  list(
    status = status, output = as.character(runs$output)[at], error = as.character(runs$error)[at], records = records,
    latency = as.numeric(runs$latency_ms)[at], problems = problems
  )
}

stop_on_ids <- function(ids, code, rule, call) {
  shown <- paste0("\"", first_few(ids, 5), "\"", collapse = ", ")
  more <- length(ids) - 5
  stop_warrant(
    c(
      sprintf("Suite and runs must have the same cases: %s.", rule),
      x = paste0(shown, if (more > 0) sprintf(" and %d more", more), "."),
      i = "With `strict = FALSE` such cases are set aside and listed."
    ),
    "trajectory", code, case_id = ids, call = call
  )
}

judge_runs <- function(spec, suite, runs, answers, given, evidence, strict, progress, call) {
  columns <- c(case_columns_of(suite)[c("id", "expected", "metadata", "group_id")], list(
    status = answers$status, output = answers$output, given = given$codes,
    latency = if (!is.null(runs$latency_ms)) answers$latency
  ))
  handle <- unwrap_core(rs_eval_begin(spec, columns, evidence, strict), call)
  if (is.null(runs$file)) {
    judge_texts(handle, answers$records, progress, call)
  } else {
    unwrap_core(rs_eval_open(handle, runs$file, runs$file), call)
    stream_file(handle, progress, call)
  }
  unwrap_core(rs_eval_finish(handle, given$words, given$reasons), call)
}

# In slices short enough that Ctrl-C is heard and the bar moves.
judge_texts <- function(handle, records, progress, call) {
  n <- length(records)
  counts <- lengths(records)
  owner <- rep(seq_len(n), counts) - 1L
  texts <- as.character(unlist(records))
  ends <- cumsum(counts)
  step <- cases_a_slice
  bar <- if (progress && n > 2 * step) cli::cli_progress_bar("Judging trajectories", total = n)
  for (from in seq(0, max(0, n - 1), by = step)) {
    to <- min(from + step, n)
    before <- if (from > 0) ends[from] else 0L
    own <- before + seq_len(if (to > 0) ends[to] - before else 0L)
    unwrap_core(rs_eval_texts(handle, from, to, owner[own], texts[own]), call)
    if (!is.null(bar)) cli::cli_progress_update(set = to, id = bar)
  }
  if (!is.null(bar)) cli::cli_progress_done(id = bar)
}

# A tenth of a second or so, on records of 15 KB.
cases_a_slice <- 10000

stream_file <- function(handle, progress, call) {
  bar <- NULL
  repeat {
    state <- unwrap_core(rs_eval_advance(handle, 0.2), call)
    if (progress && is.null(bar) && state$more) {
      bar <- cli::cli_progress_bar("Judging trajectories", total = state$total)
    }
    if (!is.null(bar)) cli::cli_progress_update(set = state$done, id = bar)
    if (!state$more) break
  }
  if (!is.null(bar)) cli::cli_progress_done(id = bar)
}

new_agent_evaluation <- function(found, suite, runs, answers, given, spec) {
  criteria <- vapply(suite$criteria, `[[`, "", "criterion")
  file <- runs$file
  structure(
    list(
      suite = suite, case_id = suite$cases$id,
      codes = matrix(found$codes, ncol = length(criteria), dimnames = list(NULL, criteria)),
      words = found$words, reasons = found$reasons, counts = as_counts(found$counts),
      tally = found$tally, spec = spec,
      problems = rbind(answers$problems, given$problems, problem_rows(found$problems, file)),
      evidence = found$evidence, file = file,
      offsets = if (!is.null(file)) found$offsets, answers = answers[c("status", "output", "error", "records")]
    ),
    class = "agent_evaluation"
  )
}

as_counts <- function(counts) {
  rates <- as_tibble_columns(counts$rates[setdiff(names(counts$rates), "shares")])
  if (length(counts$rates$shares)) rates$shares <- counts$rates$shares
  list(rates = rates, quantiles = as_tibble_columns(counts$quantiles))
}

as_tibble_columns <- function(columns) tibble::new_tibble(columns, nrow = length(columns[[1]]))

problem_rows <- function(columns, file = NULL) {
  n <- length(columns$case_id)
  tibble(
    file = rep(if (is.null(file)) NA_character_ else file, n),
    line = rep_len(as.numeric(columns$line), n), case_id = as.character(columns$case_id),
    pointer = rep_len(columns$pointer, n), rule = rep_len(columns$rule, n),
    error_kind = rep_len(columns$error_kind, n)
  )
}

#' Combine evaluations of parts of the cases
#'
#' Use it when the cases were judged in parts, on several machines say. The counts are
#' merged exactly: any split of the cases gives the same result as judging them
#' together. Trials of one item (`group_id`) may lie in different parts.
#'
#' @param ... Evaluations by one suite, or a list of them, of different cases.
#' @returns An `agent_evaluation`.
#' @export
#' @examples
#' cases <- data.frame(id = c("a", "b"), input = c("order 1", "order 2"))
#' part <- function(rows) {
#'   one <- agent_trajectory(list(agent_step("message")))
#'   runs <- lapply(rows, function(i) one)
#'   names(runs) <- cases$id[rows]
#'   evaluate(suite(cases[rows, ], list(criterion_max_steps(2))), runs)
#' }
#' metrics(combine_evaluations(part(1), part(2)))
combine_evaluations <- function(...) {
  parts <- list(...)
  if (length(parts) == 1 && !inherits(parts[[1]], "agent_evaluation")) parts <- parts[[1]]
  check_evaluations(parts)
  first <- parts[[1]]
  merged <- unwrap_core(rs_eval_merge(first$spec, vapply(parts, `[[`, "", "tally")))
  first$counts <- as_counts(merged$counts)
  first$tally <- merged$tally
  first <- combine_codes(first, parts)
  first$case_id <- unlist(lapply(parts, `[[`, "case_id"))
  first$suite$cases <- combine_lists(lapply(parts, \(x) x$suite$cases))
  first$answers <- combine_lists(lapply(parts, `[[`, "answers"))
  first$problems <- do.call(rbind, lapply(parts, `[[`, "problems"))
  first["evidence"] <- list(combine_evidence(parts))
  files <- lapply(parts, \(x) if (is.null(x$file)) rep(NA_character_, length(x$case_id)) else rep_len(x$file, length(x$case_id)))
  if (!all(is.na(unlist(files)))) {
    first$file <- unlist(files)
    first$offsets <- unlist(lapply(parts, \(x) if (is.null(x$offsets)) rep(NaN, length(x$case_id)) else x$offsets))
  }
  first
}

combine_lists <- function(lists) {
  columns <- lapply(names(lists[[1]]), \(name) unlist(lapply(lists, `[[`, name), recursive = FALSE))
  names(columns) <- names(lists[[1]])
  columns
}

# Evidence is kept where every part has it.
combine_evidence <- function(parts) {
  each <- lapply(parts, `[[`, "evidence")
  if (any(vapply(each, is.null, NA))) return(NULL)
  lapply(seq_along(each[[1]]), \(i) combine_lists(lapply(each, `[[`, i)))
}

# Codes beyond the core's are those of R functions, part by part.
combine_codes <- function(first, parts) {
  key <- function(x) paste(x$words, x$reasons)
  keys <- unique(unlist(lapply(parts, key)))
  codes <- lapply(parts, \(x) {
    codes <- x$codes
    codes[] <- match(key(x), keys)[codes + 1L] - 1L
    codes
  })
  first$codes <- do.call(rbind, codes)
  first$words <- sub(" .*", "", keys)
  first$reasons <- sub("^[^ ]* ", "", keys)
  first
}

check_evaluations <- function(parts, call = caller_env()) {
  good <- is.list(parts) && length(parts) > 0 && all(vapply(parts, inherits, NA, "agent_evaluation"))
  if (!good) {
    stop_warrant(
      "`...` must hold evaluations, as evaluate() makes them.",
      "input", "not_an_evaluation", argument = "...", call = call
    )
  }
  specs <- unique(vapply(parts, `[[`, "", "spec"))
  if (length(specs) > 1) {
    stop_warrant(
      c(
        "Evaluations can be combined only when they are of one suite.",
        x = "Their criteria, metrics or slices differ."
      ),
      "suite", "other_suite", call = call
    )
  }
  ids <- unlist(lapply(parts, `[[`, "case_id"))
  twice <- unique(ids[duplicated(ids)])
  if (length(twice)) {
    stop_warrant(
      c(
        "A case must be in one part only.",
        x = sprintf("In several: %s.", paste0("\"", first_few(twice, 5), "\"", collapse = ", "))
      ),
      "suite", "case_in_several_parts", case_id = twice, call = call
    )
  }
  invisible(parts)
}

first_few <- function(x, n) x[seq_len(min(n, length(x)))]
