# A run is killed (SIGKILL) at each of its write points: before, within and after
# each append to the store and to the trail, before, in and after the tool. Each
# time it is resumed, and nothing that was acknowledged may be lost, no effect of a
# tool that is not idempotent may come twice, and every trail must verify.

# Kills this process when the nth point is reached.
new_killer <- function(at) {
  reached <- 0L
  function(before = NULL) {
    reached <<- reached + 1L
    if (reached == at) {
      if (!is.null(before)) before()
      tools::pskill(Sys.getpid(), tools::SIGKILL)
      Sys.sleep(60)
    }
  }
}

# Writes the first half of what an append was to write, as a crash leaves it.
tear <- function(path, lines) {
  text <- charToRaw(paste0(paste(lines, collapse = "\n"), "\n"))
  con <- file(path, "ab")
  writeBin(text[seq_len(length(text) %/% 2L)], con)
  close(con)
}

killing_store <- function(dir, kill, acknowledged) {
  store <- file_store(dir)
  append <- store$append
  store$append <- function(run_id, lines, expect_head, head, content = NULL, token = NULL, sync = FALSE) {
    kill()
    kill(function() {
      # Content is kept before any line is written.
      append(run_id, character(), expect_head, expect_head, content, token, sync)
      tear(file.path(dir, paste0(run_id, ".jsonl")), lines)
    })
    append(run_id, lines, expect_head, head, content, token, sync)
    cat(lines, file = acknowledged, sep = "\n", append = TRUE)
    kill()
  }
  store
}

killing_sink <- function(path, kill) {
  sink <- audit_jsonl(path)
  append <- sink$append
  sink$append <- function(lines) {
    kill()
    kill(function() tear(path, lines))
    append(lines)
    kill()
  }
  sink
}

crash_agent <- function(store, audit, effects, idempotent, kill = function(...) NULL) {
  note <- agent_tool(
    function(text) {
      kill()
      cat(text, "\n", file = effects, sep = "", append = TRUE)
      kill()
      nchar(text)
    }, "note", "Keeps a note.", list(text = list(type = "string")),
    side_effects = "write", idempotent = idempotent
  )
  planner <- function(state, tools) {
    if (length(state$steps)) return(decide_finish("done"))
    decide_act(list(
      list(tool = "note", arguments = list(text = "note 1")),
      list(tool = "note", arguments = list(text = "note 2"))
    ))
  }
  agent(note, planner,
    policy = agent_policy(allow_effects = c("none", "read", "write"), approve_effects = character()),
    store = store, audit = audit
  )
}

# Runs in a forked child that may be killed; says whether it was.
killed_at <- function(at, dir, idempotent, with_audit) {
  path <- function(name) file.path(dir, name)
  job <- parallel::mcparallel({
    kill <- new_killer(at)
    store <- killing_store(path("runs"), kill, path("acknowledged"))
    audit <- if (with_audit) killing_sink(path("trail.jsonl"), kill)
    run_agent(crash_agent(store, audit, path("effects"), idempotent, kill), "go", run_id = "r1")$status
  })
  ended <- suppressWarnings(parallel::mccollect(job))
  is.null(ended[[1]])
}

lines_of <- function(path) if (file.exists(path)) readLines(path) else character()

