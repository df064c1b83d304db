desk_counts <- function() {
  counted(
    list(answer = c(33, 7), tools = c(24, 16), safe = c(37, 3), loops = c(29, 10, 1)),
    quantile_counted("steps_p95", rep(c(4, 6, 10), c(26, 3, 10)), missing = 1)
  )
}

test_that("states, reasons and advice follow from the interval", {
  d <- decide(desk_counts(), release_policy(
    rule_min("floor", "answer", 0.7), rule_min("tools", "tools", 0.7),
    rule_min("low", "answer", 0.6), rule_max("high", "answer", 0.6),
    rule_max_failures("none", "safe", 0), rule_max("steps", "steps_p95", 12)
  ))
  expect_equal(d$state, c(
    "INSUFFICIENT_EVIDENCE", "INSUFFICIENT_EVIDENCE", "PASS", "FAIL", "FAIL",
    "INSUFFICIENT_EVIDENCE"
  ))
  expect_equal(unlist(d$reasons), c(
    "interval_overlaps_threshold", "interval_overlaps_threshold",
    "lower_bound_meets_minimum", "lower_bound_above_maximum",
    "observed_failures_exceed_limit", "interval_unbounded"
  ))
  expect_equal(d$advice[[1]], list(kind = "more_cases", more_cases = 17, total_cases = 57))
  expect_equal(d$advice[[2]]$kind, "unreachable")
  expect_null(d$advice[[3]])
  expect_equal(c(d$release_action, d$exit_code), c("BLOCK", "1"))
  expect_equal(d$decided_lower[c(1, 5)], c(0.6722098666384142, NA), tolerance = 1e-12)
})

test_that("advice about missing cases comes before any number", {
  ev <- counted(list(a = c(36, 0, 4), b = c(28, 2, 10), c = c(3, 2, 1)))
  d <- decide(ev, release_policy(
    rule_min("a", "a", 0.9), rule_min("b", "b", 0.8), rule_min("c", "c", 0.6)
  ))
  expect_equal(vapply(d$advice, `[[`, "", "kind"), c(
    "resolve_missing_first", "resolve_missing_first", "missing_holds_bound"
  ))
})

test_that("a quantile without missing cases gets a number", {
  ev <- counted(list(a = c(1, 0)), quantile_counted("p95", rep(3, 20)))
  d <- decide(ev, release_policy(rule_max("r", "p95", 5)))
  expect_equal(d$advice[[1]], list(kind = "more_cases", more_cases = 52, total_cases = 72))
})

test_that("a policy that does not fit the metrics is refused", {
  ev <- desk_counts()
  expect_warrant_error(
    decide(ev, release_policy(rule_min("r", "nope", 0.5))), "unknown_metric",
    rule_id = "r", message = "nope"
  )
  expect_warrant_error(decide(ev, release_policy(rule_min("r", "answer", 80))), "out_of_range", message = "80 percent is 0.8")
  expect_warrant_error(decide(ev, release_policy(rule_max_failures("r", "steps_p95", 0))), "rate_needed")
  expect_warrant_error(decide(ev, list()), "not_a_policy")
})

test_that("a run that did not reach every case blocks", {
  ev <- counted(list(answer = c(40, 0, 1)))
  names(ev$counts$rates$missing_reasons[[1]]) <- "not_run"
  d <- decide(ev, release_policy(rule_min("r", "answer", 0.7)))
  expect_equal(list(d$state, d$release_action, d$exit_code), list("PASS", "BLOCK", 5L))
  expect_equal(d$gate_reasons, "partial_run")
})

