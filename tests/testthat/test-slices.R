sliced <- function(min_slice_support = 3) {
  counted(
    list(answer = c(33, 7)),
    slices = rbind(
      rate_counts(list(answer = c(29, 5)), "first_tool", "search"),
      rate_counts(list(answer = c(0, 6)), "first_tool", "lookup"),
      rate_counts(list(answer = c(0, 0, 2)), "route", "")
    ),
    min_slice_support = min_slice_support
  )
}

test_that("slices keep table order and say their support", {
  s <- slices(sliced())
  expect_equal(names(s)[1:3], c("slice", "value", "metric"))
  expect_true(all(c("support", "marked", "p_value") %in% names(s)))
  expect_equal(s$value, c("search", "lookup", ""))
  expect_equal(s$support, c(34, 6, 2))
  expect_equal(s$confidence_level, c(0.95, 0.95, NA))
  expect_equal(s$marked, c(FALSE, TRUE, NA))
})

test_that("results below the minimum support are tested only on demand", {
  s <- slices(sliced(min_slice_support = 30))
  expect_equal(s$marked, c(FALSE, NA, NA))
  expect_equal(s$lower[2], NA_real_)
  expect_equal(s$estimate[2], 0)
  expect_equal(slices(sliced(30), mark_all = TRUE)$marked, c(FALSE, TRUE, NA))
})

test_that("no slices are an empty table", {
  s <- slices(counted(list(answer = c(1, 0))))
  expect_equal(nrow(s), 0)
  expect_output(print(s), "no slices")
})

test_that("slices print their value, support and mark", {
  skip_if_not(l10n_info()[["UTF-8"]])
  out <- capture.output(print(slices(sliced())))
  expect_match(out[1], "3 results, exact 95% intervals, 2 tested, 1 marked", fixed = TRUE)
  expect_match(out[2], "^first_tool=search  answer  85.3%")
  expect_match(out[3], "0 / 6 observed \u00b7 0 missing \u00b7 0 excluded .*support 6 +marked \\*exploratory\\*$")
  expect_match(out[4], "^route= +answer  no estimate  no interval ")
})
