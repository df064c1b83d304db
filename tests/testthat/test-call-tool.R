one_number <- list(x = list(type = "number"))

test_that("a call gives status, content, value and digests", {
  local_clock(1000)
  tool <- weather_tool()
  result <- call_tool(tool, "{\"city\": \"Lisbon\"}")
  expect_s3_class(result, "tool_result")
  expect_identical(result$status, "executed")
  expect_identical(result$content, "Sunny in Lisbon")
  expect_identical(result$value, "Sunny in Lisbon")
  expect_identical(result$result_hash, hash_content("Sunny in Lisbon"))
  expect_identical(result$arguments_hash, hash_content(list(city = "Lisbon")))
  # printf 'Sunny in Lisbon' | sha256sum
  expect_identical(result$shown_hash, "6e60488399e01611ce2609d3186f2819d8c25090ddb8093085384b820feccdee")
  expect_false(result$truncated)
  expect_identical(result$bytes, 15)
  expect_identical(as.numeric(tool_log(tool)$ts), 1000)
})

# Arguments: refused before anything runs.

test_that("text that is not a JSON object is refused and never repaired (A01, A02, A05, A13)", {
  ran <- new.env()
  tool <- counting_tool(ran, max_calls = 1)
  bad <- c(
    "{\"x\":1", "{\"x\":01}", "{\"x\":NaN}", "{\"x\":+1}", "{'x':1}", "{\"x\":1,}", "{\"x\":1}{}", "{\"x\":1} x",
    "{\"x\":1e400}", "{\"x\":-1e400}", "{\"x\":Infinity}", "{x:1}", "nonsense", "{\"x\":.5}", "{\"x\":1.}", "\ufeff{\"x\":1}",
    "null", "[1]", "\"s\"", "3", "true", "{\"x\":1,\"x\":9999}", "{\"x\":1,\"\\u0078\":2}",
    "{\"x\":[{\"a\":1,\"a\":2}]}", "{\"x\":\"\\ud800\"}", "{\"x\":\"\\ude00\\ud83d\"}"
  )
  for (text in bad) {
    result <- call_tool(tool, text)
    expect_identical(result$status, "invalid_arguments")
    expect_match(result$content, "^INVALID ARGUMENTS: ")
    expect_null(result$value)
  }
  expect_identical(ran$n, 0)
  expect_identical(nrow(tool_log(tool)), length(bad))
  expect_identical(call_tool(tool, "{\"x\":1}")$status, "executed")
})

test_that("what is not an object is said to be what it is (A02)", {
  none <- agent_tool(function() 1, "one", "Gives one.")
  expect_match(call_tool(none, "[1]")$content, "array")
  expect_match(call_tool(none, "null")$content, "null")
  expect_match(call_tool(none, "{\"a\":")$content, "line 1")
})

test_that("no arguments are an empty object (A04)", {
  none <- agent_tool(function() "done", "f", "F.")
  hashes <- vapply(list("", "{}", " {} ", list()), function(a) call_tool(none, a)$arguments_hash, "")
  expect_identical(unique(hashes), hash_content(structure(list(), names = character())))
  expect_identical(call_tool(none)$status, "executed")
})

test_that("numbers and booleans in quotes are not cast (A07, A10)", {
  tool <- agent_tool(function(n, b) "ran", "f", "F.",
    parameters = list(n = list(type = "integer"), b = list(type = "boolean")))
  bad <- c("{\"n\":\"5\",\"b\":true}", "{\"n\":5,\"b\":\"false\"}", "{\"n\":3.14,\"b\":true}", "{\"n\":null,\"b\":true}")
  expect_identical(unique(statuses(tool, bad)), "invalid_arguments")
  ids <- echo_tool(list(type = "array", items = list(type = "integer")))
  expect_identical(call_tool(ids, "{\"x\":[\"null\"]}")$status, "invalid_arguments")
})

