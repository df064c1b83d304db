#' Give a function to an agent as a governed tool
#'
#' Wraps an R function as a tool that an agent may call: arguments are validated
#' against a JSON Schema before anything runs, calls, time and bytes are limited,
#' arguments and results are hashed, and every call is a row of [tool_log()].
#' Use it for every function that a model or planner may reach.
#'
#' The limits are hard. With `max_calls = 5` exactly five calls start over the
#' life of the tool, however they are nested; the sixth is answered with a text
#' that begins `BLOCKED:` and runs nothing. Calls whose arguments are refused do
#' not count. With `max_bytes = 4000` a data frame of 10,000 rows is shown as its
#' first whole rows in at most 4,000 bytes, with how many were left out.
#'
#' Copies of a tool in one session share the count. A tool that was saved with
#' [saveRDS()] and read back carries on from the larger count; see
#' [fresh_tool()] for an independent one. The count is exact within a session: a
#' budget over several processes needs a store.
#'
#' @param fn A function. Arguments are passed by their exact names.
#' @param name The name that the model sees: 1 to 64 letters, digits, `_` or `-`.
#' @param description What the tool does, for the model.
#' @param parameters The arguments as JSON Schema: a named list with a schema for
#'   each (`list(n = list(type = "integer", minimum = 1))`), a whole schema of an
#'   object as a list or JSON text, or `NULL` for none. A `default` there only tells
#'   the model: what a call leaves out has the default of the R function. A
#'   parameter may be marked `secret = TRUE` (see [secret_env()]), or `redact = TRUE`, which
#'   is the same as naming it in `redact`.
#' @param required Names of the arguments that must be given. By default all of a
#'   named list of properties, and what a whole schema says.
#' @param side_effects What a call does to the world: `"none"` only computes,
#'   `"read"` looks, `"write"` changes something of yours, `"external"` reaches
#'   others. When it is not given, `"read"` is assumed, and said to be so.
#' @param requires_approval Whether every call asks a person first; see
#'   [human_gate()].
#' @param timeout_s Time limit of a call in seconds, or `NULL` for none; what it
#'   can stop depends on `isolation`, see [isolation].
#' @param max_calls How many calls may start.
#' @param max_bytes How many bytes of a result, or of an error text, leave.
#' @param ... Not used; the arguments after it must be named.
#' @param scopes Names of permissions that a run must grant before it may call the
#'   tool.
#' @param idempotent Whether a second equal call changes nothing more; by default
#'   `TRUE` for `"none"` and `"read"`.
#' @param cost Cost of a call, counted against the cost limit of a run; at most
#'   nine decimal places.
#' @param isolation `"session"` runs the function here; `"process"` runs it in a
#'   worker process that can be killed at its time limit. See [isolation].
#' @param captures Names of variables that the function takes from where it was
#'   defined, where they cannot be found by themselves; see [hash_tool_spec()].
#' @param record What the log keeps: `"full"` keeps arguments and results as text
#'   (each as long as it was shown; think of memory, and of what is in them),
#'   `"hashes"` only their digests, in under 200 bytes a call.
#' @param redact Parameters that are personal: their names, or a named list that gives each
#'   `TRUE` or a function, or one function for all. Of such a value only a keyed
#'   digest is recorded, with what the function makes of it: neither logs, journals and
#'   prints nor the person who approves is shown more. With
#'   `redact = list(mail = function(x) sub("^(.).*@", "\\1***@", x))` they have `a***@x.org`.
#'   The tool itself is given the value. Where the function fails, or
#'   gives anything but one text, nothing is shown. What errors, warnings and messages of
#'   the tool quote of it is struck out; a result is not searched.
#' @param redact_result `TRUE`, or a function of the result that gives a text: only this
#'   text leaves the call, to the model or planner as to logs and journals. Of the
#'   result itself the journal of a run keeps a keyed digest.
#' @returns A tool: a list of class `agent_tool` and `llmr_tool` with `name`,
#'   `description`, `schema`, the governed function `fn`, and the policy as
#'   `governance` (also an attribute). A definition that cannot hold is an error
#'   of class `warrant_error_input` or `warrant_error_schema`: a name a provider
#'   would refuse, names that are not arguments of `fn`, an unknown JSON Schema
#'   keyword, `max_calls = -1`.
#' @seealso [call_tool()] to call it, [human_gate()], [tool_log()],
#'   [tool_schema()], [hash_tool_spec()].
#' @examples
#' weather <- agent_tool(
#'   function(city) paste("Sunny in", city),
#'   name = "get_weather", description = "Current weather for a city.",
#'   parameters = list(city = list(type = "string")),
#'   side_effects = "external", max_calls = 5
#' )
#' weather
#' call_tool(weather, '{"city": "Lisbon"}')
#' call_tool(weather, '{"town": "Lisbon"}')$content
#' tool_log(weather)
#' @export
agent_tool <- function(fn, name, description, parameters = NULL, required = NULL,
                       side_effects = c("read", "write", "external", "none"),
                       requires_approval = FALSE, timeout_s = NULL, max_calls = Inf,
                       max_bytes = Inf, ..., scopes = NULL, idempotent = NULL, cost = NULL,
                       isolation = c("session", "process"), captures = NULL,
                       record = c("full", "hashes"), redact = NULL, redact_result = NULL) {
  check_closure(fn)
  check_string(name, empty = TRUE)
  check_string(description, empty = TRUE)
  check_dots(...)
  check_flag(requires_approval)
  check_limit(timeout_s, null = TRUE)
  check_limit(max_calls)
  check_limit(max_bytes)
  check_limit(cost, null = TRUE)
  check_names(required, null = TRUE)
  check_names(scopes, null = TRUE)
  check_captures(captures, fn)
  redact <- check_redact(redact, redact_result, fn)
  spec <- list(
    name = name, description = description, parameters = as_parameters(parameters),
    required = if (!is.null(required)) I(required), formals = I(as.character(setdiff(names(formals(fn)), "..."))),
    defaults = I(with_default(fn)), dots = "..." %in% names(formals(fn)),
    side_effects = if (!missing(side_effects)) one_of(side_effects, effect_words),
    requires_approval = requires_approval, prompt = NULL, ttl_s = NULL,
    timeout_s = timeout_s, max_calls = max_calls, max_bytes = max_bytes,
    scopes = I(as.character(scopes)), idempotent = if (!is.null(idempotent)) check_flag(idempotent),
    cost = cost, isolation = one_of(isolation, c("session", "process")),
    record = one_of(record, c("full", "hashes")),
    redact = I(as.character(names(redact$arguments)))
  )
  new_agent_tool(spec, fn, captures, redact, new_count())
}

