#' Put tools, a planner, a policy and limits together
#'
#' An agent asks its planner what to do, does it as far as policy and limits allow,
#' and shows the planner what came of it, until the planner gives an answer. Every
#' step is recorded. Nothing runs until [run_agent()].
#'
#' @section Planners:
#' A planner is a function of `state` and `tools`. It returns [decide_act()] or
#' [decide_finish()].
#'
#' `state` is a plain list: `goal`; `steps`, a list with one element for each step so
#' far; `left`, what is left of each limit; `run_id`. A step has `step` (its number),
#' `decision`, `tool`, `arguments`, `outcome` (see the table in
#' `system.file("spec", "outcomes.md", package = "warrant")`), `result`, `error` (the
#' text for an outcome other than `executed`), and `actions`, which holds these fields
#' for each action. With several actions in a step, `tool` and `outcome` are vectors and
#' `arguments`, `result` and `error` are lists, in the order of the actions.
#'
#' Results are in the *normal form*: the value read back from its canonical JSON. So a
#' data frame arrives as a list of rows, and a planner cannot tell whether its run was
#' paused in between. `state` is a copy: to change it changes nothing.
#'
#' `tools` is a named list with `name`, `description`, `schema`, `side_effects`, `scopes`
#' and `cost` of each tool.
#'
#' @param tools A tool made by [agent_tool()], or a list of them with different names.
#' @param planner A function of `state` and `tools`.
#' @param policy What the run may do, made by [agent_policy()]. The default allows
#'   tools that need no scope and that have no side effects or only read.
#' @param limits What the run may use, made by [agent_limits()].
#' @param approver A function that answers requests for approval at once, such as
#'   [approve_interactively()]; see [approve_tool_call()]. Without one the run pauses. One
#'   that fails, or gives no usable answer, is an error of class `warrant_error_approval`
#'   with the `run_id` to resume: nothing ran.
#' @param done A function of `answer` and `state` that says whether the answer will do.
#'   `FALSE` lets the run go on; the rejected answer is a step.
#' @param guardrails Checks of the goal, of each call and of the answer, made by
#'   [guardrail()] or [guardrails()].
#' @param store Where runs are kept: [memory_store()] (the default), [file_store()] or
#'   [dbi_store()].
#' @param audit Where a copy of each record goes: [audit_jsonl()], or `NULL`.
#' @returns A list of class `agent`.
#' @seealso [run_agent()], [resume_run()]
#' @examples
#' pages <- c(spans = "A span is half open.", ids = "64 hex digits.")
#' lookup <- agent_tool(function(topic) pages[[topic]], "lookup", "The page on a topic.",
#'   parameters = list(topic = list(type = "string", enum = names(pages))),
#'   side_effects = "read", scopes = "docs:read"
#' )
#' planner <- function(state, tools) {
#'   if (length(state$steps) == 0) {
#'     decide_act("lookup", list(topic = "spans"))
#'   } else {
#'     decide_finish(state$steps[[1]]$result)
#'   }
#' }
#' a <- agent(lookup, planner,
#'   policy = agent_policy(granted_scopes = "docs:read"),
#'   limits = agent_limits(steps = 4, tool_calls = 2)
#' )
#' run <- run_agent(a, "what is a span?")
#' run$answer
#' @export
agent <- function(tools, planner, policy = agent_policy(), limits = agent_limits(),
                  approver = NULL, done = NULL, store = NULL, audit = NULL,
                  guardrails = NULL) {
  tools <- check_tools(tools)
  check_function(planner)
  check_class(policy, "agent_policy", "agent_policy()")
  check_class(limits, "agent_limits", "agent_limits()")
  check_function(approver, null = TRUE)
  check_function(done, null = TRUE)
  if (is.null(store)) store <- memory_store()
  check_class(store, "warrant_store", "memory_store(), file_store(), dbi_store() or new_store()")
  if (!is.null(audit)) check_class(audit, "audit_sink", "audit_jsonl()")
  x <- structure(
    list(
      tools = tools, planner = planner, policy = policy, limits = limits,
      approver = approver, done = done, store = store, audit = audit,
      guardrails = as_guardrails(guardrails)
    ),
    class = "agent"
  )
  # All but the costs, which are looked at when a run starts.
  free <- x
  free$limits$cost <- Inf
  unwrap_core(rs_run_check(run_setup(free), tool_pointers(x)))
  x
}

