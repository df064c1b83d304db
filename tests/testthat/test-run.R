test_that("a run does what the planner asks and gives its answer", {
  look <- noting_tool()
  run <- run_agent(agent(look$tool, script_planner(decide_act("look", list(n = 4L)))), "goal")
  expect_s3_class(run, "agent_run")
  expect_equal(run$status, "completed")
  expect_null(run$stop_reason)
  expect_equal(run$answer, "done")
  expect_equal(run$steps[[1]]$result, 40L)
  expect_equal(run$steps[[1]]$outcome, "executed")
  expect_equal(look$calls$n, 1L)
  sound(run)
})

test_that("what the policy does not allow is refused, and the run goes on", {
  look <- noting_tool(scopes = "docs")
  write <- noting_tool("store", "write")
  planner <- script_planner(
    decide_act("look", list(n = 1L)), decide_act("store", list(n = 1L)),
    decide_act("lok", list(n = 1L)), decide_act("look", list(n = "x")),
    decide_act("look", '{"n":')
  )
  run <- run_agent(agent(list(look$tool, write$tool), planner), 1)
  expect_equal(run$status, "completed")
  expect_equal(outcomes(run), c(
    "scope_denied", "effect_denied", "unknown_tool", "invalid_arguments", "invalid_arguments"
  ))
  expect_match(run$steps[[3]]$error, "Did you mean `look`")
  expect_match(run$steps[[4]]$error, "^INVALID ARGUMENTS: ")
  expect_equal(look$calls$n + write$calls$n, 0L)
  sound(run)
})

test_that("each limit can stop a run on its own, and is named", {
  stops <- function(limits, usage = NULL, tool = noting_tool(cost = 0.1)$tool) {
    run <- run_agent(agent(tool, always(usage = usage), limits = limits), 1)
    sound(run)
    expect_equal(run$status, "stopped")
    run
  }
  expect_equal(stops(agent_limits(steps = 2))$stop_reason, "steps")
  expect_equal(stops(agent_limits(steps = 0))$used$steps, 0)
  run <- stops(agent_limits(tool_calls = 2))
  expect_equal(run$stop_reason, "tool_calls")
  expect_equal(outcomes(run), c("executed", "executed", "limit_reached"))
  expect_equal(stops(agent_limits(tool_calls = 0))$used$tool_calls, 0)
  expect_equal(stops(agent_limits(per_tool = c(look = 1)))$stop_reason, "per_tool")
  expect_equal(stops(agent_limits(seconds = 0))$stop_reason, "seconds")
  expect_equal(stops(agent_limits(tokens = 25), list(tokens = 10))$stop_reason, "tokens")
  expect_equal(stops(agent_limits(tokens = 0))$used$steps, 0)
  run <- stops(agent_limits(cost = 0.3))
  expect_equal(run$stop_reason, "cost")
  # 0.1 + 0.1 + 0.1 is 0.3, exactly.
  expect_equal(outcomes(run), c(rep("executed", 3), "limit_reached"))
  run <- stops(agent_limits(cost = 0.3), list(cost = 0.4))
  expect_equal(outcomes(run), "limit_reached")
  expect_equal(run$used$cost, 0.4)
})

test_that("limits are checked when they are made, and a cost limit needs known costs", {
  for (bad in list(-1, NA, 1.5, "2", c(1, 2))) {
    expect_warrant_error(agent_limits(steps = bad), "input")
    expect_warrant_error(agent_limits(tool_calls = bad), "input")
    expect_warrant_error(agent_limits(per_tool = c(look = NA)), "input")
  }
  expect_warrant_error(agent_limits(cost = -0.1), "input")
  expect_warrant_error(agent_limits(call_timeout_s = 0), "input")
  look <- noting_tool()$tool
  expect_warrant_error(run_agent(agent(look, always(), limits = agent_limits(cost = 1)), 1), "unknown_cost")
  expect_warrant_error(agent(look, always(), limits = agent_limits(per_tool = c(lok = 1))), "unknown_tool")
})