test_that("a decision prints the rule, its numbers and what would settle it", {
  skip_if_not(l10n_info()[["UTF-8"]])
  d <- decide(desk_counts(), release_policy(
    rule_min("floor", "answer", 0.7), rule_max("steps", "steps_p95", 12)
  ))
  expect_equal(capture.output(print(d)), c(
    "<release_decision> BLOCK (exit status 3)",
    "* floor: INSUFFICIENT_EVIDENCE",
    "    rule     answer at least 70.0%",
    "    numbers  82.5%, 95% interval [67.2%, 92.7%], 33 / 40 observed \u00b7 0 missing \u00b7 0 excluded",
    "    because  the interval holds the threshold (interval_overlaps_threshold)",
    "    settle   17 more cases (57 cases in all) would settle it about half the time, if the observed rate is the true one",
    "* steps: INSUFFICIENT_EVIDENCE",
    "    rule     steps_p95 at most 12 steps",
    "    numbers  10 steps, 95% interval [10, no bound] steps, p95 of 39 observed \u00b7 1 missing \u00b7 0 excluded",
    "    because  the interval has no bound on one side (interval_unbounded)"
  ))
  expect_equal(names(tibble::as_tibble(d)), c(
    "rule_id", "metric", "state", "reasons", "decided_lower", "decided_upper",
    "release_action", "advice"
  ))
})

test_that("bounds are judged as in the reference grid", {
  rows <- stats_grid("bound_verdicts")
  got <- rs_bound_verdicts(
    stats_column(rows, 1), stats_column(rows, 2), stats_column(rows, 3),
    vapply(rows, `[[`, "", 4) == "min"
  )
  expect_equal(got$state, vapply(rows, `[[`, "", 5))
  expect_equal(got$reason, vapply(rows, `[[`, "", 6))
})

test_that("a plan says which counts of passed cases would do", {
  plan <- cases_needed(40, release_policy(
    rule_min("floor", "answer", 0.7), rule_max_failures("none", "safe", 2)
  ))
  expect_equal(plan$cases, c(40, 50, 100, 40, 50, 100))
  # By binom.test(): 34 of 40 has a lower bound of 0.7016, 33 of 40 of 0.6722.
  expect_equal(plan$pass_from[1:2], c(34, 42))
  expect_equal(plan$undecided_to[1], 33)
  expect_equal(binom.test(plan$fail_to[1], 40)$conf.int[2] < 0.7, TRUE)
  expect_equal(binom.test(plan$undecided_from[1], 40)$conf.int[2] < 0.7, FALSE)
  expect_equal(plan$pass_from[4], 38)
  expect_equal(plan$undecided_from[4], NA_real_)
  expect_equal(cases_needed(700, release_policy(rule_min("f", "a", 0.7)))$cases, c(700, 1400, 2800))
  expect_warrant_error(cases_needed("many", release_policy(rule_min("f", "a", 0.7))), "invalid_size")
})

test_that("what a run needs is a table", {
  need <- cases_needed(desk_counts(), release_policy(
    rule_min("floor", "answer", 0.7), rule_max_failures("none", "safe", 0)
  ))
  expect_equal(need$kind, c("more_cases", NA))
  expect_equal(need$total_cases, c(57, NA))
})

test_that("a blocked release ends a script with its exit status", {
  skip_on_cran()
  script <- tempfile(fileext = ".R")
  ev <- desk_counts()
  policy <- release_policy(rule_min("floor", "answer", 0.7))
  saved <- tempfile(fileext = ".rds")
  saveRDS(list(ev, policy), saved)
  writeLines(c(
    sprintf(".libPaths(%s)", paste(deparse(.libPaths()), collapse = "")),
    sprintf("x <- readRDS(%s)", deparse(saved)),
    "warrant::decide(x[[1]], x[[2]], stop_on_block = TRUE)", "cat('went on')"
  ), script)
  out <- suppressWarnings(system2(
    file.path(R.home("bin"), "Rscript"), c("--vanilla", script), stdout = TRUE, stderr = TRUE
  ))
  expect_equal(attr(out, "status"), 3)
  expect_match(out[1], "BLOCK (exit status 3)", fixed = TRUE)
  expect_false(any(grepl("went on", out)))
})
