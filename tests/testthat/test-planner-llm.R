# A model that gives the answers it was made with, in order, and keeps what it saw.
scripted <- function(...) {
  answers <- list(...)
  seen <- new.env()
  seen$messages <- list()
  model <- function(messages, tools) {
    seen$messages[[length(seen$messages) + 1L]] <- messages
    seen$tools <- tools
    answers[[min(length(seen$messages), length(answers))]]
  }
  list(model = model, seen = seen)
}

calls <- function(...) {
  list(role = "assistant", content = NULL, tool_calls = lapply(list(...), function(call) {
    list(
      id = if (length(call) > 2L) call[[3]] else "same", type = "function",
      `function` = list(name = call[[1]], arguments = call[[2]])
    )
  }))
}

finish <- function(text) list(role = "assistant", content = text)

half <- function(...) {
  agent_tool(function(x) x / 2, "half", "Half of a number.",
    parameters = list(x = list(type = "number")), side_effects = "none", ...
  )
}

wire <- function() {
  agent_tool(function(n) paste("sent", n), "wire", "Send money.",
    parameters = list(n = list(type = "integer")), side_effects = "write"
  )
}

writer <- function(...) agent_policy(allow_effects = c("none", "read", "write"), ...)

# What was asked and what was answered, by id.
ids <- function(messages) {
  asked <- unlist(lapply(messages, function(m) vapply(m$tool_calls, function(call) call$id, "")))
  answered <- unlist(lapply(messages, function(m) m$tool_call_id))
  list(asked = asked, answered = answered)
}

test_that("a model calls tools and gives an answer", {
  s <- scripted(calls(list("half", '{"x": 3}')), finish("1.5"))
  run <- run_agent(agent(half(), planner_llm(s$model, "Be brief.")), "Half of 3?")
  expect_equal(run$status, "completed")
  expect_equal(run$answer, "1.5")
  expect_equal(s$seen$messages[[1]], list(
    list(role = "system", content = "Be brief."), list(role = "user", content = "Half of 3?")
  ))
  last <- s$seen$messages[[2]]
  expect_equal(last[[3]]$tool_calls[[1]]$`function`, list(name = "half", arguments = '{"x":3}'))
  expect_equal(last[[4]]$content, "1.5")
  expect_equal(last[[4]]$tool_call_id, last[[3]]$tool_calls[[1]]$id)
  about <- s$seen$tools[[1]]$`function`
  expect_equal(about$name, "half")
  expect_match(about$parameters, '"x":{"type":"number"}', fixed = TRUE)
})

test_that("every call of a turn is answered once, whatever becomes of it", {
  s <- scripted(
    calls(
      list("half", '{"x": 3}', "a"), list("half", '{"x": ', "a"), list("halve", "{}", "b"),
      list("half", "[1]", "b"), list("half", NULL, "c"), list("", "{}", "c"),
      list("half", list(x = 5), "d"), list("half", '{"x": 1, "x": 2}')
    ),
    finish("done")
  )
  run <- run_agent(agent(half(), planner_llm(s$model)), "go")
  log <- tool_log(run)
  expect_equal(log$status, c(
    "executed", "invalid_arguments", "unknown_tool", "invalid_arguments", "invalid_arguments",
    "unknown_tool", "executed", "invalid_arguments"
  ))
  found <- ids(s$seen$messages[[2]])
  expect_equal(found$asked, found$answered)
  expect_false(anyDuplicated(found$asked) > 0)
  answers <- vapply(s$seen$messages[[2]][-(1:2)], function(m) m$content, "")
  expect_match(answers[c(2, 4, 5, 8)], "^INVALID ARGUMENTS: ")
  sent <- lapply(s$seen$messages[[2]][[2]]$tool_calls, function(call) call$`function`)
  expect_true(all(grepl("^[{]", vapply(sent, function(f) f$arguments, ""))))
  expect_true(all(grepl("^[A-Za-z0-9_-]+$", vapply(sent, function(f) f$name, ""))))
})

