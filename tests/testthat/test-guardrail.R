order <- function() {
  agent_tool(function(n) {
    count$n <- count$n + 1
    paste("ordered", n)
  }, "order", "Order some.", parameters = list(n = list(type = "integer")), side_effects = "none",
  captures = character())
}
count <- new.env()
count$n <- 0

tool_of <- function(name) {
  agent_tool(function() name, name, "A tool.", side_effects = "none", captures = character())
}

plans <- function(...) {
  decisions <- list(...)
  function(state, tools) decisions[[length(state$steps) + 1L]]
}

once <- function(...) plans(decide_act(list(...)), decide_finish("done"))

test_that("a call that is blocked does not start, and is told why", {
  count$n <- 0
  small <- guardrail("small", stage = "tool", check = function(call) {
    if (call$arguments$n <= 10) TRUE else "At most 10 at once."
  })
  a <- agent(order(), once(decide_act("order", list(n = 500)), decide_act("order", list(n = 5))),
    guardrails = small
  )
  run <- run_agent(a, "go")
  expect_equal(count$n, 1)
  log <- tool_log(run)
  expect_equal(log$status, c("guardrail_blocked", "executed"))
  expect_equal(log$guardrails, list("small: block", c("small: pass", "small: pass")))
  expect_match(run$steps[[1]]$error[[1]], "^BLOCKED: .*small.*At most 10 at once")
  expect_equal(run$used$tool_calls, 1)
  expect_equal(nrow(verify_audit(run)), 0L)
})

test_that("all calls of a step are checked before the first starts", {
  count$n <- 0
  seen <- numeric()
  slow <- guardrail("slow", stage = "tool", check = function(call) {
    if (call$when == "before") seen <<- c(seen, count$n)
    call$arguments$n != 3
  })
  acts <- lapply(1:3, function(n) decide_act("order", list(n = n)))
  run <- run_agent(agent(order(), do.call(once, acts), guardrails = slow), "go")
  expect_equal(seen, c(0, 0, 0))
  expect_equal(run$steps[[1]]$outcome, c("executed", "executed", "guardrail_blocked"))
})

test_that("a result that is blocked is withheld", {
  no_five <- guardrail("no_five", stage = "tool", check = function(call) {
    call$when == "before" || !grepl("5", call$result)
  })
  run <- run_agent(agent(order(), once(decide_act("order", list(n = 5))), guardrails = no_five), "go")
  step <- run$steps[[1]]
  expect_equal(step$outcome, "guardrail_blocked")
  expect_null(step$result)
  expect_match(step$error, "its result is withheld")
  expect_equal(tool_log(run)$guardrails[[1]], c("no_five: pass", "no_five: block"))
  expect_equal(nrow(verify_audit(run)), 0L)
})

test_that("a check that throws, or answers anything else, blocks", {
  for (check in list(function(call) stop("oops"), function(call) NA, function(call) NULL, function(call) 1)) {
    count$n <- 0
    rail <- guardrail("odd", check, on_fail = "flag", stage = "tool")
    run <- run_agent(agent(order(), once(decide_act("order", list(n = 1))), guardrails = rail), "go")
    expect_equal(run$steps[[1]]$outcome, "guardrail_blocked")
    expect_equal(count$n, 0)
  }
})

test_that("a warning is told to the planner, a flag is only recorded", {
  warns <- guardrail("w", function(call) call$when == "after" || "Careful.", "warn", "tool")
  flags <- guardrail("f", function(call) FALSE, "flag", "tool")
  warns$check <- function(call) if (call$when == "after") TRUE else "Careful."
  run <- run_agent(
    agent(order(), once(decide_act("order", list(n = 1))), guardrails = guardrails(warns, flags)), "go"
  )
  expect_equal(run$steps[[1]]$outcome, "executed")
  expect_match(run$steps[[1]]$actions[[1]]$warnings[[1]], "`w` warns: Careful.", fixed = TRUE)
  expect_equal(tool_log(run)$guardrails[[1]], c("w: warn", "f: flag", "w: pass", "f: flag"))
})

test_that("a goal or an answer that is blocked ends the run", {
  polite <- guardrail("polite", function(text) !grepl("damn", text), stage = c("input", "output"))
  planner <- plans(decide_finish("damn"))
  run <- run_agent(agent(order(), planner, guardrails = polite), "a damn goal")
  expect_equal(c(run$status, run$stop_reason), c("failed", "guardrail_blocked"))
  expect_equal(length(run$steps), 0L)
  run <- run_agent(agent(order(), planner, guardrails = polite), "a goal")
  expect_equal(c(run$status, run$stop_reason), c("failed", "guardrail_blocked"))
  expect_null(run$answer)
  expect_match(run$error, "polite")
  expect_equal(nrow(verify_audit(run)), 0L)
})

test_that("a check may look at the run so far", {
  seen <- NULL
  rail <- guardrail("look", stage = "tool", check = function(call, context) {
    seen <<- context
    TRUE
  })
  run_agent(agent(order(), once(decide_act("order", list(n = 1))), guardrails = rail), "a goal")
  expect_equal(seen$goal, "a goal")
  expect_equal(seen$called, "order")
})