test_that("names are exact and never matched partially (A23, A25)", {
  tool <- agent_tool(function(colour = "none") colour, "f", "F.",
    parameters = list(colour = list(type = "string")), required = character())
  for (text in c("{\"col\":\"red\"}", "{\"Colour\":\"red\"}", "{\"\":5}", "{\"...\":1}", "{\"if\":1}")) {
    expect_identical(call_tool(tool, text)$status, "invalid_arguments")
  }
  expect_identical(call_tool(tool, list(col = "red"))$status, "invalid_arguments")
  expect_identical(call_tool(tool, list("red"))$status, "invalid_arguments")
  words <- agent_tool(function(`if`, `function`) paste(`if`, `function`), "f", "F.",
    parameters = list("if" = list(type = "string"), "function" = list(type = "string")))
  expect_identical(call_tool(words, "{\"if\":\"a\",\"function\":\"b\"}")$content, "a b")
})

test_that("a function with `...` gets what an open schema lets through", {
  tool <- agent_tool(function(a, ...) paste(a, paste(names(list(...)), collapse = "+")), "f", "F.",
    parameters = list(type = "object", properties = list(a = list(type = "string")), additionalProperties = TRUE))
  expect_identical(call_tool(tool, "{\"a\":\"x\",\"b\":1,\"c\":2}")$content, "x b+c")
})

test_that("NUL is refused: R cannot hold it (A20, K02)", {
  for (text in c("{\"x\":\"\\u0000abc\"}", "{\"x\":[\"a\\u0000\"]}", "{\"x\":{\"a\\u0000\":1}}", "{\"a\\u0000\":1}")) {
    result <- call_tool(echo_tool(), text)
    expect_identical(result$status, "invalid_arguments")
    expect_match(result$content, "NUL|not (expected|a parameter|allowed)|additional", ignore.case = TRUE)
  }
})

test_that("the declared schema is checked, all violations with their pointers (B01)", {
  tool <- agent_tool(function(x, y) x, "f", "F.", parameters = list(
    x = list(type = "integer", enum = list(1, 2)), y = list(type = "string", maxLength = 3)))
  expect_identical(unique(statuses(tool, c("{\"x\":99,\"y\":\"a\"}", "{\"x\":\"abc\",\"y\":\"a\"}", "{}"))), "invalid_arguments")
  both <- call_tool(tool, "{\"x\":99,\"y\":\"long text\"}")$content
  expect_match(both, "/x", fixed = TRUE)
  expect_match(both, "/y", fixed = TRUE)
  missing <- call_tool(tool, "{}")$content
  expect_match(missing, "x")
  expect_match(missing, "y")
  expect_match(call_tool(tool, "{\"x\":1,\"y\":\"a\",\"z\":0}")$content, "z")
})

test_that("decimal steps and big bounds are exact (B04, B05)", {
  steps <- echo_tool(list(type = "number", multipleOf = 0.01))
  good <- c("1070468.14", "19.99", "0.3", "17.2", "10.1", "0")
  expect_identical(unique(statuses(steps, paste0("{\"x\":", good, "}"))), "executed")
  expect_identical(call_tool(steps, "{\"x\":0.30000001}")$status, "invalid_arguments")
  big <- echo_tool(list(type = "integer", maximum = 9007199254740992))
  expect_identical(call_tool(big, "{\"x\":9007199254740993}")$status, "invalid_arguments")
  expect_identical(call_tool(big, "{\"x\":9007199254740992}")$status, "executed")
  wide <- echo_tool(structure("{\"type\":\"integer\",\"minimum\":18446744073709551617}", class = "json"))
  expect_identical(call_tool(wide, "{\"x\":18446744073709551616}")$status, "invalid_arguments")
})

test_that("only `required` makes an argument required (B10)", {
  tool <- agent_tool(function(page = 10) page, "f", "F.", required = character(),
    parameters = list(page = list(type = "number", default = 10)))
  expect_identical(call_tool(tool, "{}")$content, "10")
})

test_that("what a refusal says is bounded (B14)", {
  tool <- echo_tool(list(type = "array", items = list(type = "integer")))
  text <- paste0("{\"x\":[", paste(rep("\"bad\"", 10000), collapse = ","), "]}")
  said <- call_tool(tool, text)$content
  expect_lt(nchar(said, "bytes"), 3000)
  expect_match(said, "more|others|in all")
  long <- call_tool(echo_tool(list(type = "integer")), paste0("{\"x\":\"", strrep("y", 1e6), "\"}"))$content
  expect_lt(nchar(long, "bytes"), 3000)
})

