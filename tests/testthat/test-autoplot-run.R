skip_if_not_installed("ggplot2")

test_that("a run is drawn with a mark for each action and its answer", {
  plot <- ggplot2::autoplot(told_run())
  expect_equal(plot$data$outcome |> as.character(), c("executed", "scope_denied", "unknown_tool", "error", "answer"))
  expect_equal(levels(plot$data$row), c("(answer)", "send", "plain", "deny", "look"))
  expect_equal(plot$data$x, 1:5)
  points <- ggplot2::layer_data(plot, 2)
  expect_equal(anyDuplicated(points$shape), 0L)
  expect_equal(ggplot2::layer_data(plot, 1)$xintercept, 4)
  expect_equal(ggplot2::layer_data(plot, 3)$label, "edited")
})

test_that("along working time calls have a length and pauses none", {
  slow <- agent_tool(function() Sys.sleep(0.02), "slow", "Slow.", side_effects = "none")
  plot <- ggplot2::autoplot(run_agent(agent(slow, script_planner(decide_act("slow"))), "x"), by = "seconds")
  expect_gte(plot$data$end[1] - plot$data$start[1], 0.015)
  segments <- ggplot2::layer_data(plot, 2)
  expect_equal(nrow(segments), 2L)
})

test_that("several actions of a tool in one step stand apart, and a run may be empty", {
  tool <- noting_tool()$tool
  both <- decide_act(list(list(tool = "look", arguments = list(n = 1L)), list(tool = "look", arguments = list(n = 2L))))
  plot <- ggplot2::autoplot(run_agent(agent(tool, script_planner(both)), "x"))
  expect_equal(plot$data$x, c(0.7, 1.3, 2))
  none <- run_agent(agent(tool, function(state, tools) stop("no")), "x")
  expect_equal(nrow(ggplot2::layer_data(ggplot2::autoplot(none), 2)), 0L)
})

test_that("rejected answers and requests that wait have marks of their own", {
  tool <- noting_tool(effects = "write")$tool
  a <- agent(tool, function(state, tools) if (length(state$steps)) always()(state, tools) else decide_finish(1),
    policy = writes(), done = function(answer, state) FALSE
  )
  expect_equal(
    as.character(ggplot2::autoplot(run_agent(a, "x"))$data$outcome), c("answer_rejected", "approval_required")
  )
})

test_that("every outcome and every kind has a look", {
  table <- readLines(system.file("spec", "outcomes.md", package = "warrant"))
  outcomes <- sub("^\\| `([a-z_]+)` .*", "\\1", grep("^\\| `[a-z_]+` \\| .* \\| .* \\| .* \\|$", table, value = TRUE))
  expect_gte(length(outcomes), 15L)
  expect_equal(setdiff(outcomes, names(warrant:::outcome_looks$shape)), character())
  expect_equal(anyDuplicated(warrant:::outcome_looks$shape), 0L)
})

test_that("a tool log is counted by tool and status, and stays a tibble", {
  log <- tool_log(told_run())
  expect_s3_class(log, c("tool_log", "tbl_df"))
  expect_match(format(log)[1], "A tibble: 4", fixed = TRUE)
  plot <- ggplot2::autoplot(rbind(log, log))
  expect_equal(plot$data$calls, c(2L, 2L, 2L, 2L))
  expect_equal(as.character(sort(plot$data$status)), c("executed", "error", "unknown_tool", "scope_denied"))
  expect_warrant_error(ggplot2::autoplot(log["name"]), "input")
  expect_warrant_error(ggplot2::autoplot(log, 1), "input")
})

test_that("the plots can be drawn, also of one step or many", {
  grDevices::pdf(NULL)
  withr::defer(grDevices::dev.off())
  tool <- noting_tool()$tool
  for (steps in c(0, 1, 30)) {
    run <- run_agent(agent(tool, function(state, tools) {
      n <- length(state$steps)
      if (n == steps) decide_finish(n) else decide_act("look", list(n = n))
    }, limits = agent_limits(steps = Inf)), "x")
    for (plot in list(ggplot2::autoplot(run), ggplot2::autoplot(run, by = "seconds"), ggplot2::autoplot(tool_log(run)))) {
      expect_error(ggplot2::ggplotGrob(plot), NA)
    }
  }
})
