test_that("the digest is the SHA-256 of the canonical JSON", {
  # printf '{"item":"pear","n":2}' | sha256sum
  expect_identical(hash_content(list(n = 2L, item = "pear")), "696b41045eb18b3ca3ba1765377533a83009ee164972b69d15458918199dc2fb")
  expect_identical(hash_content(list(item = "pear", n = 2)), hash_content(list(n = 2L, item = "pear")))
  expect_identical(hash_content(NULL), hash_content(NA))
  expect_identical(hash_content(1:3), hash_content(list(1, 2, 3)))
  expect_false(hash_content(1) == hash_content("1"))
  expect_false(hash_content(list()) == hash_content(structure(list(), names = character())))
})

test_that("a name that occurs twice is refused (A05)", {
  expect_warrant_error(hash_content(list(a = 1, a = 2)), "value_name_twice", message = "a")
})

test_that("calls never change the spec hash (H17)", {
  tool <- agent_tool(function(x) {
    y <- x + 1
    y
  }, "f", "F.", parameters = list(x = list(type = "number")))
  before <- hash_tool_spec(tool)
  for (i in 1:5) call_tool(tool, list(x = i))
  call_tool(tool, list(x = "refused"))
  expect_identical(hash_tool_spec(tool), before)
  expect_identical(hash_tool_spec(unserialize(serialize(tool, NULL))), before)
  compiled <- agent_tool(compiler::cmpfun(tool$governance$raw_fn), "f", "F.", parameters = list(x = list(type = "number")))
  expect_identical(hash_tool_spec(compiled), before)
})

parsed_tool <- function(text, keep, env = globalenv()) {
  fn <- eval(parse(text = text, keep.source = keep)[[1]], env)
  agent_tool(fn, "f", "F.", parameters = list(x = list(type = "number")))
}

test_that("spacing, comments and source references do not count, code does (H17)", {
  a <- hash_tool_spec(parsed_tool("function(x) { x + 1 }", TRUE))
  expect_identical(hash_tool_spec(parsed_tool("function( x ){ # a comment\n   x+1\n}", TRUE)), a)
  expect_identical(hash_tool_spec(parsed_tool("function(x) { x + 1 }", FALSE)), a)
  expect_identical(hash_tool_spec(parsed_tool("\\(x) { x + 1 }", FALSE)), a)
  expect_false(hash_tool_spec(parsed_tool("function(x) { x + 2 }", TRUE)) == a)
  expect_false(hash_tool_spec(parsed_tool("function(x = 1) { x + 1 }", TRUE)) == a)
  expect_false(hash_tool_spec(parsed_tool("function(x) { x + 1L }", TRUE)) == a)
})

test_that("the order of properties and of sets does not count (H19)", {
  define <- function(properties, required) {
    agent_tool(function(a, b) a, "f", "F.", parameters = list(type = "object", properties = properties, required = required))
  }
  a <- list(type = "string", enum = list("x", "y"))
  a2 <- list(enum = list("y", "x"), type = "string")
  b <- list(type = "number")
  one <- define(list(a = a, b = b), list("a", "b"))
  other <- define(list(b = b, a = a2), list("b", "a"))
  expect_identical(hash_tool_spec(one), hash_tool_spec(other))
})

test_that("each part of the policy and description counts", {
  define <- function(..., fn = function(x) x, name = "f", description = "F.", parameters = list(x = list(type = "number"))) {
    hash_tool_spec(agent_tool(fn, name, description, parameters, ...))
  }
  hashes <- c(
    define(), define(name = "g"), define(description = "G."), define(parameters = list(x = list(type = "integer"))),
    define(side_effects = "write"), define(side_effects = "none"), define(requires_approval = TRUE), define(timeout_s = 1),
    define(timeout_s = 2), define(max_calls = 3), define(max_calls = 2), define(max_bytes = 10), define(scopes = "s"),
    define(idempotent = FALSE), define(cost = 0.1), define(isolation = "process"), define(fn = function(x) x + 0)
  )
  expect_identical(anyDuplicated(hashes), 0L)
  tool <- weather_tool()
  expect_false(hash_tool_spec(human_gate(tool)) == hash_tool_spec(tool))
  expect_false(hash_tool_spec(human_gate(tool, "Go?")) == hash_tool_spec(human_gate(tool)))
  expect_identical(define(scopes = c("a", "b")), define(scopes = c("b", "a")))
})

test_that("a captured value counts, recursively", {
  rates <- c(a = 1)
  helper <- function(x) x * rates[["a"]]
  tool <- agent_tool(function(x) helper(x), "f", "F.", parameters = list(x = list(type = "number")))
  before <- hash_tool_spec(tool)
  rates[["a"]] <- 2
  changed <- hash_tool_spec(tool)
  expect_false(changed == before)
  rates[["a"]] <- 1
  expect_identical(hash_tool_spec(tool), before)
  helper <- function(x) x * rates[["a"]] + 0
  expect_false(hash_tool_spec(tool) == before)
  unused <- 1
  helper <- function(x) x * rates[["a"]]
  expect_identical(hash_tool_spec(tool), before)
})

test_that("a captured tool enters by its own hash, without its count", {
  inner <- echo_tool(max_calls = 5)
  outer <- agent_tool(function(x) inner$fn(x = x), "outer", "Calls.", parameters = list(x = list(type = "number")))
  before <- hash_tool_spec(outer)
  outer$fn(x = 1)
  expect_identical(hash_tool_spec(outer), before)
  inner <- echo_tool(max_calls = 4)
  expect_false(hash_tool_spec(outer) == before)
})