test_that("a pattern cannot hang the check", {
  tool <- echo_tool(list(type = "string", pattern = "^(a+)+$"))
  text <- paste0("{\"x\":\"", strrep("a", 50000), "!\"}")
  expect_identical(call_tool(tool, text)$status, "invalid_arguments")
})

# Limits.

test_that("exactly max_calls run, however nested calls race for the last one", {
  ran <- 0
  self <- agent_tool(function(depth) {
    ran <<- ran + 1
    if (depth > 0) c(call_tool(self, list(depth = depth - 1))$status, self$fn(depth = depth - 1)) else "leaf"
  }, "self", "Calls itself.", parameters = list(depth = list(type = "integer")), max_calls = 7)
  call_tool(self, list(depth = 10))
  expect_identical(ran, 7)
  log <- tool_log(self)
  expect_identical(sum(log$status == "executed"), 7L)
  expect_gt(sum(log$status == "tool_exhausted"), 0)
})

test_that("a call that fails counts, one that is refused does not", {
  tool <- agent_tool(function(x) stop("no"), "f", "F.", parameters = one_number, max_calls = 2)
  expect_identical(
    statuses(tool, c("{}", "{\"x\":1}", "{\"y\":1}", "{\"x\":1}", "{\"x\":1}")),
    c("invalid_arguments", "error", "invalid_arguments", "error", "tool_exhausted")
  )
})

test_that("a tool may call another one", {
  inner <- agent_tool(function(x) x * 2, "inner", "Doubles.", parameters = one_number)
  outer <- agent_tool(function(x) call_tool(inner, list(x = x))$value + 1, "outer", "One more.", parameters = one_number)
  expect_identical(call_tool(outer, list(x = 4))$content, "9")
  expect_identical(tool_log(list(outer, inner))$name, c("outer", "inner"))
})

test_that("what leaves is never longer than max_bytes and is valid (C16)", {
  words <- strrep("na\u00efve \U1F600 ", 40)
  for (limit in c(0, 1, 5, 12, 13, 30, 31, 32, 33, 34, 35, 100, 379, 380, 439, 440, 1000)) {
    result <- call_tool(agent_tool(function() words, "f", "F.", max_bytes = limit))
    expect_lte(nchar(result$content, "bytes"), limit)
    expect_true(validUTF8(result$content))
    expect_identical(result$truncated, limit < nchar(words, "bytes"))
    expect_identical(result$result_hash, hash_content(words))
    expect_identical(result$value, words)
  }
})

test_that("a result that fits exactly is whole", {
  fits <- call_tool(agent_tool(function() "12345", "f", "F.", max_bytes = 5))
  expect_identical(fits$content, "12345")
  expect_false(fits$truncated)
})

test_that("JSON shrinks by whole rows and says how many there were (C17)", {
  rows <- data.frame(id = 1:1e5, word = "abc")
  result <- call_tool(agent_tool(function() rows, "f", "F.", max_bytes = 10000))
  expect_lte(nchar(result$content, "bytes"), 10000)
  expect_true(result$truncated)
  expect_identical(result$result_hash, hash_content(rows))
  back <- given(result$content)
  expect_identical(names(back), c("items", "shown", "total"))
  expect_identical(back$total, 100000L)
  expect_length(back$items, back$shown)
  expect_identical(back$items[[back$shown]], list(id = back$shown, word = "abc"))
  expect_gt(nchar(result$content, "bytes"), 9900)
  small <- call_tool(agent_tool(function() rows, "f", "F.", max_bytes = 10))
  expect_identical(small$content, "")
  expect_true(small$truncated)
})

test_that("an error text is bounded too", {
  result <- call_tool(agent_tool(function() stop(strrep("long ", 1e4)), "f", "F.", max_bytes = 100))
  expect_identical(result$status, "error")
  expect_lte(nchar(result$content, "bytes"), 100)
})

# Results and conditions.

