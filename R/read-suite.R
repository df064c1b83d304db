#' Read a suite from a file
#'
#' Use it to keep what is judged beside the code that is judged. YAML needs the yaml
#' package; JSON needs nothing.
#'
#' @details
#' Keys: `version` (1), `project`, `dataset` (a JSONL file, relative to this one),
#' `system` with `name`, `version`, `callable` and `records`, `evaluators`, `metrics`,
#' `slices`, `min_slice_support`. `callable` names an R function as `file.R:function`,
#' relative to this file; it is read when the suite is run. An evaluator has a `type`
#' (`contains`, `equals`, `agent_tool_called`, `agent_no_tool_loop`,
#' `agent_tool_sequence`, `agent_no_undeclared_tool`, `agent_constraints_satisfied`,
#' `agent_max_steps`, `agent_route`, `agent_tool_permissions`, `agent_max_handoffs`), may
#' have a `criterion` (its name) and `on_execution_error`, and the parameters of its
#' type.
#'
#' @param file Path of a `.yaml`, `.yml` or `.json` file.
#' @returns An `agent_suite`, see [suite()].
#' @export
#' @examples
#' read_suite(file.path(example_project("triage-team"), "suite.json"))
read_suite <- function(file) {
  text <- config_json(file)
  settled <- json_as_list(with_place(file, unwrap_core(rs_suite_check(text))))
  x <- json_as_tree(text)
  base <- dirname(normalizePath(file, mustWork = TRUE))
  dataset <- if (!is.null(x$dataset)) file.path(base, x$dataset)
  new_suite(
    cases = read_cases(dataset),
    criteria = lapply(x$evaluators, criterion_from_spec),
    metrics = lapply(x$metrics, structure, class = "agent_metric"),
    slices = as.character(unlist(x$slices)),
    min_slice_support = settled$min_slice_support,
    system = system_from_spec(x$system, base), name = x$project,
    dataset = dataset
  )
}