test_that("integers beyond 2^53 reach the tool as they came", {
  id <- agent_tool(function(id) id, "id", "An id.", parameters = list(id = list(type = "integer")),
    side_effects = "none"
  )
  s <- scripted(calls(list("id", '{"id": 76561198003753554}')), finish("ok"))
  run <- run_agent(agent(id, planner_llm(s$model)), "go")
  expect_equal(tool_log(run)$arguments, '{"id":76561198003753554}')
  expect_equal(s$seen$messages[[2]][[2]]$tool_calls[[1]]$`function`$arguments, '{"id":76561198003753554}')
})

test_that("200 calls in one answer are all answered, at most 128 in a message", {
  many <- do.call(calls, rep(list(list("half", '{"x": 1}', "x")), 200))
  s <- scripted(many, finish("ok"))
  run <- run_agent(
    agent(half(), planner_llm(s$model), limits = agent_limits(tool_calls = 200)), "go"
  )
  expect_equal(run$status, "completed")
  found <- ids(s$seen$messages[[2]])
  expect_equal(length(unique(found$asked)), 200L)
  expect_equal(found$asked, found$answered)
  sizes <- vapply(s$seen$messages[[2]], function(m) length(m$tool_calls), 0L)
  expect_equal(sizes[sizes > 0], c(128L, 72L))
})

test_that("a run resumes in the middle of a turn with the same conversation", {
  answers <- list(
    list(
      role = "assistant", content = "I send both.",
      tool_calls = calls(list("wire", '{"n": 1}', "a"), list("half", '{"x": 4}', "a"),
        list("wire", '{"n": 2}', "a"))$tool_calls
    ),
    finish("done")
  )
  drive <- function(pause) {
    s <- do.call(scripted, answers)
    approve <- function(request) "approve"
    a <- agent(list(wire(), half()), planner_llm(s$model), writer(), approver = if (!pause) approve)
    run <- run_agent(a, "go", run_id = "r")
    if (pause) {
      expect_equal(run$status, "awaiting_approval")
      run <- unserialize(serialize(run, NULL))
      # Another process: a planner that knows nothing of before.
      s <- do.call(scripted, answers[2])
      a <- agent(list(wire(), half()), planner_llm(s$model), writer())
      for (request in run$pending) {
        run <- approve_tool_call(run, "approve", call = request$request, approver = "me")
      }
      run <- resume_run(a, run)
    }
    expect_equal(run$status, "completed")
    s$seen$messages[[length(s$seen$messages)]]
  }
  paused <- drive(TRUE)
  expect_equal(paused, drive(FALSE))
  found <- ids(paused)
  expect_equal(found$asked, found$answered)
  expect_equal(length(found$asked), 3L)
  expect_equal(paused[[2]]$content, "I send both.")
})

test_that("a person's edit and a refusal are said to the model", {
  s <- scripted(calls(list("wire", '{"n": 100}')), calls(list("wire", '{"n": 7}')), finish("ok"))
  approver <- function(request) {
    if (request$arguments$n == 100) list(decision = "edit", arguments = list(n = 50L)) else "reject"
  }
  run_agent(agent(wire(), planner_llm(s$model), writer(), approver = approver), "go")
  last <- s$seen$messages[[3]]
  expect_equal(last[[2]]$tool_calls[[1]]$`function`$arguments, '{"n":100}')
  expect_match(last[[3]]$content, 'changed the arguments to {"n":50}', fixed = TRUE)
  expect_match(last[[3]]$content, "sent 50")
  expect_match(last[[5]]$content, "^DENIED: ")
})

test_that("an answer that is not accepted goes back", {
  s <- scripted(finish("1"), finish("2"))
  run <- run_agent(
    agent(half(), planner_llm(s$model), done = function(answer, state) answer == "2"), "go"
  )
  expect_equal(run$answer, "2")
  expect_equal(vapply(s$seen$messages[[2]], function(m) m$role, ""), c("user", "assistant", "user"))
})

test_that("a model that repeats itself is stopped by the limits", {
  s <- scripted(calls(list("half", '{"x": 1}')))
  run <- run_agent(agent(half(), planner_llm(s$model), limits = agent_limits(steps = 5)), "go")
  expect_equal(c(run$status, run$stop_reason), c("stopped", "steps"))
  expect_equal(nrow(tool_log(run)), 5L)
})

