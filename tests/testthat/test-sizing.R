test_that("sizes of rates equal the reference grid", {
  rows <- stats_grid("rate_sizing")
  got <- mapply(
    size_rate, stats_column(rows, 1), stats_column(rows, 2),
    vapply(rows, `[[`, "", 3), stats_column(rows, 4)
  )
  expect_identical(as.numeric(got), stats_column(rows, 5))
})

test_that("sizes of quantiles equal the reference grid", {
  for (row in stats_grid("quantile_sizing")) {
    data <- tallied(row[[1]])
    got <- size_quantile(data$values, data$counts, row[[2]], row[[4]], row[[3]])
    expect_identical(unname(unlist(got)), c(
      if (is.null(row[[5]])) NA_real_ else as.numeric(row[[5]]),
      if (is.null(row[[6]])) NA_real_ else as.numeric(row[[6]])
    ))
  }
})
