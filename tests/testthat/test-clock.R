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

test_that("a clock that is stopped twice goes on afterwards", {
  inner <- function() {
    local_clock(1000)
    local_clock(2000)
    now()
  }
  expect_equal(inner(), 2000)
  expect_gt(now(), 1.5e9)
})
