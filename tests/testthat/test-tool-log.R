columns <- c(
  "run_id", "span_id", "agent_id", "step", "round", "name", "arguments_hash", "result_hash", "shown_hash",
  "arguments", "result", "status", "truncated", "bytes", "duration_s", "ts", "error_class", "warnings",
  "messages", "guardrails", "late"
)

test_that("no calls are zero rows of every column", {
  log <- tool_log(weather_tool())
  expect_s3_class(log, "tbl_df")
  expect_identical(names(log), columns)
  expect_identical(nrow(log), 0L)
  expect_identical(names(tool_log(list())), columns)
  expect_s3_class(log$ts, "POSIXct")
})

test_that("each call, refused or run, is one row in the order they began", {
  local_clock(60)
  tool <- agent_tool(function(x) if (x > 1) stop("big") else x, "f", "F.",
    parameters = list(x = list(type = "number")), max_calls = 2)
  gated <- human_gate(weather_tool())
  for (x in list("{", "{\"x\":1}", "{\"x\":2}", "{\"x\":3}")) call_tool(tool, x)
  call_tool(gated, list(city = "Rome"))
  log <- tool_log(list(gated, tool))
  expect_identical(log$name, c("f", "f", "f", "f", "get_weather"))
  expect_identical(log$status, c("invalid_arguments", "executed", "error", "tool_exhausted", "approval_required"))
  expect_identical(is.na(log$result_hash), c(TRUE, FALSE, TRUE, TRUE, TRUE))
  expect_identical(log$result_hash[[2]], hash_content(1))
  expect_identical(log$arguments[2:5], c("{\"x\":1}", "{\"x\":2}", "{\"x\":3}", "{\"city\":\"Rome\"}"))
  expect_match(log$result[[3]], "^ERROR: big")
  expect_identical(as.numeric(log$ts), rep(60, 5))
  expect_true("simpleError" %in% log$error_class[[3]])
  expect_length(unique(log$span_id), 5)
  expect_true(all(is.na(log$run_id)))
  expect_true(all(log$duration_s >= 0))
})

test_that("the log of results is that of the tools", {
  tool <- echo_tool(max_calls = 2)
  results <- lapply(list(1, "two", 3), function(x) call_tool(tool, list(x = x)))
  expect_equal(tool_log(results), tool_log(tool))
  expect_equal(tool_log(results[[1]]), tool_log(tool)[1, ])
})

test_that("the log is of the object, not of the name, and copies share it", {
  a <- echo_tool()
  b <- echo_tool()
  copy <- a
  copy$fn(1)
  expect_identical(nrow(tool_log(a)), 1L)
  expect_identical(nrow(tool_log(b)), 0L)
  expect_identical(nrow(tool_log(list(a, copy))), 1L)
})

test_that("a log is not a tool's: it is not saved with it", {
  tool <- echo_tool()
  tool$fn(strrep("a long text ", 1e5))
  file <- tempfile()
  saveRDS(tool, file, compress = FALSE)
  expect_lt(file.size(file), 1e5)
})

test_that("hashes keep no text", {
  tool <- echo_tool(record = "hashes")
  result <- call_tool(tool, list(x = "private words"))
  log <- tool_log(tool)
  expect_identical(log$arguments, NA_character_)
  expect_identical(log$result, NA_character_)
  expect_identical(log$arguments_hash, hash_content(list(x = "private words")))
  expect_identical(log$result_hash, result$result_hash)
  expect_identical(log$bytes, 13)
})

test_that("what the model saw can be checked against the log", {
  tool <- agent_tool(function() strrep("word ", 100), "f", "F.", max_bytes = 60)
  result <- call_tool(tool)
  log <- tool_log(tool)
  expect_identical(log$result, result$content)
  expect_true(log$truncated)
  expect_identical(log$bytes, as.numeric(nchar(result$content, "bytes")))
  skip_if_not_installed("digest")
  expect_identical(log$shown_hash, digest::digest(result$content, "sha256", serialize = FALSE))
})

test_that("1e5 calls are 1e5 rows, in order", {
  tool <- echo_tool(list(type = "integer"), record = "hashes")
  for (i in 1:1e5) tool$fn(x = i)
  log <- tool_log(tool)
  expect_identical(nrow(log), 100000L)
  expect_identical(unique(log$status), "executed")
  expect_length(unique(log$span_id), 1e5)
  expect_identical(log$arguments_hash[[99999]], hash_content(list(x = 99999L)))
  expect_false(is.unsorted(log$ts))
})

test_that("what is not a tool is an error that names the function", {
  cnd <- expect_warrant_error(tool_log(3), "input", message = "tool")
  expect_identical(as.character(conditionCall(cnd)[[1]]), "tool_log")
  expect_warrant_error(tool_log(list(weather_tool(), 3)), "input")
  expect_warrant_error(tool_log(NULL), "input")
})
