# The figures of the two example projects, as counted by hand from their rules.

test_that("the refund desk has its figures", {
  skip_if_not_installed("yaml")
  ev <- example_evaluation("refund-desk")
  m <- metrics(ev)
  expect_equal(m$metric, c(
    "answer_correct", "agent_tool_lookup_order_called", "agent_no_tool_loop",
    "agent_tool_sequence", "agent_constraints_satisfied", "agent_steps_le_10",
    "steps_p95", "tool_calls_p50"
  ))
  expect_equal(m$n_passed, c(33, 39, 29, 24, 37, 39, NA, NA))
  expect_equal(m$n_failed, c(7, 0, 10, 16, 3, 1, NA, NA))
  expect_equal(m$n_missing, c(0, 1, 1, 0, 0, 0, 1, 1))
  expect_equal(m$n_excluded, rep(0, 8))
  expect_equal(m$estimate[7:8], c(10, 2))
  expect_equal(m$lower, c(
    0.6722098666384142, 0.8684141415172343, 0.5611170928209519, 0.4332670521932967,
    0.796135251267101, 0.8684141415172343, 10, 2
  ), tolerance = 1e-12)
  expect_equal(m$upper, c(
    0.9266172706479148, 1, 0.873085201067155, 0.7513500134122562, 0.9842578201489585,
    0.9993672550679505, NA, 3
  ), tolerance = 1e-12)

  s <- slices(ev, mark_all = TRUE)
  rates <- s[s$type == "rate", ]
  expect_equal(nrow(s), 72)
  groups <- unique(paste(s$slice, s$value, sep = "="))
  expect_equal(groups, c(
    "metadata.surface=chat", "metadata.surface=support", "first_tool=lookup_order",
    "first_tool=search", "repeated_action=false", "repeated_action=true",
    "trajectory_length:4,8=le_4", "trajectory_length:4,8=le_8", "trajectory_length:4,8=gt_8"
  ))
  expect_equal(rates$n_passed, c(
    24, 30, 26, 24, 30, 30, 9, 9, 3, 0, 7, 9, 27, 33, 29, 24, 30, 33, 6, 6, 0, 0, 7, 6,
    27, 29, 29, 24, 26, 29, 6, 10, 0, 0, 10, 10, 24, 26, 26, 24, 26, 26,
    3, 3, 3, 0, 0, 3, 6, 10, 0, 0, 10, 10
  ))
  expect_equal(s$support[s$metric == "steps_p95"], c(30, 10, 33, 7, 29, 10, 26, 3, 10))
  expect_equal(s$estimate[s$metric == "steps_p95"], c(10, 10, 10, 10, 6, 10, 4, 6, 10))
  expect_equal(which(s$marked), c(12, 27, 28, 35, 43, 44, 51, 52, 61, 67, 68))

  d <- decide(ev, read_policy(file.path(example_project("refund-desk"), "release.yaml")))
  expect_equal(d$state, c("INSUFFICIENT_EVIDENCE", "INSUFFICIENT_EVIDENCE", "FAIL"))
  expect_equal(d$advice[[1]], list(kind = "more_cases", more_cases = 17, total_cases = 57))
  expect_equal(d$advice[[2]]$kind, "unreachable")
  expect_equal(list(d$release_action, d$exit_code), list("BLOCK", 1L))
})

test_that("the triage team has its figures", {
  ev <- example_evaluation("triage-team")
  m <- metrics(ev)
  expect_equal(m$metric, c("answer_correct", "agent_route", "agent_tool_permissions", "agent_handoffs_le_2"))
  expect_equal(m$n_passed, c(29, 26, 27, 26))
  expect_equal(m$n_failed, c(1, 4, 2, 4))
  expect_equal(m$n_missing, c(0, 0, 1, 0))
  s <- slices(ev, mark_all = TRUE)
  expect_equal(unique(s$value), c(
    "triage>billing", "triage>billing>person", "triage>billing>triage>tech", "triage>tech",
    "triage>tech>triage>billing"
  ))
  expect_equal(s$n_passed, c(12, 12, 12, 12, 2, 2, 2, 2, 1, 0, 1, 0, 12, 12, 10, 12, 2, 0, 2, 0))
  expect_equal(s$n_total, rep(c(12, 2, 1, 12, 2), each = 4))
  expect_equal(sum(s$marked), 0)
  d <- decide(ev, read_policy(file.path(example_project("triage-team"), "release.json")))
  expect_equal(d$state, c("PASS", "INSUFFICIENT_EVIDENCE", "FAIL"))
  expect_equal(d$advice[[2]], list(kind = "more_cases", more_cases = 6, total_cases = 36))
  expect_equal(list(d$release_action, d$exit_code), list("BLOCK", 1L))
})

test_that("an evaluation prints the table that people read", {
  skip_if_not(l10n_info()[["UTF-8"]])
  expect_equal(capture.output(print(example_evaluation()))[1:3], c(
    "<agent_evaluation> 30 cases, exact 95% intervals",
    "answer_correct          96.7%  [82.7%, 100.0%]  29 / 30 observed \u00b7 0 missing \u00b7 0 excluded",
    "agent_route             86.7%  [69.2%, 96.3%]   26 / 30 observed \u00b7 0 missing \u00b7 0 excluded"
  ))
})

test_that("an evaluation can be drawn", {
  skip_if_not_installed("ggplot2")
  ev <- example_evaluation()
  plot <- ggplot2::autoplot(ev)
  expect_s3_class(plot, "ggplot")
  expect_equal(nrow(plot$data), 24)
  expect_error(ggplot2::ggplot_build(plot), NA)
  expect_equal(nrow(ggplot2::autoplot(ev, slice = character(), metric = "agent_route")$data), 1)
  expect_warrant_error(ggplot2::autoplot(ev, slice = "first_tool"), "unknown_name")
  expect_warrant_error(ggplot2::autoplot(ev, metric = "x"), "unknown_name")
})

test_that("groups of trials are said to be groups", {
  trials <- suite(
    data.frame(id = 1:6, input = 1:6, expected = "x", group_id = rep(c("a", "b", "c"), each = 2)),
    list(criterion_equals("right"))
  )
  runs <- run_suite(trials, function(case) if (case$input == 6) "y" else "x", seed = 1)
  ev <- evaluate(trials, runs)
  expect_match(format(ev)[1], "3 groups of trials")
  expect_equal(metrics(ev)$estimate, 2.5 / 3)
  expect_equal(metrics(ev)$n_passed, 2)
})
