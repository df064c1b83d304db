# Compares the installed package with recorded reference results: records,
# declarations, verdicts, counts, groups, metrics, slices, decisions, statistics.
#
#   Rscript tools/conformance.R FOLDER     (or the environment variable WARRANT_ORACLE)
#
# FOLDER holds `invalid/` and one folder a suite with cases, outputs, trajectories,
# suite.json and the expected files. Prints `N passed, N failed, N skipped`; exits 1 when one
# failed, 0 and a note when there is no folder. Needs jsonlite.
#
# Two rows differ on purpose: a repeated key in a record is refused, and two
# different criteria with one default name get a suffix.

args <- commandArgs(TRUE)
folder <- if (length(args)) args[1] else Sys.getenv("WARRANT_ORACLE")
if (!nzchar(folder) || !dir.exists(folder)) {
  cat("No reference results here (set WARRANT_ORACLE to their folder).\n0 passed, 0 failed, 1 skipped\n")
  quit(status = 0)
}
ns <- asNamespace("warrant")
results <- new.env()
results$passed <- 0
results$failed <- character()

check <- function(name, good, note = "") {
  if (isTRUE(good)) {
    results$passed <- results$passed + 1
  } else {
    results$failed <- c(results$failed, paste0(name, if (nzchar(note)) paste0(": ", note)))
  }
}

lines_of <- function(...) {
  lines <- readLines(file.path(folder, ...), encoding = "UTF-8", warn = FALSE)
  lines[nzchar(lines)]
}
parse <- function(text) jsonlite::fromJSON(text, simplifyVector = FALSE)
parsed <- function(...) lapply(lines_of(...), parse)
is_fault <- function(x) inherits(x, "warrant_fault")

# The text of a value in a line, as it was written.
raw_payload <- function(line, end = "\\}$") sub(end, "", sub('^.*?"payload":', "", line, perl = TRUE))

# --- records -----------------------------------------------------------------
for (line in lines_of("invalid", "invalid.jsonl")) {
  row <- parse(line)
  text <- if (is.null(row$payload_json)) raw_payload(line) else row$payload_json
  found <- ns$rs_trajectory_check(text)
  kind <- if (is_fault(found)) found$code else "accepted"
  check(paste("invalid", row$id), identical(kind, row$error_kind), paste(kind, "for", row$error_kind))
}
for (line in lines_of("invalid", "valid.jsonl")) {
  row <- parse(line)
  text <- if (is.null(row$payload_json)) raw_payload(line) else row$payload_json
  found <- ns$rs_trajectory_check(text)
  on_purpose <- row$id == "arguments_duplicate_key"
  check(paste("valid", row$id), identical(is_fault(found), on_purpose), if (is_fault(found)) found$message else "")
}

# --- declarations ------------------------------------------------------------
with_base <- function(payload) {
  given <- names(parse(payload))
  base <- c(
    version = '"version":1',
    evaluators = '"evaluators":[{"type":"agent_max_steps","max_steps":3}]'
  )
  fields <- sub("^\\{(.*)\\}$", "\\1", payload)
  paste0("{", paste(c(base[setdiff(names(base), given)], fields), collapse = ","), "}")
}
sorted <- function(x) {
  if (is.list(x) && !is.null(names(x))) x <- x[order(names(x), method = "radix")]
  if (is.list(x)) lapply(x, sorted) else x
}
same <- function(a, b) isTRUE(all.equal(sorted(a), sorted(b), tolerance = 0))

core_kinds <- c("evaluator", "evaluators", "metric", "slices", "expected", "project")
for (line in lines_of("invalid", "config_checks.jsonl")) {
  row <- parse(line)
  if (!row$kind %in% core_kinds) next
  payload <- raw_payload(line, ',"accepted":(true|false).*$')
  found <- ns$rs_check_declaration(row$kind, if (row$kind == "project") with_base(payload) else payload)
  accepted <- row$accepted || row$id == "cfg054"
  name <- paste("declaration", row$id)
  check(name, identical(!is_fault(found), accepted), if (is_fault(found)) found$message else found)
  if (is_fault(found) || is.null(row$result)) next
  found <- parse(found)
  for (field in names(row$result)) {
    want <- row$result[[field]]
    # Further parameters with their defaults do not count.
    have <- if (field == "config") found$config[names(want)] else found[[field]]
    check(paste(name, field), same(unname(list(have)), unname(list(want))))
  }
}

