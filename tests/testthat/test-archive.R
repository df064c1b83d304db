test_that("an archive of every kind of run is sound, and sha256sum agrees", {
  made <- study_archive_made()
  report <- verify_archive(made$dir, made$archive$seal)
  expect_equal(nrow(report), 0L)
  expect_equal(attr(report, "state"), "sound")
  expect_null(attr(report, "not_checked"))
  skip_if(!nzchar(Sys.which("sha256sum")), "sha256sum is not there")
  out <- withr::with_dir(made$dir, system2("sha256sum", c("-c", "--strict", "hashes.sha256"), stdout = TRUE))
  expect_length(out, made$archive$files - 1L)
  expect_true(all(endsWith(out, ": OK")))
})

test_that("the parts say what the runs say", {
  made <- study_archive_made()
  runs <- made$study$runs
  table <- function(name) utils::read.csv(file.path(made$dir, "tables", paste0(name, ".csv")), encoding = "UTF-8")
  rows <- table("runs")
  ids <- vapply(runs, `[[`, "", "run_id")
  at <- match(ids, rows$run_id)
  expect_equal(rows$status[at], vapply(runs, `[[`, "", "status"))
  expect_equal(rows$head[at], vapply(runs, `[[`, "", "audit_head"))
  expect_equal(rows$steps[at], vapply(runs, function(run) run$used$steps, 0))
  expect_equal(rows$models_served[at], c("served-1", "served-1", "", "", ""))
  calls <- table("tool_calls")
  logs <- lapply(runs[order(ids, method = "radix")], tool_log)
  expect_equal(calls$status, unlist(lapply(logs, `[[`, "status")))
  expect_equal(calls$arguments, unlist(lapply(logs, `[[`, "arguments")))
  expect_equal(nrow(table("approvals")), 5L)
  expect_setequal(table("approvals")$approver, c("Ann \u00c9", ""))
  expect_equal(table("metrics")$estimate, metrics(example_evaluation())$estimate)
  lines <- readLines(file.path(made$dir, "trajectories.jsonl"), encoding = "UTF-8")
  expect_true(sprintf("{\"case_id\":\"%s\",\"trajectory\":%s}", ids[[1]], as_trajectory(runs[[1]])$json) %in% lines)
  expect_s3_class(read_trajectories(file.path(made$dir, "trajectories.jsonl")), "agent_runs")
  expect_identical(hash_manifest(read_manifest(file.path(made$dir, "manifest.json"))), hash_manifest(made$manifest))
})

test_that("journals verify by themselves against their heads", {
  made <- study_archive_made()
  for (run in made$study$runs) {
    journal <- file.path(made$dir, "journals", paste0(run$run_id, ".jsonl"))
    expect_equal(nrow(verify_audit(journal, head = audit_head(run))), 0L)
    expect_identical(readLines(journal, encoding = "UTF-8"), run$store$read(run$run_id))
  }
})

test_that("no formula starts a cell, and every row is one line", {
  made <- study_archive_made()
  lines <- readLines(file.path(made$dir, "tables", "tool_calls.csv"), encoding = "UTF-8")
  calls <- utils::read.csv(text = lines, encoding = "UTF-8")
  expect_equal(nrow(calls), length(lines) - 1L)
  expect_true("'=cmd|' /C calc'!A0\\n" %in% calls$tool)
  cells <- unlist(lapply(list.files(file.path(made$dir, "tables"), full.names = TRUE), function(file) {
    unlist(utils::read.csv(file, colClasses = "character", encoding = "UTF-8"))
  }))
  expect_false(any(grepl("^[=+@\t\r]", cells)))
})

test_that("without content no value is in any file, and the chains still verify", {
  study <- study_runs()
  dir <- tempfile()
  archive_study(dir, study$runs, study_manifest(agent = study$agent), include_content = FALSE)
  for (text in c("2468", "8642", "86420", "4711", "7531", "1357", "5309", "6172", "ann@example.org")) {
    expect_false(tells(dir, text), info = text)
    expect_true(text == "86420" || tells(study_archive_made()$dir, text), info = text)
  }
  expect_false(dir.exists(file.path(dir, "content")))
  report <- verify_archive(dir)
  expect_equal(nrow(report), 0L)
  expect_match(attr(report, "not_checked"), "values of 5 runs")
  # Addresses are no digests of the values: neither plain nor under any key that is there.
  journal <- readLines(file.path(dir, "journals", paste0(study$runs[[1]]$run_id, ".jsonl")))
  guess <- hash_content(list(n = 8642))
  expect_false(any(grepl(guess, archive_text(dir), fixed = TRUE)))
  hex <- unique(unlist(regmatches(archive_text(dir), gregexpr("[0-9a-f]{64}", archive_text(dir)))))
  made <- vapply(hex, function(key) warrant:::rs_content_addresses(key, "{\"n\":8642}"), "")
  expect_false(any(made %in% hex))
})