#' Ask a person before each call of a tool
#'
#' Gives back the tool with its approval requirement set: a call is put to a
#' person first, and without an answer nothing runs. The count of calls is shared
#' with the tool it was made from.
#'
#' Outside a run the person is the `approver` of [call_tool()]. A loop that calls
#' `tool$fn` cannot ask: it is answered with a text that begins `PENDING:` and
#' nothing runs.
#'
#' @param tool A tool made by [agent_tool()].
#' @param prompt What the person is asked, or `NULL`.
#' @param ttl_s How long a request stays open in a run, in seconds, or `NULL` for
#'   as long as it takes.
#' @returns The tool, gated.
#' @seealso [agent_tool()], [call_tool()].
#' @examples
#' order <- human_gate(
#'   agent_tool(function(n) paste("ordered", n), "place_order", "Order some.",
#'              parameters = list(n = list(type = "integer")), side_effects = "write"),
#'   prompt = "Place this order?"
#' )
#' call_tool(order, list(n = 2))$status
#' call_tool(order, list(n = 2), approver = function(request) "approve")$content
#' @export
human_gate <- function(tool, prompt = NULL, ttl_s = NULL) {
  core <- tool_core(tool)
  check_string(prompt, null = TRUE)
  check_limit(ttl_s, null = TRUE)
  spec <- core$spec
  spec["prompt"] <- list(prompt)
  spec["ttl_s"] <- list(ttl_s)
  spec$requires_approval <- TRUE
  new_agent_tool(spec, core$raw_fn, core$captures, core$redact, core$count)
}