# Rules and policies, against a rate `agent_steps_le_3` and a quantile `steps_p95`.
policy_accepted <- function(payload, kind) {
  rule <- '{"id":"r","metric":"agent_steps_le_3","min":0.5}'
  text <- if (kind == "rule") {
    sprintf('{"rules":%s}', if (startsWith(payload, "[")) payload else paste0("[", payload, "]"))
  } else {
    sprintf('{"rules":[%s],%s', rule, substring(payload, 2))
  }
  !is_fault(ns$rs_policy(text, c("agent_steps_le_3", "steps_p95"), c("rate", "quantile")))
}
for (line in lines_of("invalid", "config_checks.jsonl")) {
  row <- parse(line)
  if (!row$kind %in% c("rule", "policy")) next
  payload <- raw_payload(line, ',"accepted":(true|false).*$')
  check(paste("declaration", row$id), identical(policy_accepted(payload, row$kind), row$accepted))
}

# --- statistics --------------------------------------------------------------
number <- function(x) if (is.null(x)) NA_real_ else as.numeric(x)
column <- function(rows, i) vapply(rows, function(row) number(row[[i]]), numeric(1))
near <- function(a, b) {
  ifelse(is.na(a) | is.na(b), is.na(a) & is.na(b), a == b | abs(a - b) <= 1e-12 * abs(b))
}
check_rows <- function(name, good) {
  for (i in seq_along(good)) check(paste(name, i), good[i])
}
tally_of <- function(x) {
  x <- unlist(x)
  list(values = sort(unique(x)), counts = as.integer(table(x)))
}

compare_statistics <- list(
  rate_intervals = function(rows) {
    tail <- (1 - column(rows, 4)) / 2
    at <- ns$rate_interval_at(column(rows, 1), column(rows, 2), column(rows, 3), tail)
    near(at$lower, column(rows, 5)) & near(at$upper, column(rows, 6))
  },
  quantile_ranks = function(rows) {
    at <- Map(ns$quantile_ranks, column(rows, 1), column(rows, 2), column(rows, 3))
    mapply(function(at, low, high) identical(c(at$lower, at$upper), c(low, high)),
      at, column(rows, 4), column(rows, 5))
  },
  quantile_estimate_rank = function(rows) {
    mapply(ns$estimate_rank, column(rows, 1), column(rows, 2)) == column(rows, 3)
  },
  quantile_intervals = function(rows) {
    vapply(rows, function(row) {
      data <- tally_of(row[[1]])
      at <- ns$quantile_interval(data$values, data$counts, row[[4]], row[[2]], row[[3]])
      identical(unlist(at, use.names = FALSE), vapply(5:7, function(i) number(row[i][[1]]), 0))
    }, NA)
  },
  quantile_fewest = function(rows) {
    mapply(ns$fewest_cases, column(rows, 1), column(rows, 2)) == column(rows, 3)
  },
  rate_sizing = function(rows) {
    directions <- vapply(rows, `[[`, "", 3)
    got <- mapply(ns$size_rate, column(rows, 1), column(rows, 2), directions, column(rows, 4))
    near(as.numeric(got), column(rows, 5))
  },
  quantile_sizing = function(rows) {
    vapply(rows, function(row) {
      data <- tally_of(row[[1]])
      got <- ns$size_quantile(data$values, data$counts, row[[2]], row[[4]], row[[3]])
      identical(unlist(got, use.names = FALSE), c(number(row[5][[1]]), number(row[6][[1]])))
    }, NA)
  },
  slice_p_values = function(rows) {
    got <- ns$slice_p_values(column(rows, 1), column(rows, 2), column(rows, 3), column(rows, 4))
    near(got, column(rows, 5))
  },
  by_marks = function(rows) {
    vapply(rows, function(row) {
      got <- ns$by_marks(unlist(row[[3]]), unlist(row[[2]]), row[[1]])
      identical(got$marked, unlist(row[[4]])) && all(got$rank == unlist(row[[5]])) &&
        all(near(got$threshold, unlist(row[[6]])))
    }, NA)
  },
  bound_verdicts = function(rows) {
    min <- vapply(rows, `[[`, "", 4) == "min"
    got <- ns$rs_bound_verdicts(column(rows, 1), column(rows, 2), column(rows, 3), min)
    got$state == vapply(rows, `[[`, "", 5) & got$reason == vapply(rows, `[[`, "", 6)
  }
)
for (name in names(compare_statistics)) {
  check_rows(paste("statistics", name), compare_statistics[[name]](parsed("stats", paste0(name, ".jsonl"))))
}

