#' @importFrom stats pbinom qbeta qbinom
NULL

# Exact intervals that count what is missing. Private; vectorised over cases of
# one level. Bounds that do not exist are NA.

# Clopper & Pearson (1934), each missing case a failure for the lower end and a
# pass for the upper end. `passed` of `observed`, `missing` on top.
rate_interval <- function(passed, observed, missing, level) {
  rate_interval_at(passed, observed, missing, (1 - level) / 2)
}

rate_interval_at <- function(passed, observed, missing, tail) {
  total <- observed + missing
  tail <- rep_len(tail, length(total))
  top <- passed + missing
  lower <- upper <- rep(NA_real_, length(total))
  some <- total > 0
  lower[some] <- 0
  upper[some] <- 1
  low <- which(some & passed > 0)
  lower[low] <- qbeta(tail[low], passed[low], total[low] - passed[low] + 1)
  high <- which(some & top < total)
  # The tail of 1 - tail rounded to a double, as the reference values have it.
  beyond <- 1 - (1 - tail[high])
  upper[high] <- qbeta(beyond, top[high] + 1, total[high] - top[high], lower.tail = FALSE)
  list(lower = lower, upper = upper)
}

# The digits and the number of decimals of the shortest decimal that reads back
# as `q`: the number as it was written.
decimal_of <- function(q) {
  for (digits in 1:17) {
    text <- formatC(q, digits = digits - 1, format = "e", decimal.mark = ".")
    if (as.numeric(text) == q) break
  }
  parts <- strsplit(text, "e", fixed = TRUE)[[1]]
  list(
    digits = sub(".", "", parts[1], fixed = TRUE),
    decimals = digits - 1 - as.integer(parts[2])
  )
}

# Rank of the estimate of quantile `q` among `n` values: max(ceiling(q * n), 1),
# `q` an exact decimal. In doubles 0.28 * 25 is just above 7.
estimate_rank <- function(n, q) {
  decimal <- decimal_of(q)
  near <- round(q * n)
  rank <- ceiling(q * n)
  # A double product is off by less than 1e-15 relative: elsewhere it is safe.
  unsure <- which(abs(q * n - near) <= 1e-9 * pmax(near, 1))
  for (i in unsure) rank[i] <- exact_ceiling(decimal, n[i])
  pmax(rank, 1)
}

# ceiling(digits * n / 10^decimals) digit by digit.
exact_ceiling <- function(decimal, n) {
  figures <- as.integer(strsplit(decimal$digits, "", fixed = TRUE)[[1]])
  product <- numeric(0)
  carry <- 0
  for (figure in rev(figures)) {
    carry <- carry + figure * n
    product <- c(carry %% 10, product)
    carry <- carry %/% 10
  }
  while (carry > 0) {
    product <- c(carry %% 10, product)
    carry <- carry %/% 10
  }
  whole <- max(length(product) - decimal$decimals, 0)
  left <- seq_along(product) <= whole
  sum(product[left] * 10^rev(seq_len(whole) - 1)) + any(product[!left] > 0)
}

# A tail that equals half the error level up to rounding counts as too large,
# so rounding can only widen an interval.
tail_limit <- function(level) (1 - level) / 2 * (1 - 1e-9)

# Ranks of the order statistics that bound quantile `q` among `total` values
# (David & Nagaraja, Order Statistics, 7.1); NA where there is none.
quantile_ranks <- function(total, q, level) {
  limit <- tail_limit(level)
  list(
    lower = vapply(total, lower_rank, numeric(1), q, limit),
    upper = vapply(total, upper_rank, numeric(1), q, limit)
  )
}

# 1 + the largest j in 0..total-1 with P(B <= j) <= limit.
lower_rank <- function(total, q, limit) {
  if (total < 1) return(NA_real_)
  j <- min(qbinom(limit, total, q), total - 1)
  while (j >= 0 && pbinom(j, total, q) > limit) j <- j - 1
  while (j < total - 1 && pbinom(j + 1, total, q) <= limit) j <- j + 1
  if (j < 0) NA_real_ else j + 1
}

# 1 + the smallest j in 0..total-1 with P(B > j) <= limit.
upper_rank <- function(total, q, limit) {
  if (total < 1) return(NA_real_)
  above <- function(j) pbinom(j, total, q, lower.tail = FALSE)
  j <- qbinom(limit, total, q, lower.tail = FALSE)
  while (j > 0 && above(j - 1) <= limit) j <- j - 1
  while (j < total && above(j) > limit) j <- j + 1
  if (j >= total) NA_real_ else j + 1
}

# Estimate and bounds of a quantile from ascending distinct `values` with their
# `counts`. A missing value is minus infinity for the lower bound and plus
# infinity for the upper.
quantile_interval <- function(values, counts, missing, q, level) {
  n <- sum(counts)
  if (n == 0) return(list(estimate = NA_real_, lower = NA_real_, upper = NA_real_))
  upto <- cumsum(counts)
  at <- function(rank) as.numeric(values[findInterval(rank - 1, upto) + 1L])
  ranks <- quantile_ranks(n + missing, q, level)
  list(
    estimate = at(estimate_rank(n, q)),
    lower = if (isTRUE(ranks$lower > missing)) at(ranks$lower - missing) else NA_real_,
    upper = if (isTRUE(ranks$upper <= n)) at(ranks$upper) else NA_real_
  )
}

# Fewest cases with an upper bound, none missing: q^n <= limit.
fewest_cases <- function(q, level) {
  limit <- tail_limit(level)
  n <- max(ceiling(log(limit) / log(q)), 1)
  while (n > 1 && (n - 1) * log(q) <= log(limit)) n <- n - 1
  while (n * log(q) > log(limit)) n <- n + 1
  n
}
