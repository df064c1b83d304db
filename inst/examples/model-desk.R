# A small desk that a real model runs, where there is one: set WARRANT_MODEL_URL (such as
# http://localhost:11434/v1), WARRANT_MODEL (its name) and, where it wants a key,
# WARRANT_MODEL_KEY. Without them a scripted model takes its place.
library(warrant)

stock <- c(pear = 12, plum = 0, fig = 40)
in_stock <- agent_tool(
  function(item) list(item = item, pieces = stock[[item]]), "in_stock", "How many pieces are in stock.",
  parameters = list(item = list(type = "string", enum = names(stock))), side_effects = "read"
)
place_order <- agent_tool(
  function(item, n) sprintf("ordered %d of %s", n, item), "place_order", "Order pieces of an item.",
  parameters = list(
    item = list(type = "string", enum = names(stock)),
    n = list(type = "integer", minimum = 1, maximum = 100)
  ), side_effects = "write", max_calls = 3
)

scripted <- function(messages, tools) {
  asks <- function(name, arguments) {
    list(id = "c", type = "function", `function` = list(name = name, arguments = arguments))
  }
  turn <- sum(vapply(messages, function(m) m$role == "assistant", NA)) + 1
  switch(turn,
    list(role = "assistant", tool_calls = lapply(names(stock), function(item) {
      asks("in_stock", sprintf('{"item": "%s"}', item))
    })),
    list(role = "assistant", tool_calls = list(asks("place_order", '{"item": "plum", "n": 10}'))),
    list(role = "assistant", content = "Plums were out of stock; 10 are ordered.")
  )
}

url <- Sys.getenv("WARRANT_MODEL_URL")
model <- if (nzchar(url)) {
  key <- if (nzchar(Sys.getenv("WARRANT_MODEL_KEY"))) "WARRANT_MODEL_KEY"
  model_openai(url, Sys.getenv("WARRANT_MODEL", "default"), api_key_env = key)
} else {
  scripted
}

desk <- agent(
  list(in_stock, place_order),
  planner_llm(model, "You run a fruit store. Use the tools; order only what is out of stock."),
  policy = agent_policy(allow_effects = c("read", "write")),
  limits = agent_limits(steps = 8, tool_calls = 12, tokens = 50000),
  approver = function(request) {
    cat("approved:", request$tool, "\n")
    "approve"
  },
  guardrails = guardrail("modest", stage = "tool", check = function(call) {
    if (call$tool != "place_order" || call$arguments$n <= 20) TRUE else "At most 20 at once."
  })
)
run <- run_agent(desk, "Check the stock of every item and order 10 of each that is out of stock.")
print(run)
print(tool_log(run)[c("step", "name", "arguments", "status", "guardrails")])
stopifnot(nrow(verify_audit(run)) == 0)
cat("The run as a page:", view_run(run, "model-desk.html", open = interactive()), "\n")
