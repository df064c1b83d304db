# One exchange with an endpoint: the request, its attempts, and what can go wrong.
# The only file that uses httr2, of 0.2.2 and later. Its errors are not handed on:
# they hold the request, and so the key.

# The reply of the core, with `waited_s`: what failed attempts and waiting took.
ask_endpoint <- function(endpoint, body, call = quote(model())) {
  rlang::check_installed("httr2", "to talk to a model over HTTP.")
  key <- endpoint_key(endpoint, call)
  waited <- 0
  for (attempt in seq_len(endpoint$retries + 1)) {
    began <- elapsed()
    end <- attempt_request(endpoint, key, body)
    if (!is.null(end$reply)) return(c(end$reply, list(waited_s = waited)))
    pause <- pause_s(end, attempt)
    if (!end$again || attempt > endpoint$retries || pause > endpoint$max_wait_s) break
    Sys.sleep(pause)
    waited <- waited + elapsed() - began
  }
  stop_endpoint(endpoint, key, end, attempt, waited + elapsed() - began, call)
}

endpoint_key <- function(endpoint, call) {
  name <- endpoint$api_key_env
  if (is.null(name)) return(NULL)
  key <- trimws(Sys.getenv(name))
  if (!nzchar(key) || grepl("[[:cntrl:]]", key)) {
    stop_warrant(
      c(paste0("The environment variable `", name, "` must hold the key of the endpoint."),
        x = if (nzchar(key)) "It has characters that no key has." else "It is not set.",
        i = "For an endpoint without keys say `api_key_env = NULL`."),
      "secret", variable = name, resumable = TRUE, call = call
    )
  }
  key
}

# One attempt: list(reply =) or list(again =, code =, said =, ...).
attempt_request <- function(endpoint, key, body) {
  response <- tryCatch(send(endpoint, key, body), error = identity)
  if (inherits(response, "error")) return(no_response(response))
  status <- httr2::resp_status(response)
  text <- response_text(response)
  if (status >= 300) return(bad_status(status, text, response))
  if (is.na(text)) return(list(again = FALSE, code = "model_not_json", said = "It is not text.", status = status))
  reply <- rs_chat_reply(text, endpoint$form)
  if (!is_fault(reply)) return(list(reply = reply))
  facts <- unwrap_core(rs_from_json(reply$facts))
  passing <- c(408L, 429L, 500:599)
  list(
    again = reply$code == "model_answer_cut" || isTRUE(facts$status %in% passing),
    code = reply$code, said = upper_first(reply$message), status = status,
    preview = if (reply$code == "model_not_json") preview(text)
  )
}

send <- function(endpoint, key, body) {
  request <- httr2::request(endpoint$url)
  request <- httr2::req_body_raw(request, body, "application/json")
  for (name in names(endpoint$headers(key))) {
    header <- endpoint$headers(key)[name]
    request <- rlang::inject(httr2::req_headers(request, !!!header))
  }
  request <- httr2::req_timeout(request, endpoint$timeout_s)
  # A redirect would carry the key to another place.
  request <- httr2::req_options(request, followlocation = FALSE)
  # Attempts are ours: httr2 0.2 would sleep after the last one too.
  request <- httr2::req_retry(
    request, max_tries = 1, is_transient = function(response) FALSE,
    backoff = function(tries) 0
  )
  request <- httr2::req_user_agent(request, "warrant (R package)")
  request <- httr2::req_error(request, is_error = function(response) FALSE)
  httr2::req_perform(request)
}

response_text <- function(response) {
  bytes <- response$body
  if (!is.raw(bytes)) bytes <- tryCatch(httr2::resp_body_raw(response), error = function(e) raw())
  if (any(bytes == 0L)) return(NA_character_)
  text <- rawToChar(bytes)
  Encoding(text) <- "UTF-8"
  if (validUTF8(text)) text else NA_character_
}

no_response <- function(error) {
  said <- conditionMessage(error)
  while (!is.null(error$parent)) {
    error <- error$parent
    said <- c(said, conditionMessage(error))
  }
  said <- paste(said, collapse = " ")
  code <- if (grepl("time(d)? ?-?out", said, ignore.case = TRUE)) {
    "model_timeout"
  } else if (grepl("transfer closed|partial file|bytes remaining|unexpected eof|empty reply|reset by peer", said,
    ignore.case = TRUE
  )) {
    "model_answer_cut"
  } else {
    "model_unreachable"
  }
  list(again = TRUE, code = code, said = error_line(conditionMessage(error)))
}

