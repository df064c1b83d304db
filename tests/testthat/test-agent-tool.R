test_that("a tool is what tool loops take", {
  tool <- weather_tool()
  expect_identical(class(tool), c("agent_tool", "llmr_tool"))
  expect_identical(names(tool), c("name", "description", "schema", "fn", "governance"))
  expect_identical(tool$name, "get_weather")
  expect_identical(tool$fn(city = "Lisbon"), "Sunny in Lisbon")
  expect_identical(tool$fn("Lisbon"), "Sunny in Lisbon")
  expect_identical(do.call(tool$fn, list(city = "Lisbon")), "Sunny in Lisbon")
  expect_identical(attr(tool, "governance"), tool$governance)
  fields <- c("side_effects", "requires_approval", "timeout_s", "max_calls", "max_bytes", "raw_fn")
  expect_true(all(fields %in% names(tool$governance)))
  expect_identical(tool$governance$side_effects, "external")
  expect_identical(tool$governance$max_calls, 5)
  expect_identical(tool$governance$raw_fn("Rome"), "Sunny in Rome")
})

test_that("the schema is one that a provider takes", {
  schema <- weather_tool()$schema
  expect_identical(schema$type, "object")
  expect_identical(schema$properties, list(city = list(type = "string")))
  expect_identical(schema$required, list("city"))
  expect_false(schema$additionalProperties)
  empty <- agent_tool(function() 1, "one", "Gives one.")$schema
  expect_identical(empty$properties, structure(list(), names = character()))
})

test_that("a tool prints what it is and what is left", {
  expect_snapshot({
    weather_tool()
    human_gate(agent_tool(function(n = 1) n, "f", "Does f.", parameters = list(n = list(type = "number")),
      timeout_s = 0.5, max_bytes = 100, scopes = c("b", "a")))
  })
})

test_that("a result prints in a few lines", {
  local_clock(0)
  cut_times <- function(x) gsub(" in [0-9.e-]+ s", " in T s", x)
  expect_snapshot({
    call_tool(weather_tool(), "{\"city\": \"Lisbon\"}")
    call_tool(weather_tool(), "{\"town\": \"Lisbon\"}")
    call_tool(agent_tool(function() strrep("line\n", 30), "lines", "Lines."))
  }, transform = cut_times)
})

test_that("parameters are properties, a whole schema or JSON text", {
  by_name <- agent_tool(function(a, b) a, "f", "F.", parameters = list(a = list(type = "string"), b = list(type = "number")))
  expect_setequal(unlist(by_name$schema$required), c("a", "b"))
  one <- agent_tool(function(a, b = 1) a, "f", "F.", required = "a",
    parameters = list(a = list(type = "string"), b = list(type = "number")))
  expect_identical(unlist(one$schema$required), "a")
  whole <- agent_tool(function(a, b = 1) a, "f", "F.", parameters = list(
    type = "object", properties = list(a = list(type = "string"), b = list(type = "number")), required = list("a")))
  expect_identical(call_tool(whole, "{\"a\":\"x\"}")$status, "executed")
  text <- agent_tool(function(a) a, "f", "F.", parameters = "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}}}")
  expect_identical(call_tool(text, "{\"a\":\"x\"}")$content, "x")
  none <- agent_tool(function() "done", "f", "F.")
  expect_identical(call_tool(none)$content, "done")
})

test_that("a parameter may be called type", {
  tool <- agent_tool(function(type) type, "f", "F.", parameters = list(type = list(type = "string")))
  expect_identical(call_tool(tool, list(type = "a"))$content, "a")
})

test_that("side effects that are not declared are said to be assumed", {
  tool <- agent_tool(function() 1, "f", "F.")
  expect_true(tool$governance$side_effects_assumed)
  expect_match(format(tool), "read (assumed)", fixed = TRUE, all = FALSE)
  expect_false(any(grepl("assumed", format(agent_tool(function() 1, "f", "F.", side_effects = "read")))))
  expect_warrant_error(agent_tool(function() 1, "f", "F.", side_effects = "delete"), "input")
})

test_that("idempotent follows the side effects unless it is given", {
  default <- function(effects) agent_tool(function() 1, "f", "F.", side_effects = effects)$governance$idempotent
  expect_identical(vapply(c("none", "read", "write", "external"), default, NA, USE.NAMES = FALSE), c(TRUE, TRUE, FALSE, FALSE))
  expect_true(agent_tool(function() 1, "f", "F.", side_effects = "write", idempotent = TRUE)$governance$idempotent)
})