#' Make an independent copy of a tool
#'
#' The copy has the same definition, its own count of calls, from 0, and its own
#' log. Use it where each cell of an experiment must have the whole budget.
#'
#' @inheritParams human_gate
#' @returns A tool.
#' @examples
#' once <- agent_tool(function() "done", "once", "Runs once.", max_calls = 1)
#' call_tool(once)$status
#' call_tool(once)$status
#' call_tool(fresh_tool(once))$status
#' @export
fresh_tool <- function(tool) {
  core <- tool_core(tool)
  new_agent_tool(core$spec, core$raw_fn, core$captures, core$redact, new_count())
}

new_agent_tool <- function(spec, fn, captures, redact, count, call = caller_env()) {
  # Without names an environment is a plain value to saveRDS(): all that is
  # needed to be live again is in it.
  core <- new.env(parent = emptyenv())
  core$spec <- spec
  core$raw_fn <- fn
  core$captures <- captures
  core$redact <- redact
  core$redacts <- any(vapply(redact$arguments, is.function, NA))
  core$count <- count
  core$ptr <- unwrap_core(rs_tool_new(spec, count$id, count$calls), call)
  info <- rs_tool_info(core$ptr)
  core$timeout_s <- info$timeout_s
  core$isolation <- info$isolation
  core$secrets <- info$secrets
  if (info$isolation == "process") {
    core$bundle <- tool_bundle(fn, captures, call)
    core$taken <- taken_captures(core)
  }
  core$governance <- list(
    side_effects = info$side_effects, side_effects_assumed = is.null(spec$side_effects),
    requires_approval = info$requires_approval, prompt = spec$prompt, ttl_s = spec$ttl_s,
    timeout_s = info$timeout_s, max_calls = spec$max_calls %or% Inf, max_bytes = spec$max_bytes %or% Inf,
    scopes = as.character(info$scopes), idempotent = info$idempotent, cost = spec$cost,
    isolation = info$isolation, record = spec$record, raw_fn = fn
  )
  structure(
    list(
      name = spec$name, description = spec$description, schema = info$schema,
      fn = governed_function(core), governance = core$governance
    ),
    governance = core$governance,
    class = c("agent_tool", "llmr_tool")
  )
}

# What a tool loop calls: text for the model.
governed_function <- function(core) {
  force(core)
  function(...) run_call(core, by_name(core, list(...)), context = loop_context)$content
}

# What is inside a tool.
tool_core <- function(tool, arg = caller_arg(tool), call = caller_env()) {
  if (inherits(tool, "agent_tool") && is.function(fn <- .subset2(tool, "fn"))) {
    core <- environment(fn)$core
    if (!is.null(core)) return(core)
  }
  stop_type(tool, arg, "a tool made by agent_tool()", call)
}

# A tool is what it was defined as: what is edited afterwards would not hold.
#' @export
`$<-.agent_tool` <- function(x, name, value) stop_edited(x, name)

#' @export
`[[<-.agent_tool` <- function(x, i, value) stop_edited(x, i)

stop_edited <- function(tool, what) {
  name <- .subset2(tool, "name")
  stop_warrant(
    c("A tool must stay as it was defined.",
      x = paste0("`", format(what), "` of the tool `", name, "` was to be changed."),
      i = "Define it again with agent_tool(), or gate it with human_gate()."),
    "state", code = "tool_edited", tool = name, call = quote(agent_tool())
  )
}

