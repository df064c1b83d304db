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
  short <- call_tool(pin, list(pin = "0007-long"))
  expect_identical(short$status, "invalid_arguments")
  expect_false(any(grepl("0007", traces(pin, list(short)), fixed = TRUE)))
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
  expect_false(any(grepl("58213", text, fixed = TRUE)))
  faults <- verify_audit(trail, content = store)
  expect_identical(attr(faults, "state"), "sound")
})
