# A function without source references, which hold the text of this whole file.
bare <- function(fn) {
  environment(fn) <- globalenv()
  utils::removeSource(fn)
}

token_tool <- function(...) {
  agent_tool(
    bare(function(path, token) paste(path, nchar(token))), "fetch", "Fetch a page.",
    parameters = list(path = list(type = "string"), token = list(type = "string", secret = TRUE)),
    side_effects = "external", ...
  )
}

with_variable <- function(name, value, code) {
  old <- Sys.getenv(name, NA)
  on.exit(if (is.na(old)) Sys.unsetenv(name) else do.call(Sys.setenv, stats::setNames(list(old), name)))
  do.call(Sys.setenv, stats::setNames(list(value), name))
  force(code)
}

# Everything that a call leaves behind, as text.
traces <- function(tool, results) {
  c(
    capture.output(print(tool), str(tool_log(tool)), print(results), str(lapply(results, unclass))),
    rawToChar(serialize(list(tool, results, tool_log(tool)), NULL, ascii = TRUE))
  )
}

test_that("a reference is resolved in the call and seen nowhere else (H20)", {
  tool <- token_tool()
  result <- with_variable("WARRANT_TEST_TOKEN", "sk-test-123456", {
    call_tool(tool, list(path = "/a", token = secret_env("WARRANT_TEST_TOKEN")))
  })
  expect_identical(result$content, "/a 14")
  expect_false(any(grepl("sk-test-123456", traces(tool, list(result)), fixed = TRUE)))
  expect_match(tool_log(tool)$arguments, "WARRANT_TEST_TOKEN")
})

test_that("a literal secret is kept as a keyed digest only (H20)", {
  tool <- token_tool()
  a <- call_tool(tool, list(path = "/a", token = "sk-test-123456"))
  b <- call_tool(tool, "{\"path\":\"/a\",\"token\":\"sk-test-123456\"}")
  refused <- call_tool(tool, list(path = 3, token = "sk-test-123456"))
  expect_identical(refused$status, "invalid_arguments")
  expect_false(any(grepl("sk-test-123456", traces(tool, list(a, b, refused)), fixed = TRUE)))
  expect_identical(a$arguments_hash, b$arguments_hash)
  expect_false(a$arguments_hash == hash_content(list(path = "/a", token = "sk-test-123456")))
  pin <- agent_tool(bare(function(pin) "in"), "enter", "Enter.", parameters = list(pin = list(type = "string", maxLength = 4, secret = TRUE)))
  short <- call_tool(pin, list(pin = "zq7w-long"))
  expect_identical(short$status, "invalid_arguments")
  expect_false(any(grepl("zq7w", traces(pin, list(short)), fixed = TRUE)))
})

test_that("the person who approves does not see a secret either", {
  seen <- NULL
  tool <- human_gate(token_tool())
  call_tool(tool, list(path = "/a", token = "sk-test-123456"), approver = function(request) {
    seen <<- request
    TRUE
  })
  expect_identical(seen$arguments, list(path = "/a", token = "<redacted>"))
})

test_that("a secret that is not set, or not expected, runs nothing", {
  tool <- token_tool()
  expect_warrant_error(
    call_tool(tool, list(path = "/a", token = secret_env("WARRANT_TEST_NOT_SET"))), "secret", message = "WARRANT_TEST_NOT_SET"
  )
  open <- agent_tool(bare(function(x) x), "echo", "Echoes.", parameters = list(x = list(type = "string")))
  result <- with_variable("WARRANT_TEST_TOKEN", "sk-test-123456", call_tool(open, list(x = secret_env("WARRANT_TEST_TOKEN"))))
  expect_identical(result$status, "invalid_arguments")
  expect_false(any(grepl("sk-test-123456", traces(open, list(result)), fixed = TRUE)))
})

test_that("JSON text cannot name an environment variable", {
  tool <- token_tool()
  with_variable("WARRANT_TEST_TOKEN", "sk-test-123456", {
    expect_identical(call_tool(tool, "{\"path\":\"/a\",\"token\":{\"env\":\"WARRANT_TEST_TOKEN\"}}")$status, "invalid_arguments")
    expect_identical(call_tool(tool, "{\"path\":\"/a\",\"token\":\"WARRANT_TEST_TOKEN\"}")$content, "/a 18")
  })
})

