#' @rdname model_openai
#' @param max_tokens The most tokens of an answer; Anthropic wants it said.
#' @export
model_anthropic <- function(model, api_key_env = "ANTHROPIC_API_KEY", ...,
                            base_url = "https://api.anthropic.com/v1", max_tokens = 4096,
                            timeout_s = 120, retries = 3, max_wait_s = 60) {
  check_count(max_tokens, min = 1, infinite = FALSE)
  endpoint <- new_endpoint(
    base_url, "messages", model, api_key_env, parameters(max_tokens = max_tokens, ...),
    timeout_s, retries, max_wait_s, form = "anthropic"
  )
  endpoint$headers <- function(key) {
    c(list(`anthropic-version` = "2023-06-01"), if (!is.null(key)) list(`x-api-key` = key))
  }
  new_model(
    endpoint, list(message = anthropic_message, tool = anthropic_tool, body = anthropic_body)
  )
}

# A message as its role and the JSON of its blocks.
anthropic_message <- function(message) {
  role <- switch(message$role, tool = "user", developer = "system", message$role)
  blocks <- if (message$role == "tool") {
    list(list(
      type = "tool_result", tool_use_id = message$tool_call_id,
      content = said(message$content), is_error = if (isTRUE(message$is_error)) TRUE
    ))
  } else {
    text <- said(message$content)
    c(
      if (!is.null(message$thinking)) list(message$thinking),
      if (nzchar(trimws(text))) list(list(type = "text", text = text)),
      lapply(message$tool_calls, tool_use)
    )
  }
  blocks <- vapply(blocks, function(block) {
    if (inherits(block, "json")) return(inner(block))
    to_json(Filter(Negate(is.null), block))
  }, "")
  c(role, paste(blocks, collapse = ","))
}

tool_use <- function(call) {
  text <- call$`function`$arguments
  object <- is.character(text) && !is_fault(rs_from_json(text)) && startsWith(trimws(text), "{")
  input <- if (object) structure(text, class = "json") else if (is.list(text)) text else json_empty
  list(type = "tool_use", id = call$id, name = call$`function`$name, input = input)
}

json_empty <- structure("{}", class = "json")

is_fault <- function(x) inherits(x, "warrant_fault")

# The elements of a JSON array as text.
inner <- function(json) sub("\\]\\s*$", "", sub("^\\s*\\[", "", unclass(json)))

# The text of a content: a string, or parts.
said <- function(content) {
  if (is.null(content)) return("")
  if (is.character(content)) return(paste(content, collapse = "\n"))
  paste(unlist(lapply(content, function(part) part$text)), collapse = "")
}

anthropic_tool <- function(tool) {
  about <- tool$`function`
  schema <- about$parameters
  if (is.null(schema)) schema <- structure('{"type":"object","properties":{}}', class = "json")
  list(name = about$name, description = about$description, input_schema = schema)
}

# What stands side by side under one role is one message; system texts are apart.
anthropic_body <- function(endpoint, messages, tools) {
  roles <- vapply(messages, function(m) m[[1]], "")
  blocks <- vapply(messages, function(m) m[[2]], "")
  system <- blocks[roles == "system" & nzchar(blocks)]
  turns <- roles != "system" & nzchar(blocks)
  roles <- roles[turns]
  blocks <- blocks[turns]
  starts <- c(TRUE, roles[-1] != roles[-length(roles)])[seq_along(roles)]
  ends <- c(starts[-1], TRUE)[seq_along(roles)]
  opening <- sprintf('{"role":"%s","content":[', roles)
  opening[-1] <- paste0(",", opening[-1])
  pieces <- rbind(ifelse(starts, opening, ","), blocks, ifelse(ends, "]}", ""))
  json_body(c(
    list(model = to_json(endpoint$model)),
    if (length(tools)) list(tools = json_array(tools)),
    if (length(system)) list(system = json_array(system)),
    list(messages = c("[", pieces, "]")),
    as.list(endpoint$parameters)
  ))
}
