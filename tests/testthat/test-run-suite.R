numbers <- function(n = 6) {
  suite(
    data.frame(id = letters[seq_len(n)], input = seq_len(n), expected = seq_len(n)^2),
    list(criterion_equals("square"))
  )
}

test_that("answers, errors and timeouts are data", {
  runs <- run_suite(numbers(4), function(case) {
    if (case$input == 2) stop("no {braces} here")
    if (case$input == 3) Sys.sleep(5)
    case$input^2
  }, timeout_s = 0.1, seed = 1)
  expect_equal(runs$status, c("OK", "ERROR", "TIMEOUT", "OK"))
  expect_equal(runs$output, c("1", NA, NA, "16"))
  expect_match(runs$error[2], "no {braces} here", fixed = TRUE)
})

test_that("a system does not see what a case expects", {
  runs <- run_suite(numbers(1), function(case) sort(names(case)), seed = 1)
  expect_equal(runs$output, '["id","input","metadata"]')
})

test_that("random streams belong to cases and leave the session alone", {
  draw <- function(case) runif(2)
  withr::with_seed(9, {
    before <- .Random.seed
    one <- run_suite(numbers(), draw, seed = 7)
    expect_identical(.Random.seed, before)
  })
  backwards <- suite(
    data.frame(id = rev(letters[1:6]), input = 6:1, expected = 1), list(criterion_equals("square"))
  )
  other <- run_suite(backwards, draw, seed = 7)
  expect_equal(one$output, rev(other$output))
  expect_equal(length(unique(one$output)), 6)
  expect_false(identical(one$output, run_suite(numbers(), draw, seed = 8)$output))
  unseeded <- run_suite(numbers(), draw)
  expect_equal(run_suite(numbers(), draw, seed = unseeded$seed)$output, unseeded$output)
})

test_that("a session without a seed is left without one", {
  skip_if_not_installed("withr")
  withr::with_preserve_seed({
    if (exists(".Random.seed", globalenv())) rm(".Random.seed", envir = globalenv())
    run_suite(numbers(1), function(case) runif(1), seed = 1)
    expect_false(exists(".Random.seed", globalenv(), inherits = FALSE))
  })
})

test_that("a plan with several processes gives the same runs", {
  skip_on_cran()
  skip_if_not_installed("future.apply")
  one <- run_suite(numbers(), function(case) c(case$input, runif(1)), seed = 3)
  withr::defer(future::plan("sequential"))
  future::plan("multisession", workers = 2)
  two <- run_suite(numbers(), function(case) c(case$input, runif(1)), seed = 3)
  expect_equal(two[c("output", "status")], one[c("output", "status")])
})

test_that("recorded cases are not run again", {
  file <- tempfile(fileext = ".jsonl")
  calls <- 0
  system <- agent_system(function(case) {
    calls <<- calls + 1
    if (case$input == 4 && calls < 5) rlang::interrupt()
    if (case$input == 2) stop("two")
    list(n = case$input, text = "a\"b\n")
  })
  expect_warning(
    partial <- run_suite(numbers(), system, seed = 5, file = file),
    class = "warrant_warning_interrupted"
  )
  expect_equal(partial$status, c("OK", "ERROR", "OK", "NOT_RUN", "NOT_RUN", "NOT_RUN"))
  whole <- run_suite(numbers(), system, file = file)
  expect_equal(calls, 7)
  expect_equal(whole$seed, 5)
  expect_equal(whole$status, c("OK", "ERROR", "OK", "OK", "OK", "OK"))
  expect_equal(whole[1:4], run_suite(numbers(), system, file = file)[1:4])
  expect_equal(calls, 7)
})

test_that("a log of something else is refused", {
  file <- tempfile(fileext = ".jsonl")
  run_suite(numbers(2), function(case) 1, seed = 5, file = file)
  expect_warrant_error(run_suite(numbers(2), function(case) 1, seed = 6, file = file), "other_run")
  expect_warrant_error(
    run_suite(numbers(2), agent_system(identity, "other"), file = file), "other_run"
  )
  changed <- suite(data.frame(id = "a", input = "new"), list(criterion_equals("square")))
  expect_warrant_error(run_suite(changed, function(case) 1, file = file), "case_changed", case_id = "a")
  writeLines("hello", file)
  expect_warrant_error(run_suite(numbers(2), function(case) 1, file = file), "not_a_run_log")
})

test_that("two runs cannot write to one log", {
  skip_on_os("windows")
  file <- tempfile(fileext = ".jsonl")
  inner <- NULL
  run_suite(numbers(1), function(case) {
    inner <<- tryCatch(run_suite(numbers(1), identity, file = file), error = identity)
    1
  }, file = file)
  expect_s3_class(inner, "warrant_error_already_running")
})