test_that("wrong definitions fail at definition", {
  define <- function(fn = function(x) x, name = "f", description = "F.", parameters = list(x = list(type = "number")), ...) {
    agent_tool(fn, name, description, parameters, ...)
  }
  expect_s3_class(define(), "agent_tool")
  expect_warrant_error(define(fn = "sum"), "input", message = "fn")
  expect_warrant_error(define(fn = sum), "input", message = "primitive")
  expect_warrant_error(define(parameters = list(y = list(type = "number"))), "tool_mismatch", message = "y")
  expect_warrant_error(define(fn = function(x, z) x), "tool_mismatch", message = "z")
  expect_warrant_error(define(parameters = NULL), "tool_mismatch", message = "x")
  for (name in c("read.table", "a/b", "", "1a", "na me", "\u00e9t\u00e9", strrep("a", 65), "a$", "a\nb")) {
    expect_warrant_error(define(name = name), "input")
  }
  expect_s3_class(define(name = strrep("a", 64)), "agent_tool")
  expect_warrant_error(define(description = ""), "input")
  expect_warrant_error(define(description = NA_character_), "input")
  for (n in list(-1, 1.5, NA, "3", c(1, 2), NaN, TRUE)) {
    expect_warrant_error(define(max_calls = n), "input", message = "max_calls")
    expect_warrant_error(define(max_bytes = n), "input", message = "max_bytes")
  }
  for (n in list(0, -1, NA, "3", c(1, 2))) expect_warrant_error(define(timeout_s = n), "input", message = "timeout_s")
  expect_warrant_error(define(cost = -1), "input", message = "cost")
  expect_warrant_error(define(cost = 1e-10), "input", message = "cost")
  expect_warrant_error(define(required = "y"), "tool_mismatch")
  expect_warrant_error(define(requires_approval = NA), "input")
  expect_warrant_error(define(isolation = "fork"), "input")
  expect_warrant_error(define(record = "none"), "input")
  expect_warrant_error(define(captures = c("define", "no_such_variable")), "input", message = "no_such_variable")
  expect_warrant_error(define(captures = ""), "input")
  expect_warrant_error(define(time_limit = 3), "input", message = "time_limit")
  expect_warrant_error(define(parameters = list(list(type = "number"))), "input")
  expect_warrant_error(define(parameters = 3), "input")
})

test_that("an unknown keyword is an error with a suggestion (B02)", {
  define <- function(...) echo_tool(list(...))
  expect_warrant_error(define(type = "integer", min = 1), "schema", message = "minimum")
  expect_warrant_error(define(type = "string", maxlength = 1), "schema", message = "maxLength")
  expect_warrant_error(define(type = "array", items = list(type = "integer", minimun = 1)), "schema", message = "minimum")
  expect_warrant_error(echo_tool(list(type = "object", requiredProperties = list("a"))), "schema")
  expect_s3_class(define(type = "integer", "x-note" = "fine"), "agent_tool")
})

test_that("schemas that cannot hold are refused at definition", {
  define <- function(...) echo_tool(list(...))
  expect_warrant_error(define(type = "strin"), "schema")
  expect_warrant_error(define(type = "string", pattern = "("), "schema")
  expect_warrant_error(define("$ref" = "#/$defs/none"), "schema")
  expect_warrant_error(define(type = "integer", minimum = "one"), "schema")
  expect_warrant_error(agent_tool(function(x) x, "f", "F.", parameters = "{\"type\":"), "value_json")
})

test_that("a remote $ref is refused without a look at network or files (B07)", {
  for (ref in c("https://example.org/s.json", "file:///etc/passwd", "s.json", "http://127.0.0.1:9/x#/a")) {
    expect_warrant_error(echo_tool(list("$ref" = ref)), "schema")
  }
})

test_that("a $ref inside the schema holds, also a recursive one (B08)", {
  tool <- agent_tool(function(tree) "fine", "walk", "Walks.", parameters = list(
    type = "object", properties = list(tree = list("$ref" = "#/$defs/node")), required = list("tree"),
    "$defs" = list(node = list(
      type = "object", required = list("v"), additionalProperties = FALSE,
      properties = list(v = list(type = "integer"), kids = list(type = "array", items = list("$ref" = "#/$defs/node")))
    ))
  ))
  expect_identical(call_tool(tool, "{\"tree\":{\"v\":1,\"kids\":[{\"v\":2}]}}")$status, "executed")
  bad <- call_tool(tool, "{\"tree\":{\"v\":1,\"kids\":[{\"v\":\"2\"}]}}")
  expect_identical(bad$status, "invalid_arguments")
  expect_match(bad$content, "/tree/kids/0/v", fixed = TRUE)
})

