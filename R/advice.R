# What would settle a rule that the data do not settle. Private; given beside a
# decision and never part of it.

no_advice <- NULL

rule_advice <- function(rule, row, counts, reasons, level, grouped) {
  direction <- if (!is.null(rule[["min"]])) "min" else if (!is.null(rule[["max"]])) "max"
  if (is.null(direction)) return(no_advice)
  threshold <- rule[[direction]]
  if (row$type == "quantile") {
    return(quantile_advice(row, counts, threshold, direction, level))
  }
  unread <- "missingness_exceeds_policy" %in% reasons || row$n_observed == 0 ||
    is.na(row$confidence_level)
  if (unread || grouped) return(no_advice)
  rate_advice(row, threshold, direction, level)
}

rate_advice <- function(row, threshold, direction, level) {
  total <- row$n_observed + row$n_missing
  share <- row$n_missing / total
  if (row$n_missing > 0 && clears_resolved(row, threshold, direction, level)) {
    return(advice("resolve_missing_first"))
  }
  rate <- row$estimate * (1 - share) + if (direction == "max") share else 0
  answer <- size_rate(rate, threshold, direction, level)
  if (!is.na(answer)) {
    return(if (answer > total) advice("more_cases", answer - total, answer))
  }
  right_side <- if (direction == "min") row$estimate >= threshold else row$estimate <= threshold
  if (row$n_missing > 0 && right_side) return(advice("missing_holds_bound"))
  close <- sprintf("%.3f", row$estimate) == sprintf("%.3f", threshold)
  advice(if (close) "estimate_at_threshold" else "unreachable")
}

# Whether the interval would meet the rule had the missing cases gone its way.
clears_resolved <- function(row, threshold, direction, level) {
  total <- row$n_observed + row$n_missing
  if (direction == "min") {
    rate_interval(row$n_passed + row$n_missing, total, 0, level)$lower >= threshold
  } else {
    rate_interval(row$n_passed, total, 0, level)$upper <= threshold
  }
}

quantile_advice <- function(row, counts, threshold, direction, level) {
  if (direction == "min" || row$n_missing > 0 || row$n_observed == 0) return(no_advice)
  shift <- if (threshold <= 0) 1 - threshold else 0
  values <- counts$values + shift
  size <- size_quantile(values, counts$counts, row$quantile, threshold + shift, level)
  if (!is.na(size$limit)) {
    close <- sprintf("%.4g", row$estimate + shift) == sprintf("%.4g", threshold + shift)
    return(advice(if (close) "estimate_at_threshold" else "unreachable"))
  }
  if (is.na(size$cases)) return(advice("beyond_search_limit"))
  if (size$cases > row$n_observed) {
    advice("more_cases", size$cases - row$n_observed, size$cases)
  }
}

advice <- function(kind, more_cases = NA_real_, total_cases = NA_real_) {
  list(kind = kind, more_cases = more_cases, total_cases = total_cases)
}

advice_words <- function(advice) {
  if (is.null(advice)) return(NULL)
  switch(advice$kind,
    more_cases = sprintf(
      "%s (%s in all) would settle it about half the time, if the observed rate is the true one",
      count_of(advice$more_cases, "more case"), count_of(advice$total_cases, "case")
    ),
    resolve_missing_first = "find out what the missing cases would have been: that alone can settle it",
    missing_holds_bound = "more cases do not help while so many are missing; lower that share first",
    estimate_at_threshold = "the estimate sits on the threshold: no suite of a feasible size settles it",
    unreachable = "at the observed rate more cases will not turn this into a pass",
    beyond_search_limit = "no suite of up to 100000 cases settles it"
  )
}

