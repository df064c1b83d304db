#' Talk to a model over HTTP
#'
#' Gives a function of `messages` and `tools` that answers with an assistant
#' message, all in the form of OpenAI's chat API: what [planner_llm()] takes.
#' `model_openai()` speaks to every endpoint of that form (OpenAI, Groq, OpenRouter,
#' vLLM, Ollama, llama.cpp and others), `model_anthropic()` to Anthropic's, which it
#' translates both ways. Both need the package httr2.
#'
#' Keys are read from the environment when a request is sent. They are not in the
#' function, nor in the state, trail, prints or errors of a run.
#'
#' A request that fails for a reason that may pass (no connection, a cut answer,
#' status 408, 429 or 5xx) is sent again after 1, 2, 4, ... seconds, or after what the
#' endpoint asks for by `Retry-After`. Example: with `retries = 2` and an endpoint that
#' is down, three requests are sent within about three seconds, then there is an error.
#' Where it asks for more than `max_wait_s`, there is an error at once. The time of
#' failed requests and of waiting is reported with the message (`waited_s`), and a run
#' does not count it as working time.
#'
#' Each request is bounded by `timeout_s`. A hang is not tried again more often than
#' anything else: in the worst case a call takes `(retries + 1) * timeout_s` and the
#' waiting.
#'
#' @param base_url Where the endpoint is, up to and without `/chat/completions`:
#'   `"https://api.openai.com/v1"`, `"http://localhost:11434/v1"`. No user name or key
#'   may be in it.
#' @param model The name of the model.
#' @param api_key_env Name of the environment variable that holds the key, or `NULL`
#'   for an endpoint without keys.
#' @param ... Parameters of the request, by name: `temperature = 0`, `seed = 1`,
#'   `max_tokens = 500`.
#' @param timeout_s Time limit of a request, in seconds.
#' @param retries How often a failed request is sent again.
#' @param max_wait_s The longest wait that an endpoint may ask for.
#' @returns A function of class `warrant_model`. It returns a list with `role`,
#'   `content`, `tool_calls` (each with `id`, `type` and `function`, a list of `name` and
#'   `arguments`: the text exactly as it came), and what was reported: `model` (the one
#'   that served), `usage`, `finish_reason`, `waited_s`.
#'
#'   Errors have the class `warrant_error_model`, the fields `url`, `attempts` and
#'   `waited_s`, a `status` where there is one, and one of these classes:
#'   `warrant_error_model_unreachable`, `_model_timeout`, `_model_rate_limited` (with
#'   `retry_after_s`), `_model_server_error`, `_model_http` (any other status),
#'   `_model_not_json`, `_model_answer_cut`, `_model_no_choices`,
#'   `_model_answer_form`, `_model_refused`. A variable that is not set is
#'   `warrant_error_secret`.
#' @seealso [planner_llm()]
#' @examples
#' model <- model_openai("http://localhost:11434/v1", "qwen3", api_key_env = NULL,
#'   temperature = 0
#' )
#' model
#' \dontrun{
#' model(list(list(role = "user", content = "What is a span?")), list())$content
#' }
#' @export
model_openai <- function(base_url, model, api_key_env = "OPENAI_API_KEY", ..., timeout_s = 120,
                         retries = 3, max_wait_s = 60) {
  endpoint <- new_endpoint(
    base_url, "chat/completions", model, api_key_env, parameters(...), timeout_s, retries,
    max_wait_s, form = "openai"
  )
  endpoint$headers <- function(key) {
    if (!is.null(key)) list(Authorization = paste("Bearer", key))
  }
  new_model(endpoint, list(message = openai_message, tool = identity, body = openai_body))
}

# The order of the members is that of the conversation's growth, so that providers
# can use again what they have read.
openai_body <- function(endpoint, messages, tools) {
  json_body(c(
    list(model = to_json(endpoint$model)),
    if (length(tools)) list(tools = json_array(tools)),
    list(messages = json_array(messages)),
    as.list(endpoint$parameters)
  ))
}

openai_message <- function(message) {
  keep <- c("role", "content", "name", "tool_calls", "tool_call_id")
  to_json(message[names(message) %in% keep])
}

# ---- what models have in common ----------------------------------------------------

new_endpoint <- function(base_url, path, model, api_key_env, parameters, timeout_s, retries,
                         max_wait_s, form, call = caller_env()) {
  check_string(base_url, call = call)
  check_string(model, call = call)
  check_string(api_key_env, null = TRUE, call = call)
  check_number(timeout_s, min = 0.001, call = call)
  check_count(retries, infinite = FALSE, call = call)
  check_number(max_wait_s, min = 0, call = call)
  list(
    url = endpoint_url(base_url, path, call), model = model, api_key_env = api_key_env,
    parameters = parameters, timeout_s = timeout_s, retries = retries,
    max_wait_s = max_wait_s, form = form
  )
}

endpoint_url <- function(base_url, path, call) {
  good <- grepl("^https?://[^/?#]+", base_url) && !grepl("[[:space:]#]", base_url)
  if (!good) stop_type(base_url, "base_url", "an address that begins with http:// or https://", call)
  if (grepl("^https?://[^/?]*@", base_url) || grepl("[?&](api[-_]?)?(key|token)=", base_url, ignore.case = TRUE)) {
    stop_warrant(
      c("`base_url` must not hold a user name or a key.",
        i = "Put the key into an environment variable, and its name into `api_key_env`."),
      "secret", argument = "base_url", call = call
    )
  }
  parts <- regmatches(base_url, regexec("^([^?]*)([?].*)?$", base_url))[[1]]
  root <- sub("/+$", "", parts[[2]])
  if (!endsWith(root, paste0("/", path))) root <- paste0(root, "/", path)
  paste0(root, parts[[3]])
}

