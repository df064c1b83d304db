# Runs R code in a process of its own, with the agent below.
in_process <- function(code, ..., env = character()) {
  skip_if_not_installed("callr")
  callr::r(function(code, define, values) {
    library(warrant)
    env <- list2env(values, envir = new.env(parent = globalenv()))
    eval(parse(text = c(define, code)), env)
  }, list(code, agent_code, list(...)), libpath = .libPaths(), env = c(callr::rcmd_safe_env(), env))
}

# A file-backed agent that writes a line a call; `kill` dies in the middle of one.
agent_code <- '
  note <- function(n, out) cat(n, "\\n", sep = "", file = out, append = TRUE)
  writer <- function(idempotent, out, kill) agent_tool(
    function(n) {
      cat(n, "\\n", sep = "", file = out, append = TRUE)
      if (file.exists(kill)) { unlink(kill); tools::pskill(Sys.getpid(), tools::SIGKILL); Sys.sleep(9) }
      n
    }, "store", "Write.", parameters = list(n = list(type = "integer")),
    side_effects = "write", idempotent = idempotent, captures = character()
  )
  make <- function(dir, out, kill = "", idempotent = FALSE, approve = character(), audit = NULL) agent(
    writer(idempotent, out, kill),
    function(state, tools) {
      if (length(state$steps) == 2) decide_finish("done")
      else decide_act("store", list(n = length(state$steps) + 1L))
    },
    policy = agent_policy(allow_effects = "write", approve_effects = approve),
    store = file_store(dir), audit = if (!is.null(audit)) audit_jsonl(audit)
  )
'

local_dirs <- function(env = parent.frame()) {
  dir <- withr::local_tempdir(.local_envir = env)
  list(dir = file.path(dir, "runs"), out = file.path(dir, "out"), kill = file.path(dir, "kill"),
    audit = file.path(dir, "trail.jsonl"))
}

dies <- function(expr) expect_error(expr)

test_that("a run is approved in one process and resumed in another", {
  d <- local_dirs()
  id <- in_process('run_agent(make(dir, out, approve = "write"), 1)$run_id', dir = d$dir, out = d$out)
  expect_false(file.exists(d$out))
  run <- read_run(file_store(d$dir), id)
  expect_equal(run$status, "awaiting_approval")
  approve_tool_call(run, "approve", approver = "p")
  outcome <- in_process(
    'run <- resume_run(make(dir, out, approve = "write"), id); run$steps[[1]]$outcome',
    dir = d$dir, out = d$out, id = id
  )
  expect_equal(outcome, "executed")
  expect_equal(readLines(d$out), "1")
})

test_that("three processes resume one approved run at once, and the action runs once", {
  skip_if_not_installed("callr")
  d <- local_dirs()
  id <- in_process('run_agent(make(dir, out, approve = "write"), 1)$run_id', dir = d$dir, out = d$out)
  approve_tool_call(read_run(file_store(d$dir), id), "approve", approver = "p")
  resume <- function(dir, out, id, define) {
    library(warrant)
    eval(parse(text = define))
    tryCatch(resume_run(make(dir, out, approve = "write"), id)$status,
      warrant_error_already_running = function(e) "already_running"
    )
  }
  jobs <- lapply(1:3, function(i) {
    callr::r_bg(resume, list(d$dir, d$out, id, agent_code), libpath = .libPaths())
  })
  said <- vapply(jobs, function(job) {
    job$wait()
    job$get_result()
  }, "")
  expect_true(all(said %in% c("awaiting_approval", "already_running")))
  expect_equal(readLines(d$out), "1")
})