test_that("a tool's own max_calls counts over its life, a run's limit over the run", {
  look <- noting_tool(max_calls = 3)
  a <- agent(look$tool, always(), limits = agent_limits(steps = 2))
  run_agent(a, 1)
  run <- run_agent(a, 2)
  expect_equal(outcomes(run), c("executed", "tool_exhausted"))
  expect_equal(look$calls$n, 3L)
  other <- noting_tool()
  b <- agent(other$tool, always(), limits = agent_limits(per_tool = c(look = 1)))
  run_agent(b, 1)
  run_agent(b, 2)
  expect_equal(other$calls$n, 2L)
})

test_that("a failing call counts, and its text is what the planner sees", {
  tool <- agent_tool(function(n) stop("no such page"), "look", "A tool.",
    parameters = list(n = list(type = "integer")), side_effects = "read"
  )
  run <- run_agent(agent(tool, always(), limits = agent_limits(tool_calls = 2)), 1)
  expect_equal(outcomes(run), c("error", "error", "limit_reached"))
  expect_equal(run$steps[[1]]$error, "ERROR: no such page")
  expect_equal(run$used$tool_calls, 2)
})

test_that("several actions are gated in order and reserved before the first starts", {
  look <- noting_tool()
  batch <- decide_act(lapply(1:5, function(i) decide_act("look", list(n = i))))
  run <- run_agent(agent(look$tool, script_planner(batch), limits = agent_limits(tool_calls = 3)), 1)
  expect_equal(run$steps[[1]]$outcome, rep(c("executed", "limit_reached"), c(3, 2)))
  expect_equal(run$steps[[1]]$result[[3]], 30L)
  expect_equal(run$stop_reason, "tool_calls")
  expect_equal(look$calls$n, 3L)
  sound(run)
})

test_that("a planner that fails, or decides nothing, ends the run", {
  look <- noting_tool()$tool
  with <- function(planner) run_agent(agent(look, planner), 1)
  run <- with(function(state, tools) stop("I am lost"))
  expect_equal(c(run$status, run$stop_reason, run$error), c("failed", "planner_failed", "I am lost"))
  for (bad in list(NULL, list(), "look", 1:3)) {
    run <- with(function(state, tools) bad)
    expect_equal(run$stop_reason, "invalid_decision")
  }
  by_hand <- function(x) structure(x, class = "agent_decision")
  no_tool <- list(decision = "act", actions = list(list(tool = 3)))
  for (bad in list(3, list(), list(decision = "finish"), list(decision = "act"), no_tool)) {
    run <- with(function(state, tools) by_hand(bad))
    expect_equal(c(run$status, run$stop_reason), c("failed", "invalid_decision"))
  }
  run <- with(function(state, tools) decide_finish(globalenv()))
  expect_equal(run$stop_reason, "invalid_decision")
  deep <- function(state, tools) deep(state, tools)
  expect_equal(with(deep)$stop_reason, "planner_failed")
  sound(run)
})

test_that("a planner gets a copy of the state", {
  look <- noting_tool()$tool
  seen <- list()
  planner <- function(state, tools) {
    state$steps[[1]] <- "mine"
    state$goal <- "other"
    seen[[length(seen) + 1]] <<- state$left$steps
    if (length(seen) == 3) return(decide_finish(state$goal))
    decide_act("look", list(n = 1L))
  }
  run <- run_agent(agent(look, planner, limits = agent_limits(steps = 9)), "goal")
  expect_equal(run$goal, "goal")
  expect_equal(outcomes(run), c("executed", "executed"))
  expect_equal(unlist(seen), c(8, 7, 6))
})

