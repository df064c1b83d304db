test_that("rate intervals agree with the reference grid to 1e-12", {
  rows <- stats_grid("rate_intervals")
  expect_equal(length(rows), 2891)
  at <- rate_interval_at(
    stats_column(rows, 1), stats_column(rows, 2), stats_column(rows, 3),
    (1 - stats_column(rows, 4)) / 2
  )
  expect_lt(worst_relative(at$lower, stats_column(rows, 5)), 1e-12)
  expect_lt(worst_relative(at$upper, stats_column(rows, 6)), 1e-12)
})

test_that("a rate interval without missing cases is that of binom.test()", {
  for (n in c(1:12, 33, 60)) {
    at <- rate_interval(0:n, rep(n, n + 1), 0, 0.9)
    truth <- vapply(0:n, \(k) binom.test(k, n, conf.level = 0.9)$conf.int, numeric(2))
    expect_lt(max(abs(rbind(at$lower, at$upper) - truth)), 1e-12)
    expect_true(all(diff(at$lower) > 0) && all(diff(at$upper) > 0))
  }
})

test_that("the interval bounds what the missing cases could have been", {
  at <- rate_interval(5, 8, 4, 0.95)
  expect_equal(at$lower, binom.test(5, 12)$conf.int[1])
  expect_equal(at$upper, binom.test(9, 12)$conf.int[2])
  expect_equal(rate_interval(0, 0, 3, 0.95), list(lower = 0, upper = 1))
  expect_equal(rate_interval(0, 0, 0, 0.95), list(lower = NA_real_, upper = NA_real_))
})

test_that("quantile ranks equal the reference grid, tail guard included", {
  rows <- stats_grid("quantile_ranks")
  at <- Map(
    quantile_ranks,
    stats_column(rows, 1), stats_column(rows, 2), stats_column(rows, 3)
  )
  expect_identical(vapply(at, `[[`, 0, "lower"), stats_column(rows, 4))
  expect_identical(vapply(at, `[[`, 0, "upper"), stats_column(rows, 5))
})

test_that("quantile ranks keep their level by enumeration", {
  for (n in c(3, 8, 20, 41)) for (q in c(0.1, 0.5, 0.9)) {
    at <- quantile_ranks(n, q, 0.9)
    low <- if (is.na(at$lower)) 0 else sum(dbinom(0:(at$lower - 1), n, q))
    high <- if (is.na(at$upper)) 0 else sum(dbinom(at$upper:n, n, q))
    expect_lte(low, 0.05)
    expect_lte(high, 0.05)
  }
})

test_that("the rank of an estimate takes the quantile as the decimal it is written as", {
  rows <- stats_grid("quantile_estimate_rank")
  got <- mapply(estimate_rank, stats_column(rows, 1), stats_column(rows, 2))
  expect_identical(as.numeric(got), stats_column(rows, 3))
  expect_identical(estimate_rank(c(25, 50, 1e6), 0.28), c(7, 14, 280000))
  expect_identical(estimate_rank(3, 1 / 3), 1)
  expect_identical(estimate_rank(1e6, 1e-7), 1)
})

test_that("quantile intervals equal the reference grid", {
  for (row in stats_grid("quantile_intervals")) {
    data <- tallied(row[[1]])
    got <- quantile_interval(data$values, data$counts, row[[4]], row[[2]], row[[3]])
    expect_identical(
      unlist(got, use.names = FALSE),
      vapply(5:7, \(i) stats_column(list(row), i), 0)
    )
  }
})

test_that("a quantile of nothing is NA and not zero", {
  expect_identical(
    quantile_interval(numeric(), integer(), 3, 0.5, 0.95),
    list(estimate = NA_real_, lower = NA_real_, upper = NA_real_)
  )
})

test_that("the fewest cases with an upper bound equal the reference", {
  rows <- stats_grid("quantile_fewest")
  got <- mapply(fewest_cases, stats_column(rows, 1), stats_column(rows, 2))
  expect_identical(as.numeric(got), stats_column(rows, 3))
  expect_identical(unname(sapply(c(0.5, 0.9, 0.95, 0.99), fewest_cases, 0.95)), c(6, 36, 72, 368))
})

test_that("coverage holds when cases are missing not at random", {
  # Failing cases go missing five times as often as passing ones, so the observed
  # rate is far too good; the interval must still hold the true rate.
  withr::with_seed(20, {
    n <- 60
    runs <- 4000
    held <- naive <- logical(runs)
    for (truth in c(0.5, 0.8)) {
      pass <- matrix(runif(n * runs) < truth, runs)
      gone <- matrix(runif(n * runs), runs) < ifelse(pass, 0.08, 0.4)
      k <- rowSums(pass & !gone)
      m <- rowSums(gone)
      at <- rate_interval(k, n - m, m, 0.95)
      held <- at$lower <= truth & truth <= at$upper
      dropped <- rate_interval(k, n - m, 0 * m, 0.95)
      naive <- dropped$lower <= truth & truth <= dropped$upper
      expect_gte(mean(held), 0.95)
      expect_lt(mean(naive), 0.9)
    }
  })
})
