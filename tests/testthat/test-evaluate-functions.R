judge_by <- function(fn, runs = list(a = acts("a"), b = acts("b -")), ...) {
  evaluate(tiny_suite(list(criterion(fn, "own")), c('"x"', '"y"')), runs, ...)
}

test_that("a function sees case, output and trajectory", {
  seen <- list()
  judge_by(function(case, output, trajectory) {
    seen[[case$id]] <<- list(case$expected, output, length(trajectory$steps))
    TRUE
  }, new_agent_runs(c("a", "b"), "OK", c('{"n":1}', NA), trajectory = list(acts("a")$json, character())))
  expect_equal(seen, list(a = list("x", list(n = 1L), 1L), b = list("y", NULL, 0L)))
})

test_that("answers become verdicts", {
  answer <- function(value) {
    row <- verdicts(judge_by(function() value, list(a = acts("a"), b = acts("a"))))
    paste(row$verdict[1], row$reason[1])
  }
  expect_equal(answer(TRUE), "pass NA")
  expect_equal(answer(FALSE), "fail NA")
  expect_equal(answer(NA), "missing no_answer")
  expect_equal(answer(excluded("out_of_scope")), "excluded out_of_scope")
})

test_that("an error or another answer is missing, listed and warned of", {
  for (bad in list(1.2, "yes", c(TRUE, FALSE), NULL, list())) {
    expect_warning(ev <- judge_by(function() bad), class = "warrant_warning_evaluator")
    expect_equal(verdicts(ev)$reason, rep("evaluator_error", 2))
  }
  expect_warning(
    ev <- judge_by(function(case) if (case$id == "b") stop("100% {wrong}") else TRUE),
    class = "warrant_warning_evaluator"
  )
  expect_equal(ev$problems$case_id, "b")
  expect_match(ev$problems$rule, "100% {wrong}", fixed = TRUE)
  expect_equal(ev$counts$rates$n_missing, 1)
})

test_that("a function is not asked where the system did not answer", {
  runs <- new_agent_runs(c("a", "b"), c("ERROR", "NOT_RUN"))
  ev <- judge_by(function() stop("asked"), runs)
  expect_equal(verdicts(ev)$reason, c("system_error", "not_run"))
})

test_that("functions judge the records of a file", {
  runs <- read_trajectories(jsonl(record_of(c("b", "a"), c(acts("b -")$json, acts("a")$json))))
  by_steps <- function(trajectory) length(trajectory$steps) == 1
  ev <- judge_by(by_steps, runs)
  expect_equal(verdicts(ev)$verdict, c("pass", "fail"))
})

test_that("parts with different reasons combine", {
  part <- function(id, answer) {
    evaluate(tiny_suite(list(criterion(function() answer, "own")), "null", id), stats::setNames(list(acts("a")), id))
  }
  ev <- combine_evaluations(part("a", excluded("one")), part("b", excluded("two")), part("c", TRUE))
  expect_equal(verdicts(ev)$reason, c("one", "two", NA))
  expect_equal(ev$counts$rates$exclusions[[1]], c(one = 1L, two = 1L))
})
