#' Put a suite together
#'
#' A suite is what is judged: cases, the criteria each answer is held to, and the
#' metrics and slices to report. Everything is checked when the suite is made, so a
#' typo never costs a run.
#'
#' @section Cases:
#' A data frame has the columns `input` and, where wanted, `id`, `expected`,
#' `metadata` and `group_id`; list columns hold structured values. A JSONL file has one
#' object a line with the same keys. `input` is what the system is given. `expected`
#' is what criteria compare with: `expected$tools` and `expected$route` may be absent
#' (the case is *excluded* from criteria that need them), empty (it declares that no
#' tool is called), or malformed (the suite is refused). Without an `id` a case gets
#' one derived from its content. Cases with the same `group_id` are trials of one
#' item: the group is then the unit, see [metrics()].
#'
#' @section Slices:
#' `metadata.KEY`, `first_tool`, `repeated_action`, `route`, `trajectory_length:a,b,...`
#' and `tool_calls:a,b,...` with increasing whole numbers.
#'
#' @param cases A data frame, the path of a JSONL file, or `NULL` for none.
#' @param criteria A list of criteria, see [criterion_contains()] and its siblings.
#' @param metrics A list of [metric_quantile()]s. Rates need no entry: each criterion
#'   has one.
#' @param slices Names of slices.
#' @param ... Must be empty.
#' @param min_slice_support Below so many eligible cases a slice has no interval.
#' @param system The system under test, see [agent_system()]; it may also be given to
#'   [run_suite()].
#' @param name Name of the suite.
#' @returns An `agent_suite`. Errors are of class `warrant_error_suite` and name file,
#'   line and field as far as there are any.
#' @export
#' @examples
#' suite(
#'   data.frame(id = c("a", "b"), input = c("2 + 2", "3 * 3"), expected = c("4", "9")),
#'   list(criterion_equals("answer"))
#' )
suite <- function(cases, criteria, metrics = list(), slices = character(), ...,
                  min_slice_support = 30, system = NULL, name = NULL) {
  check_dots(...)
  if (inherits(criteria, "agent_criterion")) criteria <- list(criteria)
  if (inherits(metrics, "agent_metric")) metrics <- list(metrics)
  check_all(criteria, "agent_criterion", "criteria", "criteria, as criterion_contains() makes them")
  check_all(metrics, "agent_metric", "metrics", "metrics, as metric_quantile() makes them")
  if (!is.null(system)) system <- as_system(system)
  new_suite(
    cases = read_cases(cases), criteria = criteria, metrics = metrics,
    slices = as.character(slices), min_slice_support = min_slice_support,
    system = system, name = name, dataset = if (is.character(cases)) cases
  )
}

check_all <- function(x, class, arg, what, call = caller_env()) {
  if (is.list(x) && all(vapply(x, inherits, NA, class))) return(invisible(x))
  stop_warrant(
    sprintf("`%s` must be a list of %s.", arg, what),
    "input", "invalid_argument", argument = arg, call = call
  )
}

# The core checks the whole: names, fields, slices, and each case against each
# criterion, whose names it settles.
new_suite <- function(cases, criteria, metrics, slices, min_slice_support, system, name,
                      dataset = NULL, call = caller_env()) {
  suite <- list(
    name = name, cases = cases, criteria = criteria, metrics = unname(metrics),
    slices = slices, min_slice_support = min_slice_support, system = system
  )
  with_case_place(dataset, cases$id, check_suite_parts(structure(suite, class = "agent_suite"), call), call)
}

# Raises a fault of a case again with the line of the file that it stands in.
with_case_place <- function(file, ids, expr, call) {
  if (is.null(file)) return(expr)
  tryCatch(expr, warrant_error = function(e) {
    if (is.null(e[["case_id"]]) || !is.null(e[["file"]])) rlang::cnd_signal(e)
    lines <- grep("[^[:space:]]", readLines(file, warn = FALSE), useBytes = TRUE)
    e$file <- file
    e$line <- lines[match(e[["case_id"]], ids)]
    e$message <- sprintf("%s, line %d: %s", file, e$line, e$message)
    e$call <- call
    rlang::cnd_signal(e)
  })
}

