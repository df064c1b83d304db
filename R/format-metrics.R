# How numbers are shown. Private. Rates in percent to one decimal, from the
# shortest decimal form of the double: the estimate half-even, a lower bound down,
# an upper bound up, so that a bound never looks better than it is.

percent <- function(x, round = c("even", "down", "up")) {
  round <- match.arg(round)
  vapply(x, percent_one, "", round, USE.NAMES = FALSE)
}

percent_one <- function(x, round) {
  if (is.na(x)) return(NA_character_)
  tenths <- tenths_of_percent(x, round)
  sprintf("%d.%d%%", tenths %/% 10L, tenths %% 10L)
}

# x * 1000 as an integer, exactly, from the decimal digits.
tenths_of_percent <- function(x, round) {
  if (x == 0) return(0L)
  decimal <- decimal_of(x)
  digits <- decimal$digits
  cut <- decimal$decimals - 3L
  if (cut <= 0L) return(as.integer(paste0(digits, strrep("0", -cut))))
  digits <- paste0(strrep("0", max(cut - nchar(digits) + 1L, 0L)), digits)
  keep <- nchar(digits) - cut
  whole <- as.integer(substr(digits, 1L, keep))
  rest <- substr(digits, keep + 1L, nchar(digits))
  half <- paste0("5", strrep("0", cut - 1L))
  up <- switch(round,
    down = FALSE,
    up = grepl("[1-9]", rest),
    even = rest > half || (rest == half && whole %% 2L == 1L)
  )
  whole + up
}

# A threshold, with all the decimals it was written with.
percent_exactly <- function(x) {
  text <- formatC(x * 100, digits = 12, format = "fg", width = 1)
  paste0(if (grepl(".", text, fixed = TRUE)) text else paste0(text, ".0"), "%")
}

count_of <- function(n, noun) {
  text <- formatC(n, format = "d", big.mark = "")
  paste0(text, " ", noun, if (n == 1) "" else "s")
}

units_of <- c(agent_steps = "step", agent_tool_calls = "tool call", latency_ms = "millisecond")

dot <- function() if (l10n_info()[["UTF-8"]]) " \u00b7 " else " - "

show_estimate <- function(rows) {
  rate <- rows$type == "rate"
  text <- rep("no estimate", nrow(rows))
  some <- !is.na(rows$estimate)
  text[rate & some] <- percent(rows$estimate[rate & some])
  counts <- which(!rate & some)
  text[counts] <- mapply(count_of, rows$estimate[counts], unit_words(rows$source[counts]))
  text
}

unit_words <- function(source) {
  words <- units_of[source]
  ifelse(is.na(words), source, words)
}

show_interval <- function(rows) {
  text <- rep("no interval", nrow(rows))
  some <- which(!is.na(rows$confidence_level))
  rate <- rows$type[some] == "rate"
  low <- ifelse(rate, percent(rows$lower[some], "down"), format_count(rows$lower[some]))
  high <- ifelse(rate, percent(rows$upper[some], "up"), format_count(rows$upper[some]))
  unit <- ifelse(rate, "", paste0(" ", unit_words(rows$source[some]), "s"))
  text[some] <- sprintf("[%s, %s]%s", or_no_bound(low), or_no_bound(high), unit)
  text
}

format_count <- function(x) ifelse(is.na(x), NA_character_, formatC(x, format = "fg", width = 1))

or_no_bound <- function(x) ifelse(is.na(x), "no bound", x)

show_counts <- function(rows) {
  observed <- ifelse(
    rows$type == "rate",
    sprintf("%d / %d observed", as.integer(rows$n_passed), as.integer(rows$n_observed)),
    sprintf("p%s of %d observed", format_percentile(rows$quantile), as.integer(rows$n_observed))
  )
  paste0(
    observed, dot(), as.integer(rows$n_missing), " missing", dot(),
    as.integer(rows$n_excluded), " excluded"
  )
}

format_percentile <- function(q) {
  vapply(q, function(q) {
    if (is.na(q)) return("")
    formatC(q * 100, digits = 10, format = "fg", width = 1)
  }, "")
}

# Why cases are missing or excluded, one line a metric that has any.
show_reasons <- function(rows) {
  words <- function(counts, what) {
    if (length(counts) == 0) return(character())
    sprintf("%s: %s", what, paste(unlist(counts), names(counts), collapse = ", "))
  }
  unlist(lapply(seq_len(nrow(rows)), function(i) {
    parts <- c(
      words(rows$missing_reasons[[i]], "missing"), words(rows$exclusions[[i]], "excluded")
    )
    if (length(parts)) sprintf("* %s %s", rows$metric[i], paste(parts, collapse = "; "))
  }))
}

# Columns of text, padded; the last is not.
text_table <- function(...) {
  columns <- list(...)
  last <- length(columns)
  padded <- lapply(columns[-last], formatC_left)
  do.call(paste, c(padded, columns[last], sep = "  "))
}

formatC_left <- function(x) {
  width <- nchar(x, type = "width")
  paste0(x, strrep(" ", max(width, 0L) - width))
}

metric_lines <- function(rows) {
  text_table(rows$metric, show_estimate(rows), show_interval(rows), show_counts(rows))
}

level_words <- function(rows) {
  level <- stats::na.omit(rows$confidence_level)
  if (length(level)) sprintf("exact %s%% intervals", format_percentile(level[1])) else "no intervals"
}

#' @export
print.agent_metrics <- function(x, ...) {
  # A table from which a user took columns away prints as the tibble it is.
  if (!all(metric_columns %in% names(x))) return(NextMethod())
  writeLines(metrics_text(x))
  invisible(x)
}

metrics_text <- function(x) {
  c(
    sprintf("<agent_metrics> %s, %s", count_of(nrow(x), "metric"), level_words(x)),
    metric_lines(x), show_reasons(x)
  )
}

#' @export
print.agent_slices <- function(x, ...) {
  if (!all(c("slice", "value", "support", metric_columns) %in% names(x))) return(NextMethod())
  writeLines(slices_text(x))
  invisible(x)
}

slices_text <- function(x) {
  if (nrow(x) == 0) return("<agent_slices> no slices")
  lines <- text_table(
    paste0(x$slice, "=", x$value), x$metric, show_estimate(x), show_interval(x),
    show_counts(x), paste("support", x$support),
    ifelse(x$marked %in% TRUE, "marked *exploratory*", "")
  )
  c(
    sprintf(
      "<agent_slices> %s, %s, %s tested, %s marked", count_of(nrow(x), "result"),
      level_words(x), sum(!is.na(x$p_value)), sum(x$marked %in% TRUE)
    ),
    sub(" +$", "", lines),
    "* marks are exploratory: they say where to look, not why"
  )
}
