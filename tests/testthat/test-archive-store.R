test_that("runs of an archive are the runs that were archived", {
  made <- study_archive_made()
  store <- archive_store(made$dir)
  expect_setequal(store$runs(), vapply(made$study$runs, `[[`, "", "run_id"))
  for (run in made$study$runs) {
    again <- read_run(store, run$run_id)
    fields <- setdiff(names(run), c("store", "used"))
    expect_identical(unclass(again)[fields], unclass(run)[fields])
    expect_identical(as_trajectory(again)$json, as_trajectory(run)$json)
    expect_equal(tool_log(again), tool_log(run))
    expect_equal(nrow(verify_audit(again, head = audit_head(run), content = store)), 0L)
  }
  expect_output(print(store), "archive")
})

test_that("what is not in an archive is NULL", {
  study <- study_runs()
  dir <- tempfile()
  archive_study(dir, study$runs[1], include_content = FALSE)
  run <- read_run(archive_store(dir), study$runs[[1]]$run_id)
  expect_equal(run$status, "completed")
  expect_null(run$goal)
  expect_equal(tool_log(run)$status, tool_log(study$runs[[1]])$status)
  expect_true(all(is.na(tool_log(run)$arguments)))
})

test_that("an archive is not written to, and a folder that is none is refused", {
  made <- study_archive_made()
  store <- archive_store(made$dir)
  waiting <- made$study$runs[[5]]$run_id
  expect_warrant_error(resume_run(made$study$agent, read_run(store, waiting)), "read_only")
  expect_equal(nrow(verify_archive(made$dir, made$archive$seal)), 0L)
  expect_warrant_error(archive_store(tempdir()), "input", argument = "dir")
  expect_warrant_error(store$read("nobody"), "no_such_run")
})
