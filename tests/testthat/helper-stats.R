# Rows of a grid of reference values in stats/: a list of lists, null as NULL.
stats_grid <- function(name) {
  skip_if_not_installed("jsonlite")
  file <- gzfile(test_path("stats", paste0(name, ".jsonl.gz")), encoding = "UTF-8")
  on.exit(close(file))
  lapply(readLines(file), jsonlite::fromJSON, simplifyVector = FALSE)
}

stats_column <- function(rows, i) {
  vapply(rows, function(row) if (is.null(row[[i]])) NA_real_ else as.numeric(row[[i]]), numeric(1))
}

# Largest relative difference; infinite where only one of two is NA.
worst_relative <- function(a, b) {
  if (!identical(is.na(a), is.na(b))) return(Inf)
  max(0, ifelse(a == b, 0, abs(a - b) / abs(b)), na.rm = TRUE)
}

tallied <- function(values) {
  values <- unlist(values)
  distinct <- sort(unique(values))
  list(values = distinct, counts = tabulate(match(values, distinct)))
}