test_that("what has no stable value is listed and does not change the hash", {
  count <- 0
  env <- new.env()
  tool <- agent_tool(function() {
    count <<- count + 1
    env$n <- count
    count
  }, "f", "F.")
  before <- hash_tool_spec(tool)
  expect_identical(attr(before, "not_covered")[order(names(attr(before, "not_covered")))], c(count = "double", env = "environment"))
  call_tool(tool)
  expect_identical(count, 1)
  expect_identical(hash_tool_spec(tool), before)
  expect_null(attr(hash_tool_spec(weather_tool()), "not_covered"))
})

test_that("column names are no captures; captures = says what is", {
  frame <- data.frame(price = 1:3)
  tool <- agent_tool(function(x) subset(frame, price > x), "f", "F.", parameters = list(x = list(type = "number")))
  before <- hash_tool_spec(tool)
  expect_null(attr(before, "not_covered"))
  name <- "rates"
  rates <- 1
  hidden <- agent_tool(function() get("rates"), "f", "F.", captures = "rates")
  one <- hash_tool_spec(hidden)
  rates <- 2
  expect_false(hash_tool_spec(hidden) == one)
})

test_that("a function that calls itself, or two that call each other, end", {
  even <- function(n) if (n == 0) TRUE else odd(n - 1)
  odd <- function(n) if (n == 0) FALSE else even(n - 1)
  tool <- agent_tool(function(x) even(x), "f", "F.", parameters = list(x = list(type = "number")))
  expect_match(hash_tool_spec(tool), "^[0-9a-f]{64}$")
  self <- agent_tool(function(x) self$fn(x = x), "self", "Calls itself.", parameters = list(x = list(type = "number")))
  expect_match(hash_tool_spec(self), "^[0-9a-f]{64}$")
})

test_that("the hash is of the tool, also in another session, whatever keep.source", {
  code <- quote({
    library(warrant)
    table <- data.frame(k = c("a", "\u00e9"), v = c(1, 2.5))
    tool <- agent_tool(function(k) table$v[match(k, table$k)], "f", "F.",
      parameters = list(k = list(type = "string")), max_calls = 3)
    cat(hash_tool_spec(tool), "\n")
  })
  a <- run_in_process(code, env = "R_KEEP_PKG_SOURCE=yes")
  b <- run_in_process(bquote({
    options(keep.source = TRUE)
    eval(parse(text = .(deparse(code)), keep.source = TRUE))
  }), env = "LC_ALL=C")
  expect_match(a$output, "^[0-9a-f]{64} $")
  expect_identical(a$output, b$output)
})

# One process for each locale and time zone that this machine has: the same digests.
test_that("digests are the same under any locale, time zone and encoding (H16)", {
  # Escapes only: what the locale of a process cannot read is no part of its script.
  text <- '
    library(warrant)
    x <- list(z = 1, B = "\\u00e9", a = as.POSIXct(0, origin = "1970-01-01"), I = 0.1,
      i = factor("\\u0131"), d = as.Date("2026-01-31"), A = 1e-7, aa = 1, Z = 2, "\\U1F600")
    names(x)[10] <- "\\u00ef"
    zebra <- 1
    apple <- "\\u00fc"
    tool <- agent_tool(function(b, A) paste(zebra, apple, b, A), "f", "F\\u00fcr I.",
      parameters = list(b = list(type = "string", enum = list("I", "i", "\\u0131")), A = list(type = "string")))
    r <- call_tool(tool, list(b = "I", A = enc2native("x")))
    cat(hash_content(x), hash_tool_spec(tool), r$arguments_hash, r$shown_hash, tool_log(tool)$shown_hash, "\\n")
  '
  code <- bquote(eval(parse(text = .(text))))
  had <- system("locale -a", intern = TRUE, ignore.stderr = TRUE)
  wanted <- grep("^(en_US|tr_TR|et_EE|C)[.](utf-?8|iso-?8859-?1)$", had, ignore.case = TRUE, value = TRUE)
  settings <- c("LC_ALL=C", paste0("LC_ALL=", wanted), "TZ=Asia/Kathmandu", "LC_ALL=C TZ=America/St_Johns")
  out <- vapply(settings, function(s) paste(run_in_process(code, env = s)$output, collapse = "\n"), "")
  expect_match(out[[1]], "^([0-9a-f]{64} ){5}$")
  expect_identical(unname(unique(out)), out[[1]])
})

test_that("what is made anew at each look, or was never given, is not covered", {
  env <- new.env()
  looks <- 0
  makeActiveBinding("fresh", function() looks <<- looks + 1, env)
  active <- function() fresh
  environment(active) <- env
  hash <- hash_tool_spec(agent_tool(active, "f", "F."))
  expect_identical(attr(hash, "not_covered"), c(fresh = "active binding"))
  expect_identical(looks, 0)
  make <- function(n, m) agent_tool(function() if (missing(m)) n else m, "g", "G.")
  expect_identical(attr(hash_tool_spec(make(3)), "not_covered"), c(m = "missing"))
  expect_false(hash_tool_spec(make(3)) == hash_tool_spec(make(4)))
})

test_that("a tool in a process is hashed with the values it was defined with", {
  rate <- 2
  define <- function() agent_tool(function(x) x * rate, "f", "F.", parameters = list(x = list(type = "number")), isolation = "process")
  tool <- define()
  before <- hash_tool_spec(tool)
  rate <- 3
  expect_identical(hash_tool_spec(tool), before)
  expect_false(hash_tool_spec(define()) == before)
  expect_identical(hash_tool_spec(unserialize(serialize(tool, NULL))), before)
})
