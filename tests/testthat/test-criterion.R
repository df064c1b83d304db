test_that("a criterion has its default name and parameters", {
  x <- criterion_tool_called("Lookup Order!", min_calls = 2)
  expect_equal(x$criterion, "agent_tool_lookup_order_called")
  expect_equal(x$type, "agent_tool_called")
  expect_equal(x$params, list(min_calls = 2L, tool_name = "Lookup Order!"))
  expect_equal(criterion_max_steps(4)$criterion, "agent_steps_le_4")
  expect_equal(criterion_constraints("n")$params$constraints, "n")
  expect_equal(criterion_tool_permissions(list(a = character(), b = "f"))$params$permissions$b, "f")
})

test_that("bad parameters are refused with their field", {
  expect_warrant_error(criterion_max_steps(0), "suite", field = "/max_steps")
  expect_warrant_error(criterion_tool_called(""), "suite", field = "/tool_name")
  expect_warrant_error(criterion_constraints(""), "suite", field = "/constraints")
  expect_warrant_error(criterion_tool_permissions(list()), "suite", field = "/permissions")
  expect_warrant_error(criterion_max_handoffs(-1), "suite", field = "/max_handoffs")
  expect_warrant_error(criterion_contains("c", field = 1), "suite", field = "/field")
  expect_error(criterion_tool_sequence(match = "some"), "must be one of")
  expect_error(criterion_route("x"), "empty|unnamed|used")
})

test_that("a criterion prints its parameters", {
  expect_output(print(criterion_max_steps(4, on_execution_error = "fail")), "agent_steps_le_4.*max_steps: 4.*fails")
})

test_that("declared evaluators become criteria", {
  spec <- function(json) criterion_from_spec(rs_from_json(json))
  x <- spec('{"type":"agent_constraints_satisfied","constraints":["n"]}')
  expect_equal(x$params$constraints, "n")
  expect_false(x$explicit)
  x <- spec('{"type":"agent_max_steps","max_steps":"3","criterion":null}')
  expect_equal(x$criterion, "agent_steps_le_3")
  expect_equal(tiny_suite(list(x))$criteria[[1]]$criterion, "agent_steps_le_3")
  expect_warrant_error(spec('{"type":"agent_max_steps","max_stps":3}'), "suite")
})

test_that("names that collide are told apart, the same criterion twice is refused", {
  suite <- tiny_suite(list(criterion_constraints(), criterion_constraints("a")))
  expect_equal(
    vapply(suite$criteria, `[[`, "", "criterion"),
    c("agent_constraints_satisfied", "agent_constraints_satisfied_2")
  )
  ev <- evaluate(suite, list(a = acts("-")))
  expect_equal(ev$counts$rates$criterion[2], "agent_constraints_satisfied_2")
  expect_warrant_error(tiny_suite(list(criterion_route(), criterion_route())), "duplicate_criterion")
})

test_that("functions are checked when the criterion is made", {
  expect_warrant_error(criterion("nchar", "c"), "input", argument = "fn")
  expect_warrant_error(criterion(function(x) TRUE, "c"), "input", argument = "fn", message = "x")
  expect_s3_class(criterion(function(output, x = 1) TRUE, "c"), "agent_criterion")
  expect_warrant_error(excluded("Not a code"), "input", argument = "reason")
})
