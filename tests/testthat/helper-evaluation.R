# An evaluation with given counts, as evaluate() leaves them. `rates`: rows of
# passed, failed, missing (excluded); names are criteria.
counted <- function(rates, quantiles = NULL, slices = NULL, min_slice_support = 30) {
  all <- rbind(rate_counts(rates), slices)
  structure(
    list(
      counts = list(
        rates = all, quantiles = if (is.null(quantiles)) no_quantiles() else quantiles
      ),
      suite = list(min_slice_support = min_slice_support)
    ),
    class = "agent_evaluation"
  )
}

rate_counts <- function(rates, slice = "", value = "") {
  at <- function(i) vapply(rates, function(x) if (length(x) < i) 0L else as.integer(x[i]), 0L)
  reasons <- function(i, code) {
    lapply(at(i), function(n) if (n > 0) stats::setNames(n, code) else integer())
  }
  tibble::tibble(
    slice = slice, value = value, criterion = names(rates),
    n_total = unname(at(1) + at(2) + at(3) + at(4)), n_passed = unname(at(1)),
    n_failed = unname(at(2)), n_missing = unname(at(3)), n_excluded = unname(at(4)),
    missing_reasons = unname(reasons(3, "system_error")),
    exclusions = unname(reasons(4, "no_expected"))
  )
}

quantile_counted <- function(metric, values, missing = 0, q = 0.95, source = "agent_steps") {
  data <- tallied(values)
  tibble::tibble(
    slice = "", value = "", metric = metric, source = source, quantile = q,
    n_total = length(values) + as.integer(missing), n_missing = as.integer(missing),
    values = list(data$values), counts = list(data$counts)
  )
}
