#' @export
format.agent_evaluation <- function(x, ...) {
  m <- metrics(x)
  cases <- max(0, m$n_total[m$type == "rate"])
  groups <- !is.null(x$counts$rates[["shares"]])
  sliced <- sum(x$counts$rates$slice != "")
  c(
    sprintf(
      "<agent_evaluation> %s, %s", if (groups) paste(count_of(cases, "group"), "of trials") else count_of(cases, "case"),
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
