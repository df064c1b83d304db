# An agent whose one write waits for a person.
gated <- function(..., ttl_s = NULL, store = memory_store(), policy = writes(), batch = NULL) {
  write <- noting_tool("store", "write")
  tool <- if (is.null(ttl_s)) write$tool else human_gate(write$tool, "Really?", ttl_s = ttl_s)
  look <- noting_tool()
  if (is.null(batch)) batch <- decide_act("store", list(n = 100L))
  a <- agent(list(tool, look$tool), script_planner(batch), policy = policy, store = store, ...)
  list(agent = a, write = write$calls, look = look$calls)
}

test_that("with nobody to ask the run pauses and nothing is written", {
  g <- gated()
  run <- run_agent(g$agent, 1)
  expect_equal(run$status, "awaiting_approval")
  expect_equal(outcomes(run), "approval_required")
  expect_equal(g$write$n, 0L)
  asked <- run$pending[[1]]
  expect_equal(asked$tool, "store")
  expect_equal(asked$arguments, list(n = 100L))
  expect_equal(asked$reason, "policy")
  expect_null(asked$expires_at)
  # No answer is no consent.
  again <- resume_run(g$agent, run)
  expect_equal(again$status, "awaiting_approval")
  expect_equal(again$audit_head, run$audit_head)
  expect_equal(g$write$n, 0L)
})

test_that("approve, reject and edit do what they say", {
  g <- gated()
  run <- approve_tool_call(run_agent(g$agent, 1), "approve", approver = "p")
  expect_length(run$pending, 0L)
  expect_equal(g$write$n, 0L)
  run <- resume_run(g$agent, run)
  expect_equal(outcomes(run), "executed")
  expect_equal(run$status, "completed")
  sound(run)

  g <- gated()
  run <- approve_tool_call(run_agent(g$agent, 1), "reject", approver = "p", reason = "too much")
  run <- resume_run(g$agent, run)
  expect_equal(outcomes(run), "approval_denied")
  expect_match(run$steps[[1]]$error, "^DENIED: a person said no: too much")
  expect_equal(g$write$n, 0L)

  g <- gated()
  run <- run_agent(g$agent, 1)
  expect_warrant_error(
    approve_tool_call(run, "edit", approver = "p", arguments = list(n = "x")), "invalid_edit"
  )
  run <- approve_tool_call(run, "edit", approver = "p", arguments = list(n = 50))
  run <- resume_run(g$agent, run)
  expect_equal(g$write$last, 50L)
  expect_equal(run$steps[[1]]$actions[[1]]$edited_by, "p")
  sound(run)
})

test_that("after an edit the original is refused for the rest of the run", {
  write <- noting_tool("store", "write")
  ask <- decide_act("store", list(n = 100L))
  a <- agent(write$tool, script_planner(ask, ask), policy = writes())
  run <- approve_tool_call(run_agent(a, 1), "edit", approver = "p", arguments = list(n = 50L))
  run <- resume_run(a, run)
  expect_equal(outcomes(run), c("executed", "approval_denied"))
  expect_equal(write$calls$n, 1L)
})

test_that("a decision is single use, and bound to one request", {
  g <- gated()
  run <- run_agent(g$agent, 1)
  digest <- run$pending[[1]]$request
  done <- resume_run(g$agent, run, approval(digest, granted = TRUE, approver = "p"))
  expect_equal(g$write$n, 1L)
  expect_warrant_error(
    resume_run(g$agent, done, approval(digest, granted = TRUE, approver = "p")), "no_such_request"
  )
  expect_warrant_error(approve_tool_call(done, "approve", approver = "p"), "approval")
  expect_equal(g$write$n, 1L)
  h <- gated()
  other <- run_agent(h$agent, 1)
  expect_warrant_error(
    resume_run(h$agent, other, approval(digest, granted = TRUE, approver = "p")), "no_such_request"
  )
})

test_that("an expired request is terminal and says so", {
  tick <- local_clock(1000)
  g <- gated(ttl_s = 60)
  run <- run_agent(g$agent, 1)
  expect_equal(as.numeric(run$pending[[1]]$expires_at), 1060)
  expect_equal(run$pending[[1]]$prompt, "Really?")
  tick(61)
  expect_warrant_error(approve_tool_call(run, "approve", approver = "p"), "approval_expired")
  run <- resume_run(g$agent, run$run_id)
  expect_equal(outcomes(run), "approval_expired")
  expect_match(run$steps[[1]]$error, "nobody decided in time")
  expect_equal(g$write$n, 0L)
  sound(run)
  # Unasked as well: a resume finds it.
  g <- gated(ttl_s = 60)
  run <- run_agent(g$agent, 1)
  tick(61)
  expect_equal(outcomes(resume_run(g$agent, run)), "approval_expired")
})