test_that("ids made from the content of cases are numbers in an archive without content", {
  cases <- suite(data.frame(input = c("2468", "1357")), list(criterion_max_steps(3)))
  desk <- agent(list(), function(state, tools) decide_finish("ok"))
  runs <- run_suite(cases, desk)
  evaluation <- evaluate(cases, runs)
  dir <- tempfile()
  archive_study(dir, runs, evaluation = evaluation, include_content = FALSE)
  expect_false(any(grepl("case_[0-9a-f]{12}", archive_text(dir))))
  rows <- utils::read.csv(file.path(dir, "tables", "verdicts.csv"))
  expect_equal(rows$case_id, c("case-1", "case-2"))
  expect_equal(nrow(verify_archive(dir)), 0L)
})

test_that("names that are left out are nowhere, nor is what stood under them", {
  study <- study_runs()
  dir <- tempfile()
  archive_study(dir, study$runs, redact = c("email", "pin"))
  expect_false(any(grepl("ann@example.org", archive_text(dir), fixed = TRUE)))
  expect_false(tells(dir, "4711"))
  expect_true(tells(dir, "2468"))
  heads <- utils::read.csv(file.path(dir, "heads.csv"))
  at <- match(vapply(study$runs, `[[`, "", "run_id"), heads$run_id)
  expect_equal(heads$content[at], c("partial", "partial", "partial", "whole", "whole"))
  # Of a run of which something was left out there is no key to try guesses with.
  content <- readLines(file.path(dir, "content", paste0(study$runs[[1]]$run_id, ".content")))
  expect_false(any(startsWith(content, "key ")))
  report <- verify_archive(dir)
  expect_equal(nrow(report), 0L)
  expect_match(attr(report, "not_checked"), "addresses of 3 runs")
})

test_that("a function chooses what is shown", {
  study <- study_runs()
  dir <- tempfile()
  seen <- list()
  archive_study(dir, study$runs[1], redact = function(value, where) {
    seen[[length(seen) + 1L]] <<- where
    if (where$kind == "goal") "a goal" else if (where$kind == "result") NULL else value
  })
  kinds <- vapply(seen, `[[`, "", "kind")
  expect_setequal(unique(kinds), c("goal", "arguments", "result", "answer", "text", "note", "notes"))
  expect_setequal(unique(vapply(seen[kinds == "result"], `[[`, "", "tool")), c("look", "put"))
  rows <- utils::read.csv(file.path(dir, "tables", "runs.csv"))
  expect_equal(rows$goal, "\"a goal\"")
  expect_false(tells(dir, "2468"))
  expect_false(tells(dir, "86420"))
  expect_true(tells(dir, "8642"))
  expect_equal(nrow(verify_archive(dir)), 0L)
})

test_that("records stay valid, whatever a function puts in place of a value", {
  study <- study_runs()
  for (other in list(list(a = 1), NULL, 1:3, "text")) {
    dir <- tempfile()
    archive_study(dir, study$runs, redact = function(value, where) other)
    expect_equal(nrow(verify_archive(dir)), 0L)
    lines <- readLines(file.path(dir, "trajectories.jsonl"), encoding = "UTF-8")
    for (line in lines) {
      record <- sub("^[{]\"case_id\":\"[^\"]*\",\"trajectory\":(.*)[}]$", "\\1", line)
      expect_s3_class(warrant:::as_record(record), "agent_trajectory")
    }
  }
})

