judge_acts <- function(criterion, short, expected = "null") {
  row <- verdicts(evaluate(tiny_suite(list(criterion), expected, "a"), list(a = acts(short))))
  if (is.na(row$reason)) row$verdict else row$reason
}

test_that("calls are counted", {
  x <- criterion_tool_called("a", min_calls = 2)
  expect_equal(judge_acts(x, "a - a"), "pass")
  expect_equal(judge_acts(x, "a b"), "fail")
  expect_equal(judge_acts(x, "a ..."), "truncated_trajectory")
})

test_that("a loop is a run of equal calls", {
  expect_equal(judge_acts(criterion_no_tool_loop(), "a - a a"), "fail")
  expect_equal(judge_acts(criterion_no_tool_loop(max_repeats = 3), "a - a a"), "pass")
})

test_that("declared tools are compared in the chosen way", {
  ab <- '{"tools":["a","b"]}'
  expect_equal(judge_acts(criterion_tool_sequence(), "b a", ab), "fail")
  expect_equal(judge_acts(criterion_tool_sequence(match = "unordered"), "b a", ab), "pass")
  expect_equal(judge_acts(criterion_tool_sequence(match = "subset"), "a", ab), "pass")
  expect_equal(judge_acts(criterion_tool_sequence(match = "superset"), "b a c ...", ab), "pass")
  expect_equal(judge_acts(criterion_tool_sequence(), "a", "{}"), "no_declared_tools")
  expect_equal(judge_acts(criterion_no_undeclared_tool(), "c", ab), "fail")
  expect_warrant_error(judge_acts(criterion_tool_sequence(), "a", '{"tools":"a"}'), "malformed_expected", field = "/expected/tools")
})

test_that("arguments and parallel calls are matched", {
  call <- function(q, batch = NULL) {
    agent_step("tool_call", tool_name = "f", arguments = list(q = q), metadata = list(batch = batch)[!is.null(batch)])
  }
  expected <- '{"tools":[{"name":"f","arguments":{"q":1}},{"name":"f","arguments":{"q":2}}]}'
  judge <- function(...) {
    suite <- tiny_suite(list(criterion_tool_sequence(arguments = "exact")), expected, "a")
    verdicts(evaluate(suite, list(a = agent_trajectory(list(...)))))$verdict
  }
  expect_equal(judge(call(1), call(2)), "pass")
  expect_equal(judge(call(2), call(1)), "fail")
  expect_equal(judge(call(2, 7), call(1, 7)), "pass")
})

test_that("steps and recorded checks are judged", {
  expect_equal(judge_acts(criterion_max_steps(2), "- - -"), "fail")
  checked <- agent_trajectory(constraints = list(constraint_check("n", FALSE)))
  row <- verdicts(evaluate(tiny_suite(list(criterion_constraints("n")), "null", "a"), list(a = checked)))
  expect_equal(row$verdict, "fail")
  expect_equal(row$evidence[[1]]$failed, "n")
  expect_equal(judge_acts(criterion_constraints(), "-"), "no_agent_constraints")
})