test_that("what was approved is stale when the tool or the policy changed", {
  store <- memory_store()
  g <- gated(store = store)
  run <- approve_tool_call(run_agent(g$agent, 1), "approve", approver = "p")
  changed <- noting_tool("store", "write", max_calls = 5)
  b <- agent(list(changed$tool, noting_tool()$tool), script_planner(), policy = writes(), store = store)
  expect_equal(outcomes(resume_run(b, run)), "approval_stale")
  expect_equal(changed$calls$n, 0L)

  store <- memory_store()
  g <- gated(store = store)
  run <- approve_tool_call(run_agent(g$agent, 1), "approve", approver = "p")
  g$agent$policy <- writes(granted_scopes = "more")
  run <- resume_run(g$agent, run)
  expect_equal(outcomes(run), "approval_stale")
  expect_equal(g$write$n, 0L)
  sound(run)
})

test_that("a run whose state was edited is refused", {
  g <- gated()
  run <- run_agent(g$agent, 1)
  edited <- run
  edited$pending[[1]]$arguments$n <- 1L
  expect_warrant_error(approve_tool_call(edited, "approve", approver = "p"), "run_edited")
  expect_warrant_error(resume_run(g$agent, edited), "state")
  edited <- run
  edited$audit_head <- strrep("0", 64)
  expect_warrant_error(resume_run(g$agent, edited), "lacks_head")
  expect_equal(g$write$n, 0L)
})

test_that("decisions come in any order, over several resumes; free siblings run at once", {
  batch <- decide_act(list(
    decide_act("store", list(n = 1L)), decide_act("look", list(n = 2L)),
    decide_act("store", list(n = 3L))
  ))
  g <- gated(batch = batch)
  run <- run_agent(g$agent, 1)
  expect_equal(outcomes(run), c("approval_required", "executed", "approval_required"))
  expect_warrant_error(approve_tool_call(run, "approve", approver = "p"), "which_request")
  run <- approve_tool_call(run, "approve", call = 2, approver = "p")
  run <- resume_run(g$agent, run)
  expect_equal(outcomes(run), c("approval_required", "executed", "executed"))
  expect_equal(g$write$last, 3L)
  run <- resume_run(g$agent, approve_tool_call(run, "reject", approver = "q"))
  expect_equal(outcomes(run), c("approval_denied", "executed", "executed"))
  expect_equal(run$status, "completed")
  expect_equal(c(g$write$n, g$look$n), c(1L, 1L))
  sound(run)
})

test_that("two equal calls are two requests", {
  batch <- decide_act(list(decide_act("store", list(n = 1L)), decide_act("store", list(n = 1L))))
  g <- gated(batch = batch)
  run <- run_agent(g$agent, 1)
  expect_length(unique(vapply(run$pending, function(p) p$request, "")), 2L)
})

test_that("an approver answers at once", {
  asked <- list()
  answer_with <- function(answer) function(request) {
    asked[[length(asked) + 1]] <<- request
    answer
  }
  g <- gated(approver = answer_with("approve"))
  run <- run_agent(g$agent, 1)
  expect_equal(outcomes(run), "executed")
  expect_equal(asked[[1]]$arguments, list(n = 100L))
  expect_equal(outcomes(run_agent(gated(approver = answer_with("reject"))$agent, 1)), "approval_denied")
  expect_equal(run_agent(gated(approver = answer_with(NULL))$agent, 1)$status, "awaiting_approval")
  g <- gated(approver = answer_with(list(decision = "edit", arguments = list(n = 7))))
  run_agent(g$agent, 1)
  expect_equal(g$write$last, 7L)
  expect_warrant_error(run_agent(gated(approver = answer_with("maybe"))$agent, 1), "approval")
})

test_that("an approver that fails leaves the run to be resumed", {
  edit <- list(decision = "edit", arguments = list(n = "seven"))
  approvers <- list(
    approver_failed = function(request) stop("the line {is} dead"),
    approver_answer = function(request) NA, invalid_edit = function(request) edit
  )
  for (code in names(approvers)) {
    g <- gated(approver = approvers[[code]])
    e <- expect_warrant_error(run_agent(g$agent, 1), "approval")
    expect_s3_class(e, paste0("warrant_error_", code))
    expect_match(conditionMessage(e), e$run_id, fixed = TRUE)
    expect_equal(g$write$n, 0L)
    expect_equal(read_run(g$agent$store, e$run_id)$pending[[1]]$arguments, list(n = 100L))
    g$agent$approver <- function(request) "approve"
    expect_equal(outcomes(resume_run(g$agent, e$run_id)), "executed")
    expect_equal(g$write$n, 1L)
  }
})