test_that("status is never read off the text (C10)", {
  said <- call_tool(agent_tool(function() "ERROR: boom", "f", "F."))
  expect_identical(said$status, "executed")
  expect_identical(said$content, "ERROR: boom")
  raised <- call_tool(agent_tool(function() stop("boom"), "f", "F."))
  expect_identical(raised$status, "error")
  expect_match(raised$content, "^ERROR: boom")
  expect_null(raised$value)
  expect_identical(call_tool(agent_tool(function() simpleError("x")$message, "f", "F."))$status, "executed")
})

test_that("a value that is a condition is not taken for a raised one", {
  kept <- call_tool(agent_tool(function() simpleError("kept"), "f", "F."))
  expect_false(grepl("^ERROR: kept", kept$content))
})

test_that("the model gets the root message, the record the classes (C22)", {
  messy <- agent_tool(function() {
    tryCatch(
      rlang::abort("\033[31mroot\033[39m cause", class = "my_class"),
      error = function(e) rlang::abort("wrapper", parent = e)
    )
  }, "f", "F.")
  result <- call_tool(messy)
  expect_match(result$content, "^ERROR: root cause")
  expect_no_match <- function(x, pattern) expect_false(grepl(pattern, x))
  expect_no_match(result$content, "wrapper|\033")
  expect_true("my_class" %in% result$error_class)
  expect_identical(tool_log(messy)$error_class[[1]], result$error_class)
  cli <- call_tool(agent_tool(function() cli::cli_abort("{.arg x} is bad"), "f", "F."))
  expect_match(cli$content, "x.? is bad")
})

test_that("any text of an error is text: percent signs, braces, newlines, none", {
  for (text in c("100% %s %n %d", "{x} {", "two\nlines", "", "\u65e5\u672c", strrep("%", 2000))) {
    result <- call_tool(agent_tool(function() stop(errorCondition(text)), "f", "F."))
    expect_identical(result$status, "error")
    expect_match(result$content, text, fixed = TRUE)
  }
  for (text in c("100% %s %n %d", "{x} {", "\\u0000")) {
    expect_identical(call_tool(echo_tool(list(type = "integer")), list(x = text))$status, "invalid_arguments")
    expect_identical(call_tool(echo_tool(), list(x = text))$content, text)
  }
  expect_warrant_error(agent_tool(function() 1, "100% %s %n", "F."), "input")
  expect_warrant_error(echo_tool(list("%s%n" = 1)), "schema")
})

test_that("an error object without a message, or with a broken one, is an error", {
  odd <- function() stop(structure(class = c("odd", "error", "condition"), list(message = NULL, call = NULL)))
  expect_identical(call_tool(agent_tool(odd, "f", "F."))$status, "error")
  longer <- function() stop(structure(class = c("odd", "error", "condition"), list(message = c("a", "b"), call = NULL)))
  expect_identical(call_tool(agent_tool(longer, "f", "F."))$status, "error")
})

test_that("warnings and messages are recorded and do not leak (C14)", {
  noisy <- function() {
    warning("w1")
    message("m1")
    warning("w2")
    1
  }
  expect_silent(result <- call_tool(agent_tool(noisy, "f", "F.")))
  expect_identical(result$warnings, c("w1", "w2"))
  expect_identical(result$messages, "m1")
  expect_silent(timed <- call_tool(agent_tool(noisy, "f", "F.", timeout_s = 60)))
  expect_identical(timed[c("status", "warnings", "messages")], result[c("status", "warnings", "messages")])
  failing <- call_tool(agent_tool(function() {
    warning("before")
    stop("end")
  }, "f", "F."))
  expect_identical(failing$warnings, "before")
})

test_that("what is printed in the session is left alone, in a process captured (C13)", {
  noisy <- function() {
    cat("printed\n")
    1
  }
  expect_output(call_tool(agent_tool(noisy, "f", "F.")), "printed")
  skip_if_not_installed("callr")
  apart <- agent_tool(noisy, "f", "F.", isolation = "process")
  expect_silent(result <- call_tool(apart))
  expect_identical(result$content, "1")
  expect_match(result$messages, "printed", all = FALSE)
})