test_that("no secret, absolute path, host or user name is in an archive", {
  withr::local_envvar(AN_ARCHIVE_KEY = "sk-live-987654")
  leaky <- agent_tool(function(key, pin) paste("used", key), "use", "Uses a key.",
    parameters = list(key = list(type = "string", secret = TRUE), pin = list(type = "string", secret = TRUE)),
    side_effects = "none"
  )
  csv <- tempfile(fileext = ".csv")
  writeLines("a", csv)
  desk <- agent(leaky, script_planner(decide_act("use", list(key = secret_env("AN_ARCHIVE_KEY"), pin = "pin-1234-x"))))
  dir <- tempfile()
  archive_study(dir, run_agent(desk, "go"), study_manifest(agent = desk, data = csv))
  text <- archive_text(dir)
  for (secret in c("sk-live-987654", "pin-1234-x", tempdir(), getwd(), normalizePath("~"), Sys.info()[["nodename"]])) {
    if (nchar(secret) < 4) next
    expect_false(any(grepl(secret, text, fixed = TRUE)), info = secret)
  }
  expect_false(any(grepl(paste0("(^|[^a-z])", Sys.info()[["user"]], "([^a-z]|$)"), text)))
  # A literal secret is there as an HMAC, so the key is not.
  expect_false(any(grepl("^key ", text)))
  expect_equal(nrow(verify_archive(dir)), 0L)
})

test_that("the same runs give the same bytes, apart from when it was made", {
  local_clock(1e9)
  study <- study_runs()
  manifest <- study_manifest("T", agent = study$agent)
  dirs <- c(tempfile(), tempfile())
  archive_study(dirs[[1]], study$runs, manifest)
  archive_study(dirs[[2]], rev(study$runs), manifest)
  files <- list.files(dirs[[1]], recursive = TRUE)
  expect_equal(unname(tools::md5sum(file.path(dirs[[2]], files))), unname(tools::md5sum(file.path(dirs[[1]], files))))
  local_clock(2e9)
  later <- tempfile()
  archive_study(later, study$runs, manifest)
  same <- unname(tools::md5sum(file.path(later, files))) == unname(tools::md5sum(file.path(dirs[[1]], files)))
  expect_setequal(files[!same], c("archive.json", "hashes.sha256", "ro-crate-metadata.json"))
})

test_that("what is there is not overwritten unless asked, and what is no archive never", {
  study <- study_runs()
  dir <- tempfile("kept")
  first <- archive_study(dir, study$runs[1])
  expect_warrant_error(archive_study(dir, study$runs[2]), "archive_exists", argument = "dir")
  expect_equal(nrow(verify_archive(dir, first$seal)), 0L)
  second <- archive_study(dir, study$runs[2], overwrite = TRUE)
  expect_equal(nrow(verify_archive(dir, second$seal)), 0L)
  expect_equal(list.files(dirname(dir), basename(dir)), basename(dir))
  mine <- tempfile()
  dir.create(mine)
  writeLines("mine", file.path(mine, "notes.txt"))
  expect_warrant_error(archive_study(mine, study$runs[1], overwrite = TRUE), "archive_exists")
  expect_equal(list.files(mine), "notes.txt")
})

test_that("an archive that fails leaves nothing, and the old one stands", {
  study <- study_runs()
  dir <- tempfile("fails")
  first <- archive_study(dir, study$runs[1])
  expect_error(archive_study(dir, study$runs, redact = function(value, where) stop("no"), overwrite = TRUE), "no")
  expect_equal(list.files(dirname(dir), basename(dir)), basename(dir))
  expect_equal(nrow(verify_archive(dir, first$seal)), 0L)
})

test_that("Ctrl-C leaves nothing behind", {
  study <- study_runs()
  dir <- tempfile("stopped")
  stopped <- tryCatch(
    archive_study(dir, study$runs, redact = function(value, where) rlang::interrupt()),
    interrupt = function(cnd) "stopped"
  )
  expect_equal(stopped, "stopped")
  expect_length(list.files(dirname(dir), basename(dir)), 0L)
})

test_that("an archive that somebody else put there meanwhile stands", {
  study <- study_runs()
  dir <- tempfile("race")
  other <- NULL
  expect_warrant_error(archive_study(dir, study$runs[1], redact = function(value, where) {
    if (is.null(other)) other <<- archive_study(dir, study$runs[2])
    value
  }), "archive_exists")
  expect_equal(nrow(verify_archive(dir, other$seal)), 0L)
  expect_equal(list.files(dirname(dir), basename(dir)), basename(dir))
})

test_that("an archive whose maker was killed is no archive", {
  skip_on_cran()
  skip_on_os("windows")
  parent <- tempfile("killed")
  dir.create(parent)
  done <- run_in_process(timeout = 120, bquote({
    library(warrant)
    planner <- function(state, tools) decide_finish("x")
    runs <- lapply(1:3, function(i) run_agent(agent(list(), planner), i))
    n <- 0
    archive_study(file.path(.(parent), "a"), runs, redact = function(value, where) {
      n <<- n + 1
      if (n == 4) tools::pskill(Sys.getpid(), 9L)
      value
    })
  }))
  left <- list.files(parent)
  expect_length(left, 1L)
  expect_match(left, "^a[.]part-")
  expect_equal(attr(verify_archive(file.path(parent, left)), "state"), "unsealed")
  run <- run_agent(agent(list(), function(state, tools) decide_finish("x")), 1)
  expect_equal(nrow(verify_archive(archive_study(file.path(parent, "a"), run)$dir)), 0L)
})