test_that("approve_interactively reads y, n and edit, and refuses to guess", {
  request <- list(tool = "store", arguments = list(n = 1L), side_effects = "write", reason = "policy")
  typing <- function(...) {
    lines <- list(...)
    approve_interactively("me", ask = function(prompt) {
      line <- lines[[1]]
      lines <<- lines[-1]
      line
    })
  }
  quietly <- function(f) {
    capture.output(answer <- f(request))
    answer
  }
  expect_equal(quietly(typing("y"))$decision, "approve")
  expect_equal(quietly(typing("n", "no need"))$reason, "no need")
  expect_equal(quietly(typing("edit", '{"n": 2}'))$arguments, list(n = 2L))
  expect_null(quietly(typing("e", "not json")))
  expect_null(quietly(typing("")))
  expect_null(withr::with_options(list(rlang_interactive = FALSE), approve_interactively("me")(request)))
})

test_that("a detached decision that was edited by hand is refused", {
  g <- gated()
  run <- run_agent(g$agent, 1)
  good <- approval(run$pending[[1]]$request, TRUE, "p")
  edits <- list(
    list(approver = 3), list(approver = ""), list(decision = "yes"), list(decision = NULL),
    list(decision = "edit"), list(arguments = list(n = 1L)), list(request = toupper(good$request)),
    list(reason = 7)
  )
  for (edit in edits) {
    bad <- utils::modifyList(good, edit)
    expect_warrant_error(resume_run(g$agent, run, bad), "input")
  }
  expect_warrant_error(resume_run(g$agent, run, structure(3, class = "agent_approval")), "input")
  expect_equal(read_run(g$agent$store, run$run_id)$records, run$records)
  expect_equal(outcomes(resume_run(g$agent, run, good)), "executed")
})

test_that("a grant lets matching calls of exactly its tool go ahead, counted", {
  batch <- function(...) decide_act(lapply(c(...), function(n) decide_act("store", list(n = n))))
  small <- grant("store", list(n = list(type = "integer", maximum = 5)), count = 2)
  g <- gated(batch = batch(1, 9, 2, 3), policy = writes(grants = small))
  run <- run_agent(g$agent, 1)
  expect_equal(
    outcomes(run), c("executed", "approval_required", "executed", "approval_required")
  )
  sound(run)
  g <- gated(batch = batch(1), policy = writes(grants = grant("store", list())))
  expect_equal(run_agent(g$agent, 1)$status, "awaiting_approval")
  late <- grant("store", list(type = "object"), until = as.POSIXct(10, origin = "1970-01-01"))
  g <- gated(batch = batch(1), policy = writes(grants = late))
  expect_equal(run_agent(g$agent, 1)$status, "awaiting_approval")
  g <- gated(batch = batch(1), policy = writes(grants = grant("store", list(type = "object"), run = "r9")))
  expect_equal(run_agent(g$agent, 1, run_id = "r8")$status, "awaiting_approval")
  expect_warrant_error(
    agent(noting_tool()$tool, always(), policy = writes(grants = grant("stor", list()))), "unknown_tool"
  )
})

test_that("after a time-out of a tool that is not idempotent an equal call asks again", {
  slow <- agent_tool(function(n) if (n == 1L) repeat {} else n, "send", "Send.",
    parameters = list(n = list(type = "integer")), side_effects = "external", timeout_s = 0.05
  )
  ask <- function(n) decide_act("send", list(n = n))
  free <- agent_policy(allow_effects = "external", approve_effects = character())
  run <- run_agent(agent(slow, script_planner(ask(1L), ask(2L), ask(1L)), policy = free), 1)
  expect_equal(outcomes(run), c("timed_out", "executed", "approval_required"))
  expect_equal(run$pending[[1]]$reason, "unknown_effect")
  sound(run)
})

test_that("decisions are checked", {
  run <- run_agent(gated()$agent, 1)
  expect_warrant_error(approve_tool_call(run, "yes", approver = "p"), "input")
  expect_warrant_error(approve_tool_call(run, "approve"), "input")
  expect_warrant_error(approve_tool_call(run, "edit", approver = "p"), "input")
  expect_warrant_error(approve_tool_call(run, "approve", call = 2, approver = "p"), "which_request")
  expect_warrant_error(approval("abc", TRUE, "p"), "input")
  expect_warrant_error(resume_run(gated()$agent, run, approvals = TRUE), "input")
  expect_warrant_error(grant("store"), "input")
  expect_warrant_error(decide_act(list()), "input")
  expect_warrant_error(decide_act("a", 1:3), "input")
  expect_warrant_error(decide_finish(1, usage = list(token = 1)), "input")
})

test_that("an equal call of the same step asks too, when the first one ran out of time", {
  slow <- agent_tool(function(n) Sys.sleep(5), "send", "Sends.",
    parameters = list(n = list(type = "integer")), side_effects = "external", timeout_s = 0.05
  )
  twice <- decide_act(list(
    list(tool = "send", arguments = list(n = 1)), list(tool = "send", arguments = list(n = 1))
  ))
  run <- run_agent(agent(slow, script_planner(twice), policy = writes(approve_effects = character())), 1)
  expect_equal(run$status, "awaiting_approval")
  expect_equal(outcomes(run), c("timed_out", "approval_required"))
  expect_equal(run$pending[[1]]$reason, "unknown_effect")
  sound(run)
})