# Request parameters as JSON texts, by name.
parameters <- function(..., call = caller_env()) {
  given <- list(...)
  if (length(given) == 0L) return(NULL)
  names <- names(given)
  taken <- c("model", "messages", "tools", "stream", "n", "system")
  if (is.null(names) || !all(nzchar(names)) || anyDuplicated(names) || any(names %in% taken)) {
    stop_warrant(
      c("Parameters of the request must be named, each once.",
        x = paste0("Not among them can be ", paste0("`", taken, "`", collapse = ", "), ".")),
      "input", argument = "...", call = call
    )
  }
  vapply(given, to_json, "")
}

# A function that keeps the JSON of the messages it has sent: a turn writes only
# the new ones.
new_model <- function(endpoint, form) {
  force(endpoint)
  force(form)
  sent <- new_cache()
  offered <- new_cache()
  ask <- function(messages, tools = list()) {
    check_messages(messages)
    body <- form$body(
      endpoint, cached(sent, messages, form$message),
      cached(offered, tools, function(tool) to_json(form$tool(tool)))
    )
    as_message(ask_endpoint(endpoint, body))
  }
  structure(ask, class = c("warrant_model", "function"))
}

new_cache <- function() {
  cache <- new.env(parent = emptyenv())
  cache$from <- list()
  cache$made <- list()
  cache
}

# `f` of each element of `x`; of those that are the same as last time, what it was.
cached <- function(cache, x, f) {
  x <- unname(x)
  old <- length(cache$from)
  if (old > length(x) || !identical(x[seq_len(old)], cache$from)) {
    old <- 0L
    cache$made <- list()
  }
  new <- seq_along(x)[seq_along(x) > old]
  cache$made[new] <- lapply(x[new], f)
  cache$from <- x
  cache$made
}

check_messages <- function(messages, call = caller_env()) {
  good <- is.list(messages) && length(messages) && is.null(names(messages)) &&
    all(vapply(messages, function(m) is.list(m) && is.character(m$role), NA))
  if (!good) stop_type(messages, "messages", "a list of messages, each with a `role`", call)
}

as_message <- function(reply) {
  calls <- lapply(reply$calls, function(call) {
    c(
      list(
        id = call$id, type = "function",
        `function` = list(name = call$name, arguments = call$arguments)
      ),
      if (!is.null(call$extra)) list(extra_content = structure(call$extra, class = "json"))
    )
  })
  message <- list(role = "assistant", content = NULL)
  message["content"] <- list(reply$text)
  if (length(calls)) message$tool_calls <- calls
  if (!is.null(reply$thinking)) message$thinking <- structure(reply$thinking, class = "json")
  message$finish_reason <- reply$finish
  message$model <- reply$model
  message$usage <- Filter(function(x) length(x) == 1L && !is.na(x), reply$usage)
  message$waited_s <- reply$waited_s
  message
}

to_json <- function(x) unwrap_core(rs_to_json(x))

# Pieces of JSON, which are joined at the end: strings of the length of a
# conversation are slow in R.
json_array <- function(parts) {
  parts <- unlist(parts)
  c("[", rbind(rep(",", length(parts)), parts)[-1], "]")
}

# The body of a request, as bytes.
json_body <- function(members) {
  names <- paste0(",", vapply(names(members), to_json, ""), ":")
  names[[1]] <- substring(names[[1]], 2)
  pieces <- Map(c, names, members, USE.NAMES = FALSE)
  unwrap_core(rs_chat_join(c("{", unlist(pieces), "}")))
}

# What identifies a model: never a key, nor what stands in the address behind "?" other
# than a version.
model_facts <- function(model) {
  if (!inherits(model, "warrant_model")) return(function_facts(model))
  endpoint <- environment(model)$endpoint
  list(
    kind = endpoint$form, name = endpoint$model, url = public_url(endpoint$url),
    parameters = named_list(lapply(as.list(endpoint$parameters), structure, class = "json")),
    api_key_env = endpoint$api_key_env
  )
}

public_url <- function(url) {
  parts <- strsplit(url, "?", fixed = TRUE)[[1]]
  if (length(parts) == 1L) return(url)
  query <- strsplit(paste(parts[-1], collapse = "?"), "&", fixed = TRUE)[[1]]
  secret <- !grepl("^api-?version=", query, ignore.case = TRUE)
  query[secret] <- sub("=.*", "=<redacted>", query[secret])
  paste0(parts[[1]], "?", paste(query, collapse = "&"))
}

#' @export
format.warrant_model <- function(x, ...) {
  endpoint <- environment(x)$endpoint
  shown <- endpoint$parameters
  c(
    paste0("<warrant_model> ", endpoint$model),
    paste0("* endpoint: ", endpoint$url, " (", endpoint$form, ")"),
    paste0("* key: ", if (is.null(endpoint$api_key_env)) "none" else paste("from", endpoint$api_key_env)),
    if (length(shown)) paste0("* parameters: ", paste(names(shown), "=", shown, collapse = ", ")),
    sprintf(
      "* limits: %g s a request, %g more attempts, waits up to %g s", endpoint$timeout_s,
      endpoint$retries, endpoint$max_wait_s
    )
  )
}

#' @export
print.warrant_model <- function(x, ...) {
  writeLines(format(x, ...))
  invisible(x)
}
