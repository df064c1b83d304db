test_that("metrics carry estimate, interval and every count", {
  ev <- counted(list(answer = c(33, 7), tool = c(29, 10, 1), never = c(0, 0, 0, 40)))
  m <- metrics(ev)
  expect_equal(names(m)[1:13], c(
    "metric", "type", "estimate", "lower", "upper", "confidence_level", "n_total",
    "n_eligible", "n_observed", "n_passed", "n_failed", "n_missing", "n_excluded"
  ))
  expect_equal(m$estimate, c(0.825, 29 / 39, NA))
  expect_equal(m$lower[1:2], c(0.6722098666384142, 0.5611170928209519), tolerance = 1e-12)
  expect_equal(m$upper[1:2], c(0.9266172706479148, 0.873085201067155), tolerance = 1e-12)
  expect_equal(m$n_eligible, c(40, 40, 0))
  expect_equal(m$confidence_level, c(0.95, 0.95, NA))
  expect_equal(m$reason, c(NA, NA, "no_observations"))
})

test_that("cases that are all missing have an interval and no estimate", {
  m <- metrics(counted(list(answer = c(0, 0, 5))))
  expect_equal(c(m$lower, m$upper), c(0, 1))
  expect_identical(m$estimate, NA_real_)
})

test_that("the confidence level is a parameter", {
  ev <- counted(list(answer = c(9, 1)))
  m <- metrics(ev, confidence_level = 0.5)
  expect_equal(c(m$lower, m$upper), as.numeric(binom.test(9, 10, conf.level = 0.5)$conf.int))
  expect_warrant_error(metrics(ev, confidence_level = 95), "invalid_level", message = "0.95")
  expect_warrant_error(metrics(ev, confidence_level = 1), "invalid_level")
  expect_warrant_error(metrics(list()), "not_an_evaluation")
})

test_that("a quantile counts missing cases on both sides", {
  steps <- rep(c(4, 6, 10), c(26, 3, 10))
  m <- metrics(counted(list(a = c(1, 0)), quantile_counted("steps_p95", steps, missing = 1)))[2, ]
  expect_equal(c(m$estimate, m$lower, m$upper), c(10, 10, NA))
  expect_equal(c(m$n_total, m$n_eligible, m$n_observed, m$n_missing), c(40, 40, 39, 1))
})

test_that("numbers are shown rounded so that a bound never looks better", {
  expect_equal(percent(c(0.825, 0, 1, 0.9985, 1e-9)), c("82.5%", "0.0%", "100.0%", "99.8%", "0.0%"))
  expect_equal(percent(c(0.6722098666, 0.0005, 0.3), "down"), c("67.2%", "0.0%", "30.0%"))
  expect_equal(percent(c(0.9266172706, 1e-9, 0.3), "up"), c("92.7%", "0.1%", "30.0%"))
  expect_equal(percent(c(0.0005, 0.0015, 0.0025)), c("0.0%", "0.2%", "0.2%"))
})

test_that("metrics print as people read them", {
  skip_if_not(l10n_info()[["UTF-8"]])
  ev <- counted(
    list(answer = c(33, 7), tool = c(29, 10, 1)),
    rbind(
      quantile_counted("steps_p95", rep(c(4, 6, 10), c(26, 3, 10)), missing = 1),
      quantile_counted("calls_p50", c(1, 1, 1), q = 0.5, source = "agent_tool_calls")
    )
  )
  expect_equal(capture.output(print(metrics(ev))), c(
    "<agent_metrics> 4 metrics, exact 95% intervals",
    "answer     82.5%        [67.2%, 92.7%]                   33 / 40 observed \u00b7 0 missing \u00b7 0 excluded",
    "tool       74.4%        [56.1%, 87.4%]                   29 / 39 observed \u00b7 1 missing \u00b7 0 excluded",
    "steps_p95  10 steps     [10, no bound] steps             p95 of 39 observed \u00b7 1 missing \u00b7 0 excluded",
    "calls_p50  1 tool call  [no bound, no bound] tool calls  p50 of 3 observed \u00b7 0 missing \u00b7 0 excluded",
    "* tool missing: 1 system_error"
  ))
  expect_output(print(metrics(ev)[1:2]), "metric")
})

test_that("grouped trials have the interval of Hoeffding and Bentkus", {
  # Ten groups, all trials equal: at least as wide as ten single trials, and not
  # as narrow as fifty.
  shares <- rep(c(0, 1), c(3, 7))
  at <- group_interval(shares, 0, 0.025)
  ten <- rate_interval(7, 10, 0, 0.95)
  expect_lte(at[1], ten$lower)
  expect_gte(at[2], ten$upper)
  expect_gt(at[2] - at[1], with(rate_interval(35, 50, 0, 0.95), upper - lower))
  expect_equal(mean_share(c(0.2, 0.5, 0.5, 0.5)), 0.425)
  missing <- group_interval(shares, 2, 0.025)
  expect_lt(missing[1], at[1])
  expect_equal(group_interval(numeric(), 0, 0.025), c(NA_real_, NA_real_))
})

test_that("the interval of grouped trials covers the true mean", {
  withr::with_seed(5, {
    held <- replicate(800, {
      share <- rbinom(30, 4, rbeta(30, 2, 1)) / 4
      at <- group_interval(share, 0, 0.025)
      at[1] <= 2 / 3 && 2 / 3 <= at[2]
    })
    expect_gte(mean(held), 0.95)
  })
})

test_that("groups of trials are the unit of a rate", {
  ev <- counted(list(answer = c(2, 1, 1)))
  ev$counts$rates$shares <- list(c(1, 1, 0.5))
  m <- metrics(ev)
  expect_equal(m$estimate, 2.5 / 3)
  expect_equal(c(m$lower, m$upper), group_interval(c(1, 1, 0.5), 1, 0.025))
  d <- decide(ev, release_policy(rule_min("r", "answer", 0.5)))
  expect_equal(d$state, "INSUFFICIENT_EVIDENCE")
  expect_null(d$advice[[1]])
})
