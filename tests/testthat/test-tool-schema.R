weather <- function() {
  agent_tool(
    function(city) paste("Sunny in", city),
    name = "get_weather", description = "Current weather for a city.",
    parameters = list(city = list(type = "string")), side_effects = "external", max_calls = 5
  )
}

test_that("each provider gets its own form", {
  closed <- list(
    additionalProperties = FALSE, properties = list(city = list(type = "string")),
    required = list("city"), type = "object"
  )
  openai <- tool_schema(weather())[[1]]
  expect_equal(openai$type, "function")
  expect_equal(openai$`function`$parameters, closed)
  expect_equal(tool_schema(weather(), "anthropic")[[1]]$input_schema, closed)
  expect_equal(tool_schema(weather(), "mcp")[[1]]$annotations$openWorldHint, TRUE)
  expect_equal(tool_schema(weather(), "gemini")[[1]]$parameters$additionalProperties, NULL)
})

test_that("a tool without parameters is written as each provider takes it", {
  now <- agent_tool(function() 1, "now", "The time.")
  expect_equal(unwrap_core(rs_to_json(tool_schema(now)[[1]]$`function`$parameters$properties)), "{}")
  expect_false("parameters" %in% names(tool_schema(now, "gemini")[[1]]))
})

test_that("an array of one stays an array when it is written again", {
  json <- unwrap_core(rs_to_json(tool_schema(weather())))
  expect_match(json, '"required":["city"]', fixed = TRUE)
})

test_that("strict closes what can be closed", {
  strict <- function(parameters) {
    fn <- function() NULL
    formals(fn) <- structure(rep(list(NULL), length(parameters)), names = names(parameters))
    tool_schema(agent_tool(fn, "t", "d", parameters, required = character()), strict = TRUE)[[1]]$`function`
  }
  one <- strict(list(a = list(type = "integer")))
  expect_true(one$strict)
  expect_equal(one$parameters$properties$a$type, list("integer", "null"))
  expect_false(strict(list(a = list(type = "object", additionalProperties = list(type = "number"))))$strict)
})

test_that("bad input is refused by name", {
  expect_warrant_error(tool_schema(list(weather(), weather())), "tool_name_twice", names = "get_weather")
  expect_warrant_error(tool_schema(1), "input", argument = "tools")
  expect_warrant_error(tool_schema(weather(), "cohere"), "input", argument = "provider")
})
