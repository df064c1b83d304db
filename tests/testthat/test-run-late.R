# An agent whose tool, the first time it is called, runs `meanwhile`: there its machine
# is suspended, and another one takes the run over.
late_agent <- function(store, meanwhile, effects = "write", ..., planner = asks_later()) {
  calls <- new.env()
  calls$n <- 0L
  tool <- agent_tool(function(n) {
    calls$n <- calls$n + 1L
    calls$last <- n
    if (calls$n == 1L) meanwhile()
    n * 10
  }, "act", "A tool.", parameters = list(n = list(type = "integer")), side_effects = effects)
  gated <- agent_tool(function() "sent", "send", "Asks first.", side_effects = "external")
  agent(list(tool, gated), planner, policy = writes(approve_effects = "external"), store = store, ...)
}

asks_later <- function() script_planner(decide_act("act", list(n = 1)), decide_act("send", list()))

late_run <- function(store, meanwhile, ...) {
  expect_warrant_error(
    run_agent(late_agent(store, meanwhile, ...), "go", run_id = "r1"), "late_result",
    run_id = "r1", tool = "act", step = 1, action = 1, attempt = 1, message = "another owner"
  )
}

events_of <- function(run) read_audit(run)$event

test_that("a call that ends after another owner gave it up is kept as late, once", {
  wait <- local_clock(1000)
  stores <- two_stores()
  trail <- withr::local_tempfile(fileext = ".jsonl")
  error <- late_run(stores[[1]], audit = audit_jsonl(trail), function() {
    wait(1000)
    other <- late_agent(stores[[2]], function() NULL, audit = audit_jsonl(trail))
    run <- resume_run(other, "r1")
    expect_equal(run$status, "awaiting_approval")
  })
  expect_s3_class(error, "warrant_error_state")
  expect_equal(error$call[[1]], quote(run_agent))
  expect_equal(error[c("outcome", "result", "kept")], list(outcome = "executed", result = 10, kept = "late"))
  run <- read_run(stores[[2]], "r1")
  expect_equal(outcomes(run), c("interrupted", "approval_required"))
  expect_equal(tail(events_of(run), 2), c("paused", "late_result"))
  log <- tool_log(run)
  expect_equal(log$status, c("interrupted", "approval_required"))
  expect_equal(log$late, list("attempt 1, executed: 10", character()))
  sound(run)
  expect_equal(nrow(verify_audit(trail, content = stores[[2]])), 0L)
  expect_equal(sum(read_audit(trail)$event == "late_result"), 1L)
  run <- approve_tool_call(run, "approve", approver = "p")
  run <- resume_run(late_agent(stores[[2]], function() NULL, audit = audit_jsonl(trail)), run)
  expect_equal(run$status, "completed")
  expect_equal(outcomes(run)[[1]], "interrupted")
  expect_equal(sum(events_of(run) == "late_result"), 1L)
  expect_equal(nrow(verify_audit(trail, content = stores[[2]])), 0L)
})

test_that("what ends late while another owner drives is recorded by that one", {
  wait <- local_clock(1000)
  stores <- two_stores()
  held <- NULL
  error <- late_run(stores[[1]], effects = "read", function() {
    wait(1000)
    # An idempotent call starts again: the other owner has an end of its own.
    resume_run(late_agent(stores[[2]], function() NULL, effects = "read"), "r1")
    held <<- stores[[2]]$lock("r1")
  })
  expect_equal(error$kept, "content")
  before <- read_run(stores[[2]], "r1")
  expect_false("late_result" %in% events_of(before))
  expect_equal(tool_log(before)$late[[1]], "attempt 1, executed: 10")
  stores[[2]]$unlock(held)
  run <- approve_tool_call(before, "approve", approver = "p")
  run <- resume_run(late_agent(stores[[2]], function() NULL, effects = "read"), run)
  expect_equal(run$status, "completed")
  expect_equal(outcomes(run)[[1]], "executed")
  expect_equal(sum(events_of(run) == "late_result"), 1L)
  expect_equal(tool_log(run)$late[[1]], "attempt 1, executed: 10")
  expect_equal(nrow(verify_audit(run, content = stores[[2]])), 0L)
})

test_that("what ends after the run has ended is kept beside its journal", {
  wait <- local_clock(1000)
  stores <- two_stores()
  ends <- script_planner(decide_act("act", list(n = 1)))
  error <- late_run(stores[[1]], planner = ends, function() {
    wait(1000)
    resume_run(late_agent(stores[[2]], function() NULL, planner = ends), "r1")
  })
  expect_equal(error$kept, "content")
  run <- read_run(stores[[1]], "r1")
  expect_equal(run$status, "completed")
  expect_equal(tail(events_of(run), 1), "finished")
  expect_equal(tool_log(run)$late, list("attempt 1, executed: 10"))
  expect_equal(nrow(verify_audit(run, content = stores[[1]])), 0L)
})

test_that("an owner that only looked in does not make a result late", {
  wait <- local_clock(1000)
  stores <- two_stores()
  error <- late_run(stores[[1]], function() {
    wait(1000)
    stores[[2]]$unlock(stores[[2]]$lock("r1"))
  })
  expect_equal(error$kept, "finished")
  run <- resume_run(late_agent(stores[[2]], function() NULL), "r1")
  expect_equal(outcomes(run), c("executed", "approval_required"))
  expect_equal(run$steps[[1]]$result, 10)
  sound(run)
})

test_that("where the store takes nothing, the condition holds the result", {
  wait <- local_clock(1000)
  stores <- two_stores()
  error <- late_run(stores[[1]], function() {
    wait(1000)
    DBI::dbExecute(environment(stores[[2]]$append)$con, "DROP TABLE warrant_content")
    stores[[2]]$lock("r1")
  })
  expect_equal(error[c("kept", "result")], list(kept = "nowhere", result = 10))
})

test_that("a driver that lost its run without a call under way is told so", {
  wait <- local_clock(1000)
  stores <- two_stores()
  planner <- function(state, tools) {
    wait(1000)
    stores[[2]]$lock("r1")
    decide_finish("late")
  }
  a <- late_agent(stores[[1]], function() NULL, planner = planner)
  error <- expect_warrant_error(run_agent(a, "go", run_id = "r1"), "not_owner", run_id = "r1")
  expect_equal(error$call[[1]], quote(run_agent))
})
