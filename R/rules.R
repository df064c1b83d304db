#' Declare release rules
#'
#' Use these to say, before the results are known, what they must show. A rule
#' reads one metric of the run as a whole; [decide()] answers it.
#'
#' * `rule_min()`: the whole interval must lie at or above `threshold`.
#' * `rule_max()`: the whole interval must lie at or below `threshold`.
#' * `rule_max_failures()`: at most `max_failures` cases may have failed. No interval
#'   is used; missing cases count as what they could have been. `rule_observed_count()`
#'   is the same function under the name that policy files use.
#'
#' With a rule `rule_min("floor", "answer_correct", 0.7)`, 33 of 40 passed cases are
#' not enough: the estimate is 82.5%, but the interval goes down to 67.2%.
#'
#' @param id Name of the rule, unique in a policy.
#' @param metric Metric it reads: a criterion's name, or the id of a quantile.
#' @param threshold For a rate a number from 0 to 1; for a quantile any number.
#' @param max_failures Whole number, 0 or more.
#' @param ... Must be empty.
#' @param max_missing_fraction Above this share of missing cases the rule answers
#'   `INSUFFICIENT_EVIDENCE`, whatever the interval says. `NULL` for no such bound.
#' @param requires_manual_review Whether a person decides in any case.
#' @returns A `release_rule`.
#' @seealso [release_policy()] to put rules together.
#' @export
#' @examples
#' rule_min("floor", "answer_correct", 0.7)
#' rule_max_failures("no-deletion", "agent_constraints_satisfied", 0)
rule_min <- function(id, metric, threshold, ..., max_missing_fraction = NULL,
                     requires_manual_review = FALSE) {
  check_dots(...)
  new_rule(
    id = id, metric = metric, kind = "interval_threshold", min = threshold,
    max_missing_fraction = max_missing_fraction,
    requires_manual_review = requires_manual_review
  )
}

#' @rdname rule_min
#' @export
rule_max <- function(id, metric, threshold, ..., max_missing_fraction = NULL,
                     requires_manual_review = FALSE) {
  check_dots(...)
  new_rule(
    id = id, metric = metric, kind = "interval_threshold", max = threshold,
    max_missing_fraction = max_missing_fraction,
    requires_manual_review = requires_manual_review
  )
}

#' @rdname rule_min
#' @export
rule_max_failures <- function(id, metric, max_failures, ...,
                              requires_manual_review = FALSE) {
  check_dots(...)
  new_rule(
    id = id, metric = metric, kind = "observed_count", max_failures = max_failures,
    requires_manual_review = requires_manual_review
  )
}

#' @rdname rule_min
#' @export
rule_observed_count <- rule_max_failures

# The core judges what a rule holds, so a rule is checked as a policy of one.
new_rule <- function(..., call = caller_env()) {
  rule <- Filter(Negate(is.null), list(...))
  policy <- parse_policy(list(rules = list(rule)), call)
  structure(policy$rules[[1]], class = "release_rule")
}

#' @export
format.release_rule <- function(x, ...) {
  c(
    sprintf("<release_rule> %s", x$id),
    sprintf("* %s: %s", x$metric, rule_words(x)),
    if (!is.null(x$max_missing_fraction)) {
      sprintf("* missing: at most %s of the cases", percent(x$max_missing_fraction))
    },
    if (isTRUE(x$requires_manual_review)) "* a person decides"
  )
}

#' @export
print.release_rule <- function(x, ...) {
  writeLines(format(x))
  invisible(x)
}

rule_words <- function(rule, unit = NULL) {
  number <- function(x) {
    if (is.null(unit) && x >= 0 && x <= 1) percent_exactly(x) else paste(format(x), unit)
  }
  words <- if (!is.null(rule[["min"]])) {
    paste("at least", number(rule[["min"]]))
  } else if (!is.null(rule[["max"]])) {
    paste("at most", number(rule[["max"]]))
  } else {
    sprintf("at most %s failed", count_of(rule$max_failures, "case"))
  }
  trimws(words)
}

