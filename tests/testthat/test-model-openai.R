test_that("an answer is an assistant message, with what was reported", {
  at <- script(says("Half open."))
  model <- model_openai(at$url, "m", api_key_env = NULL, temperature = 0, stop = I("x"))
  message <- model(user(), list())
  expect_equal(message$content, "Half open.")
  expect_equal(message$role, "assistant")
  expect_equal(message$model, "served-1")
  expect_equal(message$usage, list(prompt_tokens = 5, completion_tokens = 2, total_tokens = 7))
  expect_equal(message$waited_s, 0)
  expect_equal(
    at$body(),
    list(
      messages = list(list(content = "hello", role = "user")), model = "m",
      stop = list("x"), temperature = 0L
    )[c("model", "messages", "temperature", "stop")]
  )
  expect_match(at$head()[[1]], "^POST /s[0-9]+/v1/chat/completions HTTP")
})

test_that("arguments are the text that came", {
  text <- "{ \"id\" : 76561198003753554, \"id\": 1, \"x\": \"\\u00e9\""
  at <- script(asks(list("f", text)))
  message <- model_openai(at$url, "m", api_key_env = NULL)(user(), list())
  expect_identical(message$tool_calls[[1]]$`function`$arguments, text)
  expect_null(message$content)
})

test_that("the key is sent, and nowhere else", {
  key <- paste0("sk-very-", "secret-1")
  withr::local_envvar(MY_KEY = key)
  leak <- reply(sprintf('{"error": {"message": "Incorrect API key provided: %s"}}', key), 401)
  at <- script(says("a"), leak)
  model <- model_openai(at$url, "m", "MY_KEY")
  message <- model(user(), list())
  expect_true(paste("Authorization: Bearer", key) %in% at$head())
  error <- expect_warrant_error(model(user(), list()), "model_http", status = 401L, attempts = 1L)
  everything <- paste(
    c(
      deparse(message), capture.output(print(model)), conditionMessage(error),
      capture.output(print(error)), rawToChar(serialize(model, NULL, ascii = TRUE)),
      rawToChar(serialize(error, NULL, ascii = TRUE))
    ),
    collapse = " "
  )
  expect_false(grepl(key, everything, fixed = TRUE))
  expect_match(conditionMessage(error), "<redacted>", fixed = TRUE)
})

test_that("a key that is not set is an error before any request", {
  withr::local_envvar(MY_KEY = NA)
  at <- script(says("a"))
  expect_warrant_error(
    model_openai(at$url, "m", "MY_KEY")(user(), list()), "secret", variable = "MY_KEY"
  )
  expect_equal(at$count(), 0L)
})

test_that("addresses with a key in them are refused", {
  expect_warrant_error(model_openai("https://me:pw@x.org/v1", "m"), "secret")
  expect_warrant_error(model_openai("https://x.org/v1?api_key=abc", "m"), "secret")
  expect_warrant_error(model_openai("x.org/v1", "m"), "input", argument = "base_url")
  expect_warrant_error(model_openai("ftp://x.org", "m"), "input", argument = "base_url")
})

test_that("the path is put before a query, and only once", {
  url <- function(base) environment(model_openai(base, "m"))$endpoint$url
  expect_equal(url("http://h/v1/"), "http://h/v1/chat/completions")
  expect_equal(url("http://h/v1/chat/completions"), "http://h/v1/chat/completions")
  expect_equal(url("http://h/v1?version=1"), "http://h/v1/chat/completions?version=1")
})

test_that("parameters have names, and are not those of the package", {
  expect_warrant_error(model_openai("http://h", "m", NULL, 1), "input")
  expect_warrant_error(model_openai("http://h", "m", NULL, stream = TRUE), "input", argument = "...")
  expect_warrant_error(model_openai("http://h", "m", NULL, messages = list()), "input")
})

test_that("a turn writes the new messages only", {
  written <- 0
  cache <- asNamespace("warrant")$new_cache()
  put <- function(x) asNamespace("warrant")$cached(cache, x, function(m) {
    written <<- written + 1
    m$content
  })
  messages <- lapply(1:3, function(i) list(role = "user", content = as.character(i)))
  expect_equal(put(messages), list("1", "2", "3"))
  expect_equal(put(c(messages, user("4"))), list("1", "2", "3", "4"))
  expect_equal(written, 4)
  expect_equal(put(user("other")), list("other"))
  expect_equal(put(list()), list())
})

test_that("what a model is, is printed without its key", {
  withr::local_envvar(MY_KEY = "other")
  lines <- format(model_openai("http://h/v1", "m", "MY_KEY", seed = 1))
  expect_equal(lines[1:4], c(
    "<warrant_model> m", "* endpoint: http://h/v1/chat/completions (openai)",
    "* key: from MY_KEY", "* parameters: seed = 1"
  ))
})
