#' Write tools in a provider's format
#'
#' The definitions of tools as the providers want them, for a request that you
#' build yourself. Arrays are lists, so the result can be written with
#' `jsonlite::toJSON(x, auto_unbox = TRUE)` or by httr2 as it is.
#'
#' A tool without parameters has `properties: {}`, and no parameters at all for
#' Gemini. References into the schema are written out (kept for MCP), an array
#' without `items` gets free ones, and what only this package understands is left
#' out. What a provider's format cannot say is still checked here when the call
#' arrives.
#'
#' @param tools A tool, a list of tools, or an agent.
#' @param provider `"openai"` (and all that speak its chat format), `"anthropic"`,
#'   `"gemini"` or `"mcp"`.
#' @param ... Not used.
#' @param strict For OpenAI: ask for strict mode where the schema can be written
#'   that way (every object closed, everything required, optional parameters
#'   nullable). A tool with a free-form object is sent with `strict = FALSE`.
#' @returns A list with one definition a tool. Two tools of one name are an error
#'   of class `warrant_error_input`.
#' @examples
#' weather <- agent_tool(
#'   function(city) paste("Sunny in", city),
#'   name = "get_weather", description = "Current weather for a city.",
#'   parameters = list(city = list(type = "string")), side_effects = "external"
#' )
#' str(tool_schema(weather, "anthropic"))
#' @export
tool_schema <- function(tools, provider = c("openai", "anthropic", "gemini", "mcp"), ..., strict = FALSE) {
  provider <- one_of(provider, c("openai", "anthropic", "gemini", "mcp"))
  check_dots(...)
  check_flag(strict)
  cores <- lapply(as_tools(tools), tool_core, arg = "tools")
  lapply(cores, function(core) unwrap_core(rs_tool_schema(tool_ptr(core), provider, strict)))
}

# A list of tools with different names, from a tool, a list of them, or an agent.
as_tools <- function(tools, call = caller_env()) {
  if (inherits(tools, "agent_tool")) {
    tools <- list(tools)
  } else if (inherits(tools, "agent")) {
    tools <- tools$tools
  }
  if (!is.list(tools) || !all(vapply(tools, inherits, NA, "agent_tool"))) {
    stop_type(tools, "tools", "a tool, a list of tools, or an agent", call)
  }
  names <- vapply(tools, function(tool) tool$name, "")
  if (anyDuplicated(names)) {
    twice <- unique(names[duplicated(names)])
    stop_warrant(
      c("Tools must have different names.", x = paste0("Twice: ", paste(twice, collapse = ", "), ".")),
      "input", code = "tool_name_twice", names = twice, call = call
    )
  }
  unname(tools)
}