test_that("only what was given reaches the function, not what the schema has as default (A22, B11)", {
  tool <- agent_tool(function(owner, since = "ever", ...) paste(since, nargs()), "f", "F.",
    parameters = list(
      owner = list(type = "string"), since = list(type = "string", default = "now"),
      tags = list(type = "array", items = list(type = "string", default = "x"))
    ), required = "owner")
  result <- call_tool(tool, "{\"owner\":\"o\"}")
  expect_identical(result$content, "ever 1")
  expect_identical(tool_log(tool)$arguments, "{\"owner\":\"o\"}")
})

test_that("very many warnings are bounded", {
  tool <- agent_tool(function() for (i in 1:2000) warning(strrep("w", 5000)), "f", "F.")
  result <- call_tool(tool)
  expect_identical(result$status, "executed")
  expect_lte(length(result$warnings), 50)
  expect_lte(max(nchar(result$warnings)), 1000)
})

test_that("a tool that returns early, invisibly or nothing is fine", {
  expect_identical(call_tool(agent_tool(function() return(invisible(3)), "f", "F."))$content, "3")
  expect_identical(call_tool(agent_tool(function() NULL, "f", "F."))$content, "null")
  expect_identical(call_tool(agent_tool(function() {}, "f", "F."))$content, "null")
})

test_that("a missing argument leaves the default of the function, lazily", {
  tool <- agent_tool(function(a, b = a * 2) if (missing(b)) -b else b, "f", "F.", required = "a",
    parameters = list(a = list(type = "number"), b = list(type = "number")))
  expect_identical(call_tool(tool, "{\"a\":3}")$content, "-6")
  expect_identical(call_tool(tool, "{\"a\":3,\"b\":1}")$content, "1")
})

test_that("arguments that are language are not evaluated", {
  tool <- agent_tool(function(x) deparse(substitute(x)), "f", "F.", parameters = list(x = list(type = "string")))
  expect_identical(call_tool(tool, list(x = "stop('no')"))$content, "\"stop('no')\"")
})

# Approval.

test_that("nobody to ask: nothing runs and the call is pending", {
  ran <- new.env()
  tool <- human_gate(counting_tool(ran, max_calls = 1), "Sure?")
  result <- call_tool(tool, list(x = 1))
  expect_identical(result$status, "approval_required")
  expect_match(result$content, "^PENDING: ")
  looped <- tool$fn(x = 1)
  expect_match(looped, "^PENDING: .*cannot pause")
  expect_identical(call_tool(tool, list(x = 1), approver = function(request) NULL)$status, "approval_required")
  expect_identical(ran$n, 0)
  expect_identical(nrow(tool_log(tool)), 3L)
  expect_identical(call_tool(tool, list(x = 1), approver = function(request) TRUE)$status, "executed")
})

test_that("an approver approves, rejects with a reason, and edits", {
  ran <- new.env()
  tool <- human_gate(counting_tool(ran), "Sure?")
  asked <- NULL
  ask <- function(answer) {
    call_tool(tool, "{\"x\":5}", approver = function(request) {
      asked <<- request
      answer
    })
  }
  expect_identical(ask("approve")$content, "5")
  expect_identical(
    asked[c("tool", "prompt", "arguments", "side_effects", "reason")],
    list(tool = "count", prompt = "Sure?", arguments = list(x = 5), side_effects = "none", reason = "tool")
  )
  rejected <- ask(list(decision = "reject", reason = "too much"))
  expect_identical(rejected$status, "approval_denied")
  expect_match(rejected$content, "^DENIED: .*too much")
  expect_identical(ask(FALSE)$status, "approval_denied")
  edited <- ask(list(decision = "edit", arguments = list(x = 2)))
  expect_identical(edited$content, "2")
  expect_identical(edited$arguments_hash, hash_content(list(x = 2)))
  expect_identical(ran$n, 2)
})

test_that("an edit is validated, and does not run when it is wrong", {
  ran <- new.env()
  tool <- human_gate(counting_tool(ran))
  result <- call_tool(tool, "{\"x\":5}", approver = function(request) list(decision = "edit", arguments = list(x = "two")))
  expect_identical(result$status, "invalid_arguments")
  expect_identical(ran$n, 0)
})