# What is wrong after a crash at this point and a resume, and whether there was one.
# Plain comparisons, since there are a hundred points and more.
after_crash <- function(at, idempotent, with_audit) {
  dir <- tempfile("crash")
  dir.create(dir)
  on.exit(unlink(dir, recursive = TRUE))
  path <- function(name) file.path(dir, name)
  wrong <- character()
  holds <- function(ok, what) if (!isTRUE(ok)) wrong <<- c(wrong, sprintf("at %d: %s", at, what))
  was_killed <- killed_at(at, dir, idempotent, with_audit)

  store <- file_store(path("runs"))
  kept <- tryCatch(store$read("r1"), warrant_error_no_such_run = function(e) character())
  acknowledged <- lines_of(path("acknowledged"))
  holds(identical(kept[seq_along(acknowledged)], acknowledged), "an acknowledged record is lost")
  holds(!length(kept) || nrow(verify_audit(kept)) == 0, "the journal does not verify")

  audit <- if (with_audit) audit_jsonl(path("trail.jsonl"))
  agent <- crash_agent(store, audit, path("effects"), idempotent)
  if (length(kept)) {
    # What was under way is there to be looked at.
    run <- read_run(store, "r1")
    holds(run$status %in% c("running", "completed"), paste("status", run$status))
    if (run$status == "running") run <- resume_run(agent, "r1")
  } else {
    code <- tryCatch(resume_run(agent, "r1"), warrant_error_no_such_run = function(e) "none")
    holds(identical(code, "none"), "a run without a record was resumed")
    run <- run_agent(agent, "go", run_id = "r1")
  }
  holds(run$status == "completed", paste("ended as", run$status))
  effects <- lines_of(path("effects"))
  outcomes <- vapply(run$steps[[1]]$actions, function(action) action$outcome, "")
  if (idempotent) {
    holds(all(outcomes == "executed"), paste(outcomes, collapse = ", "))
    holds(setequal(effects, c("note 1", "note 2")), "an effect is missing")
  } else {
    # At most once; and where it may have run and nobody knows, it says so.
    holds(!anyDuplicated(effects), "an effect came twice")
    holds(all(outcomes %in% c("executed", "interrupted")), paste(outcomes, collapse = ", "))
    holds(sum(outcomes == "interrupted") <= 1, "two calls are interrupted")
    missing <- !c("note 1", "note 2") %in% effects
    holds(all(outcomes[missing] == "interrupted"), "a call that did not run is said to have run")
  }
  holds(trail_state(store) == "sound", "the store's journal is not sound")
  if (with_audit) {
    # Of a run that had ended the trail may lack the last records.
    audit$complete("r1", store$read("r1"))
    report <- verify_audit(path("trail.jsonl"))
    holds(nrow(report) == 0 && attr(report, "state") == "sound", "the trail is not sound")
    trail <- read_audit(path("trail.jsonl"))
    holds(identical(trail$digest[trail$run == "r1"], read_audit(store)$digest), "trail and store differ")
  }
  list(was_killed = was_killed, wrong = wrong)
}

test_that("a run that is killed anywhere goes on without loss or repetition", {
  skip_on_cran()
  skip_on_os("windows")
  for (idempotent in c(TRUE, FALSE)) {
    for (with_audit in c(FALSE, TRUE)) {
      at <- 0L
      repeat {
        at <- at + 1L
        found <- after_crash(at, idempotent, with_audit)
        if (length(found$wrong) || !found$was_killed) break
      }
      expect_equal(found$wrong, character())
      # Every append has three points, each call two.
      expect_gt(at, if (with_audit) 30 else 15)
    }
  }
})

test_that("a disk that is full ends the run before the effect", {
  skip_on_cran()
  skip_on_os("windows")
  skip_if_not(file.exists("/dev/full"))
  dir <- withr::local_tempdir()
  effects <- file.path(dir, "effects")
  # The trail is full from the first record on.
  agent <- crash_agent(file_store(file.path(dir, "runs")), audit_jsonl("/dev/full"), effects, FALSE)
  expect_warrant_error(run_agent(agent, "go", run_id = "r1"), "audit_write")
  expect_false(file.exists(effects))
  # The store is full when the call is to be recorded.
  store <- file_store(file.path(dir, "runs"))
  append <- store$append
  store$append <- function(run_id, lines, expect_head, head, content = NULL, token = NULL, sync = FALSE) {
    journal <- file.path(dir, "runs", paste0(run_id, ".jsonl"))
    if (any(grepl("\"event\":\"call_started\"", lines, fixed = TRUE))) {
      file.rename(journal, paste0(journal, ".aside"))
      file.symlink("/dev/full", journal)
      on.exit({
        unlink(journal)
        file.rename(paste0(journal, ".aside"), journal)
      })
      expect_head <- ""
    }
    append(run_id, lines, expect_head, head, content, token, sync)
  }
  agent <- crash_agent(store, NULL, effects, FALSE)
  expect_warrant_error(run_agent(agent, "go", run_id = "r2"), "store_write", message = "space")
  expect_false(file.exists(effects))
  # With room again it goes on.
  run <- resume_run(crash_agent(file_store(file.path(dir, "runs")), NULL, effects, FALSE), "r2")
  expect_equal(run$status, "completed")
  expect_equal(lines_of(effects), c("note 1", "note 2"))
})

test_that("a directory that cannot be written ends the run before the effect", {
  skip_on_cran()
  dir <- withr::local_tempdir()
  effects <- file.path(dir, "effects")
  store <- file_store(file.path(dir, "runs"))
  unlink(file.path(dir, "runs"), recursive = TRUE)
  file.create(file.path(dir, "runs"))
  agent <- crash_agent(store, NULL, effects, FALSE)
  expect_warrant_error(run_agent(agent, "go"), "store")
  expect_false(file.exists(effects))
})