test_that("a reference prints the name of its variable", {
  expect_output(print(secret_env("KEY")), "<secret> from KEY", fixed = TRUE)
  expect_warrant_error(secret_env(""), "input")
  expect_warrant_error(secret_env(c("a", "b")), "input")
})

test_that("a redacted argument is in no file of a run, which still verifies (H20)", {
  dir <- withr::local_tempdir()
  enter <- agent_tool(bare(function(who, pin) identical(pin, 58213L)), "enter", "Enter.",
    parameters = list(who = list(type = "string"), pin = list(type = "integer", redact = TRUE)),
    side_effects = "write"
  )
  store <- file_store(file.path(dir, "runs"))
  trail <- audit_jsonl(file.path(dir, "trail.jsonl"))
  a <- agent(enter, script_planner(decide_act("enter", list(who = "ann", pin = 58213L))),
    policy = writes(), store = store, audit = trail
  )
  run <- run_agent(a, "go")
  expect_identical(run$pending[[1]]$arguments$pin, "<redacted>")
  run <- approve_tool_call(run, "approve", approver = "p")
  expect_identical(outcomes(resume_run(a, run)), "interrupted")
  run <- approve_tool_call(run_agent(a, "go"), "approve", approver = "p")
  run <- resume_run(a, run, secrets = list(pin = 58213L))
  expect_identical(outcomes(run), "executed")
  expect_true(run$steps[[1]]$result)
  files <- list.files(dir, recursive = TRUE, full.names = TRUE)
  text <- unlist(lapply(files, readLines, warn = FALSE))
  expect_true(any(grepl("ann", text, fixed = TRUE)))
  expect_false(any(grepl("(?<![0-9a-f.])58213(?![0-9a-f])", text, perl = TRUE)))
  faults <- verify_audit(trail, content = store)
  expect_identical(attr(faults, "state"), "sound")
})

masked <- bare(function(x) sub("^(.).*@", "\\1***@", x))

# Every byte that a run leaves: its files, the run and its log saved, and what prints.
all_of_run <- function(dir, run) {
  saved <- c(run[setdiff(names(run), "store")], list(tool_log(run)))
  files <- list.files(dir, recursive = TRUE, full.names = TRUE)
  c(
    unlist(lapply(files, readLines, warn = FALSE)), rawToChar(serialize(saved, NULL, ascii = TRUE)),
    capture.output(print(run), str(saved), print(as_trajectory(run)), str(unclass(as_trajectory(run))))
  )
}

mail_agent <- function(dir, ..., side_effects = "none", redact = list(to = masked), planner = NULL) {
  tool <- agent_tool(bare(function(to, n) list(sent = nchar(to), n = n)), "mail", "Mail somebody.",
    parameters = list(to = list(type = "string"), n = list(type = "integer")),
    side_effects = side_effects, redact = redact, ...
  )
  if (is.null(planner)) planner <- script_planner(decide_act("mail", list(to = "ann.smith@x.org", n = 1L)))
  agent(tool, planner,
    policy = writes(), store = file_store(file.path(dir, "runs")), audit = audit_jsonl(file.path(dir, "trail.jsonl"))
  )
}

test_that("what a function makes of an argument is shown, the function is given the argument", {
  dir <- withr::local_tempdir()
  a <- mail_agent(dir)
  run <- run_agent(a, "go")
  expect_identical(run$steps[[1]]$result$sent, 15L)
  expect_match(tool_log(run)$arguments, "\"redacted\":\"a***@x.org\"", fixed = TRUE)
  expect_match(tool_log(a$tools$mail)$arguments, "a***@x.org", fixed = TRUE)
  expect_identical(tool_log(run)$arguments_hash, warrant:::rs_sha256(tool_log(run)$arguments))
  expect_false(any(grepl("smith", c(all_of_run(dir, run), traces(a$tools$mail, list())), fixed = TRUE)))
  faults <- verify_audit(a$audit, content = run$store)
  expect_identical(nrow(faults), 0L)
  expect_true(replay_run(a, run)$same)
})

