test_that("a tool is put on the wire as in the recorded loop", {
  wire <- lapply(unname(loop_tools()), function(tool) {
    list(type = "function", "function" = list(
      name = tool$name, description = tool$description, parameters = tool$schema
    ))
  })
  expect_identical(hash_content(wire), hash_content(loop_record()$tools))
  written <- structure(write_json(wire), class = "json")
  expect_identical(hash_content(written), hash_content(wire))
})

test_that("a loop that calls fn by name sends back what was recorded", {
  tools <- loop_tools()
  for (turn in loop_record()$turns) {
    calls <- turn$answer$choices[[1]]$message$tool_calls
    expect_length(turn$sent_back, length(calls))
    for (i in seq_along(calls)) {
      wanted <- calls[[i]][["function"]]
      text <- do.call(tools[[wanted$name]]$fn, read_json(wanted$arguments))
      expect_identical(text, turn$sent_back[[i]]$content)
      expect_identical(turn$sent_back[[i]]$tool_call_id, calls[[i]]$id)
    }
  }
  expect_identical(tool_log(tools)$status, loop_statuses)
})

test_that("a gated call in a loop that cannot pause is refused and says so", {
  said <- loop_tools()$place_order$fn(item = "pear", n = 2)
  expect_match(said, "^PENDING: .*approval.*cannot pause.*not run")
})

test_that("LLMR's own loop drives governed tools", {
  # not in DESCRIPTION: R CMD check ends where CRAN, and so the package, is not reached
  skip_if_not_installed("LLMR")
  bodies <- vapply(loop_record()$turns, function(turn) write_json(turn$answer), "")
  port <- local_chat_server(bodies)
  config <- suppressWarnings(getExportedValue("LLMR", "llm_config")("openai", "stand-in",
    api_key = "sk-not-a-key",
    api_url = paste0("http://127.0.0.1:", port, "/v1/chat/completions")
  ))
  tools <- loop_tools()
  answer <- getExportedValue("LLMR", "call_llm_tools")(config, "What is the weather in Tunis?", tools = unname(tools), tries = 1L)
  expect_identical(as.character(answer), "It is sunny in Tunis.")
  expect_identical(tool_log(tools)$status, loop_statuses)
  sent <- unlist(lapply(loop_record()$turns, function(turn) lapply(turn$sent_back, `[[`, "content")))
  expect_identical(answer$tool_history$result, sent)
})