test_that("runs come from a store, by their ids, or from a suite", {
  store <- file_store(tempfile())
  study <- study_runs(store)
  ids <- vapply(study$runs, `[[`, "", "run_id")
  heads <- function(...) {
    dir <- tempfile()
    archive_study(dir, ...)
    expect_equal(nrow(verify_archive(dir)), 0L)
    utils::read.csv(file.path(dir, "heads.csv"))$run_id
  }
  expect_equal(heads(store), sort(ids, method = "radix"))
  expect_equal(heads(ids[2:1], store = store), sort(ids[1:2], method = "radix"))
  expect_equal(heads(study$runs[[3]]), ids[[3]])
  cases <- suite(data.frame(id = c("a", "b"), input = c("1", "2")), list(criterion_max_steps(3)))
  desk <- agent(list(), function(state, tools) decide_finish(state$goal))
  runs <- run_suite(cases, desk)
  expect_length(heads(runs), 2L)
  expect_setequal(unlist(runs$run_ids), desk$store$runs())
  # Cases that ended in an earlier session have their runs, too.
  store <- file_store(tempfile())
  log <- tempfile()
  kept <- agent(list(), function(state, tools) decide_finish(state$goal), store = store)
  run_suite(cases, kept, seed = 1, file = log)
  writeLines(utils::head(readLines(log), -1), log)
  again <- run_suite(cases, kept, seed = 1, file = log)
  expect_length(store$runs(), 3L)
  expect_equal(heads(again), sort(unlist(again$run_ids), method = "radix"))
  # A system that runs an agent itself, and records what it did.
  asked <- run_suite(cases, agent_system(function(case) {
    run <- run_agent(desk, case$input)
    record_trajectory(run)
    run$answer
  }, records = "agent_trajectory/v1"))
  expect_equal(heads(asked), sort(unlist(asked$run_ids), method = "radix"))
})

test_that("arms of a study stand side by side", {
  cases <- suite(data.frame(input = c("1", "2")), list(criterion_max_steps(1)))
  twice <- noting_tool()$tool
  arms <- list(
    quick = agent(twice, function(state, tools) decide_finish("x")),
    slow = agent(twice, script_planner(decide_act("look", list(n = 1))))
  )
  runs <- lapply(arms, function(arm) run_suite(cases, arm))
  evaluations <- lapply(runs, function(one) evaluate(cases, one))
  dir <- tempfile()
  archive_study(dir, runs, study_manifest(agent = arms, suite = cases), evaluations)
  expect_equal(nrow(verify_archive(dir)), 0L)
  table <- function(name) utils::read.csv(file.path(dir, "tables", name))
  expect_equal(table("metrics.csv")[c("arm", "estimate")], data.frame(arm = c("quick", "slow"), estimate = c(1, 0)))
  expect_setequal(table("runs.csv")$case_id, table("verdicts.csv")$case_id)
  expect_setequal(sub("/.*", "", table("runs.csv")$case_id), c("quick", "slow"))
  expect_match(readLines(file.path(dir, "METHODS.md")), "In the arm slow, 2 cases were judged", all = FALSE)
  bare <- tempfile()
  archive_study(bare, runs, evaluation = evaluations, include_content = FALSE)
  expect_setequal(
    utils::read.csv(file.path(bare, "tables", "runs.csv"))$case_id,
    c("quick/case-1", "quick/case-2", "slow/case-3", "slow/case-4")
  )
  expect_equal(nrow(verify_archive(bare)), 0L)
  expect_warrant_error(archive_study(tempfile(), runs, evaluation = unname(evaluations)), "input", argument = "evaluation")
  expect_warrant_error(archive_study(tempfile(), unname(runs)), "input", argument = "runs")
})