#' Ask how many cases a rule needs
#'
#' After a run: how many more cases would settle the rules that the data leave
#' open, if the observed rate is the true one. Before any run: which counts of
#' passed cases a suite of a given size needs.
#'
#' The answer after a run takes the observed rate as exactly true, so a suite of
#' that size is left undecided about as often as it is settled. A share of missing
#' cases is assumed to persist, and is counted against the rule.
#'
#' Before a run, a suite of 40 cases meets `rule_min("floor", "answer_correct", 0.7)`
#' with 34 passed cases or more: 33 leave it open.
#'
#' @param x An evaluation, a suite (see [suite()]), or a number of cases.
#' @param policy A policy, see [release_policy()].
#' @param ... Must be empty.
#' @returns For an evaluation, a tibble with one row a rule: rule_id, metric, state,
#'   kind (`more_cases`, `resolve_missing_first`, `missing_holds_bound`,
#'   `estimate_at_threshold`, `unreachable`, `beyond_search_limit`, or `NA` where
#'   nothing is to be said), more_cases, total_cases. For a suite or a number, a
#'   tibble with one row for each rule on a rate and each size (that of the suite
#'   and the next two of 50, 100, 200, 500, 1000): rule_id, metric, cases, and the
#'   counts of passed cases, none missing, that would pass, fail or leave it
#'   undecided (`pass_from`, `pass_to`, `fail_from`, `fail_to`, `undecided_from`,
#'   `undecided_to`; `NA` where there is none).
#' @export
#' @examples
#' policy <- release_policy(rule_min("floor", "answer_correct", 0.7))
#' cases_needed(40, policy)
#' cases_needed(example_evaluation(), policy)
cases_needed <- function(x, policy, ...) {
  check_dots(...)
  check_policy(policy)
  if (inherits(x, "agent_evaluation")) return(needed_after(x, policy))
  cases <- if (inherits(x, "agent_suite")) length(x$cases$id) else x
  whole <- is.numeric(cases) && length(cases) == 1 && is.finite(cases) &&
    cases >= 1 && cases == round(cases) && cases <= 1e6
  if (!whole) {
    stop_warrant(
      "`x` must be an evaluation, a suite with cases, or a number of cases from 1 to 1e6.",
      "input", "invalid_size", argument = "x"
    )
  }
  rates <- if (inherits(x, "agent_suite")) vapply(x$criteria, `[[`, "", "criterion")
  plan_rules(policy, cases, rates)
}

needed_after <- function(ev, policy) {
  d <- decide(ev, policy)
  part <- function(name, none) {
    vapply(d$advice, function(a) if (is.null(a)) none else a[[name]], none)
  }
  tibble(
    rule_id = d$rule_id, metric = d$metric, state = d$state,
    kind = part("kind", NA_character_), more_cases = part("more_cases", NA_real_),
    total_cases = part("total_cases", NA_real_)
  )
}

# `rates`: the suite's rates; without a suite a threshold above 1 tells a quantile.
plan_rules <- function(policy, cases, rates) {
  rules <- Filter(function(rule) plans_rate(rule, rates), policy$rules)
  sizes <- c(cases, next_sizes(cases))
  rows <- lapply(rules, function(rule) {
    lapply(sizes, plan_row, rule = rule, level = policy$confidence_level)
  })
  do.call(rbind, c(list(plan_row(rule = NULL)), unlist(rows, recursive = FALSE)))
}

plans_rate <- function(rule, rates) {
  threshold <- c(rule[["min"]], rule[["max"]])
  if (!is.null(rates)) return(rule$metric %in% rates)
  is.null(threshold) || (threshold >= 0 && threshold <= 1)
}

next_sizes <- function(cases) {
  after <- c(50, 100, 200, 500, 1000)
  after <- after[after > cases]
  if (length(after) >= 2) after[1:2] else c(2, 4) * cases
}

plan_row <- function(cases, rule, level) {
  range_of <- function(k) if (length(k)) range(k) else c(NA_real_, NA_real_)
  states <- if (is.null(rule)) character() else plan_states(rule, cases, level)
  at <- lapply(
    c("PASS", "FAIL", "INSUFFICIENT_EVIDENCE"),
    function(state) range_of(which(states == state) - 1)
  )
  row <- tibble(
    rule_id = if (is.null(rule)) "" else rule$id,
    metric = if (is.null(rule)) "" else rule$metric,
    cases = if (is.null(rule)) 0 else cases,
    pass_from = at[[1]][1], pass_to = at[[1]][2], fail_from = at[[2]][1],
    fail_to = at[[2]][2], undecided_from = at[[3]][1], undecided_to = at[[3]][2]
  )
  if (is.null(rule)) row[0, ] else row
}

# State at each count of passed cases, 0 to `cases`, none missing.
plan_states <- function(rule, cases, level) {
  passed <- 0:cases
  if (!is.null(rule$max_failures)) {
    return(ifelse(cases - passed <= rule$max_failures, "PASS", "FAIL"))
  }
  at <- rate_interval(passed, rep(cases, cases + 1), 0, level)
  min <- !is.null(rule[["min"]])
  threshold <- rule[[if (min) "min" else "max"]]
  unwrap_core(rs_bound_verdicts(
    at$lower, at$upper, rep(threshold, cases + 1), rep(min, cases + 1)
  ))$state
}
