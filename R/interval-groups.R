# Repeated trials: the mean of independent shares between 0 and 1. Private.
#
# Hoeffding (1963), Theorem 1: P(mean <= t) <= exp(-n * kl(t, mu)) for t <= mu.
# Bentkus (2004), Theorem 1.2: P(sum <= s) <= e * P(Binomial(n, mu) <= ceiling(s)).
# The smaller of the two is a tail bound; an interval inverts it at half the
# error level on either side. Missing groups have share 0 for the lower bound and
# share 1 for the upper.

# `shares`: for each rate the share of passed trials of each complete group.
mean_share <- function(shares) if (length(shares)) mean(shares) else NA_real_

group_intervals <- function(shares, missing, level) {
  tail <- (1 - level) / 2
  bounds <- Map(function(x, m) group_interval(x, m, tail), shares, missing)
  list(
    lower = vapply(bounds, `[[`, 0, 1, USE.NAMES = FALSE),
    upper = vapply(bounds, `[[`, 0, 2, USE.NAMES = FALSE)
  )
}

group_interval <- function(shares, missing, tail) {
  n <- length(shares) + missing
  if (n == 0) return(c(NA_real_, NA_real_))
  c(
    1 - mean_upper(n - sum(shares), n, tail),
    mean_upper(sum(shares) + missing, n, tail)
  )
}

# The largest mean that a sum this small does not rule out.
mean_upper <- function(sum, n, tail) {
  # A sum of shares is off by rounding only: that must not move the ceiling.
  whole <- ceiling(sum - 1e-9)
  share <- min(sum / n, 1)
  if (share >= 1 || whole >= n) return(1)
  log_tail <- function(mu) {
    min(-n * kl_bernoulli(share, mu), 1 + pbinom(whole, n, mu, log.p = TRUE))
  }
  low <- share
  high <- 1
  for (i in seq_len(60)) {
    middle <- (low + high) / 2
    if (log_tail(middle) > log(tail)) low <- middle else high <- middle
  }
  high
}

kl_bernoulli <- function(a, b) {
  part <- function(x, y) if (x == 0) 0 else x * log(x / y)
  part(a, b) + part(1 - a, 1 - b)
}
