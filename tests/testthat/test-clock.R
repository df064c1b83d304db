test_that("a stopped clock stands, moves when told, and goes on afterwards", {
  inner <- function() {
    move <- local_clock(1000)
    first <- now()
    move(5)
    c(first, now())
  }
  expect_equal(inner(), c(1000, 1005))
  expect_gt(now(), 1.5e9)
})
