#' @rdname tool_log
#' @export
tool_log.agent_run <- function(x, ...) {
  kept <- read_kept(x$store, x$run_id)
  as_log(unwrap_core(rs_run_log(kept$lines, kept$content)))
}

#' Look at a run at several grains
#'
#' `as_agent_run()` gives a run for [tibble::as_tibble()], whose `level` chooses what a row
#' is. Where the package LLMRagent is loaded, its generic of this name takes runs too.
#'
#' @param x A run.
#' @param ... For methods.
#' @param level `"tool"`: a row for each action, as [tool_log()] gives it. `"event"`: a
#'   row for each record of the journal. `"call"`: a row for each call of the planner.
#'   `"state"`: one row for the run.
#' @returns `as_agent_run()` gives the run, `as_tibble()` a tibble.
#' @examples
#' half <- agent_tool(function(x) x / 2, "half", "Half of a number.",
#'   parameters = list(x = list(type = "number")), side_effects = "none"
#' )
#' planner <- function(state, tools) {
#'   if (length(state$steps)) decide_finish("done") else decide_act("half", list(x = 3))
#' }
#' run <- as_agent_run(run_agent(agent(half, planner), "halve"))
#' tibble::as_tibble(run, level = "call")
#' tibble::as_tibble(run, level = "state")
#' @export
as_agent_run <- function(x, ...) {
  UseMethod("as_agent_run")
}

#' @export
as_agent_run.agent_run <- function(x, ...) x

#' @export
as_agent_run.default <- function(x, ...) {
  stop_type(x, "x", "a run", quote(as_agent_run()))
}

#' @rdname as_agent_run
#' @method as_tibble agent_run
#' @export
as_tibble.agent_run <- function(x, ..., level = c("tool", "event", "call", "state")) {
  level <- arg_match(level)
  switch(level,
    tool = tool_log(x),
    event = run_events(x),
    call = run_plans(x),
    state = run_state(x)
  )
}

run_events <- function(run) {
  events <- unwrap_core(rs_run_events(run$store$read(run$run_id)))
  events$at <- as.POSIXct(events$at, origin = "1970-01-01", tz = "UTC")
  tibble::new_tibble(events, nrow = length(events$event))
}

run_plans <- function(run) {
  events <- run_events(run)
  plans <- events[events$event == "decided", ]
  data <- lapply(plans$data, function(text) unwrap_core(rs_from_json(text)))
  number <- function(path) vapply(data, function(d) as.numeric(d$usage[[path]]), 0)
  tibble(
    run_id = plans$run_id, step = vapply(data, function(d) as.integer(d$step), 0L),
    decision = vapply(data, function(d) d$decision, ""),
    actions = vapply(data, function(d) length(d$actions), 0L),
    tokens = number("tokens"), cost = number("cost_nano") / 1e9, at = plans$at
  )
}

run_state <- function(run) {
  tibble(
    run_id = run$run_id, status = run$status,
    stop_reason = if (is.null(run$stop_reason)) NA_character_ else run$stop_reason,
    goal = list(run$goal), answer = list(run$answer), steps = length(run$steps),
    tool_calls = run$used$tool_calls, tokens = run$used$tokens, cost = run$used$cost,
    seconds = run$used$seconds, pending = length(run$pending), records = run$records,
    audit_head = run$audit_head
  )
}

# LLMRagent users know as_agent_run() as that package's generic.
register_run_methods <- function() {
  register <- function(...) {
    registerS3method("as_agent_run", "agent_run", as_agent_run.agent_run, asNamespace("LLMRagent"))
  }
  if (isNamespaceLoaded("LLMRagent")) try(register(), silent = TRUE)
  setHook(packageEvent("LLMRagent", "onLoad"), function(...) try(register(), silent = TRUE))
}