# --- suites ------------------------------------------------------------------
json <- function(x) as.character(jsonlite::toJSON(x, auto_unbox = TRUE, null = "null", digits = NA))

reference_suite <- function(name) {
  text <- paste(lines_of(name, "suite.json"), collapse = "\n")
  declared <- parse(text)
  found <- ns$unwrap_core(ns$rs_suite_check(text))
  cases <- parsed(name, "cases.jsonl")
  column <- function(key) vapply(cases, function(case) json(case[[key]]), "")
  suite <- structure(
    list(
      cases = list(
        id = vapply(cases, `[[`, "", "case_id"), input = column("input"),
        expected = column("expected"), metadata = column("metadata"), group_id = NULL
      ),
      criteria = lapply(declared$evaluators, ns$criterion_from_spec),
      metrics = declared$metrics, slices = as.character(unlist(declared$slices)),
      min_slice_support = declared$min_slice_support
    ),
    class = "agent_suite"
  )
  check(paste(name, "names"), identical(
    vapply(suite$criteria, `[[`, "", "criterion"), vapply(parse(found)$evaluators, `[[`, "", "criterion")
  ))
  ns$check_suite_parts(suite)
}

compare_verdicts <- function(name, ev) {
  found <- warrant::verdicts(ev)
  found$text <- unlist(do.call(Map, c(c, lapply(ev$evidence, `[[`, "text"))))
  for (case in parsed(name, "expected_verdicts.jsonl")) {
    for (criterion in names(case$verdicts)) {
      want <- case$verdicts[[criterion]]
      have <- found[found$case_id == case$case_id & found$criterion == criterion, ]
      label <- paste(name, case$case_id, criterion)
      check(label, identical(have$verdict, want$verdict), have$verdict)
      reason <- if (is.null(want$reason)) NA_character_ else want$reason
      check(paste(label, "reason"), identical(have$reason, reason), have$reason)
      if (is.null(want$metadata)) next
      check(paste(label, "evidence"), same(parse(have$text), want$metadata), have$text)
    }
  }
}

compare_counts <- function(label, have, want) {
  fields <- intersect(c("n_total", "n_passed", "n_failed", "n_missing", "n_excluded"), names(have))
  for (field in fields) check(paste(label, field), identical(as.numeric(have[[field]]), as.numeric(want[[field]])))
  if (want$type == "rate") {
    check(paste(label, "exclusions"), same(as.list(have$exclusions[[1]]), want$exclusions))
  } else {
    check(paste(label, "observed"), sum(have$counts[[1]]) == want$n_observed)
    check(paste(label, "quantile"), have$quantile == want$quantile && have$source == want$source)
  }
}

row_of <- function(ev, want, slice = "", value = "") {
  table <- if (want$type == "rate") ev$counts$rates else ev$counts$quantiles
  id <- if (want$type == "rate") table$criterion else table$metric
  table[table$slice == slice & table$value == value & id == want$metric, ]
}