#' Report a quantile of what runs took
#'
#' Use it in [suite()] to report, say, the 95th percentile of the number of steps.
#'
#' @param id Name of the metric, unique in the suite.
#' @param source `"agent_steps"` (all steps of a trajectory) or `"agent_tool_calls"`.
#' @param quantile A number between 0 and 1, taken as the decimal it is written as.
#' @returns An `agent_metric`.
#' @export
#' @examples
#' metric_quantile("steps_p95", "agent_steps", 0.95)
metric_quantile <- function(id, source = c("agent_steps", "agent_tool_calls"), quantile) {
  check_string(id)
  source <- arg_match(source)
  check_level(quantile, "quantile")
  structure(
    list(id = id, type = "quantile", source = source, quantile = quantile),
    class = "agent_metric"
  )
}

#' @export
print.agent_metric <- function(x, ...) {
  writeLines(sprintf(
    "<agent_metric> %s: p%s of %ss", x$id, format_percentile(x$quantile), unit_words(x$source)
  ))
  invisible(x)
}

# Columns of JSON texts, whatever the cases came from.
read_cases <- function(cases, call = caller_env()) {
  if (is.null(cases)) return(unwrap_core(rs_cases(""), call))
  if (is.data.frame(cases)) return(cases_of_frame(cases, call))
  if (is.character(cases) && length(cases) == 1 && !is.na(cases)) {
    path <- enc2utf8(normalizePath(check_config_file(cases, call)))
    return(with_place(cases, unwrap_core(rs_cases_file(path, cases), call), call))
  }
  stop_warrant(
    c("`cases` must be a data frame or the path of a JSONL file.", x = class_words(cases)),
    "input", "invalid_cases", argument = "cases", call = call
  )
}

cases_of_frame <- function(cases, call) {
  tryCatch(unwrap_core(rs_cases(case_lines(cases, call)), call), warrant_error = function(e) {
    if (!is.null(e[["line"]])) e$message <- sprintf("`cases`, row %d: %s", e[["line"]], e$message)
    rlang::cnd_signal(e)
  })
}

case_columns <- c("id", "input", "expected", "metadata", "group_id")

case_lines <- function(cases, call) {
  columns <- lapply(cases[intersect(case_columns, names(cases))], function(column) {
    if (is.factor(column)) as.character(column) else column
  })
  lines <- vapply(seq_len(nrow(cases)), function(i) {
    row <- lapply(columns, cell, i)
    row <- row[!vapply(row, is_absent, NA)]
    if (is.numeric(row$id)) row$id <- format(row$id, scientific = FALSE, trim = TRUE)
    if (is.list(row$expected)) row$expected <- keep_arrays(row$expected)
    unwrap_core(rs_to_json(row), call)
  }, "")
  paste(lines, collapse = "\n")
}

cell <- function(column, i) if (is.data.frame(column)) as.list(column[i, ]) else column[[i]]

is_absent <- function(x) is.null(x) || (is.atomic(x) && length(x) == 1 && is.na(x))

# A single tool or agent in an R vector is still a list of one.
keep_arrays <- function(expected) {
  for (key in intersect(c("tools", "route"), names(expected))) {
    if (is.character(expected[[key]])) expected[[key]] <- as.list(expected[[key]])
  }
  # No arguments are `{}`, as in a step.
  if (is.list(expected$tools)) {
    expected$tools <- lapply(expected$tools, function(tool) {
      if (is.list(tool) && is.list(tool$arguments)) tool$arguments <- object_if_empty(tool$arguments)
      tool
    })
  }
  expected
}

#' @export
format.agent_suite <- function(x, ...) {
  criteria <- vapply(x$criteria, `[[`, "", "criterion")
  c(
    sprintf("<agent_suite> %s", paste(c(x$name, count_of(length(x$cases$id), "case")), collapse = ", ")),
    sprintf("* criteria: %s", paste(criteria, collapse = ", ")),
    if (length(x$metrics)) {
      sprintf("* quantiles: %s", paste(vapply(x$metrics, `[[`, "", "id"), collapse = ", "))
    },
    if (length(x$slices)) {
      sprintf("* slices: %s (support %s)", paste(x$slices, collapse = " "), x$min_slice_support)
    },
    if (!is.null(x$cases$group_id)) {
      sprintf("* groups: %d, each of repeated trials", length(unique(x$cases$group_id)))
    },
    if (!is.null(x$system)) sprintf("* system: %s %s", x$system$name, x$system$version)
  )
}

#' @export
print.agent_suite <- function(x, ...) {
  writeLines(format(x))
  invisible(x)
}