test_that("usage is counted, estimated high where a limit needs it", {
  answer <- finish("ok")
  answer$usage <- list(prompt_tokens = 100, completion_tokens = 20)
  run <- run_agent(
    agent(half(), planner_llm(scripted(answer)$model, price = c(input = 1, output = 10))), "go"
  )
  expect_equal(run$used$tokens, 120)
  expect_equal(run$used$cost, 0.0003)
  s <- scripted(finish(strrep("x", 300)))
  expect_equal(run_agent(agent(half(), planner_llm(s$model)), "go")$used$tokens, 0)
  run <- run_agent(agent(half(), planner_llm(s$model), limits = agent_limits(tokens = 1000)), "go")
  expect_equal(run$used$tokens, 101)
})

test_that("a cost limit without a price is an error, and the run can be taken up", {
  free <- agent_tool(function() 1, "one", "One.", side_effects = "none", cost = 0)
  answer <- finish("ok")
  answer$usage <- list(total_tokens = 10)
  store <- memory_store()
  limits <- agent_limits(cost = 1)
  error <- expect_warrant_error(
    run_agent(agent(free, planner_llm(scripted(answer)$model), limits = limits, store = store), "go"),
    "model_price_unknown"
  )
  priced <- planner_llm(scripted(answer)$model, price = c(input = 1, output = 1))
  run <- resume_run(agent(free, priced, limits = limits, store = store), error$run_id)
  expect_equal(run$status, "completed")
})

test_that("what a model must not answer ends the run, with the reason", {
  for (bad in list(list(role = "assistant"), finish("  "), "text", 3, NULL, list(1))) {
    run <- run_agent(agent(half(), planner_llm(function(messages, tools) bad)), "go")
    expect_equal(c(run$status, run$stop_reason), c("failed", "planner_failed"))
  }
  cut <- finish("The answer is")
  cut$finish_reason <- "length"
  run <- run_agent(agent(half(), planner_llm(function(messages, tools) cut)), "go")
  expect_match(run$error, "cut at the token limit")
})

test_that("an endpoint that fails leaves a run that goes on where it was", {
  at <- script(
    asks(list("half", '{"x": 3}')), reply("down", 503), reply("down", 503), says("1.5")
  )
  store <- memory_store()
  model <- model_openai(at$url, "m", NULL, retries = 1)
  a <- agent(half(), planner_llm(model), store = store)
  error <- expect_warrant_error(run_agent(a, "go"), "model_server_error", status = 503L)
  expect_equal(read_run(store, error$run_id)$status, "running")
  run <- resume_run(a, error$run_id)
  expect_equal(run$answer, "1.5")
  expect_equal(nrow(tool_log(run)), 1L)
  expect_equal(nrow(verify_audit(run)), 0L)
  expect_equal(run$used$tokens, 14)
})

test_that("waiting for an endpoint is no working time", {
  waiting <- function(messages, tools) {
    Sys.sleep(0.3)
    c(finish("ok"), list(waited_s = 0.3))
  }
  run <- run_agent(agent(half(), planner_llm(waiting)), "go")
  expect_lt(run$used$seconds, 0.25)
})

test_that("a key is neither in the run nor in its trail", {
  key <- paste0("sk-very-", "secret-2")
  withr::local_envvar(MY_KEY = key)
  at <- script(asks(list("half", '{"x": 3}')), says("1.5"))
  path <- withr::local_tempfile()
  a <- agent(half(), planner_llm(model_openai(at$url, "m", "MY_KEY")), audit = audit_jsonl(path))
  run <- run_agent(a, "go")
  everything <- c(readLines(path), deparse(unclass(run)), capture.output(print(a), print(run)))
  expect_false(any(grepl(key, everything, fixed = TRUE)))
  expect_equal(run$steps[[1]]$note$model, "served-1")
})

test_that("arguments of planner_llm() are checked", {
  expect_warrant_error(planner_llm("gpt"), "input", argument = "model")
  expect_warrant_error(planner_llm(identity, price = 1), "input", argument = "price")
  expect_warrant_error(planner_llm(identity, max_parallel = 0), "input", argument = "max_parallel")
  expect_warrant_error(planner_llm(identity, NULL, 3), "input")
})