bad_status <- function(status, text, response) {
  code <- if (status == 429) {
    "model_rate_limited"
  } else if (status >= 500) {
    "model_server_error"
  } else {
    "model_http"
  }
  list(
    again = status %in% c(408, 429) || status >= 500, code = code, status = status,
    said = paste0("It answered with status ", status, "."), preview = preview(text),
    retry_after_s = retry_after(response)
  )
}

# Seconds, or NULL: a number, or a date by the endpoint's clock.
retry_after <- function(response) {
  ms <- suppressWarnings(as.numeric(header(response, "retry-after-ms")))
  if (length(ms) && is.finite(ms)) return(max(0, ms / 1000))
  text <- header(response, "retry-after")
  if (is.null(text)) return(NULL)
  seconds <- suppressWarnings(as.numeric(text))
  if (is.finite(seconds)) return(max(0, seconds))
  until <- http_date(text)
  here <- http_date(header(response, "date"))
  if (is.null(until)) return(NULL)
  max(0, until - if (is.null(here)) now() else here)
}

header <- function(response, name) {
  tryCatch(httr2::resp_header(response, name), error = function(e) NULL)
}

# "Sun, 06 Nov 1994 08:49:37 GMT", whatever the language of the session.
http_date <- function(text) {
  form <- "^[A-Za-z]{3}, ([0-9]{2}) ([A-Za-z]{3}) ([0-9]{4}) ([0-9]{2}:[0-9]{2}:[0-9]{2}) GMT$"
  if (is.null(text) || !grepl(form, text)) return(NULL)
  parts <- regmatches(text, regexec(form, text))[[1]]
  date <- sprintf("%s-%02d-%s %s", parts[[4]], match(parts[[3]], month.abb), parts[[2]], parts[[5]])
  time <- as.POSIXct(date, tz = "UTC", format = "%Y-%m-%d %H:%M:%S")
  if (is.na(time)) NULL else as.numeric(time)
}

# How long until the next attempt. The fraction keeps clients that failed together
# from coming back together, without R's random numbers.
pause_s <- function(end, attempt) {
  if (!is.null(end$retry_after_s)) return(end$retry_after_s)
  min(2^(attempt - 1), 30) * (0.75 + (now() * 1000) %% 1 / 2) * the$backoff
}

elapsed <- function() proc.time()[["elapsed"]]

preview <- function(text) {
  if (is.na(text)) return(NULL)
  said <- rs_from_json(text)
  if (is.list(said) && !is_fault(said)) {
    found <- if (is.list(said$error)) said$error$message else said$error
    if (is.null(found)) found <- said$message
    if (is.character(found) && length(found) == 1L) text <- found
  }
  error_line(text)
}

error_line <- function(text) {
  text <- trimws(gsub("[[:space:]]+", " ", text))
  if (nchar(text) > 300L) paste0(substr(text, 1L, 297L), "...") else text
}

stop_endpoint <- function(endpoint, key, end, attempts, waited_s, call) {
  what <- switch(end$code,
    model_unreachable = "cannot be reached",
    model_timeout = sprintf("did not answer within %g s", endpoint$timeout_s),
    model_rate_limited = "takes no more requests for now",
    model_server_error = "failed",
    model_http = "refused the request",
    model_refused = "refused the request",
    "gave an answer that cannot be used"
  )
  clean <- function(text) if (length(text)) without_key(text, key)
  stop_warrant(
    c(
      paste0("The endpoint ", endpoint$url, " ", what, "."),
      x = clean(end$said),
      x = if (length(end$preview) && nzchar(end$preview)) paste0("It said: ", clean(end$preview)),
      i = if (!is.null(end$retry_after_s)) sprintf("It asks for a wait of %g s.", end$retry_after_s),
      i = if (attempts > 1) sprintf("Attempts: %d.", attempts)
    ),
    "model", code = end$code, url = endpoint$url, model = endpoint$model, status = end$status,
    attempts = as.integer(attempts), retry_after_s = end$retry_after_s, waited_s = waited_s,
    resumable = TRUE, call = call
  )
}

# Some endpoints repeat the key they were given.
without_key <- function(text, key) {
  if (is.null(key)) return(text)
  gsub(key, "<redacted>", text, fixed = TRUE)
}
