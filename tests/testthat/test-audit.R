test_that("a sink writes records as they are, with links around runs", {
  path <- withr::local_tempfile(fileext = ".jsonl")
  sink <- audit_jsonl(path)
  lines <- golden_trail()[2:9]
  expect_false(file.exists(path))
  expect_false(sink$has_run("0123456789abcdef0123456789abcdef"))
  for (line in lines) sink$append(line)
  expect_equal(readLines(path)[2:9], lines)
  expect_equal(read_audit(path)$event[c(1, 10)], c("link", "link"))
  expect_equal(trail_state(path), "sound")
  expect_true(sink$has_run("0123456789abcdef0123456789abcdef"))
  sink$append(golden_trail()[11:17])
  expect_equal(nrow(read_audit(path)), 18)
  expect_equal(trail_state(path), "sound")
  expect_output(print(sink), "audit_sink")
})

test_that("a torn last line is set aside and stated, wherever it was cut", {
  lines <- golden_trail()
  whole <- charToRaw(paste0(paste(lines[1:3], collapse = "\n"), "\n"))
  torn <- charToRaw(lines[4])
  path <- withr::local_tempfile(fileext = ".jsonl")
  for (n in unique(c(1:12, seq(13, length(torn), by = 17), length(torn)))) {
    unlink(Sys.glob(paste0(path, "*")))
    write_bytes(c(whole, torn[seq_len(n)]), path)
    expect_equal(trail_state(path), "cut")
    audit_jsonl(path)$append(lines[4:9])
    report <- verify_audit(path)
    expect_equal(nrow(report), 0)
    expect_equal(attr(report, "state"), "sound")
    expect_equal(attr(report, "counts")[["recoveries"]], 1)
    expect_equal(readBin(paste0(path, ".torn-1"), "raw", 1e5), torn[seq_len(n)])
  }
  # In the middle of a character.
  cat("{\"x\":\"\xc3", file = path, append = TRUE)
  audit_jsonl(path)$append(golden_trail()[11:17])
  expect_equal(trail_state(path), "sound")
  expect_true(file.exists(paste0(path, ".torn-2")))
})

test_that("eight processes share a file without losing or faulting a record", {
  skip_on_cran()
  skip_if_not_installed("callr")
  path <- withr::local_tempfile(fileext = ".jsonl")
  work <- function(path, id) {
    sink <- warrant::audit_jsonl(path)
    for (i in 0:199) {
      sealed <- warrant:::rs_seal_lines(
        id, as.numeric(i), if (i) head else "", "plan_started", sprintf("{\"step\":%d}", i + 1), 1, as.numeric(i)
      )
      head <- sealed$head
      sink$append(sealed$lines)
    }
  }
  jobs <- lapply(1:8, function(i) callr::r_bg(work, list(path, sprintf("run-%d", i))))
  for (job in jobs) {
    job$wait(120000)
    job$get_result()
  }
  report <- verify_audit(path)
  # The records are no history of a run, and only that is said of them.
  expect_equal(report$kind, rep("meaning", 8))
  records <- read_audit(path)
  expect_equal(sum(records$event == "plan_started"), 1600)
  expect_equal(as.vector(table(records$run[records$event == "plan_started"])), rep(200L, 8))
})

test_that("a trail that is a prefix is completed, and any other difference refused", {
  run <- "0123456789abcdef0123456789abcdef"
  lines <- golden_trail()[2:9]
  digests <- read_audit(golden_trail())$digest[2:9]
  path <- withr::local_tempfile(fileext = ".jsonl")
  sink <- audit_jsonl(path)
  sink$append(lines[1:4])
  expect_equal(sink$complete(run, lines[1:6]), 2)
  expect_equal(sink$complete(run, lines[1:6], digests[6]), 0)
  expect_warrant_error(sink$complete(run, lines[1:5]), "trail_ahead", run_id = run)
  expect_warrant_error(sink$complete(run, lines[1:5]), "state")
  expect_warrant_error(sink$complete(run, lines, digests[8]), "trail_lacks_head")
  other <- sub("\"step\":1", "\"step\":2", lines, fixed = TRUE)
  expect_warrant_error(sink$complete(run, other), "trail_differs")
  expect_equal(readLines(path)[2:7], lines[1:6])
  sink$complete(run, lines)
  expect_equal(trail_state(path), "sound")
})

test_that("what cannot be written is an error, and leaves the file as it was", {
  line <- golden_trail()[2]
  expect_warrant_error(audit_jsonl(tempdir()), "audit_path")
  expect_warrant_error(audit_jsonl(""), "input")
  expect_warrant_error(audit_jsonl("x", fsync = NA), "input")
  file <- withr::local_tempfile(lines = "x")
  expect_warrant_error(audit_jsonl(file.path(file, "below"))$append(line), "audit")
  path <- withr::local_tempfile()
  expect_warrant_error(audit_jsonl(path)$append("{\"half\":"), "audit_line")
  skip_if_not(file.exists("/dev/full"))
  expect_warrant_error(audit_jsonl("/dev/full")$append(line), "audit_write", message = "space")
})

test_that("a file that reaches its size limit keeps whole lines", {
  skip_on_cran()
  skip_on_os(c("windows", "mac"))
  path <- withr::local_tempfile(fileext = ".jsonl")
  # The shell ignores the signal, so that the write fails as on a full disk.
  code <- withr::local_tempfile(fileext = ".R", lines = c(
    sprintf("sink <- warrant::audit_jsonl('%s')", path),
    sprintf("lines <- readLines('%s')[11:17]", normalizePath(golden_path("trail-v1.jsonl"))),
    "for (line in lines) sink$append(line)"
  ))
  script <- sprintf("trap '' XFSZ; ulimit -f 2; '%s' '%s' 2>&1", file.path(R.home("bin"), "Rscript"), code)
  libs <- paste(.libPaths(), collapse = .Platform$path.sep)
  out <- withr::with_envvar(c(R_LIBS = libs), suppressWarnings(
    system2("bash", c("-c", shQuote(script)), stdout = TRUE)
  ))
  expect_match(paste(out, collapse = " "), "large|cannot write", ignore.case = TRUE)
  report <- verify_audit(path)
  expect_equal(nrow(report), 0)
  expect_equal(attr(report, "state"), "open")
  expect_lte(file.size(path), 2048)
})

test_that("trails do not depend on the locale", {
  skip_on_cran()
  path <- withr::local_tempfile(fileext = ".jsonl")
  withr::with_locale(c(LC_CTYPE = "C", LC_COLLATE = "C"), {
    audit_jsonl(path)$append(golden_trail()[2:9])
    expect_equal(trail_state(path), "sound")
    expect_equal(readLines(path)[2:9], golden_trail()[2:9])
  })
})
