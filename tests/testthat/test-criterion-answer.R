judge_answer <- function(criterion, expected, output) {
  suite <- tiny_suite(list(criterion), expected, "a")
  verdicts(evaluate(suite, new_agent_runs("a", "OK", output)))
}

test_that("an answer contains the expected text", {
  x <- criterion_contains("c", field = "answer")
  expect_equal(judge_answer(x, '"fund"', '{"answer":"refunded"}')$verdict, "pass")
  expect_equal(judge_answer(x, '{"answer":true}', '{"answer":"is true"}')$verdict, "pass")
  expect_equal(judge_answer(x, '"x"', '{"other":"x"}')$reason, "missing_output_field")
  expect_equal(judge_answer(x, "null", '{"answer":"x"}')$reason, "no_expected")
  expect_equal(judge_answer(x, '"x"', NA)$reason, "no_output")
  expect_warrant_error(judge_answer(x, '{"answer":["x"]}', '""'), "suite", case_id = "a", field = "/expected/answer")
})

test_that("an answer equals the expected value", {
  x <- criterion_equals("c", field = "n")
  expect_equal(judge_answer(x, '{"n":1}', '{"n":1.0}')$verdict, "pass")
  expect_equal(judge_answer(x, '{"n":1}', '{"n":"1"}')$verdict, "fail")
})
