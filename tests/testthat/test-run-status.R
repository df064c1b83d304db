test_that("a script is told nothing", {
  withr::local_options(rlang_interactive = FALSE)
  tell <- warrant:::run_status("r")
  expect_null(tell("plan"))
  expect_silent(run_agent(agent(noting_tool()$tool, script_planner(decide_act("look", list(n = 1L)))), "x"))
})

test_that("at the console steps and calls are counted, and a person is asked undisturbed", {
  withr::local_options(rlang_interactive = TRUE, cli.progress_show_after = 0)
  local_clock(0)
  tell <- warrant:::run_status("run-1")
  state <- environment(tell)
  suppressMessages({
    tell("plan")
    expect_false(is.null(state$bar))
    tell("call")
    tell("ask")
  })
  expect_null(state$bar)
  expect_equal(c(state$steps, state$calls), c(1, 1))
  expect_equal(warrant:::status_text("run-1", 1, 2), "Run run-1: 1 step, 2 calls")
})

test_that("each() is lapply(), with a bar at the console", {
  for (here in c(TRUE, FALSE)) {
    withr::local_options(rlang_interactive = here)
    suppressMessages(found <- warrant:::each(list(a = 1, b = 2), "Doing", function(x) x + 1))
    expect_equal(found, list(a = 2, b = 3))
  }
})
