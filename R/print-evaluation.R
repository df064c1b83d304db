#' @export
format.agent_evaluation <- function(x, ...) {
  m <- metrics(x)
  cases <- if (nrow(m)) max(m$n_total) else 0
  groups <- !is.null(x$counts$rates[["shares"]])
  sliced <- sum(x$counts$rates$slice != "")
  c(
    sprintf(
      "<agent_evaluation> %s, %s", count_of(cases, if (groups) "group of trials" else "case"),
      level_words(m)
    ),
    metric_lines(m), show_reasons(m),
    if (sliced) sprintf("* slices: %s; see slices()", paste(unique(setdiff(x$counts$rates$slice, "")), collapse = " "))
  )
}

#' @export
print.agent_evaluation <- function(x, ...) {
  writeLines(format(x))
  invisible(x)
}
