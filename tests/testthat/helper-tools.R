# A tool of one argument `x` that gives it back, and what its function was given.
echo_tool <- function(schema = structure(list(), names = character()), ..., side_effects = "none") {
  agent_tool(
    function(x) x, "echo", "Gives back what it is given.",
    parameters = list(x = schema), side_effects = side_effects, ...
  )
}

# The R value that a tool's function is given for JSON text `x`.
given <- function(x, schema = structure(list(), names = character())) {
  result <- call_tool(echo_tool(schema), paste0("{\"x\":", x, "}"))
  if (result$status != "executed" && !startsWith(result$content, "ERROR: the result cannot be shown")) {
    stop(result$content)
  }
  result$value
}

# What the model is shown of an R value.
shown <- function(value, ...) {
  call_tool(agent_tool(function() value, "show", "Shows.", side_effects = "none", ...))$content
}

# A tool that counts in `ran`, an environment, how often its function ran.
counting_tool <- function(ran = new.env(), ..., parameters = list(x = list(type = "number"))) {
  ran$n <- 0
  agent_tool(
    function(x) {
      ran$n <- ran$n + 1
      x
    },
    "count", "Counts.", parameters = parameters, side_effects = "none", ...
  )
}

# The result of each argument text with a tool: statuses.
statuses <- function(tool, arguments) {
  vapply(arguments, function(a) call_tool(tool, a)$status, "", USE.NAMES = FALSE)
}

weather_tool <- function(...) {
  agent_tool(
    function(city) paste("Sunny in", city),
    name = "get_weather", description = "Current weather for a city.",
    parameters = list(city = list(type = "string")),
    side_effects = "external", max_calls = 5, ...
  )
}

# The statuses of n calls with x = 1 and this approver.
statuses_with <- function(tool, approver, n) {
  vapply(seq_len(n), function(i) call_tool(tool, list(x = 1), approver = approver)$status, "")
}