test_that("what a function answered is archived without a journal", {
  cases <- suite(data.frame(id = c("a", "b"), input = c("one 2468", "two")), list(criterion_max_steps(3)))
  runs <- run_suite(cases, agent_system(function(case) {
    record_trajectory(agent_step("tool_call", tool_name = "t", arguments = list(code = 2468, email = "x@y.zz")))
    case$input
  }, records = "agent_trajectory/v1"))
  dir <- tempfile()
  archive_study(dir, runs, evaluation = evaluate(cases, runs), redact = "email")
  report <- verify_archive(dir)
  expect_equal(nrow(report), 0L)
  again <- evaluate(cases, read_trajectories(file.path(dir, "trajectories.jsonl")))
  expect_equal(metrics(again)$estimate, 1)
  expect_false(any(grepl("x@y.zz", archive_text(dir), fixed = TRUE)))
  bare <- tempfile()
  archive_study(bare, runs, include_content = FALSE)
  expect_false(tells(bare, "2468"))
  expect_equal(nrow(verify_archive(bare)), 0L)
})

test_that("a manifest or an evaluation can be archived without runs", {
  dir <- tempfile()
  archive_study(dir, list(), study_manifest("Planned"))
  expect_equal(nrow(verify_archive(dir)), 0L)
  dir <- tempfile()
  archive_study(dir, list(), evaluation = example_evaluation())
  expect_equal(nrow(verify_archive(dir)), 0L)
  expect_warrant_error(archive_study(tempfile(), list()), "nothing_to_archive")
})

test_that("a data file that changed during the study stops the archive", {
  csv <- tempfile(fileext = ".csv")
  writeLines("a", csv)
  study <- study_runs()
  manifest <- study_manifest(data = csv)
  writeLines("b", csv)
  dir <- tempfile()
  expect_warrant_error(archive_study(dir, study$runs[1], manifest), "data_changed", files = basename(csv))
  expect_false(file.exists(dir))
  unlink(csv)
  archive_study(dir, study$runs[1], manifest)
  expect_match(paste(readLines(file.path(dir, "METHODS.md")), collapse = " "), "Not found when the archive was made")
})

test_that("bad input is refused by name, and before anything is written", {
  run <- run_agent(agent(list(), function(state, tools) decide_finish("x")), 1)
  dir <- tempfile()
  expect_warrant_error(archive_study(dir, list(run, run)), "run_twice", run_id = run$run_id)
  expect_warrant_error(archive_study(dir, 1), "input", argument = "runs")
  expect_warrant_error(archive_study(dir, "abc"), "input", argument = "runs")
  expect_warrant_error(archive_study(dir, "abc", store = memory_store()), "no_such_run")
  expect_warrant_error(archive_study(dir, run, manifest = 1), "input", argument = "manifest")
  expect_warrant_error(archive_study(dir, run, evaluation = 1), "input", argument = "evaluation")
  expect_warrant_error(archive_study(dir, run, redact = 1), "input", argument = "redact")
  expect_warrant_error(archive_study(dir, run, NULL, NULL, TRUE, NULL, TRUE), "input")
  expect_warrant_error(archive_study(file.path(dir, "deep", "er"), run), "archive_directory")
  expect_false(file.exists(dir))
  a <- run_agent(agent(list(), function(state, tools) decide_finish("x"), store = memory_store()), 1, run_id = "Ab")
  b <- run_agent(agent(list(), function(state, tools) decide_finish("x"), store = memory_store()), 1, run_id = "aB")
  expect_warrant_error(archive_study(dir, list(a, b)), "run_twice")
})

