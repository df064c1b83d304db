#' Record what a study is made of
#'
#' Collects what identifies a study: its title and design, the agents with their policy,
#' limits, guardrails and planner, the tools with their specification hashes and
#' policies, the suite of cases, data files with their SHA-256, seed, parameters, and the
#' versions of R and of the packages. Write it before the study runs, with
#' [write_manifest()], and keep its hash elsewhere: later nobody can say that something
#' else was planned.
#'
#' The manifest hash covers all of these and leaves out what does not identify a study
#' (when and where the manifest was made, paths, ids of runs). Running the tools changes
#' nothing in it; tightening any limit, changing a schema, an instruction to a model or a
#' value that a tool captures does.
#'
#' @section Planners and other functions:
#' A planner, approver, `done` or guardrail that is an R function enters by the hash of
#' its normalised code and of the values it captures, as tools do
#' ([hash_tool_spec()]); what that does not cover is listed beside it. A [planner_llm()]
#' enters by its instructions, its price and the model: form, address, name and
#' parameters. Of a key only the name of its environment variable is known.
#'
#' Which model did answer is known only after a run: give `runs`, and the names that
#' endpoints reported are listed as `models_served`.
#'
#' @section Data files:
#' A manifest keeps base names and digests in what is hashed, and the paths beside that.
#' `verify_manifest()` reads the files again and raises an error of class
#' `warrant_error_state` that names those that changed; [archive_study()] does the same.
#' So a file that changed while the study ran is found.
#'
#' @param title,design Text, or `NULL`.
#' @param tools A tool or a list of tools, where there is no agent.
#' @param agent An agent, or a list of agents with names, such as the arms of a study.
#'   Their tools, policies, limits, guardrails and planners are read.
#' @param suite A suite of cases, see [suite()].
#' @param data Paths of data files.
#' @param seed A whole number, or `NULL`.
#' @param parameters A named list of anything else that identifies the study. It must
#'   have a JSON form.
#' @param packages Names of packages whose versions are recorded; by default this
#'   one.
#' @param ... Must be empty.
#' @param runs Runs of the study, as [archive_study()] takes them; and the `store` of
#'   runs that are given by their ids.
#' @param store A store.
#' @returns `study_manifest()` gives a list of class `study_manifest`, with the hash as
#'   `manifest_hash`; `hash_manifest()` the hash, a string of 64 lowercase hex digits. A
#'   file that cannot be read is an error of class `warrant_error_input`, a manifest
#'   that was edited one of class `warrant_error_manifest_edited`.
#' @seealso [diff_manifest()], [write_manifest()], [archive_study()].
#' @examples
#' half <- agent_tool(function(x) x / 2, "half", "Half of a number.",
#'                    parameters = list(x = list(type = "number")), side_effects = "none")
#' planner <- function(state, tools) decide_finish("done")
#' manifest <- study_manifest(title = "Halves", agent = agent(half, planner), seed = 1)
#' manifest
#' short <- agent(half, planner, limits = agent_limits(steps = 3))
#' diff_manifest(manifest, study_manifest(title = "Halves", agent = short, seed = 1))
#' @export
study_manifest <- function(title = NULL, design = NULL, tools = list(), agent = NULL, suite = NULL,
                           data = NULL, seed = NULL, parameters = list(), packages = "warrant", ...,
                           runs = NULL, store = NULL) {
  check_string(title, null = TRUE)
  check_string(design, null = TRUE)
  # Its policy, limits and planner would be left out in silence.
  if (inherits(tools, "agent")) {
    stop_type(tools, "tools", "a tool or a list of tools; an agent is given as `agent`", rlang::current_env())
  }
  tools <- as_tools(tools)
  agents <- as_agents(agent)
  if (!is.null(suite)) check_suite(suite)
  check_names(data, null = TRUE)
  check_seed(seed)
  check_parameters(parameters)
  check_names(packages)
  check_dots(...)
  found <- runs_parts(run_sources(runs, store))
  all_tools <- c(unname(tools), unlist(unname(lapply(agents, function(a) unname(a$tools))), FALSE))
  identity <- list(
    schema = manifest_schema, title = title, design = design, seed = seed,
    tools = named_list(tools_with(manifest_tools(all_tools), found$tools)),
    agents = named_list(lapply(agents, agent_facts)), suite = suite_facts(suite),
    data = named_list(manifest_data(data)), parameters = named_list(as.list(parameters)),
    models_served = I(found$models), r_version = as.character(getRversion()),
    packages = named_list(manifest_packages(packages))
  )
  new_study_manifest(unwrap_core(rs_to_json(identity)), made_here(data, found$run_id))
}

manifest_schema <- "study_manifest/v1"

# What does not identify a study.
made_here <- function(data = NULL, runs = character()) {
  paths <- as.list(normalizePath(as.character(data), mustWork = FALSE))
  c(
    list(
      created_at = iso_time(now()), host = Sys.info()[["nodename"]],
      paths = named_list(stats::setNames(paths, enc2utf8(basename(as.character(data)))))
    ),
    if (length(runs)) list(runs = I(runs))
  )
}

iso_time <- function(seconds) {
  format(as.POSIXct(seconds, origin = "1970-01-01", tz = "UTC"), "%Y-%m-%dT%H:%M:%SZ", tz = "UTC")
}

