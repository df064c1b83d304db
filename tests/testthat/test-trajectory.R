test_that("a trajectory is numbered, checked and kept as canonical JSON", {
  x <- agent_trajectory(
    list(
      agent_step("tool_call", tool_name = "f", arguments = list(), agent = "a"),
      agent_step("handoff", agent = "a", to_agent = "b", latency_ms = 1.5)
    ),
    terminal_status = "success", step_limit = 5,
    constraints = list(constraint_check("n", FALSE, step_index = 2)),
    checkpoints = list(agent_checkpoint("k", "checkpoint", payload = list(1, "x")))
  )
  expect_equal(
    x$json,
    paste0(
      '{"checkpoints":[{"checkpoint_id":"k","kind":"checkpoint","payload":[1,"x"]}],',
      '"constraints":[{"name":"n","passed":false,"step_index":2}],"step_limit":5,"steps":[',
      '{"agent":"a","arguments":{},"index":1,"kind":"tool_call","tool_name":"f"},',
      '{"agent":"a","index":2,"kind":"handoff","latency_ms":1.5,"to_agent":"b"}],',
      '"terminal_status":"success","truncated":false}'
    )
  )
  expect_equal(x$steps[[2]]$to_agent, "b")
  expect_equal(x$step_limit, 5L)
  expect_equal(agent_trajectory()$steps, list())
})

test_that("a broken rule is named with its place", {
  expect_warrant_error(
    agent_trajectory(list(agent_step("message"), agent_step("tool_call"))),
    "tool_name_required", pointer = "/steps/1", error_kind = "tool_name_required"
  )
  expect_warrant_error(agent_trajectory(list(agent_step("thought"))), "trajectory", pointer = "/steps/0/kind")
  expect_warrant_error(
    agent_trajectory(list(agent_step("message", agent = "a"), agent_step("final"))), "agents_partly_named"
  )
  expect_warrant_error(
    agent_trajectory(constraints = list(constraint_check("n", TRUE, step_index = 1))), "unknown_step"
  )
  expect_warrant_error(agent_trajectory(truncated = NA), "wrong_type", pointer = "/truncated")
  expect_warrant_error(agent_trajectory(list(list(kind = "message"))), "input", argument = "steps")
  expect_warrant_error(agent_trajectory(agent_step("message")), "input", argument = "steps")
})

test_that("a trajectory prints its steps", {
  x <- agent_trajectory(
    list(
      agent_step("tool_call", tool_name = "f", arguments = list(q = "50%")),
      agent_step("tool_result", tool_name = "f", error = "no {such} thing"),
      agent_step("final", result = strrep("long ", 40))
    ),
    truncated = TRUE, constraints = list(constraint_check("n", TRUE))
  )
  expect_equal(format(x), c(
    "<agent_trajectory> unknown (truncated) \u00b7 3 steps",
    "  1 tool_call f {\"q\":\"50%\"}",
    "  2 tool_result f \"ERROR: no {such} thing\"",
    paste0("  3 final \"", substr(strrep("long ", 40), 1, 62), "..."),
    "* checks: n held"
  ))
  expect_output(print(x), "agent_trajectory")
  expect_length(format(acts(strrep("a ", 30))), 9)
})

test_that("steps are rows of a data frame", {
  x <- as.data.frame(agent_trajectory(list(
    agent_step("tool_call", tool_name = "f", arguments = list(a = 1)), agent_step("final")
  )))
  expect_equal(x$kind, c("tool_call", "final"))
  expect_equal(x$arguments, c("{\"a\":1}", NA))
  expect_equal(nrow(as.data.frame(agent_trajectory())), 0)
})

test_that("parts print their fields", {
  expect_equal(
    capture.output(print(agent_step("tool_call", tool_name = "f", arguments = list(q = "{x}")))),
    c("<agent_step>", "* kind: \"tool_call\"", "* tool_name: \"f\"", "* arguments: {\"q\":\"{x}\"}")
  )
  expect_output(print(constraint_check("n", TRUE)), "<constraint_check>.*passed: true")
  expect_output(print(agent_checkpoint("k", "checkpoint")), "<agent_checkpoint>")
})