#' Say what a run may do
#'
#' By default a run may call tools that have no side effects or only read, and that
#' need no scope. What is not allowed is refused, and the run goes on: the step has the
#' outcome `effect_denied` or `scope_denied`, and the tool did not run.
#'
#' @param granted_scopes Names of scopes that the run has.
#' @param allow_effects Side effects that a tool may have at all. It is the whole list:
#'   `"write"` alone denies tools that read or have no side effects.
#' @param approve_effects Side effects whose calls ask a person first, where they are
#'   allowed. Tools with `requires_approval` always ask.
#' @param grants A [grant()] or a list of them: calls that need not ask.
#' @returns A list of class `agent_policy`.
#' @examples
#' agent_policy(granted_scopes = "docs:read", allow_effects = c("none", "read", "write"))
#' @export
agent_policy <- function(granted_scopes = character(), allow_effects = c("none", "read"),
                         approve_effects = c("write", "external"), grants = list()) {
  check_names(granted_scopes)
  check_effects(allow_effects)
  check_effects(approve_effects)
  if (inherits(grants, "agent_grant")) grants <- list(grants)
  if (!is.list(grants) || !all(vapply(grants, inherits, NA, "agent_grant"))) {
    stop_type(grants, "grants", "a grant() or a list of them", rlang::current_env())
  }
  structure(
    list(
      granted_scopes = sort_c(unique(granted_scopes)), allow_effects = sort_c(unique(allow_effects)),
      approve_effects = sort_c(unique(approve_effects)), grants = grants
    ),
    class = "agent_policy"
  )
}

#' Let some calls of one tool go ahead without asking
#'
#' A standing yes, given in advance: calls of exactly this tool whose arguments match
#' the rule do not ask a person. Each use is counted and recorded. A call whose effect
#' is unknown after a time-out is asked about in any case.
#'
#' @param tool The exact name of a tool.
#' @param arguments What the arguments must match: a named list with a JSON Schema for
#'   each argument (all of them must be given, and no others), or a whole JSON Schema as
#'   a list or JSON text. `list()` covers only calls without arguments; `list(type =
#'   "object")` covers all.
#' @param run The id of the one run it holds for, or `NULL`.
#' @param count How many calls it covers in one run.
#' @param until A date-time after which it does not hold any more, or `NULL`.
#' @returns A list of class `agent_grant`, for [agent_policy()].
#' @examples
#' # Orders of up to 5 pears, three times, need not ask.
#' grant("place_order", list(
#'   item = list(const = "pear"),
#'   n = list(type = "integer", maximum = 5)
#' ), count = 3)
#' @export
grant <- function(tool, arguments, run = NULL, count = Inf, until = NULL) {
  check_string(tool)
  if (!is.null(run)) check_run_id(run)
  check_count(count)
  if (!is.null(until) && !(inherits(until, "POSIXct") && length(until) == 1L && !is.na(until))) {
    stop_type(until, "until", "one date-time (POSIXct) or NULL", rlang::current_env())
  }
  if (missing(arguments)) {
    stop_type(NULL, "arguments", "given: which calls the grant is for", rlang::current_env())
  }
  rule <- argument_rule(arguments)
  structure(
    list(tool = tool, arguments = rule, run = run, count = count, until = until),
    class = "agent_grant"
  )
}

