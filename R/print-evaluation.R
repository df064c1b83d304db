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
    if (sliced) sprintf("* slices: %s; see slices()", paste(unique(setdiff(x$counts$rates$slice, "")), collapse = " ")),
    show_problems(x$problems)
  )
}

# Records that were set aside, by what is wrong with them.
show_problems <- function(problems) {
  if (NROW(problems) == 0) return(NULL)
  kinds <- table(factor(problems$error_kind, unique(problems$error_kind)))
  sprintf("* problems: %s; see $problems", paste(kinds, names(kinds), collapse = ", "))
}

#' @export
print.agent_evaluation <- function(x, ...) {
  writeLines(format(x))
  invisible(x)
}
