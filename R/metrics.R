#' Compute the metrics of an evaluation
#'
#' Use it for the numbers in full precision: one row a metric, rates first (one a
#' criterion, in the order of the suite), then the declared quantiles.
#'
#' A rate is `n_passed / n_observed`. Its interval is the exact one of Clopper and
#' Pearson over all eligible cases, in which a missing case counts as a failure
#' for the lower bound and as a pass for the upper bound. So it holds the rate at
#' the stated level whatever the missing cases would have been. With 33 of 40
#' passed it is 67.2% to 92.7%; with 33 of 39 passed and one missing, 67.2% to
#' 94.7%.
#'
#' A quantile of steps or tool calls has the interval between two order
#' statistics, which needs no assumption about the distribution. With few cases
#' one end may have no bound (`NA`): the 95th percentile has an upper bound from 72
#' complete cases on, at 95% confidence.
#'
#' Trials of one item (`group_id` on the cases) are not independent of each other.
#' The group is then the unit; see the section below.
#'
#' @section Repeated trials:
#' Counts are counts of groups. A group with a missing trial is missing. The
#' estimate is the mean, over the complete groups, of the share of trials passed.
#' Its interval is that of Hoeffding and Bentkus for the mean of independent
#' values between 0 and 1, which holds for any way in which the trials of a group
#' depend on each other (W. Hoeffding 1963, Theorem 1, Journal of the American
#' Statistical Association 58; V. Bentkus 2004, Theorem 1.2, Annals of
#' Probability 32). It is somewhat wider than the interval of as many single cases.
#' `n_passed` counts the groups of which every trial passed. Quantiles of repeated
#' trials have no interval (reason `unsupported_dependence_structure`), and a rule on
#' one goes to a person.
#'
#' @param ev An evaluation, see [evaluate()].
#' @param ... Must be empty.
#' @param confidence_level Level of all intervals, between 0 and 1.
#' @returns A tibble with the columns metric, type (`rate` or `quantile`),
#'   estimate, lower, upper, confidence_level, n_total, n_eligible, n_observed,
#'   n_passed, n_failed, n_missing, n_excluded; then reason (why there is no
#'   estimate or no interval), source and quantile of a quantile, and the list columns
#'   missing_reasons and exclusions (named counts). A bound that does not exist is
#'   `NA`; `confidence_level` is `NA` where there is no interval at all.
#' @export
#' @examples
#' metrics(example_evaluation())
metrics <- function(ev, ..., confidence_level = 0.95) {
  check_evaluation(ev)
  check_dots(...)
  check_level(confidence_level)
  rates <- ev$counts$rates
  quantiles <- ev$counts$quantiles
  rows <- metric_rows(
    rates[rates$slice == "", ], quantiles[quantiles$slice == "", ], confidence_level
  )
  new_metric_table(rows[metric_columns], "agent_metrics", ev)
}

metric_columns <- c(
  "metric", "type", "estimate", "lower", "upper", "confidence_level", "n_total",
  "n_eligible", "n_observed", "n_passed", "n_failed", "n_missing", "n_excluded",
  "reason", "source", "quantile", "missing_reasons", "exclusions"
)

# Rates, then quantiles; `slice` and `value` go along. Order statistics of
# repeated trials are not independent: their quantiles have no interval.
metric_rows <- function(rates, quantiles, level) {
  rows <- rbind(rate_rows(rates, level), quantile_rows(quantiles, level))
  dependent <- rows$type == "quantile" & !is.null(rates[["shares"]])
  rows[dependent, c("lower", "upper", "confidence_level")] <- NA_real_
  rows$reason <- ifelse(is.na(rows$estimate), "no_observations", NA_character_)
  rows$reason[dependent & is.na(rows$reason)] <- "unsupported_dependence_structure"
  rows
}

rate_rows <- function(x, level) {
  observed <- x$n_passed + x$n_failed
  shares <- x[["shares"]]
  bounds <- if (is.null(shares)) {
    rate_interval(x$n_passed, observed, x$n_missing, level)
  } else {
    group_intervals(shares, x$n_missing, level)
  }
  estimate <- if (is.null(shares)) x$n_passed / observed else vapply(shares, mean_share, 0)
  estimate[observed == 0] <- NA_real_
  eligible <- observed + x$n_missing
  tibble(
    slice = x$slice, value = x$value, metric = x$criterion,
    type = rep("rate", nrow(x)), estimate = as.numeric(estimate),
    lower = bounds$lower, upper = bounds$upper,
    confidence_level = ifelse(eligible > 0, level, NA_real_),
    n_total = x$n_total, n_eligible = eligible, n_observed = observed,
    n_passed = x$n_passed, n_failed = x$n_failed, n_missing = x$n_missing,
    n_excluded = x$n_excluded,
    source = rep(NA_character_, nrow(x)), quantile = rep(NA_real_, nrow(x)),
    missing_reasons = x$missing_reasons, exclusions = x$exclusions
  )
}

quantile_rows <- function(x, level) {
  if (is.null(x)) x <- no_quantiles()
  at <- Map(quantile_interval, x$values, x$counts, x$n_missing, x$quantile, level)
  part <- function(name) vapply(at, `[[`, numeric(1), name, USE.NAMES = FALSE)
  observed <- vapply(x$counts, sum, numeric(1), USE.NAMES = FALSE)
  none <- rep(NA_integer_, nrow(x))
  reasons <- x[["missing_reasons"]]
  tibble(
    slice = x$slice, value = x$value, metric = x$metric,
    type = rep("quantile", nrow(x)), estimate = part("estimate"),
    lower = part("lower"), upper = part("upper"),
    confidence_level = ifelse(observed > 0, level, NA_real_),
    n_total = x$n_total, n_eligible = observed + x$n_missing, n_observed = observed,
    n_passed = none, n_failed = none, n_missing = x$n_missing,
    n_excluded = rep(0L, nrow(x)), source = x$source, quantile = x$quantile,
    missing_reasons = if (is.null(reasons)) rep(list(integer()), nrow(x)) else reasons,
    exclusions = rep(list(integer()), nrow(x))
  )
}

no_quantiles <- function() {
  tibble(
    slice = character(), value = character(), metric = character(), source = character(),
    quantile = numeric(), n_total = integer(), n_missing = integer(),
    values = list(), counts = list()
  )
}

new_metric_table <- function(rows, class, ev) {
  class(rows) <- c(class, setdiff(class(rows), class))
  rows
}

check_level <- function(level, arg = "confidence_level", call = caller_env()) {
  if (is.numeric(level) && length(level) == 1 && !is.na(level) && level > 0 && level < 1) {
    return(invisible(level))
  }
  hint <- if (is.numeric(level) && isTRUE(level > 1 && level < 100)) {
    c(i = sprintf("%s percent is %s.", format(level), format(level / 100)))
  }
  stop_warrant(
    c(sprintf("`%s` must be one number between 0 and 1, both excluded.", arg), hint),
    "input", "invalid_level", argument = arg, call = call
  )
}

check_evaluation <- function(ev, call = caller_env()) {
  if (inherits(ev, "agent_evaluation")) return(invisible(ev))
  stop_warrant(
    c(
      "`ev` must be an evaluation, as evaluate() makes it.",
      x = sprintf("It is of class %s.", paste(class(ev), collapse = "/"))
    ),
    "input", "not_an_evaluation", argument = "ev", call = call
  )
}
