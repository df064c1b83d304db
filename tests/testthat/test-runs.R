test_that("what is written is read back and judged the same", {
  suite <- tiny_suite(list(criterion_tool_called("a"), criterion_max_steps(2)), rep("null", 3))
  runs <- list(a = acts("a"), b = acts("b - -"), c = acts("..."))
  file <- tempfile()
  write_trajectories(runs, file)
  expect_false(file.exists(paste0(file, ".part")))
  expect_equal(evaluate(suite, read_trajectories(file))$counts, evaluate(suite, runs)$counts)
})

test_that("answers come from a file or a data frame", {
  suite <- tiny_suite(list(criterion_contains("right", "answer")), c("\"x\"", "\"x\"", "\"x\"", "null"))
  file <- jsonl(record_of(letters[1:4], "null"))
  outputs <- jsonl(
    '{"case_id":"a","status":"OK","output":{"answer":"xyz"},"error":null}',
    '{"case_id":"b","status":"ERROR","output":null,"error":{"type":"e","message":"m"}}',
    '{"case_id":"c","status":"TIMEOUT"}', '{"case_id":"d","status":"NOT_RUN"}'
  )
  ev <- evaluate(suite, read_trajectories(file, outputs))
  expect_equal(verdicts(ev)$reason, c(NA, "system_error", "system_timeout", "not_run"))
  expect_equal(inspect_case(ev, "b")$error$message, "m")
  frame <- data.frame(case_id = letters[1:4], status = c("OK", "ERROR", "TIMEOUT", "NOT_RUN"))
  frame$output <- list(list(answer = "xyz"), NULL, NULL, NULL)
  expect_equal(evaluate(suite, read_trajectories(file, frame))$counts, ev$counts)
})

test_that("an answer that cannot be used is refused with file and line", {
  file <- jsonl(record_of("a", "null"))
  bad <- function(line) read_trajectories(file, jsonl('{"case_id":"a"}', line))
  expect_warrant_error(bad("{\"case_id\":\"b\""), "not_json", line = 2L)
  expect_warrant_error(bad("{\"status\":\"OK\"}"), "missing_field", line = 2L)
  expect_warrant_error(bad("{\"case_id\":\"b\",\"status\":\"ok\"}"), "not_in_enum", pointer = "/status")
  expect_warrant_error(bad("{\"case_id\":\"b\",\"x\":1}"), "unknown_field", case_id = "b")
  expect_warrant_error(bad("{\"case_id\":\"a\"}"), "duplicate_record")
  runs <- read_trajectories(file, jsonl('{"case_id":"a"}', "{"), strict = FALSE)
  expect_equal(runs$problems$line, 2)
  expect_warrant_error(read_trajectories("nowhere"), "no_such_file", argument = "file")
  expect_warrant_error(
    read_trajectories(file, data.frame(case_id = "a", status = "fine")), "input", argument = "outputs"
  )
})

test_that("runs print what they hold", {
  runs <- new_agent_runs(c("a", "b"), c("OK", "ERROR"), trajectory = list("{}", character()))
  expect_output(print(runs), "<agent_runs> 2 cases.*1 OK, 1 ERROR.*1 cases with one, 1 with none")
})

test_that("only named trajectories are written", {
  expect_warrant_error(write_trajectories(list(acts("a")), tempfile()), "input", argument = "x")
  expect_warrant_error(write_trajectories(list(a = 1), tempfile()), "input", argument = "x")
})
