ask <- function(at, ...) model_openai(at$url, "m", api_key_env = NULL, ...)(user(), list())

test_that("what may pass is tried again", {
  at <- script(
    reply("busy", 429, headers = "Retry-After: 0"), reply("", 503), reply("", 408),
    reply('{"choices": [', cut = TRUE), list(drop = TRUE), says("at last")
  )
  message <- ask(at, retries = 5)
  expect_equal(message$content, "at last")
  expect_equal(at$count(), 6L)
  expect_gt(message$waited_s, 0)
})

test_that("attempts are bounded, and the error says what happened", {
  at <- script(reply("busy", 429, headers = "Retry-After: 0"))
  expect_warrant_error(
    ask(at, retries = 2), "model_rate_limited", status = 429L, attempts = 3L, retry_after_s = 0,
    resumable = TRUE, message = "takes no more requests"
  )
  expect_equal(at$count(), 3L)
  at <- script(reply('{"error": {"message": "out of memory"}}', 500))
  expect_warrant_error(ask(at, retries = 1), "model_server_error", status = 500L, message = "out of memory")
})

test_that("a wait that is too long is an error at once", {
  at <- script(reply("busy", 429, headers = "Retry-After: 3600"))
  expect_warrant_error(ask(at), "model_rate_limited", attempts = 1L, retry_after_s = 3600)
})

test_that("Retry-After may be a date, by the clock of the endpoint", {
  at <- script(reply("busy", 429, headers = c(
    "Date: Sun, 06 Nov 1994 08:49:37 GMT", "Retry-After: Sun, 06 Nov 1994 09:49:37 GMT"
  )))
  expect_warrant_error(ask(at), "model_rate_limited", retry_after_s = 3600)
  expect_null(asNamespace("warrant")$http_date("tomorrow"))
})

test_that("pauses grow, and leave R's random numbers alone", {
  local_clock(0)
  withr::local_seed(1)
  before <- .Random.seed
  pause <- asNamespace("warrant")$pause_s
  expect_equal(vapply(1:7, function(i) pause(list(), i), 0), 0.75 * c(1, 2, 4, 8, 16, 30, 30))
  expect_identical(.Random.seed, before)
})

test_that("what will not pass is not tried again", {
  at <- script(reply("<html><b>Not here</b></html>", 404, type = "text/html"))
  expect_warrant_error(ask(at), "model_http", status = 404L, attempts = 1L, message = "Not here")
  at <- script(reply("", 302, headers = "Location: http://127.0.0.1:1/"))
  expect_warrant_error(ask(at), "model_http", status = 302L, attempts = 1L)
  at <- script(reply("<html>Welcome</html>", type = "text/html"))
  expect_warrant_error(ask(at), "model_not_json", attempts = 1L, message = "Welcome")
  at <- script(reply('{"choices": []}'))
  expect_warrant_error(ask(at), "model_no_choices", attempts = 1L)
  at <- script(reply('{"choices": [{"message": 3}]}'))
  expect_warrant_error(ask(at), "model_answer_form", attempts = 1L)
  at <- script(reply('{"error": {"message": "No such model", "code": 400}}'))
  expect_warrant_error(ask(at), "model_refused", attempts = 1L, message = "No such model")
})

test_that("an answer that is not text in UTF-8 is not JSON", {
  for (bytes in list(as.raw(c(0x7b, 0x00, 0x7d)), as.raw(c(0x7b, 0xff, 0x7d)))) {
    response <- structure(list(body = bytes), class = "httr2_response")
    expect_identical(asNamespace("warrant")$response_text(response), NA_character_)
  }
})

test_that("an error that comes with status 200 and may pass is tried again", {
  at <- script(reply('{"error": {"message": "Overloaded", "code": 529}}'), says("ok"))
  expect_equal(ask(at)$content, "ok")
})

test_that("a hang ends at the time limit", {
  at <- script(list(hang = TRUE))
  expect_warrant_error(ask(at, timeout_s = 0.2, retries = 0), "model_timeout", attempts = 1L,
    message = "within 0.2 s")
})

test_that("an endpoint that is down is named", {
  model_server()
  error <- expect_warrant_error(
    model_openai("http://127.0.0.1:1/v1", "m", NULL, retries = 0)(user(), list()),
    "model_unreachable", url = "http://127.0.0.1:1/v1/chat/completions", message = "cannot be reached"
  )
  expect_gte(error$waited_s, 0)
})

test_that("an answer that stays cut is an error", {
  at <- script(reply('{"choices": [{"message"', cut = TRUE))
  expect_warrant_error(ask(at, retries = 1), "model_answer_cut", attempts = 2L)
  at <- script(reply('{"choices": [{"message"'))
  expect_warrant_error(ask(at, retries = 0), "model_answer_cut")
})
