answers <- function() list(criterion_equals("answer"))

suite_file <- function(lines, cases = '{"id":"a","input":1,"expected":{"answer":"x"}}') {
  folder <- tempfile("suite")
  dir.create(folder)
  writeLines(cases, file.path(folder, "cases.jsonl"))
  file <- file.path(folder, "suite.yaml")
  writeLines(lines, file)
  file
}

test_that("a data frame and a JSONL file make the same cases", {
  frame <- data.frame(id = 1:2, input = c("p", "q"))
  frame$expected <- list(list(answer = "x", tools = "lookup"), NULL)
  frame$metadata <- list(list(kind = "k"), NULL)
  file <- tempfile(fileext = ".jsonl")
  writeLines(c(
    '{"id": "1", "input": "p", "expected": {"answer": "x", "tools": ["lookup"]}, "metadata": {"kind": "k"}}',
    '{"id": "2", "input": "q"}'
  ), file)
  expect_equal(read_cases(frame), read_cases(file))
  expect_equal(read_cases(frame)$expected, c('{"answer":"x","tools":["lookup"]}', "null"))
})

test_that("faults of cases name file, line and field", {
  file <- tempfile(fileext = ".jsonl")
  writeLines(c('{"id":"a","input":1}', '{"id":"a","input":2}'), file)
  expect_warrant_error(suite(file, answers()), "duplicate_case", line = 2L, pointer = "/id", file = file)
  writeLines(c('{"id":"a","input":1}', '{"id":"b","inp'), file)
  expect_warrant_error(suite(file, answers()), "json_syntax", line = 2L, message = "line 2")
  writeBin(c(charToRaw('{"id":"a","input":1}\n{"id":"b","input":"'), as.raw(0xff), charToRaw('"}\n')), file)
  expect_warrant_error(suite(file, answers()), "json_syntax", line = 2L, file = file)
  writeLines(c('{"id":"a","input":1}', "", '{"id":"b","input":2,"expected":{"tools":"x"}}'), file)
  expect_warrant_error(
    suite(file, criterion_tool_sequence()), "malformed_expected",
    line = 3L, file = file, case_id = "b"
  )
  expect_warrant_error(suite(data.frame(id = "a"), answers()), "missing_field", pointer = "/input")
  expect_warrant_error(suite(3, answers()), "invalid_cases")
  expect_warrant_error(suite("nowhere.jsonl", answers()), "no_such_file")
})

test_that("absent, empty and malformed tools are three things", {
  with_tools <- function(tools) {
    frame <- data.frame(id = "a", input = "q")
    frame$expected <- list(tools)
    suite(frame, list(criterion_tool_sequence()))
  }
  expect_s3_class(with_tools(list(answer = "x")), "agent_suite")
  expect_equal(with_tools(list(tools = character()))$cases$expected, '{"tools":[]}')
  expect_warrant_error(with_tools(list(tools = 3)), "suite", message = "tools")
  expect_warrant_error(with_tools(list(tools = NULL)), "suite", message = "tools")
})

test_that("a byte order mark and Windows line ends are no part of a case", {
  file <- tempfile(fileext = ".jsonl")
  writeBin(c(as.raw(c(0xef, 0xbb, 0xbf)), charToRaw('{"id":"a","input":1}\r\n{"id":"b","input":2}\r\n')), file)
  expect_equal(suite(file, answers())$cases$id, c("a", "b"))
})

test_that("a misspelt key of a suite file is named, with its line", {
  wrong <- suite_file(c("version: 1", "dataset: cases.jsonl", "evaluaters:", "  - type: equals", "    criterion: answer"))
  expect_warrant_error(read_suite(wrong), "unknown_field", pointer = "/evaluaters", line = 3L)
  torn <- suite_file(c("version: 1", "dataset: cases.jsonl", "evaluators: []", " slices: x"))
  expect_warrant_error(read_suite(torn), "yaml_syntax", line = 4L)
})

