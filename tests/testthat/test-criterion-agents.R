test_that("routes, permissions and hand-overs are judged", {
  team <- agent_trajectory(list(
    agent_step("tool_call", tool_name = "f", agent = "x"),
    agent_step("handoff", agent = "x", to_agent = "y"),
    agent_step("tool_call", tool_name = "f", agent = "y")
  ))
  suite <- tiny_suite(
    list(
      criterion_route(), criterion_tool_permissions(list(x = "f")), criterion_max_handoffs(0),
      criterion_max_handoffs(1)
    ),
    '{"route":["x","y"]}', c("a", "b")
  )
  rows <- verdicts(evaluate(suite, list(a = team, b = acts("f"))))
  expect_equal(rows$verdict[1:4], c("pass", "fail", "fail", "pass"))
  expect_equal(rows$reason[5:8], rep("no_agent_identity", 4))
  expect_equal(rows$evidence[[2]]$violations[[1]], list(agent = "y", step = 3L, tool = "f"))
  expect_equal(rows$steps[[2]], 3L)
})