compare_tables <- function(name, ev) {
  for (want in parse(paste(lines_of(name, "expected_metrics.json"), collapse = "\n"))) {
    compare_counts(paste(name, want$metric), row_of(ev, want), want)
  }
  slices <- parse(paste(lines_of(name, "expected_slices.json"), collapse = "\n"))$results
  for (want in slices) {
    label <- paste(name, want$slice, want$value, want$metric)
    compare_counts(label, row_of(ev, want, want$slice, want$value), want)
  }
  rates <- Filter(function(want) want$type == "rate", slices)
  order <- vapply(rates, function(want) paste(want$slice, want$value, want$metric), "")
  have <- ev$counts$rates[ev$counts$rates$slice != "", ]
  check(paste(name, "order of slices"), identical(paste(have$slice, have$value, have$criterion), order))
}

# The tables that users see.
compare_table <- function(label, have, want) {
  check(paste(label, "rows"), nrow(have) == length(want))
  fields <- c(
    "estimate", "lower", "upper", "confidence_level", "n_total", "n_eligible", "n_observed",
    "n_passed", "n_failed", "n_missing", "n_excluded", "support", "p_value"
  )
  for (field in intersect(fields, names(have))) {
    good <- near(as.numeric(have[[field]]), vapply(want, function(x) number(x[[field]]), 0))
    check_rows(paste(label, field), good)
  }
  for (field in intersect(c("metric", "type", "slice", "value", "marked"), names(have))) {
    wanted <- unlist(lapply(want, function(x) if (is.null(x[[field]])) NA else x[[field]]))
    check(paste(label, field), identical(have[[field]], wanted))
  }
}

compare_decision <- function(name, ev) {
  want <- parse(paste(lines_of(name, "expected_decisions.json"), collapse = "\n"))
  have <- warrant::decide(ev, warrant::read_policy(file.path(folder, name, "release.json")))
  check(paste(name, "gate"), identical(
    list(have$release_action, as.numeric(have$exit_code), as.list(have$gate_reasons)),
    list(want$release_action, as.numeric(want$exit_code), want$gate_reasons)
  ))
  for (i in seq_along(want$decisions)) {
    rule <- want$decisions[[i]]
    label <- paste(name, rule$rule_id)
    check(paste(label, "state"), identical(
      c(have$rule_id[i], have$metric[i], have$state[i], have$action[i], have$reasons[[i]]),
      c(rule$rule_id, rule$metric, rule$state, rule$release_action, unlist(rule$reasons))
    ))
    check(paste(label, "bounds"), near(have$decided_lower[i], number(rule$decided_lower)) &&
      near(have$decided_upper[i], number(rule$decided_upper)))
    advice <- have$advice[[i]]
    check(paste(label, "advice"), identical(
      list(advice$kind, number(advice$more_cases), number(advice$total_cases)),
      list(rule$advice$kind, number(rule$advice$more_cases), number(rule$advice$total_cases))
    ))
  }
}

suites <- Filter(
  function(name) file.exists(file.path(folder, name, "expected_verdicts.jsonl")),
  list.dirs(folder, full.names = FALSE, recursive = FALSE)
)
for (name in suites) {
  suite <- reference_suite(name)
  runs <- warrant::read_trajectories(
    file.path(folder, name, "trajectories.jsonl"), file.path(folder, name, "outputs.jsonl")
  )
  ev <- warrant::evaluate(suite, runs)
  compare_verdicts(name, ev)
  compare_tables(name, ev)
  wanted <- function(file) parse(paste(lines_of(name, file), collapse = "\n"))
  compare_table(paste(name, "metrics"), warrant::metrics(ev), wanted("expected_metrics.json"))
  compare_table(
    paste(name, "slices"), warrant::slices(ev, mark_all = TRUE), wanted("expected_slices.json")$results
  )
  compare_decision(name, ev)
}

# --- what was found ----------------------------------------------------------
if (length(results$failed)) writeLines(c("Failed:", paste("*", results$failed)))
cat(sprintf("%d passed, %d failed, 0 skipped\n", results$passed, length(results$failed)))
quit(status = as.integer(length(results$failed) > 0))
