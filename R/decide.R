#' Decide on a release
#'
#' Answers every rule of a policy from the metrics of an evaluation, and says what
#' follows. An answer is `PASS`, `FAIL`, `INSUFFICIENT_EVIDENCE` or `MANUAL_REVIEW`,
#' with its reasons; where the data do not settle a rule, the advice says what
#' would.
#'
#' A rule on an interval passes only when the whole interval is on the right side
#' of its threshold, and fails only when all of it is on the wrong side.
#'
#' For scripts there is `stop_on_block = TRUE`. When the gate's exit status is not
#' 0, the decision is printed and a script run by Rscript ends with that status: 1
#' a rule failed, 3 evidence is insufficient, 4 a person must review, 5 the run did
#' not reach every case, 6 a person must approve. In an interactive session it
#' raises an error of class `warrant_error_release_blocked` instead.
#'
#' @inheritParams metrics
#' @param policy A policy, see [release_policy()] and [read_policy()].
#' @param stop_on_block Whether a blocked release ends the script.
#' @returns A `release_decision`: a list with, for each rule, rule_id, metric, state,
#'   reasons, decided_lower, decided_upper (the bounds that were read, `NA` when none
#'   were), action and advice (`NULL`, or a list of kind, more_cases, total_cases); and
#'   for the gate release_action (`ALLOW`, `WARN`, `BLOCK`), exit_code and gate_reasons.
#'   `tibble::as_tibble()` gives one row a rule. A rule on an unknown metric, or with
#'   a threshold that its metric cannot have, is a `warrant_error_suite`.
#' @export
#' @examples
#' policy <- release_policy(
#'   rule_min("floor", "answer_correct", 0.7),
#'   rule_max_failures("no-overreach", "agent_tool_permissions", 0)
#' )
#' decide(example_evaluation(), policy)
decide <- function(ev, policy, ..., stop_on_block = FALSE) {
  check_evaluation(ev)
  check_policy(policy)
  check_dots(...)
  check_flag(stop_on_block)
  rows <- metrics(ev, confidence_level = policy$confidence_level)
  gate <- unwrap_core(rs_decide(policy$json, decision_columns(rows), is_partial(ev)))
  decision <- new_decision(gate, policy, rows, ev)
  if (stop_on_block && decision$exit_code != 0) stop_release(decision)
  decision
}

decision_columns <- function(rows) {
  counts <- c("n_eligible", "n_observed", "n_failed", "n_missing")
  columns <- as.list(rows)[c("metric", "type", counts, "confidence_level", "lower", "upper")]
  columns[counts] <- lapply(columns[counts], as.numeric)
  columns$n_failed[is.na(columns$n_failed)] <- 0
  columns$dependent <- rows$reason %in% "unsupported_dependence_structure"
  columns
}

# Cases that were never run make a partial run.
is_partial <- function(ev) {
  reasons <- ev$counts$rates$missing_reasons
  any(vapply(reasons, function(x) "not_run" %in% names(x), NA))
}

new_decision <- function(gate, policy, rows, ev) {
  gate$reasons <- lapply(gate$reasons, as.character)
  gate$gate_reasons <- as.character(gate$gate_reasons)
  at <- match(gate$metric, rows$metric)
  gate["advice"] <- list(lapply(seq_along(gate$rule_id), function(i) {
    if (gate$state[i] != "INSUFFICIENT_EVIDENCE") return(NULL)
    row <- rows[at[i], ]
    rule_advice(
      policy$rules[[i]], row, quantile_counts(ev, row$metric), gate$reasons[[i]],
      policy$confidence_level, !is.null(ev$counts$rates[["shares"]])
    )
  }))
  gate$policy <- policy
  gate$metrics <- rows[at, ]
  order <- c(
    "release_action", "exit_code", "gate_reasons", "rule_id", "metric", "state", "reasons",
    "decided_lower", "decided_upper", "action", "advice", "policy", "metrics"
  )
  structure(gate[order], class = "release_decision")
}

quantile_counts <- function(ev, metric) {
  x <- ev$counts$quantiles
  i <- which(x$slice == "" & x$metric == metric)
  if (length(i)) list(values = as.numeric(x$values[[i]]), counts = x$counts[[i]])
}

stop_release <- function(decision) {
  if (!interactive()) {
    writeLines(format(decision))
    quit(save = "no", status = decision$exit_code)
  }
  stop_warrant(
    c("The release is blocked.", stats::setNames(gate_lines(decision), rep("x", 1))),
    "state", "release_blocked", exit_code = decision$exit_code, decision = decision,
    call = caller_env(2)
  )
}

gate_lines <- function(decision) {
  open <- decision$action == "BLOCK"
  paste(decision$rule_id[open], decision$state[open], collapse = "; ")
}

#' @export
format.release_decision <- function(x, ...) {
  reasons <- if (length(x$gate_reasons)) paste0(": ", paste(x$gate_reasons, collapse = ", "))
  c(
    sprintf("<release_decision> %s%s (exit status %d)", x$release_action,
      paste0(reasons, ""), x$exit_code),
    unlist(lapply(seq_along(x$rule_id), function(i) decision_lines(x, i)))
  )
}

decision_lines <- function(x, i) {
  row <- x$metrics[i, ]
  rule <- x$policy$rules[[i]]
  unit <- if (row$type == "quantile") paste0(unit_words(row$source), "s")
  interval <- if (!is.na(row$confidence_level)) {
    sprintf(", %s%% interval %s", format_percentile(row$confidence_level), show_interval(row))
  }
  advice <- advice_words(x$advice[[i]])
  c(
    sprintf("* %s: %s", x$rule_id[i], x$state[i]),
    sprintf("    rule     %s %s", row$metric, rule_words(rule, unit)),
    sprintf("    numbers  %s%s, %s", show_estimate(row), paste0(interval, ""), show_counts(row)),
    sprintf("    because  %s", paste(reason_words(x$reasons[[i]]), collapse = "; ")),
    if (!is.null(advice)) sprintf("    settle   %s", advice)
  )
}

reason_words <- function(codes) {
  words <- c(
    policy_requires_review = "the policy asks for a person",
    unsupported_dependence_structure = "no valid interval for such repeated trials",
    no_observations = "no case was observed",
    missingness_exceeds_policy = "more cases are missing than the policy allows",
    interval_unavailable = "there is no interval",
    lower_bound_meets_minimum = "the lower bound meets the minimum",
    upper_bound_below_minimum = "the upper bound is below the minimum",
    upper_bound_meets_maximum = "the upper bound meets the maximum",
    lower_bound_above_maximum = "the lower bound is above the maximum",
    interval_unbounded = "the interval has no bound on one side",
    interval_overlaps_threshold = "the interval holds the threshold",
    observed_failures_exceed_limit = "more failures than allowed were observed",
    observed_failures_within_limit = "even with the missing cases failures stay within the limit",
    missing_could_change_outcome = "the missing cases could change the outcome"
  )
  sprintf("%s (%s)", words[codes], codes)
}

#' @export
print.release_decision <- function(x, ...) {
  writeLines(format(x))
  invisible(x)
}

#' @method as_tibble release_decision
#' @export
as_tibble.release_decision <- function(x, ...) {
  tibble(
    rule_id = x$rule_id, metric = x$metric, state = x$state, reasons = x$reasons,
    decided_lower = x$decided_lower, decided_upper = x$decided_upper,
    release_action = x$action, advice = x$advice
  )
}

#' @export
as.data.frame.release_decision <- function(x, ...) as.data.frame(as_tibble.release_decision(x))