#' Put release rules together
#'
#' A policy holds the rules, the confidence level of all intervals, and what
#' follows from an answer. `read_policy()` reads one from a YAML or JSON file.
#'
#' @details
#' Keys of a file: `version` (1), `confidence_level`, `block_on`, `warn_on`,
#' `block_on_partial_run`, `require_approval` and `rules`; a rule has `id`, `metric`,
#' one of `min`, `max` and `max_failures`, and may have `kind` (`interval_threshold`
#' or `observed_count`), `max_missing_fraction` and `requires_manual_review`. Any
#' other key is refused with its place. YAML needs the yaml package, JSON nothing.
#'
#' @param ... Rules, or lists of them.
#' @param confidence_level Level of all intervals.
#' @param block_on,warn_on States on which a decision blocks or warns. They must not
#'   overlap.
#' @param block_on_partial_run Whether a run that did not reach every case blocks.
#' @param require_approval Whether a gate that nothing blocks still waits for a
#'   person (exit status 6).
#' @returns A `release_policy`. An error of class `warrant_error_suite` names rule
#'   and field when something is wrong.
#' @export
#' @examples
#' release_policy(
#'   rule_min("floor", "answer_correct", 0.7),
#'   rule_max_failures("no-deletion", "agent_constraints_satisfied", 0)
#' )
release_policy <- function(..., confidence_level = 0.95,
                           block_on = c("FAIL", "INSUFFICIENT_EVIDENCE", "MANUAL_REVIEW"),
                           warn_on = character(), block_on_partial_run = TRUE,
                           require_approval = FALSE) {
  parse_policy(list(
    version = 1, confidence_level = confidence_level, block_on = as.list(block_on),
    warn_on = as.list(warn_on), block_on_partial_run = block_on_partial_run,
    require_approval = require_approval, rules = collect_rules(...)
  ))
}

collect_rules <- function(..., call = caller_env()) {
  rules <- list()
  for (x in list(...)) {
    if (inherits(x, "release_rule")) x <- list(x)
    if (!is.list(x) || !all(vapply(x, inherits, NA, "release_rule"))) {
      stop_warrant(
        c("`...` must hold rules, as rule_min() makes them.", x = class_words(x)),
        "input", "not_a_rule", call = call
      )
    }
    rules <- c(rules, lapply(x, unclass))
  }
  unname(rules)
}

class_words <- function(x) sprintf("It is of class %s.", paste(class(x), collapse = "/"))

#' @rdname release_policy
#' @param file Path of a `.yaml`, `.yml` or `.json` file.
#' @export
read_policy <- function(file) {
  text <- config_json(file)
  with_place(file, parse_policy_json(text))
}

parse_policy <- function(x, call = caller_env()) {
  parse_policy_json(unwrap_core(rs_to_json(x), call), call)
}

parse_policy_json <- function(text, call = caller_env()) {
  new_policy(unwrap_core(rs_policy(text, character(), character()), call))
}

# From the resolved JSON of the core. `json` is what the core reads again.
new_policy <- function(json) {
  policy <- json_as_list(json)
  policy$rules <- lapply(policy$rules, function(rule) Filter(Negate(is.null), rule))
  policy$block_on <- unlist(policy$block_on)
  policy$warn_on <- unlist(policy$warn_on)
  structure(c(policy, json = json), class = "release_policy")
}

#' @export
format.release_policy <- function(x, ...) {
  c(
    sprintf("<release_policy> %s, confidence level %s", count_of(length(x$rules), "rule"),
      format(x$confidence_level)),
    vapply(x$rules, function(rule) {
      sprintf("* %s: %s %s", rule$id, rule$metric, rule_words(rule))
    }, ""),
    sprintf("* blocks on: %s", if (length(x$block_on)) paste(x$block_on, collapse = ", ") else "nothing"),
    if (length(x$warn_on)) sprintf("* warns on: %s", paste(x$warn_on, collapse = ", ")),
    if (isTRUE(x$require_approval)) "* a person must approve the release"
  )
}

#' @export
print.release_policy <- function(x, ...) {
  writeLines(format(x))
  invisible(x)
}

check_policy <- function(policy, call = caller_env()) {
  if (inherits(policy, "release_policy")) return(invisible(policy))
  stop_warrant(
    c("`policy` must be a policy, as release_policy() or read_policy() makes it.",
      x = class_words(policy)),
    "input", "not_a_policy", argument = "policy", call = call
  )
}
