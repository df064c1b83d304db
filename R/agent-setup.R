# What an agent is given, checked, and what the core needs of it.

check_tools <- function(tools, call = caller_env()) {
  if (inherits(tools, "agent_tool")) tools <- list(tools)
  good <- is.list(tools) && all(vapply(tools, inherits, NA, "agent_tool"))
  if (!good) stop_type(tools, "tools", "a tool made by agent_tool() or a list of them", call)
  for (tool in tools) tool_core(tool, "tools", call)
  stats::setNames(tools, vapply(tools, function(t) t$name, ""))
}

check_class <- function(x, class, maker, arg = caller_arg(x), call = caller_env()) {
  if (inherits(x, class)) return(invisible(x))
  stop_type(x, arg, paste("made by", maker), call)
}

check_effects <- function(x, arg = caller_arg(x), call = caller_env()) {
  words <- c("none", "read", "write", "external")
  if (is.character(x) && all(x %in% words)) return(invisible(x))
  stop_type(x, arg, paste("some of", paste(dQuote(words, FALSE), collapse = ", ")), call)
}

check_per_tool <- function(x, call = caller_env()) {
  if (length(x) == 0L) return(stats::setNames(numeric(), character()))
  if (is.list(x)) x <- unlist(x)
  good <- is.numeric(x) && !anyNA(x) && all(x >= 0 & (x == Inf | x == trunc(x))) &&
    !is.null(names(x)) && all(nzchar(names(x))) && !anyDuplicated(names(x))
  if (good) return(x)
  stop_type(x, "per_tool", "a vector of whole numbers of at least 0, named by tools", call)
}

check_usage <- function(usage, call = caller_env()) {
  if (is.null(usage)) return(NULL)
  number <- function(x) is.numeric(x) && length(x) == 1L && is.finite(x) && x >= 0
  good <- is.list(usage) && all(names(usage) %in% c("tokens", "cost")) &&
    length(names(usage)) == length(usage) && all(vapply(usage, number, NA)) &&
    (is.null(usage$tokens) || usage$tokens == trunc(usage$tokens))
  if (good) return(usage)
  stop_type(usage, "usage", "list(tokens = <whole number>, cost = <number>), at least 0", call)
}

as_actions <- function(actions, call = caller_env()) {
  out <- list()
  for (action in actions) {
    if (inherits(action, "agent_decision") && action$decision == "act") {
      out <- c(out, action$actions)
    } else if (is.list(action) && is.character(action$tool) && length(action$tool) == 1L) {
      arguments <- if (is.null(action$arguments)) list() else action$arguments
      out <- c(out, list(list(tool = action$tool, arguments = check_arguments(arguments, call))))
    } else {
      stop_type(action, "tool", "a list of actions, each with a `tool` and `arguments`", call)
    }
  }
  if (length(out) == 0L) stop_type(actions, "tool", "a tool name or at least one action", call)
  out
}

argument_rule <- function(arguments, call = caller_env()) {
  if (is.character(arguments) && length(arguments) == 1L) {
    return(structure(arguments, class = "json"))
  }
  if (!is.list(arguments)) {
    stop_type(arguments, "arguments", "a list of JSON Schemas or a whole JSON Schema", call)
  }
  whole <- c("type", "properties", "$ref", "allOf", "anyOf", "oneOf", "not", "const", "enum", "required")
  keywords <- intersect(names(arguments), whole)
  # A property may be named like a keyword; its value then is a schema.
  if (any(vapply(arguments[setdiff(keywords, "properties")], is_no_schema, NA)) ||
    "properties" %in% keywords) {
    return(arguments)
  }
  if (length(arguments) && (is.null(names(arguments)) || !all(nzchar(names(arguments))))) {
    stop_type(arguments, "arguments", "a list of JSON Schemas with a name for each argument", call)
  }
  list(
    type = "object", properties = stats::setNames(arguments, as.character(names(arguments))),
    required = I(as.character(names(arguments))), additionalProperties = FALSE
  )
}

is_no_schema <- function(x) !is.list(x) || is.null(names(x))

sort_c <- function(x) sort(x, method = "radix")

tool_pointers <- function(agent) {
  unname(lapply(agent$tools, function(tool) tool_ptr(tool_core(tool))))
}

# What the core needs of an agent, apart from the tools' pointers.
run_setup <- function(agent) {
  limits <- agent$limits
  finite <- function(x) if (is.finite(x)) x
  per_tool <- as.list(limits$per_tool[is.finite(limits$per_tool)])
  list(
    allow = I(agent$policy$allow_effects), approve = I(agent$policy$approve_effects),
    scopes = I(agent$policy$granted_scopes),
    guards = lapply(unname(unclass(agent$guardrails)), guardrail_facts),
    approver = !is.null(agent$approver), judge = !is.null(agent$done),
    grants = lapply(agent$policy$grants, function(g) {
      list(
        count = finite(g$count), rule = g$arguments, run = g$run, tool = g$tool,
        until_ms = if (!is.null(g$until)) floor(as.numeric(g$until) * 1000)
      )
    }),
    limits = list(
      active_ms = finite(ceiling(limits$seconds * 1000)),
      call_timeout_ms = finite(ceiling(limits$call_timeout_s * 1000)),
      cost = finite(limits$cost), per_tool = stats::setNames(per_tool, as.character(names(per_tool))),
      steps = finite(limits$steps), tokens = finite(limits$tokens),
      tool_calls = finite(limits$tool_calls)
    ),
    spec_hashes = I(vapply(agent$tools, hash_tool_spec, "", USE.NAMES = FALSE))
  )
}

# What a planner is told of the tools.
tool_cards <- function(agent) {
  lapply(agent$tools, function(tool) {
    list(
      name = tool$name, description = tool$description, schema = tool$schema,
      side_effects = tool$governance$side_effects, scopes = tool$governance$scopes,
      cost = tool$governance$cost
    )
  })
}