test_that("the person is not asked about what is refused anyway", {
  asked <- 0
  approver <- function(request) {
    asked <<- asked + 1
    TRUE
  }
  tool <- human_gate(counting_tool(max_calls = 1))
  call_tool(tool, "{\"x\":\"no\"}", approver = approver)
  expect_identical(asked, 0)
  expect_identical(statuses_with(tool, approver, 2), c("executed", "tool_exhausted"))
  expect_identical(asked, 1)
})

test_that("what an approver answers wrongly or raises is an error, and a row", {
  tool <- human_gate(counting_tool())
  for (answer in list("yes", 1, NA, list(decision = "edit"), list(), c("approve", "reject"), list(decision = NA))) {
    expect_warrant_error(call_tool(tool, list(x = 1), approver = function(request) answer), "approval")
  }
  expect_error(call_tool(tool, list(x = 1), approver = function(request) stop("phone off")), "phone off")
  log <- tool_log(tool)
  expect_identical(unique(log$status), "approval_required")
  expect_identical(nrow(log), 8L)
  expect_warrant_error(call_tool(tool, list(x = 1), approver = "me"), "input")
})

test_that("an approver that calls the tool itself does not take its budget twice", {
  ran <- new.env()
  tool <- human_gate(counting_tool(ran, max_calls = 1))
  result <- call_tool(tool, list(x = 1), approver = function(request) {
    call_tool(tool, list(x = 2), approver = function(request) TRUE)
    TRUE
  })
  expect_identical(result$status, "tool_exhausted")
  expect_identical(ran$n, 1)
})

# What is not a tool, or not arguments.

test_that("errors are for the caller's mistakes", {
  tool <- weather_tool()
  expect_warrant_error(call_tool("tool"), "input", message = "tool")
  expect_warrant_error(call_tool(list(fn = identity)), "input")
  expect_warrant_error(call_tool(structure(list(), class = "agent_tool")), "input")
  for (arguments in list(3, TRUE, c("{}", "{}"), NA_character_, NULL, sum)) {
    expect_warrant_error(call_tool(tool, arguments), "input")
  }
  expect_warrant_error(call_tool(tool, list(city = new.env())), "input", message = "city")
  expect_identical(nrow(tool_log(tool)), 0L)
})

# A time limit, and the person's own interrupt.

test_that("a tool at its limit is timed_out, its value withheld (D04)", {
  tool <- agent_tool(function() {
    Sys.sleep(5)
    "late"
  }, "nap", "Naps.", timeout_s = 0.05, side_effects = "write")
  result <- call_tool(tool)
  expect_identical(result$status, "timed_out")
  expect_null(result$value)
  expect_match(result$content, "^TIMED OUT: .*effect")
  expect_identical(call_tool(agent_tool(function() 3, "f", "F."))$content, "3")
})

test_that("what may have been done is not done again unasked", {
  ran <- 0
  tool <- agent_tool(function(to) {
    ran <<- ran + 1
    Sys.sleep(if (ran == 1) 5 else 0)
    "sent"
  }, "send", "Sends.", parameters = list(to = list(type = "string")), timeout_s = 0.05, side_effects = "external")
  expect_identical(call_tool(tool, list(to = "a"))$status, "timed_out")
  again <- call_tool(tool, "{\"to\":\"a\"}")
  expect_identical(again$status, "approval_required")
  expect_match(again$content, "not known what an equal call did")
  expect_match(tool$fn(to = "a"), "^PENDING: ")
  expect_identical(ran, 1)
  expect_identical(call_tool(tool, list(to = "b"))$status, "executed")
  reason <- NULL
  approved <- call_tool(tool, list(to = "a"), approver = function(request) {
    reason <<- request$reason
    TRUE
  })
  expect_identical(approved$status, "executed")
  expect_identical(reason, "unknown_effect")
  expect_identical(call_tool(fresh_tool(tool), list(to = "a"))$status, "executed")
})

test_that("a tool that may be repeated is", {
  ran <- 0
  tool <- agent_tool(function() {
    ran <<- ran + 1
    Sys.sleep(if (ran == 1) 5 else 0)
    "read"
  }, "look", "Looks.", timeout_s = 0.05, side_effects = "read")
  expect_identical(statuses(tool, c("{}", "{}")), c("timed_out", "executed"))
})