test_that("a declared call without arguments is that of a step without any", {
  frame <- data.frame(id = "a", input = "q")
  frame$expected <- list(list(tools = list(list(name = "look", arguments = list()))))
  s <- suite(frame, criterion_tool_sequence(arguments = "exact"))
  expect_equal(s$cases$expected, '{"tools":[{"arguments":{},"name":"look"}]}')
  look <- agent_step("tool_call", tool_name = "look", arguments = list())
  expect_equal(verdicts(evaluate(s, list(a = agent_trajectory(list(look)))))$verdict, "pass")
})

test_that("a suite prints what it judges", {
  s <- suite(
    data.frame(id = c("a", "b"), input = 1:2, group_id = c("g", "g")), answers(),
    metric_quantile("p95", "agent_steps", 0.95), "route", name = "sums"
  )
  expect_equal(format(s), c(
    "<agent_suite> sums, 2 cases", "* criteria: answer", "* quantiles: p95",
    "* slices: route (support 30)", "* groups: 1, each of repeated trials"
  ))
})

test_that("parts of a suite are checked when it is made", {
  cases <- data.frame(id = "a", input = 1)
  expect_warrant_error(suite(cases, answers(), slices = "nonsense"), "unknown_slice")
  expect_warrant_error(suite(cases, answers(), slices = "tool_calls:0"), "suite")
  expect_warrant_error(suite(cases, list("answer")), "invalid_argument", argument = "criteria")
  expect_warrant_error(suite(cases, answers(), list(1)), "invalid_argument", argument = "metrics")
  expect_warrant_error(suite(cases, c(answers(), answers())), "suite")
  expect_warrant_error(suite(cases, answers(), min_slice_support = 0), "suite")
  expect_warrant_error(metric_quantile("p", "agent_steps", 1), "invalid_level")
})

test_that("a suite file is read with its cases beside it", {
  skip_if_not_installed("yaml")
  s <- read_suite(suite_file(c(
    "version: 1", "project: demo", "dataset: cases.jsonl",
    "system: {name: bot, version: \"2\", callable: bot.R:run, records: [agent_trajectory/v1]}",
    "evaluators:", "  - {type: contains, criterion: right, field: answer}",
    "  - type: agent_constraints_satisfied", "    constraints: [no_deletion]",
    "  - type: agent_tool_permissions", "    permissions: {a: [], b: [x]}",
    "metrics:", "  - {id: p50, type: quantile, source: agent_steps, quantile: 0.5}",
    "slices: [metadata.kind]", "min_slice_support: 3"
  )))
  expect_equal(vapply(s$criteria, `[[`, "", "criterion"), c(
    "right", "agent_constraints_satisfied", "agent_tool_permissions"
  ))
  expect_equal(s$cases$id, "a")
  expect_equal(s$system$records, "agent_trajectory/v1")
  expect_equal(list(s$slices, s$min_slice_support), list("metadata.kind", 3L), tolerance = 0)
})

test_that("a typo in a suite file is refused with file, line and field", {
  skip_if_not_installed("yaml")
  file <- suite_file(c(
    "version: 1", "evaluators:", "  - type: agent_max_steps", "    max_steps: 4",
    "  - type: agent_max_steps", "    max_stpes: 5"
  ))
  expect_warrant_error(read_suite(file), "suite", line = 5L, file = file, message = "max_st")
  expect_warrant_error(read_suite(suite_file("evaluators: []")), "suite")
  expect_warrant_error(read_suite(suite_file(c(
    "evaluators:", "  - {type: contains, criterion: a}", "slices: [\"trajectory_length:0,4\"]"
  ))), "suite", line = 3L)
  expect_warrant_error(read_suite(suite_file(c(
    "evaluators:", "  - {type: contains, criterion: a}", "evaluator: []"
  ))), "suite", line = 3L)
})
