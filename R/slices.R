#' Look at parts of the cases
#'
#' Use it to see where an agent does better or worse: every metric again, on the
#' cases of each value of each slice of the suite. It is exploratory: no release
#' rule reads a slice, and nothing here says what caused a difference.
#'
#' A result whose `support` (eligible cases of that metric in that group) is below
#' the suite's `min_slice_support` keeps estimate and counts and loses its interval.
#'
#' `marked` says which results differ from the run as a whole by more than chance
#' would do over the whole table: the group's own interval leaves out the run-wide
#' estimate, with the false discovery rate of all tested results held at 0.1 by the
#' procedure of Benjamini and Yekutieli (2001), which allows for any dependence
#' between them. Groups of one table overlap and the run holds them all, so read a
#' mark as a place to look. `marked` and `p_value` are `NA` where nothing was tested:
#' quantiles, groups without an observation, and results below the minimum support
#' unless `mark_all = TRUE`; nor are groups of repeated trials tested.
#'
#' @inheritParams metrics
#' @param mark_all Whether results below the minimum support are tested as well.
#' @returns A tibble in table order with the columns slice, value, metric, type,
#'   estimate, lower, upper, confidence_level, the counts of [metrics()], support,
#'   marked, p_value, then the other columns of [metrics()].
#' @export
#' @examples
#' slices(example_evaluation())
slices <- function(ev, ..., confidence_level = 0.95, mark_all = FALSE) {
  check_evaluation(ev)
  check_dots(...)
  check_level(confidence_level)
  check_flag(mark_all)
  rates <- ev$counts$rates
  quantiles <- ev$counts$quantiles
  if (is.null(quantiles)) quantiles <- no_quantiles()
  rows <- metric_rows(
    rates[rates$slice != "", ], quantiles[quantiles$slice != "", ], confidence_level
  )
  rows <- in_table_order(rows)
  rows$support <- rows$n_eligible
  short <- rows$support < min_support(ev)
  rows[short, c("lower", "upper", "confidence_level")] <- NA_real_
  run <- metrics(ev, confidence_level = confidence_level)
  grouped <- !is.null(rates[["shares"]])
  rows <- mark_rows(rows, run, !grouped & (mark_all | !short))
  columns <- append(metric_columns, c("support", "marked", "p_value"), after = 13)
  new_metric_table(rows[c("slice", "value", columns)], "agent_slices", ev)
}

min_support <- function(ev) {
  support <- ev$suite$min_slice_support
  if (is.null(support)) 30 else support
}

# Groups in the order they were counted, rates before quantiles in each.
in_table_order <- function(rows) {
  key <- paste(nchar(rows$slice), rows$slice, rows$value)
  rows[order(match(key, unique(key)), rows$type == "quantile"), ]
}

mark_rows <- function(rows, run, allowed) {
  reference <- run$estimate[match(rows$metric, run$metric)]
  tested <- rows$type == "rate" & rows$n_observed > 0 & !is.na(reference) & allowed
  rows$marked <- rep(NA, nrow(rows))
  rows$p_value <- rep(NA_real_, nrow(rows))
  if (!any(tested)) return(rows)
  group <- rows[tested, ]
  p <- slice_p_values(group$n_passed, group$n_observed, group$n_missing, reference[tested])
  scope <- paste0("slice/", group$slice, "=", group$value)
  rows$p_value[tested] <- p
  rows$marked[tested] <- by_marks(p, scope, 0.1)$marked
  rows
}
