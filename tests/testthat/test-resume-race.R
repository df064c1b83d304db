# Two processes meet before each run, and resume it at once. The tool waits until the
# other process says that it was told so, which it can only be while the call runs.
race <- function(dir, n, go) {
  library(warrant)
  file_of <- function(what, i) file.path(dir, paste0(what, "-", i))
  wait_for <- function(there) {
    from <- proc.time()[["elapsed"]]
    while (!there() && proc.time()[["elapsed"]] - from < 20) NULL
  }
  act <- agent_tool(function(i) {
    cat(i, "\n", sep = "", file = file.path(dir, "lines"), append = TRUE)
    wait_for(function() file.exists(file_of("told", i)))
  }, "act", "Acts once.",
    parameters = list(i = list(type = "integer")), side_effects = "write", captures = character()
  )
  planner <- function(state, tools) {
    if (length(state$steps)) decide_finish("done") else decide_act("act", list(i = state$goal))
  }
  a <- agent(act, planner,
    policy = agent_policy(allow_effects = "write"), store = file_store(file.path(dir, "runs"))
  )
  if (!go) {
    for (i in seq_len(n)) {
      run <- run_agent(a, i, run_id = paste0("r", i))
      approve_tool_call(run, "approve", approver = "p")
    }
    return(NULL)
  }
  vapply(seq_len(n), function(i) {
    file.create(file_of(paste0("here-", Sys.getpid()), i))
    wait_for(function() length(list.files(dir, paste0("^here-[0-9]+-", i, "$"))) == 2L)
    said <- tryCatch(resume_run(a, paste0("r", i))$status,
      warrant_error_already_running = function(e) "already_running"
    )
    file.create(file_of("told", i))
    said
  }, "")
}

test_that("of two processes that resume one run at once, 100 times over, one acts and one is told", {
  skip_on_cran()
  skip_if_not_installed("callr")
  dir <- withr::local_tempdir()
  n <- 100L
  race(dir, n, FALSE)
  jobs <- lapply(1:2, function(i) callr::r_bg(race, list(dir, n, TRUE), libpath = .libPaths()))
  said <- vapply(jobs, function(job) {
    job$wait()
    job$get_result()
  }, character(n))
  expect_equal(readLines(file.path(dir, "lines")), as.character(seq_len(n)))
  expect_true(all(apply(said, 1, setequal, c("completed", "already_running"))))
  faults <- verify_audit(file_store(file.path(dir, "runs")))
  expect_equal(attr(faults, "state"), "sound")
})
