#' Run an example project
#'
#' The package ships two projects of made-up agents that follow fixed rules, with the
#' faults of real ones. Use them to try things out: each is a folder with cases, the
#' agent's code, a suite and a release policy.
#'
#' * `"triage-team"`: 30 requests to three agents that hand over to each other and to a
#'   person (in JSON, so that it runs without further packages).
#' * `"refund-desk"`: 40 tickets to one agent (in YAML, needs the yaml package).
#'
#' @param name Which project.
#' @returns `example_evaluation()` runs the project and gives its evaluation;
#'   `example_project()` gives the path of its folder.
#' @export
#' @examples
#' example_evaluation()
#' list.files(example_project())
example_evaluation <- function(name = c("triage-team", "refund-desk")) {
  name <- one_of(name, example_names)
  folder <- example_project(name)
  suite <- read_suite(list.files(folder, "^suite[.](json|yaml)$", full.names = TRUE))
  evaluate(suite, run_suite(suite, seed = 1, progress = FALSE))
}

example_names <- c("triage-team", "refund-desk")

#' @rdname example_evaluation
#' @export
example_project <- function(name = c("triage-team", "refund-desk")) {
  name <- one_of(name, example_names)
  system.file("examples", name, package = "warrant", mustWork = TRUE)
}