test_that("after a kill during a call, an idempotent call starts again and another does not", {
  for (idempotent in c(TRUE, FALSE)) {
    d <- local_dirs()
    file.create(d$kill)
    dies(in_process('run_agent(make(dir, out, kill, idem, audit = audit), 1, run_id = "r1")',
      dir = d$dir, out = d$out, kill = d$kill, idem = idempotent, audit = d$audit
    ))
    store <- file_store(d$dir)
    run <- read_run(store, "r1")
    expect_equal(run$status, "running")
    expect_equal(run$steps[[1]]$actions[[1]]$progress, "calling")
    expect_equal(run$used$tool_calls, 1)
    run <- in_process('resume_run(make(dir, out, kill, idem, audit = audit), "r1")',
      dir = d$dir, out = d$out, kill = d$kill, idem = idempotent, audit = d$audit
    )
    expect_equal(run$status, "completed")
    expect_equal(outcomes(run), c(if (idempotent) "executed" else "interrupted", "executed"))
    expect_equal(readLines(d$out), if (idempotent) c("1", "1", "2") else c("1", "2"))
    expect_equal(run$used$tool_calls, if (idempotent) 3 else 2)
    faults <- verify_audit(d$audit)
    expect_equal(nrow(faults), 0L)
  }
})

test_that("an idempotent call starts at most three times", {
  d <- local_dirs()
  code <- 'if (length(file_store(dir)$runs())) resume_run(make(dir, out, kill, TRUE), "r1") else
    run_agent(make(dir, out, kill, TRUE), 1, run_id = "r1")'
  for (i in 1:3) {
    file.create(d$kill)
    dies(in_process(code, dir = d$dir, out = d$out, kill = d$kill))
  }
  run <- in_process(code, dir = d$dir, out = d$out, kill = d$kill)
  expect_equal(outcomes(run), c("interrupted", "executed"))
  expect_equal(readLines(d$out), c("1", "1", "1", "2"))
})