# A manifest as R lists, and the canonical JSON that was hashed: numbers with more
# digits than R holds are right only there.
new_study_manifest <- function(json, made) {
  structure(
    c(unwrap_core(rs_from_json(json)), list(manifest_hash = sha256(json), made = made)),
    class = "study_manifest", json = json
  )
}

sha256 <- function(text) unwrap_core(rs_sha256(text))

as_agents <- function(agent, call = caller_env()) {
  if (is.null(agent)) return(list())
  if (inherits(agent, "agent")) return(list(agent = agent))
  good <- is.list(agent) && all(vapply(agent, inherits, NA, "agent")) &&
    length(names(agent)) == length(agent) && all(nzchar(names(agent))) &&
    !anyDuplicated(names(agent))
  if (!good) stop_type(agent, "agent", "an agent, or a list of agents with a name each", call)
  agent
}

check_parameters <- function(parameters, call = caller_env()) {
  named <- length(parameters) == 0L ||
    !is.null(names(parameters)) && all(nzchar(names(parameters))) && !anyDuplicated(names(parameters))
  if (is.list(parameters) && named) return(invisible(parameters))
  stop_type(parameters, "parameters", "a list with a name for each element", call)
}

#' @rdname study_manifest
#' @param x A manifest.
#' @export
hash_manifest <- function(x) {
  check_manifest(x)
  x$manifest_hash
}

manifest_identity <- function(x) {
  parts <- unclass(x)
  attr(parts, "json") <- NULL
  parts[setdiff(names(parts), c("manifest_hash", "made"))]
}

# The hash is that of `json`; the lists must still say the same.
check_manifest <- function(x, arg = caller_arg(x), call = caller_env()) {
  if (!inherits(x, "study_manifest")) {
    stop_type(x, arg, "made by study_manifest() or read_manifest()", call)
  }
  json <- attr(x, "json")
  whole <- is.character(json) && length(json) == 1L && identical(x$manifest_hash, sha256(json)) &&
    identical(manifest_identity(x), unwrap_core(rs_from_json(json)))
  if (!whole) {
    stop_warrant(
      c(sprintf("`%s` must be as it was made.", arg), x = "Its parts do not agree with its hash.",
        i = "Make another one with study_manifest()."),
      "state", code = "manifest_edited", argument = arg, call = call
    )
  }
  invisible(x)
}

#' Compare two manifests
#'
#' Names what differs between two studies, value by value.
#'
#' @param a,b Manifests made by [study_manifest()] or [read_manifest()].
#' @returns A tibble with a row a difference: `path` (where in the manifest), `a`
#'   and `b` (the values as JSON, `NA` where there is none). Zero rows when the
#'   two identify the same study.
#' @examples
#' a <- study_manifest(title = "One", seed = 1)
#' b <- study_manifest(title = "One", seed = 2)
#' diff_manifest(a, b)
#' @export
diff_manifest <- function(a, b) {
  check_manifest(a)
  check_manifest(b)
  a <- leaves(attr(a, "json"))
  b <- leaves(attr(b, "json"))
  paths <- union(names(a), names(b))
  paths <- paths[order_c(paths)]
  a <- unname(a[paths])
  b <- unname(b[paths])
  differ <- is.na(a) != is.na(b) | !is.na(a) & !is.na(b) & a != b
  # A tool's own hash follows from the rest.
  derived <- grepl("^tools[.].*[.]spec_hash$|^agents[.].*[.]tools[.]", paths) &
    any(differ & grepl("^tools[.]", paths) & !grepl("[.]spec_hash$", paths))
  # An empty object beside one with members: the members say it.
  below <- vapply(paths, function(path) any(startsWith(paths, paste0(path, "."))), NA)
  keep <- differ & !derived & !below
  tibble(path = paths[keep], a = a[keep], b = b[keep])
}

# The leaves of JSON text, by dotted path.
leaves <- function(json) {
  found <- unwrap_core(rs_json_leaves(json))
  stats::setNames(found$value, found$path)
}

#' @export
format.study_manifest <- function(x, ...) {
  words <- function(what, names) {
    if (length(names)) paste0("* ", what, ": ", paste(names, collapse = ", "))
  }
  short <- function(x) substr(x, 1L, 8L)
  suite <- x$suite
  c(
    paste0("<study_manifest> ", x$title %or% "(no title)"),
    if (!is.null(x$design)) paste0("* design: ", one_line(x$design)),
    words("agents", if (length(x$agents)) {
      sprintf("%s (%s)", names(x$agents), vapply(x$agents, function(a) planner_words(a$planner), ""))
    }),
    words("tools", if (length(x$tools)) {
      sprintf("%s (%s)", names(x$tools), short(vapply(x$tools, function(t) t$spec_hash, "")))
    }),
    if (!is.null(suite)) {
      sprintf("* suite: %s (%s)", listed(c(suite$name, count_of(suite$cases, "case"))), short(suite$digest))
    },
    words("data", names(x$data)),
    if (!is.null(x$seed)) paste0("* seed: ", format(x$seed, scientific = FALSE)),
    words("parameters", names(x$parameters)),
    words("models that answered", unlist(x$models_served)),
    paste0("* hash: ", x$manifest_hash)
  )
}

planner_words <- function(planner) {
  if (planner$kind == "function") return("an R function plans")
  paste(if (planner$model$kind == "function") "a model of its own" else planner$model$name, "plans")
}

#' @export
print.study_manifest <- function(x, ...) {
  writeLines(format(x, ...))
  invisible(x)
}