test_that("a flow rule holds over steps and within one", {
  rail <- guardrail_flow(after = "read", never = "send")
  tools <- list(tool_of("read"), tool_of("send"))
  outcomes <- function(...) {
    run <- run_agent(agent(tools, plans(...), guardrails = rail), "go")
    unlist(lapply(run$steps, function(s) s$outcome))
  }
  read <- decide_act("read")
  send <- decide_act("send")
  end <- decide_finish("x")
  expect_equal(outcomes(send, read, send, end), c("executed", "executed", "guardrail_blocked"))
  expect_equal(outcomes(decide_act(list(read, send)), end), c("executed", "guardrail_blocked"))
  expect_equal(outcomes(decide_act(list(send, read)), end), c("executed", "executed"))
})

test_that("an approved call is checked again when the run is taken up", {
  send <- agent_tool(function() "sent", "send", "Send.", side_effects = "write")
  rail <- guardrail_flow(after = "read", never = "send")
  a <- agent(list(tool_of("read"), send), once(decide_act("send"), decide_act("read")),
    agent_policy(allow_effects = c("none", "write")), guardrails = rail
  )
  run <- run_agent(a, "go")
  expect_equal(run$status, "awaiting_approval")
  run <- resume_run(a, approve_tool_call(run, "approve", approver = "me"))
  expect_equal(run$steps[[1]]$outcome, c("guardrail_blocked", "executed"))
  expect_equal(nrow(verify_audit(run)), 0L)
})

test_that("an edited call is checked again", {
  send <- agent_tool(function(n) n, "send", "Send.", parameters = list(n = list(type = "integer")),
    side_effects = "write"
  )
  small <- guardrail("small", function(call) call$arguments$n < 10, stage = "tool")
  a <- agent(send, once(decide_act("send", list(n = 1))), agent_policy(allow_effects = "write"),
    approver = function(request) list(decision = "edit", arguments = list(n = 99L)), guardrails = small
  )
  run <- run_agent(a, "go")
  expect_equal(run$steps[[1]]$outcome, "guardrail_blocked")
})

test_that("guardrails are checked and printed", {
  expect_warrant_error(guardrail("a", identity), "input", argument = "stage")
  expect_warrant_error(guardrail("a", identity, stage = "x"), "input", argument = "stage")
  expect_warrant_error(guardrail("a", identity, "stop", "tool"), "input", argument = "on_fail")
  a <- guardrail("a", identity, stage = "tool")
  expect_warrant_error(guardrails(a, a), "guardrail_name_twice")
  expect_warrant_error(agent(order(), plans(), guardrails = list(1)), "input")
  expect_warrant_error(guardrail_flow("read", character()), "input", argument = "never")
  expect_output(print(a), "looks at: tool")
  expect_output(print(guardrails(a)), "a (tool): block", fixed = TRUE)
  expect_output(print(guardrail_flow("read", "send")), "after read never send")
})

rails_then <- function(...) guardrails(
  guardrail("short", function(value) nchar(value) < 20, stage = c("output", "input"), on_fail = "warn"),
  guardrail("small", function(call) call$arguments$n < 5, stage = "tool"), ...
)

test_that("a trail says which guardrails are in force, and a resume which are from then on", {
  store <- memory_store()
  make <- function(rails) {
    agent(noting_tool("store", "write")$tool, script_planner(decide_act("store", list(n = 1))),
      policy = writes(), store = store, guardrails = rails
    )
  }
  run <- run_agent(make(rails_then()), "go")
  declared <- function(event) {
    data <- read_audit(run)$data[read_audit(run)$event == event]
    jsonlite::fromJSON(data[[1]], simplifyVector = FALSE)$guardrails
  }
  started <- declared("run_started")
  expect_equal(vapply(started, function(g) g$name, ""), c("short", "small"))
  expect_equal(started[[1]]$stages, list("input", "output"))
  expect_equal(started[[1]]$on_fail, "warn")
  expect_match(started[[1]]$digest, "^[0-9a-f]{64}$")
  run <- approve_tool_call(run, "approve", approver = "p")
  again <- guardrail("never", function(call) FALSE, stage = "tool")
  run <- resume_run(make(rails_then(again)), run)
  expect_equal(outcomes(run), "guardrail_blocked")
  expect_equal(vapply(declared("resumed"), function(g) g$name, ""), c("short", "small", "never"))
  sound(run)
})

test_that("a trail in which a guardrail was left out or says what it cannot is found", {
  run <- run_agent(agent(noting_tool()$tool, script_planner(decide_act("look", list(n = 1))), guardrails = rails_then()), "go")
  sound(run)
  trail <- read_audit(run)
  faults_of <- function(rows) {
    sealed <- warrant:::unwrap_core(warrant:::rs_seal_lines("r1", 0, "", rows$event, rows$data, 1, 1))
    verify_audit(sealed$lines)$what
  }
  expect_length(faults_of(trail), 0)
  spoken <- which(trail$event == "guardrail")
  expect_length(spoken, 4)
  for (i in spoken) expect_match(faults_of(trail[-i, ]), "has not looked at this")
  for (change in list(c("\"pass\"", "\"flag\""), c("\"short\"", "\"other\""))) {
    other <- trail
    other$data[spoken] <- sub(change[[1]], change[[2]], other$data[spoken], fixed = TRUE)
    expect_match(faults_of(other), "is not declared for this place and verdict")
  }
})
