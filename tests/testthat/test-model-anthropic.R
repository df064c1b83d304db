tool <- list(list(type = "function", `function` = list(
  name = "f", description = "F.",
  parameters = structure('{"type":"object","properties":{}}', class = "json")
)))

answer <- function(blocks, stop = "tool_use") {
  reply(paste0(
    '{"type":"message","role":"assistant","model":"claude-x","stop_reason":"', stop,
    '","usage":{"input_tokens":10,"output_tokens":3,"cache_read_input_tokens":4},"content":', blocks, "}"
  ))
}

test_that("messages are translated both ways", {
  withr::local_envvar(MY_KEY = "sk-ant-1")
  at <- script(answer('[{"type":"text","text":"Let me see."},
    {"type":"tool_use","id":"t","name":"f","input":{"id":76561198003753554}}]'))
  model <- model_anthropic("claude-x", "MY_KEY", base_url = at$url, temperature = 0)
  call <- function(id, arguments) {
    list(id = id, type = "function", `function` = list(name = "f", arguments = arguments))
  }
  message <- model(
    list(
      list(role = "system", content = "Be brief."),
      list(role = "user", content = "Go."),
      list(role = "assistant", content = NULL, tool_calls = list(call("a", '{"n":1}'), call("b", '{"n"'))),
      list(role = "tool", tool_call_id = "a", content = "one"),
      list(role = "tool", tool_call_id = "b", content = "INVALID", is_error = TRUE)
    ),
    tool
  )
  expect_equal(message$content, "Let me see.")
  expect_equal(message$tool_calls[[1]]$`function`$arguments, '{"id":76561198003753554}')
  expect_equal(message$usage, list(prompt_tokens = 14, completion_tokens = 3))
  body <- at$body()
  expect_equal(body$system, list(list(text = "Be brief.", type = "text")))
  expect_equal(body$max_tokens, 4096L)
  expect_equal(body$tools[[1]]$input_schema$type, "object")
  expect_equal(vapply(body$messages, function(m) m$role, ""), c("user", "assistant", "user"))
  expect_equal(body$messages[[2]]$content[[1]]$input, list(n = 1L))
  expect_equal(body$messages[[2]]$content[[2]]$input, stats::setNames(list(), character()))
  results <- body$messages[[3]]$content
  expect_equal(vapply(results, function(b) b$tool_use_id, ""), c("a", "b"))
  expect_true(results[[2]]$is_error)
  expect_true("x-api-key: sk-ant-1" %in% at$head())
  expect_true(any(grepl("^anthropic-version: ", at$head())))
})

test_that("thinking goes back before the calls it led to", {
  thinking <- '[{"type":"thinking","thinking":"hm","signature":"s1"}'
  at <- script(answer(paste0(thinking, ',{"type":"tool_use","id":"t","name":"f","input":{}}]')), answer("[]", "end_turn"))
  model <- model_anthropic("claude-x", NULL, base_url = at$url)
  first <- model(user(), tool)
  model(c(user(), list(first), list(list(role = "tool", tool_call_id = "t", content = "x"))), tool)
  blocks <- at$body(2)$messages[[2]]$content
  expect_equal(vapply(blocks, function(b) b$type, ""), c("thinking", "tool_use"))
  expect_equal(blocks[[1]]$signature, "s1")
})

test_that("an error of the endpoint is ours", {
  at <- script(reply('{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}', 529))
  model <- model_anthropic("claude-x", NULL, base_url = at$url, retries = 1)
  expect_warrant_error(model(user(), list()), "model_server_error", status = 529L, attempts = 2L,
    message = "Overloaded")
  expect_warrant_error(model_anthropic("m", max_tokens = 0), "input", argument = "max_tokens")
})