test_that("a log torn by a crash goes on after its last whole line", {
  file <- tempfile(fileext = ".jsonl")
  first <- run_suite(numbers(3), function(case) case$input, seed = 5, file = file)
  bytes <- readBin(file, "raw", file.size(file))
  writeBin(head(bytes, -4), file)
  again <- run_suite(numbers(3), function(case) case$input, file = file)
  expect_equal(again[1:4], first[1:4])
  expect_equal(readBin(file, "raw", file.size(file)), bytes)
  expect_true(file.exists(paste0(file, ".torn")))
})

test_that("a log that cannot be written is an error", {
  skip_on_os(c("windows", "mac", "solaris"))
  expect_warrant_error(
    run_suite(numbers(1), function(case) 1, file = file.path(tempdir(), "no", "such.jsonl")),
    "store"
  )
})

test_that("agent criteria need a system that records", {
  s <- suite(data.frame(id = "a", input = 1), list(criterion_max_steps(3)), slices = "route")
  expect_warrant_error(run_suite(s, identity), "records_needed", needs = c("agent_steps_le_3", "route"))
  expect_warrant_error(run_suite(s), "no_system")
  expect_warrant_error(run_suite(s, "a"), "not_a_system")
  expect_warrant_error(agent_system(identity, records = "x/v1"), "unknown_record")
  expect_warrant_error(agent_system(1), "not_a_function")
  expect_warrant_error(run_suite(s, identity, seed = 1.5), "invalid_seed")
  expect_warrant_error(run_suite(s, identity, timeout_s = 0), "invalid_seconds")
  expect_warrant_error(run_suite(list(), identity), "not_a_suite")
})

test_that("steps are recorded as they happen", {
  s <- suite(data.frame(id = c("a", "b", "c"), input = 1:3), list(criterion_tool_called("look")))
  system <- agent_system(function(case) {
    if (case$input == 3) return("quiet")
    record_trajectory(agent_step("tool_call", tool_name = "look"))
    if (case$input == 2) stop("crash")
    record_trajectory(agent_step("tool_result", tool_name = "look"), truncated = TRUE)
  }, records = "agent_trajectory/v1")
  runs <- run_suite(s, system, seed = 1)
  expect_equal(lengths(runs$trajectory), c(1, 0, 0))
  expect_match(runs$trajectory[[1]], '"truncated":true', fixed = TRUE)
  expect_equal(verdicts(evaluate(s, runs))$reason, c(NA, "system_error", "no_trajectory"))
  expect_null(record_trajectory(agent_step("message")))
})

test_that("a malformed trajectory stops the run, caught or not", {
  s <- suite(data.frame(id = "a", input = 1), list(criterion_max_steps(3)))
  run <- function(f) run_suite(s, agent_system(f, records = "agent_trajectory/v1"), seed = 1)
  expect_warrant_error(
    run(function(case) record_trajectory(agent_step("tool_call"))),
    "malformed_trajectory", case_id = "a"
  )
  expect_warrant_error(run(function(case) record_trajectory("step")), "malformed_trajectory")
  expect_warrant_error(run(function(case) try(record_trajectory(3), silent = TRUE)), "malformed_trajectory")
})

test_that("tools are fresh for each case", {
  tool <- agent_tool(function() 1, "one", "Gives one.", max_calls = 1, side_effects = "none")
  system <- agent_system(function(case, tools) {
    first <- call_tool(tools[[1]], list())
    second <- call_tool(tools[[1]], list())
    c(first$status, second$status)
  }, tools = list(tool))
  runs <- run_suite(numbers(2), system, seed = 1)
  expect_equal(runs$output, rep('["executed","tool_exhausted"]', 2))
})

test_that("an agent of this package is a system", {
  half <- agent_tool(
    function(x) x / 2, "half", "Halves a number.",
    parameters = list(x = list(type = "number")), side_effects = "none", max_calls = 1
  )
  planner <- function(state, tools) {
    if (length(state$steps) == 0) return(decide_act("half", list(x = state$goal)))
    decide_finish(state$steps[[1]]$result)
  }
  s <- suite(
    data.frame(id = c("a", "b"), input = c(4, 6), expected = c(2, 3)),
    list(criterion_equals("right"), criterion_tool_called("half"))
  )
  runs <- run_suite(s, agent(half, planner), seed = 1)
  expect_equal(verdicts(evaluate(s, runs))$verdict, rep("pass", 4))
})
