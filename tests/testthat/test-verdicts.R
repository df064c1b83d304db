ev <- function(...) {
  suite <- tiny_suite(list(criterion_tool_called("a"), criterion_tool_sequence()), c('{"tools":["a"]}', "null"))
  evaluate(suite, list(a = acts("a b"), b = acts("- ...")), ...)
}

test_that("verdicts have reason, evidence and steps", {
  rows <- verdicts(ev())
  expect_named(rows, c("case_id", "criterion", "verdict", "reason", "evidence", "steps"))
  expect_equal(rows$case_id, c("a", "a", "b", "b"))
  expect_equal(rows$verdict, c("pass", "fail", "missing", "excluded"))
  expect_equal(rows$reason, c(NA, NA, "truncated_trajectory", "no_declared_tools"))
  expect_equal(rows$evidence[[2]]$called, c("a", "b"))
  expect_equal(rows$steps, list(1L, 2L, integer(), integer()))
  expect_null(rows$evidence[[3]])
})

test_that("evidence can be left out", {
  rows <- verdicts(ev(keep = "verdicts"))
  expect_equal(rows$verdict, verdicts(ev())$verdict)
  expect_equal(rows$evidence, vector("list", 4))
})

test_that("a case is shown with what it did and why", {
  x <- inspect_case(ev(), "a")
  expect_equal(x$trajectory$steps[[2]]$tool_name, "b")
  expect_equal(x$verdicts$verdict, c("pass", "fail"))
  text <- format(x)
  expect_equal(text[1:3], c("<agent_case> a OK", "* input: \"q\"", "* expected: {\"tools\":[\"a\"]}"))
  expect_match(text[length(text)], "fail .*agent_tool_sequence .*step 2")
  expect_warrant_error(inspect_case(ev(), "z"), "unknown_case", argument = "case_id")
  expect_warrant_error(inspect_case(1, "z"), "input", argument = "ev")
})

test_that("the record of a streamed case is read from its file again", {
  suite <- tiny_suite(list(criterion_tool_called("a")), c("null", "null"))
  file <- jsonl(record_of(c("b", "a"), c(acts("b")$json, acts("a")$json)))
  streamed <- evaluate(suite, read_trajectories(file))
  expect_equal(inspect_case(streamed, "a")$trajectory$json, acts("a")$json)
  writeLines("{}", file)
  expect_warrant_error(inspect_case(streamed, "a"), "file_changed")
  unlink(file)
  expect_warrant_error(inspect_case(streamed, "a"), "no_such_file")
})

test_that("one tool that was called is shown as a list of one", {
  frame <- data.frame(id = "a", input = "q")
  frame$expected <- list(list(tools = list("look", "pay")))
  s <- suite(frame, criterion_tool_sequence())
  look <- agent_step("tool_call", tool_name = "look")
  ev <- evaluate(s, list(a = agent_trajectory(list(look))))
  expect_match(format(inspect_case(ev, "a")), "{\"called\":[\"look\"],", fixed = TRUE, all = FALSE)
  expect_warrant_error(inspect_case(ev, c("a", "b")), "unknown_case", message = "2 ids")
})