test_that("the RO-Crate has what RO-Crate 1.1 and Process Run Crate ask for", {
  made <- study_archive_made()
  crate <- read_json(paste(readLines(file.path(made$dir, "ro-crate-metadata.json"), encoding = "UTF-8"), collapse = "\n"))
  graph <- crate$`@graph`
  ids <- vapply(graph, function(x) x$`@id`, "")
  names(graph) <- ids
  expect_equal(anyDuplicated(ids), 0L)
  expect_true(all(vapply(graph, function(x) length(x$`@type`) > 0, NA)))
  expect_equal(crate$`@context`[[1]], "https://w3id.org/ro/crate/1.1/context")
  expect_equal(graph[["ro-crate-metadata.json"]]$conformsTo$`@id`, "https://w3id.org/ro/crate/1.1")
  expect_equal(graph[["ro-crate-metadata.json"]]$about$`@id`, "./")
  root <- graph[["./"]]
  for (field in c("name", "description", "datePublished", "license")) expect_true(nzchar(root[[field]]), info = field)
  profile <- graph[[root$conformsTo$`@id`]]
  expect_match(profile$`@id`, "^https://w3id.org/ro/wfrun/process/0[.]5$")
  expect_equal(profile$`@type`, "CreativeWork")
  files <- list.files(made$dir, recursive = TRUE, all.files = TRUE)
  parts <- vapply(root$hasPart, function(x) x$`@id`, "")
  expect_setequal(c(parts, "ro-crate-metadata.json"), files)
  # Every reference leads to an entity.
  refs <- function(x) if (is.list(x)) c(if (identical(names(x), "@id")) x$`@id`, unlist(lapply(x, refs)))
  expect_true(all(unlist(lapply(graph, function(x) lapply(x[names(x) != "@id"], refs))) %in% c(ids, "https://w3id.org/ro/crate/1.1")))
  types <- vapply(graph, function(x) x$`@type`[[1]], "")
  expect_equal(sum(types == "CreateAction"), length(made$study$runs))
  many <- function(x) if (identical(names(x), "@id")) list(x) else x
  for (action in graph[types == "CreateAction"]) {
    used <- vapply(many(action$instrument), function(x) x$`@id`, "")
    expect_true(all(types[used] == "SoftwareApplication"))
    expect_true(action$`@id` %in% vapply(root$mentions, function(x) x$`@id`, ""))
  }
  decided <- graph[types == "AuthorizeAction"]
  expect_length(decided, 4L)
  who <- vapply(decided, function(x) graph[[x$agent$`@id`]]$name, "")
  expect_equal(unique(unname(who)), "Ann \u00c9")
})

test_that("the methods say what is in the record", {
  text <- paste(readLines(file.path(study_archive_made()$dir, "METHODS.md"), encoding = "UTF-8"), collapse = "\n")
  expect_match(text, "5 runs were recorded from", fixed = TRUE)
  expect_match(text, "completed 2", fixed = TRUE)
  expect_match(text, "stopped (steps) 1", fixed = TRUE)
  expect_match(text, "served-1", fixed = TRUE)
  expect_match(text, "Approval was asked for 5 times: approve 4, pending 1. Decided by: Ann \u00c9 4", fixed = TRUE)
  expect_match(text, "30 cases were judged", fixed = TRUE)
  expect_match(text, hash_manifest(study_archive_made()$manifest), fixed = TRUE)
})

test_that("tools that are not those of the manifest are named", {
  study <- study_runs()
  other <- agent(noting_tool(effects = "none")$tool, always(), limits = agent_limits(steps = 1))
  runs <- c(study$runs[1], list(run_agent(other, "x")))
  dir <- tempfile()
  archive_study(dir, runs, study_manifest(agent = study$agent))
  facts <- read_json(paste(readLines(file.path(dir, "archive.json")), collapse = "\n"))
  name <- sprintf("look (%s)", substr(hash_tool_spec(other$tools$look), 1, 8))
  expect_equal(unlist(facts$tools_not_of_the_manifest), name)
  expect_match(readLines(file.path(dir, "METHODS.md")), "Not those of the manifest", all = FALSE)
  same <- study_archive_made()$dir
  expect_false(any(grepl("Not those of the manifest", readLines(file.path(same, "METHODS.md")))))
})

test_that("an archive prints where it is and its seal", {
  archive <- study_archive_made()$archive
  text <- format(archive)
  expect_match(text, "<study_archive>", all = FALSE)
  expect_match(text, archive$seal, all = FALSE)
})

test_that("the example goes from a plan to archives that verify", {
  skip_on_cran()
  out <- capture.output(sys.source(system.file("examples", "archived-study.R", package = "warrant"), new.env(parent = globalenv())))
  expect_equal(sum(grepl("<archive_report> sound", out)), 1L)
})

test_that("a run that cannot be read is named", {
  store <- memory_store()
  run <- run_agent(agent(list(), function(state, tools) decide_finish("x"), store = store), 1)
  store$read <- function(run_id) sub("finished", "vanished", run$store$read(run_id))
  expect_warrant_error(archive_study(tempfile(), store), "journal_broken", run_id = run$run_id)
})

test_that("results that a tool redacts are archived without their key", {
  tool <- agent_tool(function(n) list(pin = 90210, n = n), "look", "Looks.",
    parameters = list(n = list(type = "integer")), side_effects = "read",
    redact_result = function(result) paste("n is", result$n)
  )
  run <- run_agent(agent(tool, script_planner(decide_act("look", list(n = 1)))), "g")
  dir <- tempfile()
  archive_study(dir, run)
  expect_false(tells(dir, "90210"))
  expect_equal(utils::read.csv(file.path(dir, "heads.csv"))$content, "keyless")
  expect_equal(nrow(verify_archive(dir)), 0L)
})