test_that("the person who approves sees what the function makes of it", {
  dir <- withr::local_tempdir()
  a <- mail_agent(dir, side_effects = "write")
  run <- run_agent(a, "go")
  expect_identical(run$pending[[1]]$arguments$to, "a***@x.org")
  expect_output(print(run), "a***@x.org", fixed = TRUE)
  run <- approve_tool_call(run, "approve", approver = "p")
  run <- resume_run(a, run, secrets = list(to = "ann.smith@x.org"))
  expect_identical(outcomes(run), "executed")
  expect_false(any(grepl("smith", all_of_run(dir, run), fixed = TRUE)))
  seen <- NULL
  call_tool(human_gate(a$tools$mail), list(to = "ann.smith@x.org", n = 1L), approver = function(request) {
    seen <<- request$arguments
    NULL
  })
  expect_identical(seen, list(n = 1L, to = "a***@x.org"))
})

test_that("what a resume is told again must be values", {
  dir <- withr::local_tempdir()
  a <- mail_agent(dir, side_effects = "write")
  run <- approve_tool_call(run_agent(a, "go"), "approve", approver = "p")
  for (bad in list(secret_env("HOME"), list(secret_env("HOME")), list(mean), globalenv(), quote(x))) {
    expect_warrant_error(resume_run(a, run, secrets = bad), "input", argument = "secrets")
  }
  expect_identical(outcomes(resume_run(a, run, secrets = c("other", "ann.smith@x.org"))), "executed")
})

test_that("a redaction that fails shows nothing", {
  for (bad in list(bare(function(x) stop(x)), bare(function(x) c(x, x)), bare(function(x) NA_character_), bare(function(x) list(x)))) {
    dir <- withr::local_tempdir()
    run <- run_agent(mail_agent(dir, redact = list(to = bad), redact_result = bad), "go")
    expect_identical(outcomes(run), "executed")
    expect_identical(run$steps[[1]]$result, "<redacted>")
    expect_match(tool_log(run)$arguments, "\"redacted\":null", fixed = TRUE)
    expect_match(tool_log(run)$warnings[[1]], "redaction of the result failed")
    expect_false(any(grepl("smith", all_of_run(dir, run), fixed = TRUE)))
  }
})

test_that("a redacted result leaves the call only as its text, and a keyed digest of it is kept", {
  dir <- withr::local_tempdir()
  find <- agent_tool(bare(function(n) list(name = "Ann Smith", n = n)), "find", "Finds.",
    parameters = list(n = list(type = "integer")), side_effects = "none",
    redact_result = bare(function(x) paste("a person of", nchar(x$name), "letters"))
  )
  expect_identical(call_tool(find, list(n = 1L))$value, "a person of 9 letters")
  store <- file_store(file.path(dir, "runs"))
  planner <- function(state, tools) {
    if (length(state$steps)) decide_finish(state$steps[[1]]$result) else decide_act("find", list(n = 1L))
  }
  a <- agent(find, planner, store = store)
  run <- run_agent(a, "go")
  expect_identical(run$answer, "a person of 9 letters")
  expect_false(any(grepl("Smith", all_of_run(dir, run), fixed = TRUE)))
  key <- store$get_content(run$run_id, "key")[[1]]
  true <- warrant:::rs_content_addresses(key, warrant:::rs_to_json(list(name = "Ann Smith", n = 1L)))
  expect_true(any(grepl(true, store$get_content(run$run_id), fixed = TRUE)))
  expect_identical(nrow(verify_audit(run, content = store)), 0L)
})

test_that("what a tool quotes of a secret is struck out of its errors and warnings", {
  quoting <- agent_tool(bare(function(pin) {
    warning("odd: ", pin)
    message("got ", pin)
    stop("no door for ", pin)
  }), "enter", "Enter.", parameters = list(pin = list(type = "integer")), redact = "pin")
  result <- call_tool(quoting, list(pin = 58213L))
  expect_identical(result$content, "ERROR: no door for <redacted>")
  expect_false(any(grepl("(?<![0-9a-f.])58213(?![0-9a-f])", traces(quoting, list(result)), perl = TRUE)))
})

test_that("bytes that are no text do not get in the way of striking out", {
  odd <- agent_tool(bare(function(pin) {
    warning(rawToChar(as.raw(c(0x70, 0xff, 0x20))), pin)
    stop(rawToChar(as.raw(c(0xfe, 0x20))), pin)
  }), "odd", "Odd.", parameters = list(pin = list(type = "string")), redact = "pin")
  result <- call_tool(odd, list(pin = "p\u00e4ss.*word"))
  expect_identical(result$status, "error")
  expect_false(any(grepl("word", c(result$content, result$warnings), fixed = TRUE, useBytes = TRUE)))
})

