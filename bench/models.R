# What planner_llm() adds to a turn beyond the exchange itself, and whether a turn's
# cost grows with the conversation. The model answers at once.
local({
  clock <- asNamespace("warrant")$rs_monotonic
  message <- list(role = "assistant", content = NULL, tool_calls = list(list(
    id = "x", type = "function",
    `function` = list(name = "look", arguments = '{"topic": "spans", "n": 3}')
  )), usage = list(prompt_tokens = 100, completion_tokens = 20))
  cards <- lapply(stats::setNames(nm = c("look", paste0("tool_", 1:9))), function(name) {
    list(
      name = name, description = "A tool.", side_effects = "read",
      schema = list(type = "object", properties = list(topic = list(type = "string"), n = list(type = "integer")))
    )
  })
  step <- function(i) {
    list(step = i, decision = "act", actions = list(list(
      tool = "look", arguments = list(topic = "spans", n = 3L), outcome = "executed",
      asked = '{"n":3,"topic":"spans"}', result = list(a = 1, b = "x"),
      shown = paste0('{"a":1,"b":"', strrep("x", 400), '"}')
    )))
  }
  steps <- lapply(1:2000, step)
  # Seconds of each turn, with a model that writes the body of its request.
  turns <- function(n) {
    form <- list(
      message = asNamespace("warrant")$openai_message, tool = identity,
      body = asNamespace("warrant")$openai_body
    )
    sent <- asNamespace("warrant")$new_cache()
    endpoint <- list(model = "m", parameters = NULL)
    planner <- planner_llm(function(messages, tools) {
      form$body(endpoint, asNamespace("warrant")$cached(sent, messages, form$message), list())
      message
    })
    vapply(seq_len(n), function(i) {
      state <- list(goal = "go", steps = steps[seq_len(i - 1L)], left = list(), run_id = "r")
      start <- clock()
      planner(state, cards)
      clock() - start
    }, 0)
  }
  turns(20)
  took <- turns(2000)
  bench_report("planner_llm: a turn, first 100", stats::median(took[1:100]) * 1e3, "ms", goal = "< 2")
  bench_report("planner_llm: a turn after 1,900", stats::median(took[1901:2000]) * 1e3, "ms", goal = "< 2")
})