test_that("an interrupt stays one, and the call is a row", {
  skip_on_os("windows")
  tool <- agent_tool(function() {
    tools::pskill(Sys.getpid(), tools::SIGINT)
    Sys.sleep(3)
    "not interrupted"
  }, "f", "F.", side_effects = "write")
  timed <- agent_tool(tool$governance$raw_fn, "g", "G.", side_effects = "write", timeout_s = 30)
  for (each in list(tool, timed)) {
    got <- tryCatch(call_tool(each)$status, interrupt = function(cnd) "an interrupt")
    expect_identical(got, "an interrupt")
    expect_identical(tool_log(each)$status, "interrupted")
    expect_identical(call_tool(weather_tool(), list(city = "Rome"))$status, "executed")
  }
})

test_that("a tool that jumps out is a row", {
  tool <- agent_tool(function() invokeRestart("leave", 4), "f", "F.")
  expect_identical(withRestarts(call_tool(tool), leave = function(x) x), 4)
  expect_identical(tool_log(tool)$status, "interrupted")
  expect_identical(call_tool(weather_tool(), list(city = "Rome"))$status, "executed")
})

# Where R users take tools.

test_that("a tool is called from lapply, Map and do.call", {
  tool <- echo_tool()
  expect_identical(unlist(lapply(1:3, tool$fn)), c("1", "2", "3"))
  expect_identical(unlist(Map(tool$fn, x = c("a", "b")), use.names = FALSE), c("a", "b"))
  expect_identical(do.call("call_tool", list(tool, list(x = 2)))$content, "2")
})

test_that("forked workers keep limits, and nothing hangs", {
  skip_on_os("windows")
  tool <- agent_tool(function(x) x, "f", "F.", parameters = one_number, max_calls = 3, timeout_s = 5)
  call_tool(tool, list(x = 0))
  nap <- agent_tool(function(x) Sys.sleep(x), "nap", "Naps.", parameters = one_number, timeout_s = 0.05)
  call_tool(nap, list(x = 0))
  out <- parallel::mclapply(1:2, function(i) {
    list(
      vapply(1:4, function(j) call_tool(tool, list(x = j))$status, ""),
      call_tool(nap, list(x = 5))$status, hash_content(list(i = 1)), call_tool(tool, list(x = 9))
    )
  }, mc.cores = 2)
  for (o in out) {
    expect_identical(o[[1]], c("executed", "executed", "tool_exhausted", "tool_exhausted"))
    expect_identical(o[[2]], "timed_out")
    expect_identical(o[[3]], hash_content(list(i = 1)))
  }
  rows <- tool_log(lapply(out, `[[`, 4))
  expect_identical(rows$status, rep("tool_exhausted", 2))
  expect_length(unique(rows$span_id), 2)
  expect_identical(call_tool(tool, list(x = 0))$status, "executed")
})

test_that("futures in other processes take tools along", {
  skip_if_not_installed("future")
  skip_if_not_installed("future.apply")
  old <- future::plan(future::multisession, workers = 1)
  on.exit(future::plan(old))
  rate <- 2
  tool <- agent_tool(function(x) x * rate, "f", "F.", parameters = one_number, max_calls = 2)
  results <- future.apply::future_lapply(1:3, function(x) warrant::call_tool(tool, list(x = x)), future.seed = NULL)
  expect_identical(vapply(results, function(r) r$status, ""), c("executed", "executed", "tool_exhausted"))
  expect_identical(results[[2]]$value, 4)
  expect_identical(tool_log(results)$name, rep("f", 3))
})

test_that("calls survive gctorture", {
  tool <- echo_tool(timeout_s = 60)
  gate <- human_gate(echo_tool())
  on.exit(gctorture(FALSE))
  gctorture(TRUE)
  a <- call_tool(tool, "{\"x\":[1,\"a\",{\"b\":[true,null]}]}")
  b <- call_tool(gate, list(x = "y"), approver = function(request) TRUE)
  c <- call_tool(tool, "{\"y\":1}")
  gctorture(FALSE)
  expect_identical(a$content, "[1,\"a\",{\"b\":[true,null]}]")
  expect_identical(b$content, "y")
  expect_identical(c$status, "invalid_arguments")
})