# The live pointer: made again after saveRDS() and readRDS(), where the count is
# the larger of what was saved and what this session knows of the same tool.
tool_ptr <- function(core) {
  if (!rs_tool_alive(core$ptr)) {
    core$ptr <- unwrap_core(rs_tool_new(core$spec, core$count$id, core$count$calls))
  }
  core$ptr
}

new_count <- function() {
  count <- new.env(parent = emptyenv())
  count$id <- unwrap_core(rs_random_id())
  count$calls <- 0
  count
}

# One number that is not NA; which numbers a limit may be, the core says.
check_limit <- function(x, arg = caller_arg(x), null = FALSE, call = caller_env()) {
  check_number(x, arg, null = null, call = call)
}

check_closure <- function(fn, call = caller_env()) {
  if (is.function(fn) && !is.primitive(fn)) return(invisible(fn))
  what <- if (is.primitive(fn)) "a primitive function; wrap it: function(x) sum(x)" else friendly(fn)
  stop_warrant(
    c("`fn` must be a function with named arguments.", x = paste0("Found ", what, ".")),
    "input", argument = "fn", call = call
  )
}

check_captures <- function(captures, fn, call = caller_env()) {
  check_names(captures, null = TRUE, call = call)
  gone <- captures[!vapply(captures, exists, NA, envir = environment(fn))]
  if (!length(gone)) return(invisible(captures))
  stop_warrant(
    c("`captures` must name variables that the function can see.", x = paste0("Not found: ", paste(gone, collapse = ", "), ".")),
    "input", argument = "captures", call = call
  )
}

with_default <- function(fn) {
  given <- vapply(formals(fn), function(x) !(is.symbol(x) && !nzchar(as.character(x))), NA)
  as.character(setdiff(names(given)[given], "..."))
}

as_parameters <- function(x) {
  if (is.character(x) && length(x) == 1L && !inherits(x, "json")) structure(x, class = "json") else x
}

effect_words <- c("read", "write", "external", "none")

`%or%` <- function(x, y) if (is.null(x)) y else x

# Arguments by name: those without one take the formals that are left, in order,
# as R would.
by_name <- function(core, args) {
  names <- names(args) %or% character(length(args))
  bare <- which(!nzchar(names))
  if (length(bare)) {
    left <- setdiff(core$spec$formals, names)
    names[bare] <- ifelse(seq_along(bare) <= length(left), left[seq_along(bare)], "")
    names(args) <- names
  }
  args
}

#' @export
format.agent_tool <- function(x, ...) {
  core <- tool_core(x)
  policy <- core$governance
  limits <- c(
    if (is.finite(policy$max_calls)) sprintf("%g calls", policy$max_calls),
    if (!is.null(policy$timeout_s)) sprintf("%g s a call", policy$timeout_s),
    if (is.finite(policy$max_bytes)) sprintf("%g bytes a result", policy$max_bytes)
  )
  effects <- paste0(policy$side_effects, if (policy$side_effects_assumed) " (assumed)")
  c(
    sprintf("<agent_tool> %s(%s)", x$name, paste(names(x$schema$properties), collapse = ", ")),
    paste0("* ", x$description),
    paste0("* side effects: ", effects, if (policy$requires_approval) ", asks a person first"),
    if (length(core$secrets) || !is.null(core$redact$result)) {
      paste0("* hidden: ", paste(c(core$secrets, if (!is.null(core$redact$result)) "the result"), collapse = ", "))
    },
    if (length(policy$scopes)) paste0("* scopes: ", paste(policy$scopes, collapse = ", ")),
    paste0("* limits: ", if (length(limits)) paste(limits, collapse = ", ") else "none"),
    paste0("* runs in: ", policy$isolation, "; calls started: ", rs_tool_calls(tool_ptr(core)))
  )
}

#' @export
print.agent_tool <- function(x, ...) {
  writeLines(format(x, ...))
  invisible(x)
}
