# Compares the installed package with recorded reference results: records,
# declarations, verdicts, counts, groups.
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
}

# --- what was found ----------------------------------------------------------
if (length(results$failed)) writeLines(c("Failed:", paste("*", results$failed)))
cat(sprintf("%d passed, %d failed, 0 skipped\n", results$passed, length(results$failed)))
quit(status = as.integer(length(results$failed) > 0))