test_that("a planner that ends the session leaves a run that can be resumed", {
  d <- local_dirs()
  dies(in_process('a <- make(dir, out); a$planner <- function(state, tools) quit("no", 3)
    run_agent(a, 1, run_id = "r1")', dir = d$dir, out = d$out))
  run <- in_process('resume_run(make(dir, out), "r1")', dir = d$dir, out = d$out)
  expect_equal(outcomes(run), c("executed", "executed"))
})

test_that("a run that is driven is not resumed by another", {
  store <- memory_store()
  inner <- NULL
  tool <- agent_tool(function(n) {
    inner <<- tryCatch(resume_run(a, "r1"), error = function(e) class(e))
    n
  }, "look", "A tool.", parameters = list(n = list(type = "integer")), captures = character())
  a <- agent(tool, script_planner(decide_act("look", list(n = 1L))), store = store)
  run_agent(a, 1, run_id = "r1")
  expect_true("warrant_error_already_running" %in% inner)
  expect_true("warrant_error_state" %in% inner)
})

test_that("a resume goes on with what was used, and with limits of its own", {
  write <- noting_tool("store", "write")
  ask <- function(state, tools) decide_act("store", list(n = length(state$steps) + 1L))
  a <- agent(write$tool, ask, policy = writes(), limits = agent_limits(tool_calls = 2, steps = 9))
  run <- run_agent(a, 1)
  for (i in 1:2) run <- resume_run(a, approve_tool_call(run, "approve", approver = "p"))
  expect_equal(run$status, "stopped")
  expect_equal(outcomes(run), c("executed", "executed", "limit_reached"))
  expect_equal(run$used$tool_calls, 2)
  sound(run)
  # A run that has ended is given back as it is.
  expect_equal(resume_run(a, run)$audit_head, run$audit_head)
})

test_that("a state whose trail lacks its head is refused, and a shorter trail is completed", {
  trail <- tempfile()
  write <- noting_tool("store", "write")
  a <- agent(write$tool, script_planner(decide_act("store", list(n = 1L))),
    policy = writes(), audit = audit_jsonl(trail)
  )
  run <- run_agent(a, 1)
  whole <- readLines(trail)
  writeLines(whole[1:3], trail)
  expect_warrant_error(resume_run(a, run), "state")
  run_id <- run$run_id
  run <- resume_run(a, run_id)
  expect_equal(nrow(verify_audit(trail)), 0L)
  unlink(trail)
  expect_warrant_error(resume_run(a, run), "state")
  expect_equal(write$calls$n, 0L)
})

test_that("an old copy is refused where the trail shows the run went on", {
  trail <- tempfile()
  write <- noting_tool("store", "write")
  a <- agent(write$tool, script_planner(decide_act("store", list(n = 1L))),
    policy = writes(), audit = audit_jsonl(trail)
  )
  run <- approve_tool_call(run_agent(a, 1), "approve", approver = "p")
  copy <- unserialize(serialize(run, NULL))
  resume_run(a, run)
  expect_warrant_error(resume_run(a, copy), "state")
  expect_equal(write$calls$n, 1L)
})

test_that("a journal that was changed, or is of another run, is an error", {
  d <- local_dirs()
  store <- file_store(d$dir)
  look <- noting_tool()$tool
  a <- agent(look, script_planner(decide_act("look", list(n = 1L))), store = store)
  run_agent(a, 1, run_id = "r1")
  path <- file.path(d$dir, "r1.jsonl")
  lines <- readLines(path)
  changed <- sub('"step":1', '"step":2', lines)
  writeLines(changed, path)
  expect_warrant_error(read_run(store, "r1"), "journal_broken")
  run_agent(a, 1, run_id = "r2")
  file.copy(file.path(d$dir, "r2.jsonl"), path, overwrite = TRUE)
  expect_warrant_error(read_run(store, "r1"), "other_run")
  expect_warrant_error(resume_run(a, "r1"), "other_run")
})

test_that("no file of a run holds a secret, and a resume needs it again", {
  d <- local_dirs()
  got <- character()
  send <- agent_tool(function(to, token) {
    got <<- c(got, token)
    "sent"
  }, "send", "Send.",
    parameters = list(to = list(type = "string"), token = list(type = "string", secret = TRUE)),
    side_effects = "external", captures = character()
  )
  withr::local_envvar(MY_TOKEN = "sk-by-reference-456")
  planner <- script_planner(
    decide_act("send", list(to = "a", token = "sk-literal-123")),
    decide_act("send", list(to = "b", token = secret_env("MY_TOKEN")))
  )
  make <- function(approver = NULL) agent(send, planner,
    policy = agent_policy(allow_effects = "external"), approver = approver,
    store = file_store(d$dir), audit = audit_jsonl(d$audit)
  )
  run <- run_agent(make(), 1)
  expect_equal(run$pending[[1]]$arguments$token, "<redacted>")
  run <- approve_tool_call(run, "approve", approver = "p")
  # Read anew, as another session would: the literal is gone.
  fresh <- read_run(file_store(d$dir), run$run_id)
  lost <- resume_run(make(function(request) "approve"), fresh)
  expect_equal(outcomes(lost), c("interrupted", "executed"))
  expect_equal(got, "sk-by-reference-456")
  run <- approve_tool_call(run_agent(make(), 1), "approve", approver = "p")
  run <- resume_run(make(function(request) TRUE), run, secrets = "sk-literal-123")
  expect_equal(outcomes(run), c("executed", "executed"))
  files <- list.files(dirname(d$dir), recursive = TRUE, full.names = TRUE)
  text <- unlist(lapply(files, readLines, warn = FALSE))
  expect_gt(length(text), 10L)
  expect_false(any(grepl("sk-literal-123|sk-by-reference-456", text)))
  expect_false(any(grepl("sk-literal-123", capture.output(print(run), str(run$steps)))))
})

test_that("each attempt of a call has the same key, and no other call", {
  keys <- character()
  tool <- agent_tool(function(n) keys <<- c(keys, call_key()), "look", "A tool.",
    parameters = list(n = list(type = "integer")), captures = character()
  )
  ask <- decide_act("look", list(n = 1L))
  run_agent(agent(tool, script_planner(ask, ask)), 1, run_id = "r1")
  expect_equal(keys[1:2], c("r1/1/0", "r1/2/0"))
  expect_null(call_key())
})

test_that("an interrupt leaves the run to be resumed", {
  store <- memory_store()
  look <- noting_tool()
  stops <- function(state, tools) {
    if (length(state$steps)) rlang::interrupt()
    decide_act("look", list(n = 1L))
  }
  said <- tryCatch(run_agent(agent(look$tool, stops, store = store), 1, run_id = "r1"),
    interrupt = function(cnd) "interrupted"
  )
  expect_equal(said, "interrupted")
  expect_equal(read_run(store, "r1")$status, "running")
  run <- resume_run(agent(look$tool, script_planner(), store = store), "r1")
  expect_equal(run$status, "completed")
  expect_equal(outcomes(run), "executed")
  sound(run)
})

test_that("a run lives in a database too", {
  skip_if_not_installed("RSQLite")
  con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
  on.exit(DBI::dbDisconnect(con))
  write <- noting_tool("store", "write")
  a <- agent(write$tool, script_planner(decide_act("store", list(n = 1L))),
    policy = writes(), store = dbi_store(con)
  )
  run <- run_agent(a, 1)
  run <- approve_tool_call(read_run(a$store, run$run_id), "approve", approver = "p")
  run <- resume_run(a, run)
  expect_equal(outcomes(run), "executed")
  expect_equal(read_run(a$store, run$run_id)$steps, run$steps)
  sound(run)
})

test_that("what a store or a trail raises names the function that was called", {
  named <- function(object, code) {
    e <- expect_warrant_error(object, code)
    expect_true(rlang::is_call(conditionCall(e)))
    as.character(conditionCall(e)[[1]])
  }
  dir <- withr::local_tempdir()
  store <- file_store(file.path(dir, "runs"))
  trail <- file.path(dir, "trail.jsonl")
  write <- noting_tool("store", "write")
  a <- agent(write$tool, always("store"), policy = writes(), store = store, audit = audit_jsonl(trail))
  expect_equal(named(read_run(store, "r1"), "no_such_run"), "read_run")
  expect_equal(named(resume_run(a, "r1"), "no_such_run"), "resume_run")
  run <- run_agent(a, 1)
  token <- store$lock(run$run_id)
  expect_equal(named(resume_run(a, run), "already_running"), "resume_run")
  expect_equal(named(approve_tool_call(run, "approve", approver = "p"), "already_running"), "approve_tool_call")
  store$unlock(token)
  writeLines(character(), trail)
  expect_equal(named(resume_run(a, run), "trail_lacks_head"), "resume_run")
})

test_that("a journal of another version is refused by a condition that names both", {
  data <- c(
    "{\"schema\":\"warrant_audit/v2\",\"what\":\"nobody knows yet\"}",
    sub("warrant_audit/v1", "warrant_audit/v2", read_audit(golden_trail())$data[[2]], fixed = TRUE)
  )
  for (text in data) {
    store <- memory_store()
    sealed <- warrant:::unwrap_core(warrant:::rs_seal_lines("r1", 0, "", "run_started", text, 1, 1))
    token <- store$lock("r1")
    store$append("r1", sealed$lines, "", sealed$head, c(key = strrep("2a", 32)), token)
    store$unlock(token)
    for (use in list(function() read_run(store, "r1"), function() resume_run(agent(list(), always(), store = store), "r1"))) {
      expect_warrant_error(use(), "unknown_schema", found = "warrant_audit/v2", expected = "warrant_audit/v1")
    }
    faults <- verify_audit(sealed$lines)
    expect_match(faults$what, "warrant_audit/v2.*warrant_audit/v1")
  }
})

test_that("a run whose content has no key is refused, not read wrongly", {
  run <- run_agent(agent(noting_tool()$tool, script_planner(answer = 1)), "go")
  lines <- run$store$read(run$run_id)
  store <- memory_store()
  token <- store$lock(run$run_id)
  store$append(run$run_id, lines, "", run$audit_head, NULL, token)
  store$unlock(token)
  expect_warrant_error(read_run(store, run$run_id), "key_missing")
  expect_s3_class(tryCatch(read_run(store, run$run_id), error = identity), "warrant_error_state")
})
