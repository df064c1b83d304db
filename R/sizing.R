# How many cases would settle a rule. Private; beside a decision, never part of
# it. The answer takes the observed rate as exactly true.

search_ceiling <- 100000

# Fewest cases from which a suite with pass rate `rate` keeps meeting
# `threshold`; NA where none up to the ceiling does.
size_rate <- function(rate, threshold, direction, level) {
  clears <- function(x) {
    at <- rate_interval(round(rate * x), x, 0 * x, level)
    if (direction == "min") at$lower >= threshold else at$upper <= threshold
  }
  first <- first_size(clears)
  if (is.na(first)) NA_real_ else size_that_holds(first, clears)
}

# Doubling, then bisection as if clears() were monotone.
first_size <- function(clears) {
  high <- 1
  while (!clears(high)) {
    if (high >= search_ceiling) return(NA_real_)
    high <- min(2 * high, search_ceiling)
  }
  low <- if (high == 1) 0 else high %/% 2
  while (high - low > 1) {
    middle <- (low + high) %/% 2
    if (clears(middle)) high <- middle else low <- middle
  }
  high
}

# Rounding the passes makes clears() flicker: walk on until it has held for a
# window that grows with the size.
size_that_holds <- function(first, clears) {
  window <- function(x) min(max(x, 64), 2048)
  answer <- at <- first
  reach <- min(search_ceiling, first + window(first))
  while (at <= reach) {
    block <- seq(at, min(reach, at + 2047))
    for (size in block[!clears(block)]) {
      answer <- size + 1
      reach <- min(search_ceiling, max(reach, answer + window(answer)))
    }
    at <- block[length(block)] + 1
  }
  answer
}

# Fewest cases of which the upper bound of quantile `q` meets `threshold`, the
# observed values repeated in their proportions. `limit` is the bound that not
# even the largest suite gets below.
size_quantile <- function(values, counts, q, threshold, level) {
  n <- sum(counts)
  upto <- cumsum(counts)
  up <- function(x) {
    rank <- quantile_ranks(x, q, level)$upper
    if (is.na(rank)) return(Inf)
    tiled_value(values, upto, n, x, rank)
  }
  limit <- up(search_ceiling)
  if (limit > threshold) return(list(cases = NA_real_, limit = limit))
  list(cases = first_size(function(x) up(x) <= threshold), limit = NA_real_)
}

# The value of `rank` when `n` sorted values are tiled to `x`: whole copies, and
# for the remainder r the values at fractional ranks (i + 0.5) * n / r - 0.5,
# the midpoint of the two neighbours at an exact half.
tiled_value <- function(values, upto, n, x, rank) {
  at <- function(i) values[findInterval(i, upto) + 1L]
  copies <- x %/% n
  rest <- x %% n
  extra <- numeric(0)
  if (rest > 0) {
    above <- (2 * (seq_len(rest) - 1) + 1) * n - rest
    floor <- above %/% (2 * rest)
    over <- 2 * (above %% (2 * rest)) - 2 * rest
    extra <- at(floor + (over > 0))
    half <- over == 0
    extra[half] <- (at(floor[half]) + at(floor[half] + 1)) / 2
  }
  points <- sort(unique(c(values, extra)))
  whole <- copies * diff(c(0, upto[findInterval(points, values)]))
  points[findInterval(rank - 1, cumsum(whole + tabulate(match(extra, points), length(points)))) + 1L]
}