test_that("results are in the normal form, also before any pause", {
  tool <- agent_tool(
    function(n) data.frame(id = c("a", "b"), x = c(1.5, NA)), "look", "A tool.",
    parameters = list(n = list(type = "integer")), side_effects = "read"
  )
  store <- memory_store()
  run <- run_agent(agent(tool, script_planner(decide_act("look", list(n = 1L))), store = store), 1)
  expect_equal(run$steps[[1]]$result, list(list(id = "a", x = 1.5), list(id = "b", x = NULL)))
  expect_equal(read_run(store, run$run_id)$steps, run$steps)
})

test_that("done accepts an answer, or lets the run go on", {
  look <- noting_tool()$tool
  answers <- function(state, tools) decide_finish(length(state$steps) + 1)
  with <- function(done) run_agent(agent(look, answers, done = done, limits = agent_limits(steps = 5)), 1)
  run <- with(function(answer, state) answer == 3)
  expect_equal(run$answer, 3L)
  expect_equal(vapply(run$steps, function(s) s$decision, ""), c("finish", "finish"))
  expect_equal(run$steps[[2]]$answer, 2L)
  sound(run)
  expect_equal(with(function(answer, state) FALSE)$stop_reason, "steps")
  for (bad in list(function(answer, state) NA, function(answer, state) stop("x"), function(answer, state) "yes")) {
    expect_equal(with(bad)$stop_reason, "done_failed")
  }
})

test_that("a run id of the user's is refused when it is taken", {
  look <- noting_tool()$tool
  trail <- tempfile()
  a <- agent(look, script_planner(), audit = audit_jsonl(trail))
  run_agent(a, 1, run_id = "mine-1")
  expect_warrant_error(run_agent(a, 1, run_id = "mine-1"), "run_exists")
  b <- agent(look, script_planner(), audit = audit_jsonl(trail))
  expect_warrant_error(run_agent(b, 1, run_id = "mine-1"), "run_exists")
  expect_warrant_error(run_agent(b, 1, run_id = "../x"), "input")
})

test_that("the random numbers of the user are not touched", {
  look <- noting_tool()$tool
  set.seed(1)
  before <- .Random.seed
  run_agent(agent(look, always(), limits = agent_limits(steps = 3)), 1)
  expect_identical(.Random.seed, before)
})

test_that("tool_log and the grains of as_agent_run tell the run", {
  look <- noting_tool()
  run <- run_agent(agent(look$tool, script_planner(
    decide_act("look", list(n = 1L)), decide_act("look", list(n = "x"))
  )), "goal")
  log <- tool_log(run)
  expect_equal(log$status, c("executed", "invalid_arguments"))
  expect_equal(log$step, 1:2)
  expect_equal(unique(log$run_id), run$run_id)
  expect_equal(log$arguments_hash[[1]], hash_content(list(n = 1L)))
  expect_equal(log$result_hash[[1]], hash_content(10L))
  own <- tool_log(look$tool)
  expect_equal(own$run_id, run$run_id)
  expect_equal(own$step, 1L)
  x <- as_agent_run(run)
  expect_equal(tibble::as_tibble(x), log)
  expect_equal(nrow(tibble::as_tibble(x, level = "call")), 3L)
  expect_equal(tibble::as_tibble(x, level = "event")$event[[1]], "run_started")
  expect_equal(tibble::as_tibble(x, level = "state")$answer, list("done"))
  expect_warrant_error(as_agent_run(1), "input")
})

test_that("observations are plain JSON", {
  look <- noting_tool()$tool
  run <- run_agent(agent(look, script_planner(decide_act("look", list(n = 1L)))), 1)
  expect_equal(
    as.character(observations(run)),
    '[{"arguments":{"n":1},"decision":"act","error":null,"outcome":"executed","result":10,"step":1,"tool":"look"}]'
  )
  expect_equal(as.character(observations(list(steps = list()))), "[]")
})

