# Which results of a table of slices differ from the run as a whole. Private.

# The smallest error level at which the group's own interval leaves out the
# run-wide estimate, taken as a fixed number; to 1e-4, by bisection.
slice_p_values <- function(passed, observed, missing, reference) {
  inside <- function(x, i) {
    tail <- x / 2
    at <- rate_interval_at(passed[i], observed[i], missing[i], tail)
    at$lower <= reference[i] & reference[i] <= at$upper
  }
  p <- rep(NA_real_, length(observed))
  testable <- which(observed > 0 & !is.na(reference))
  p[testable] <- 1
  never <- testable[!inside(1e-4, testable)]
  p[never] <- 1e-4
  open <- setdiff(testable, never)
  open <- open[!inside(0.9999, open)]
  low <- rep(1e-4, length(open))
  high <- rep(0.9999, length(open))
  while (length(open) && any(wide <- high - low > 1e-4)) {
    middle <- (low + high) / 2
    holds <- inside(middle, open)
    low <- ifelse(wide & holds, middle, low)
    high <- ifelse(wide & !holds, middle, high)
  }
  p[open] <- high
  p
}

# Benjamini & Yekutieli (2001), step-up, at false discovery rate `fdr`. `scope`
# settles ties, in code-point order, then the order given.
by_marks <- function(p, scope, fdr) {
  m <- length(p)
  order <- order(p, scope, seq_len(m), method = "radix")
  rank <- integer(m)
  rank[order] <- seq_len(m)
  threshold <- rank / m * fdr / sum(1 / seq_len(m))
  cutoff <- max(0L, rank[p <= threshold])
  list(marked = rank <= cutoff, rank = rank, threshold = threshold)
}
