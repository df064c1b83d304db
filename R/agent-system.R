#' Describe a system under test
#'
#' Says what answers the cases, under which name and version, and what it records.
#' Criteria on agents (`agent_*`) are refused for a system that does not say it
#' records trajectories, rather than finding every case missing.
#'
#' @param fn A function of one case: a list of `id`, `input` and `metadata`. What a
#'   case expects is not shown to it. Its value is the answer, anything that
#'   [hash_content()] can turn into JSON. With `tools`, it is called with a second
#'   argument: fresh copies of the tools, so that budgets start anew for each case. Or
#'   an agent of this package: each case is then a run of it, with fresh tools and the
#'   case's input as the goal; its answer is judged, and its trajectory is recorded.
#' @param name,version Name and version of the system, kept with its runs.
#' @param ... Must be empty.
#' @param records `"agent_trajectory/v1"` when `fn` calls [record_trajectory()].
#' @param tools A list of tools, see [agent_tool()].
#' @returns An `agent_system`.
#' @export
#' @examples
#' agent_system(function(case) toupper(case$input), "shouter", "1.0")
agent_system <- function(fn, name = "system", version = "0", ..., records = character(),
                         tools = NULL) {
  check_dots(...)
  store <- if (inherits(fn, "agent")) fn$store
  if (inherits(fn, "agent")) {
    fn <- system_of_agent(fn)
    records <- trajectory_schema
  }
  if (!is.function(fn)) {
    stop_warrant(
      c("`fn` must be a function of one case, or an agent.", x = class_words(fn)),
      "input", "not_a_function", argument = "fn"
    )
  }
  check_string(name)
  check_string(version)
  unknown <- setdiff(records, trajectory_schema)
  if (length(unknown)) {
    stop_warrant(
      c(
        sprintf("`records` must be \"%s\" or empty.", trajectory_schema),
        x = sprintf("It has \"%s\".", unknown[1])
      ),
      "suite", "unknown_record", argument = "records"
    )
  }
  structure(
    list(fn = fn, name = name, version = version, records = records, tools = tools, store = store),
    class = "agent_system"
  )
}

trajectory_schema <- "agent_trajectory/v1"

# Each case is a run of the agent.
system_of_agent <- function(agent) {
  force(agent)
  function(case) {
    agent$tools <- lapply(agent$tools, fresh_tool)
    run <- run_agent(agent, case$input)
    record_trajectory(run)
    run$answer
  }
}

#' @export
print.agent_system <- function(x, ...) {
  writeLines(c(
    sprintf("<agent_system> %s %s", x$name, x$version),
    sprintf("* records: %s", if (length(x$records)) x$records else "answers only"),
    if (length(x$tools)) sprintf("* tools: %d, fresh for each case", length(x$tools))
  ))
  invisible(x)
}

as_system <- function(x, declared = NULL, call = caller_env()) {
  if (inherits(x, "agent")) x <- agent_system(x)
  if (inherits(x, "agent_system")) return(x)
  if (is.function(x)) {
    if (is.null(declared)) return(agent_system(x))
    declared$fn <- x
    declared["callable"] <- list(NULL)
    return(declared)
  }
  stop_warrant(
    c("`system` must be a function of one case, an agent, or an agent_system().", x = class_words(x)),
    "input", "not_a_system", argument = "system", call = call
  )
}

# The system of a suite file: its function is read when it is run.
system_from_spec <- function(spec, base) {
  if (is.null(spec)) return(NULL)
  structure(
    list(
      fn = NULL, name = or_else(spec$name, "system"),
      version = as.character(or_else(spec$version, "0")),
      records = as.character(unlist(spec$records)), tools = NULL,
      callable = spec$callable, base = base
    ),
    class = "agent_system"
  )
}

or_else <- function(x, default) if (is.null(x)) default else x

load_callable <- function(system, call) {
  parts <- regmatches(system$callable, regexec("^(.+):([^:]+)$", system$callable))[[1]]
  file <- if (length(parts)) file.path(system$base, parts[2]) else ""
  if (!file.exists(file)) {
    stop_warrant(
      c(
        "The suite's `callable` must name a function as file.R:function.",
        x = sprintf("\"%s\" does not lead to a file.", system$callable)
      ),
      "suite", "callable_not_found", callable = system$callable, call = call
    )
  }
  env <- new.env(parent = globalenv())
  sys.source(file, env, chdir = TRUE)
  fn <- env[[parts[3]]]
  if (!is.function(fn)) {
    stop_warrant(
      sprintf("%s defines no function `%s`.", file, parts[3]),
      "suite", "callable_not_found", callable = system$callable, call = call
    )
  }
  system$fn <- fn
  system
}
