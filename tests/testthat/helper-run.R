# A tool that only counts, and notes what it was given.
noting_tool <- function(name = "look", effects = "read", ..., fn = NULL) {
  calls <- new.env()
  calls$n <- 0L
  body <- function(n) {
    calls$n <- calls$n + 1L
    calls$last <- n
    n * 10
  }
  if (is.null(fn)) fn <- body
  tool <- agent_tool(fn, name, "A tool.",
    parameters = list(n = list(type = "integer")), side_effects = effects, ...
  )
  list(tool = tool, calls = calls)
}

# A planner that makes these decisions in order, then finishes.
script_planner <- function(..., answer = "done") {
  decisions <- list(...)
  function(state, tools) {
    step <- length(state$steps) + 1L
    if (step <= length(decisions)) decisions[[step]] else decide_finish(answer)
  }
}

always <- function(tool = "look", usage = NULL) {
  force(tool)
  function(state, tools) decide_act(tool, list(n = length(state$steps) + 1L), usage)
}

writes <- function(...) agent_policy(allow_effects = c("none", "read", "write", "external"), ...)

outcomes <- function(run) unlist(lapply(run$steps, function(step) step$outcome))

sound <- function(run) {
  faults <- verify_audit(run)
  testthat::expect_equal(nrow(faults), 0L)
  testthat::expect_true(attr(faults, "state") %in% c("sound", "open"))
}

# Two connections to one database, as two machines have them.
two_stores <- function(lease_s = 60, env = parent.frame()) {
  skip_if_not_installed("RSQLite")
  path <- withr::local_tempfile(fileext = ".sqlite", .local_envir = env)
  lapply(1:2, function(i) {
    con <- DBI::dbConnect(RSQLite::SQLite(), path)
    withr::defer(DBI::dbDisconnect(con), envir = env)
    dbi_store(con, lease_s)
  })
}

# A run of three calls, kept in files; `in_tool` and `in_planner` are called in the
# middle of the second step.
counter_code <- '
  counter <- function(dir, in_tool = NULL, in_planner = NULL) {
    add <- agent_tool(function(n) {
      if (n == 2 && is.function(in_tool)) in_tool()
      n
    }, "add", "Count.", parameters = list(n = list(type = "integer")), side_effects = "none",
      captures = character())
    agent(add, function(state, tools) {
      done <- length(state$steps)
      if (done == 1 && is.function(in_planner)) in_planner()
      if (done == 3) decide_finish(done) else decide_act("add", list(n = done + 1L))
    }, store = file_store(dir))
  }
'
