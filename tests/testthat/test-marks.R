test_that("p-values of groups equal the reference grid", {
  rows <- stats_grid("slice_p_values")
  got <- slice_p_values(
    stats_column(rows, 1), stats_column(rows, 2), stats_column(rows, 3), stats_column(rows, 4)
  )
  expect_identical(got, stats_column(rows, 5))
})

test_that("marks, ranks and thresholds equal the reference grid", {
  for (row in stats_grid("by_marks")) {
    got <- by_marks(unlist(row[[3]]), unlist(row[[2]]), row[[1]])
    expect_identical(got$marked, as.logical(unlist(row[[4]])))
    expect_identical(got$rank, unlist(row[[5]]))
    expect_equal(got$threshold, unlist(row[[6]]), tolerance = 1e-12)
  }
})

test_that("marking agrees with p.adjust()", {
  p <- withr::with_seed(3, runif(200)^4)
  marked <- by_marks(p, character(200), 0.1)$marked
  expect_identical(marked, p.adjust(p, "BY") <= 0.1)
  expect_true(any(marked) && !all(marked))
})

test_that("nothing tested, nothing marked", {
  expect_identical(by_marks(numeric(), character(), 0.1)$marked, logical())
  expect_identical(slice_p_values(0, 0, 2, 0.5), NA_real_)
})