test_that("what is redacted, and how, is part of what a tool is", {
  make <- function(...) {
    agent_tool(bare(function(a, b) a), "t", "T.", parameters = list(a = list(type = "string"), b = list()), ...)
  }
  first <- make(redact = list(a = masked))
  hashes <- vapply(list(
    make(), make(redact = "a"), make(redact = c("a", "b")), first, make(redact = masked),
    make(redact = list(a = bare(function(x) "none"))), make(redact_result = TRUE), make(redact_result = masked)
  ), hash_tool_spec, "")
  expect_identical(anyDuplicated(hashes), 0L)
  expect_identical(hash_tool_spec(first), hash_tool_spec(make(redact = list(a = masked))))
  expect_identical(hash_tool_spec(human_gate(first)), hash_tool_spec(human_gate(make(redact = list(a = masked)))))
  expect_output(print(first), "hidden: a", fixed = TRUE)
  expect_identical(call_tool(fresh_tool(first), list(a = "ann@x.org", b = 1))$status, "executed")
  expect_match(call_tool(make(redact = masked), list(a = "ann@x.org", b = "bob@x.org"))$arguments, "b***@x.org", fixed = TRUE)
  for (bad in list("z", list(a = FALSE), list(masked), 1, list(a = "x"))) expect_warrant_error(make(redact = bad), "input")
  expect_warrant_error(make(redact_result = "x"), "input")
})

test_that("a digest that a planner types elsewhere gives no secret away", {
  dir <- withr::local_tempdir()
  got <- NULL
  echo <- agent_tool(bare(function(x) x), "echo", "Echoes.", parameters = list(x = list()), side_effects = "none")
  keep <- agent_tool(bare(function(pin) TRUE), "keep", "Keeps.", parameters = list(pin = list(type = "integer")),
    side_effects = "none", redact = "pin"
  )
  planner <- function(state, tools) {
    if (!length(state$steps)) return(decide_act("keep", list(pin = 58213L)))
    if (length(state$steps) == 1L) return(decide_act("echo", list(x = state$steps[[1]]$arguments$pin)))
    got <<- state$steps[[2]]
    decide_finish("done")
  }
  run_agent(agent(list(echo, keep), planner), "go")
  expect_identical(got$outcome, "executed")
  expect_named(got$result, "secret_hmac")
})

test_that("no refused call of a run leaves a secret behind", {
  dir <- withr::local_tempdir()
  Sys.setenv(WARRANT_TEST_TOKEN = "sk-test-123456")
  on.exit(Sys.unsetenv("WARRANT_TEST_TOKEN"))
  reference <- secret_env("WARRANT_TEST_TOKEN")
  open <- agent_tool(bare(function(x) x), "echo", "Echoes.", parameters = list(x = list(type = "string")), side_effects = "none")
  a <- agent(list(token_tool(), open), script_planner(
    decide_act("fetch", "{\"path\":\"/a\",\"token\":\"sk-test-123456\""),
    decide_act("fetch", "[\"sk-test-123456\"]"),
    decide_act("fetch", "\"sk-test-123456\""),
    decide_act("fetch", list(path = "/a", tokn = "sk-test-123456")),
    decide_act("fetch", list(path = 1, token = "sk-test-123456")),
    decide_act("echo", list(x = reference)), decide_act("nobody", list(x = reference))
  ), policy = writes(), store = file_store(file.path(dir, "runs")), audit = audit_jsonl(file.path(dir, "trail.jsonl")))
  run <- run_agent(a, "go")
  expect_identical(outcomes(run), c(rep("invalid_arguments", 6), "unknown_tool"))
  expect_false(any(grepl("sk-test-123456", all_of_run(dir, run), fixed = TRUE)))
  expect_match(tool_log(run)$arguments[c(6, 7)], "{\"x\":{\"secret_env\":\"WARRANT_TEST_TOKEN\"}}", fixed = TRUE)
  expect_identical(nrow(verify_audit(a$audit, content = run$store)), 0L)
})