test_that("max_calls takes 0, a count and Inf (E05)", {
  none <- echo_tool(max_calls = 0)
  expect_identical(call_tool(none, list(x = 1))$status, "tool_exhausted")
  one <- echo_tool(max_calls = 1)
  expect_identical(statuses(one, list(list(x = 1), list(x = 1))), c("executed", "tool_exhausted"))
  expect_identical(unique(statuses(echo_tool(max_calls = Inf), rep(list(list(x = 1)), 50))), "executed")
})

test_that("a gate is set on a copy, and the policy cannot be edited afterwards", {
  tool <- weather_tool()
  gated <- human_gate(tool, "Ask the weather?")
  expect_true(gated$governance$requires_approval)
  expect_false(tool$governance$requires_approval)
  edits <- list(
    quote(gated$governance$requires_approval <- FALSE), quote(gated$name <- "other"),
    quote(gated[["fn"]] <- identity)
  )
  for (edit in edits) expect_warrant_error(eval(edit), "tool_edited", tool = "get_weather")
  expect_warrant_error(human_gate(list(name = "x")), "input")
  expect_warrant_error(human_gate(tool, prompt = 1), "input")
  expect_warrant_error(human_gate(tool, ttl_s = 0), "input")
})

test_that("copies share the count, a fresh tool has its own (E07)", {
  tool <- weather_tool()
  copy <- tool
  for (i in 1:3) copy$fn("Rome")
  expect_identical(statuses(tool, rep(list(list(city = "Rome")), 3)), c("executed", "executed", "tool_exhausted"))
  expect_identical(call_tool(copy, list(city = "Rome"))$status, "tool_exhausted")
  expect_identical(call_tool(human_gate(tool), list(city = "Rome"))$status, "tool_exhausted")
  fresh <- fresh_tool(tool)
  expect_identical(nrow(tool_log(fresh)), 0L)
  expect_identical(call_tool(fresh, list(city = "Rome"))$status, "executed")
  expect_identical(hash_tool_spec(fresh), hash_tool_spec(tool))
})

test_that("a saved tool attaches to the live count of its session", {
  tool <- weather_tool()
  file <- tempfile()
  saveRDS(tool, file)
  for (i in 1:4) tool$fn("Rome")
  back <- readRDS(file)
  expect_identical(statuses(back, rep(list(list(city = "Rome")), 2)), c("executed", "tool_exhausted"))
  expect_identical(call_tool(tool, list(city = "Rome"))$status, "tool_exhausted")
  expect_identical(hash_tool_spec(back), hash_tool_spec(tool))
})

test_that("a saved tool carries on from its count in another session", {
  tool <- weather_tool()
  for (i in 1:3) tool$fn("Rome")
  file <- tempfile()
  out <- tempfile()
  saveRDS(tool, file)
  done <- run_in_process(bquote({
    library(warrant)
    tool <- readRDS(.(file))
    s <- vapply(1:3, function(i) call_tool(tool, list(city = "Rome"))$status, "")
    again <- readRDS(.(file))
    saveRDS(list(s, call_tool(again, list(city = "Rome"))$status, nrow(tool_log(tool)), hash_tool_spec(tool)), .(out))
  }))
  expect_identical(done$status, 0L)
  got <- readRDS(out)
  expect_identical(got[[1]], c("executed", "executed", "tool_exhausted"))
  expect_identical(got[[2]], "tool_exhausted")
  expect_identical(got[[3]], 4L)
  expect_identical(as.character(got[[4]]), as.character(hash_tool_spec(tool)))
})

test_that("the random number stream of the user is not touched", {
  set.seed(1)
  before <- .Random.seed
  tool <- weather_tool()
  tool$fn("Rome")
  hash_tool_spec(fresh_tool(tool))
  expect_identical(.Random.seed, before)
  set.seed(1)
  a <- weather_tool()
  set.seed(1)
  b <- weather_tool()
  a$fn("Rome")
  expect_identical(nrow(tool_log(b)), 0L)
})