#' Say what a run may use
#'
#' Each limit is checked before what it bounds, and never interrupts a call that runs.
#' `Inf` is no limit; `0` means none at all: with `tool_calls = 0` the first call is
#' refused. A run that reaches a limit ends with `status` `"stopped"` and the name of
#' the limit in `stop_reason`.
#'
#' Calls count when they start, also those that fail. Example: with `tool_calls = 2` and
#' a planner that asks for three calls at once, the first two run, the third has the
#' outcome `limit_reached`, and the run stops.
#'
#' What a plan used is known only when it reports its `usage`. It is charged then; if that
#' passes `tokens` or `cost`, the plan's actions do not run. A resumed run goes on with
#' what it has used before.
#'
#' @param steps How often the planner is asked.
#' @param tool_calls How many calls start.
#' @param tokens Tokens, as planners report them.
#' @param cost Cost, of plans as they report it and of calls as tools declare it. It is
#'   counted exactly, in units of 1e-9. A run with this limit does not start when the
#'   cost of a tool is not known.
#' @param seconds Working time. While a run is paused, or a person is asked, it stands.
#' @param per_tool A named vector: how many calls of each of these tools start.
#' @param call_timeout_s A time limit for calls of tools that have none.
#' @returns A list of class `agent_limits`.
#' @examples
#' agent_limits(steps = 10, tool_calls = 5, per_tool = c(search = 2))
#' @export
agent_limits <- function(steps = 50, tool_calls = Inf, tokens = Inf, cost = Inf, seconds = Inf,
                         per_tool = NULL, call_timeout_s = Inf) {
  check_count(steps)
  check_count(tool_calls)
  check_count(tokens)
  check_number(cost, min = 0)
  check_number(seconds, min = 0)
  check_number(call_timeout_s, min = 0)
  if (call_timeout_s == 0) {
    stop_type(call_timeout_s, "call_timeout_s", "more than 0", rlang::current_env())
  }
  structure(
    list(
      steps = steps, tool_calls = tool_calls, tokens = tokens, cost = cost, seconds = seconds,
      per_tool = check_per_tool(per_tool), call_timeout_s = call_timeout_s
    ),
    class = "agent_limits"
  )
}

#' Say what a planner has decided
#'
#' A planner returns one of these. `decide_act()` asks for a call of a tool, or several;
#' `decide_finish()` gives the answer.
#'
#' @param tool The name of a tool. Or a list of several actions, each `list(tool =,
#'   arguments =)` or itself made by `decide_act()`: they are checked in this order, and
#'   room is reserved for all of them before the first starts.
#' @param arguments A named list, or JSON text.
#' @param usage What it took to decide: a list with `tokens` and `cost`, each at least 0.
#'   What is not given is 0.
#' @param note What the planner wants to be told again of this decision: any value that
#'   has a JSON form. It is kept with the run, and is the `note` of the step.
#' @param answer Any value that has a JSON form.
#' @returns A list of class `agent_decision`.
#' @examples
#' decide_act("lookup", list(topic = "spans"))
#' decide_act(list(
#'   decide_act("lookup", list(topic = "spans")),
#'   decide_act("lookup", list(topic = "ids"))
#' ), usage = list(tokens = 120))
#' decide_finish("A span is half open.")
#' @export
decide_act <- function(tool, arguments = list(), usage = NULL, note = NULL) {
  actions <- if (is.list(tool)) {
    if (!missing(arguments)) {
      stop_type(arguments, "arguments", "left out when `tool` is a list of actions", rlang::current_env())
    }
    as_actions(tool)
  } else {
    check_string(tool)
    check_arguments(arguments)
    list(list(tool = tool, arguments = arguments))
  }
  agent_decision(list(decision = "act", actions = actions, usage = check_usage(usage), note = note))
}

#' @rdname decide_act
#' @export
decide_finish <- function(answer, usage = NULL, note = NULL) {
  agent_decision(list(decision = "finish", answer = answer, usage = check_usage(usage), note = note))
}

# A planner makes one a step; structure() would take longer than all the rest.
agent_decision <- function(x) {
  class(x) <- "agent_decision"
  x
}