test_that("a replay finds the first step that is decided otherwise", {
  look <- noting_tool()
  planner <- function(state, tools) {
    n <- length(state$steps)
    if (n == 3) decide_finish(state$left$steps) else decide_act("look", list(n = n))
  }
  a <- agent(look$tool, planner)
  run <- run_agent(a, 1)
  again <- replay_run(a, run)
  expect_true(again$same)
  expect_equal(nrow(again$steps), 4L)
  other <- agent(look$tool, function(state, tools) {
    n <- length(state$steps)
    decide_act("look", list(n = if (n == 2) 99L else n))
  })
  differs <- replay_run(other, run)
  expect_equal(differs$step, 3L)
  expect_match(differs$steps$replayed[[3]], "99")
  expect_equal(look$calls$n, 3L)
})

test_that("runs and agents print in a few lines", {
  local_clock(1e9)
  look <- noting_tool()$tool
  a <- agent(look, script_planner(decide_act("look", list(n = 1L))), limits = agent_limits(steps = 4))
  expect_snapshot(print(a))
  expect_snapshot(print(agent_policy("docs:read", c("read", "write"))))
  expect_snapshot(print(agent_limits(5, cost = 0.5, per_tool = c(look = 2))))
  run <- run_agent(a, 1)
  text <- format(run)
  expect_equal(text[[1]], "<agent_run> completed")
  expect_match(text, "steps: 1 (executed 1)", fixed = TRUE, all = FALSE)
  expect_lte(length(text), 10L)
})

test_that("a run is a trajectory: calls that started, and decisions that did not", {
  look <- noting_tool()
  planner <- script_planner(decide_act("look", list(n = 1L)), decide_act("lok", list(n = 2L)))
  run <- run_agent(agent(look$tool, planner), 1)
  trajectory <- as_trajectory(run)
  kinds <- vapply(trajectory$steps, function(s) s$kind, "")
  expect_equal(kinds, c("tool_call", "tool_result", "decision", "final"))
  expect_equal(trajectory$terminal_status, "unknown")
  judged <- agent(look$tool, planner, done = function(answer, state) TRUE)
  run <- run_agent(judged, 1)
  expect_equal(as_trajectory(run)$terminal_status, "success")
  expect_equal(as_trajectory(read_run(judged$store, run$run_id))$terminal_status, "success")
  stopped <- as_trajectory(run_agent(agent(look$tool, always(), limits = agent_limits(steps = 1)), 1))
  expect_true(stopped$truncated)
  failed <- as_trajectory(run_agent(agent(look$tool, function(state, tools) stop("x")), 1))
  expect_equal(failed$terminal_status, "failure")
})

test_that("a trajectory keeps arrays of one and integers of any length", {
  tool <- noting_tool(fn = function(n) structure('{"tags":["a"],"id":76561198003753554,"none":null}', class = "json"))
  run <- run_agent(agent(tool$tool, script_planner(decide_act("look", list(n = 1)))), "g")
  json <- as_trajectory(run)$json
  expect_match(json, '"result":{"id":76561198003753554,"none":null,"tags":["a"]}', fixed = TRUE)
})

test_that("what a planner or guardrail kept of a run never changes", {
  seen <- list()
  later <- list()
  planner <- function(state, tools) {
    seen[[length(seen) + 1L]] <<- state
    later[[length(later) + 1L]] <<- function() state$steps
    if (length(state$steps) == 5L) decide_finish("done") else decide_act("add", list(n = length(state$steps)))
  }
  looked <- list()
  look <- guardrail("look", function(value, context) {
    looked[[length(looked) + 1L]] <<- context$steps
    TRUE
  }, stage = "tool")
  add <- agent_tool(function(n) n + 1, "add", "Add one.", parameters = list(n = list(type = "number")), side_effects = "none")
  run <- run_agent(agent(add, planner, guardrails = guardrails(look)), "count")
  for (i in 0:5) {
    expect_identical(seen[[i + 1L]]$steps, run$steps[seq_len(i)])
    expect_identical(later[[i + 1L]](), run$steps[seq_len(i)])
  }
  # Each call is looked at before and after.
  expect_identical(lengths(looked), rep(0:4, each = 2L))
})
