test_that("a run that is interrupted is left to be resumed, whatever it was at", {
  skip_on_os("windows")
  skip_if_not_installed("callr")
  for (at in c("tool", "planner")) {
    dir <- withr::local_tempdir()
    ready <- file.path(dir, "ready")
    child <- callr::r_bg(function(dir, ready, at, define) {
      library(warrant)
      eval(parse(text = define))
      wait <- function() {
        file.create(ready)
        Sys.sleep(30)
      }
      run <- tryCatch(
        run_agent(counter(dir, if (at == "tool") wait else NULL, if (at == "planner") wait else NULL), 1, "r1"),
        interrupt = function(i) "interrupted"
      )
      # The session goes on and is not told that somebody drives the run.
      list(run = run, status = read_run(file_store(dir), "r1")$status)
    }, list(dir, ready, at, counter_code), libpath = .libPaths())
    for (i in 1:300) {
      if (file.exists(ready)) break
      Sys.sleep(0.05)
    }
    expect_true(file.exists(ready))
    Sys.sleep(0.2)
    child$interrupt()
    child$wait(10000)
    seen <- child$get_result()
    expect_equal(seen$run, "interrupted")
    expect_equal(seen$status, "running")

    eval(parse(text = counter_code))
    run <- resume_run(counter(dir), "r1")
    expect_equal(run$status, "completed")
    expect_equal(run$answer, 3)
    expect_equal(nrow(verify_audit(run, content = run$store)), 0L)
  }
})
