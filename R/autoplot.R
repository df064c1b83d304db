#' Plot an evaluation
#'
#' Draws estimates with their intervals: one panel a metric, the run as a whole on
#' top and one row a value of each slice below it. An end without a bound is drawn to
#' the edge. The dashed line is the estimate of the run as a whole; filled points are
#' marked in [slices()]. The plot shows where results differ, and says nothing about
#' why.
#'
#' Needs the ggplot2 package; call it as `ggplot2::autoplot(ev)`.
#'
#' @param object An evaluation, see [evaluate()].
#' @param ... Must be empty.
#' @param slice Names of slices to draw; all by default, `character()` for none.
#' @param metric Names of metrics to draw; all rates by default.
#' @param confidence_level Level of all intervals.
#' @returns A ggplot.
#' @exportS3Method ggplot2::autoplot
#' @examplesIf requireNamespace("ggplot2", quietly = TRUE)
#' ggplot2::autoplot(example_evaluation())
autoplot.agent_evaluation <- function(object, ..., slice = NULL, metric = NULL,
                                      confidence_level = 0.95) {
  check_dots(...)
  data <- plot_data(object, slice, metric, confidence_level)
  draw_intervals(data, confidence_level)
}

plot_data <- function(ev, slice, metric, level, call = caller_env()) {
  run <- metrics(ev, confidence_level = level)
  groups <- slices(ev, confidence_level = level)
  if (is.null(metric)) metric <- run$metric[run$type == "rate"]
  check_known(metric, run$metric, "metric", call)
  if (is.null(slice)) slice <- unique(groups$slice)
  check_known(slice, groups$slice, "slice", call)
  run$row <- "all cases"
  run$marked <- NA
  groups <- groups[groups$slice %in% slice, ]
  groups$row <- paste0(groups$slice, " = ", groups$value)
  columns <- c("metric", "type", "row", "estimate", "lower", "upper", "confidence_level", "marked")
  data <- rbind(as_plain(run[columns]), as_plain(groups[columns]))
  data <- data[data$metric %in% metric, ]
  data$reference <- run$estimate[match(data$metric, run$metric)]
  data$metric <- factor(data$metric, run$metric)
  data$row <- factor(data$row, rev(unique(data$row)))
  open <- !is.na(data$confidence_level)
  rate <- data$type == "rate"
  data$from <- ifelse(open & is.na(data$lower), ifelse(rate, 0, -Inf), data$lower)
  data$to <- ifelse(open & is.na(data$upper), ifelse(rate, 1, Inf), data$upper)
  data$marked <- data$marked %in% TRUE
  data
}

as_plain <- function(x) {
  class(x) <- setdiff(class(x), c("agent_metrics", "agent_slices"))
  x
}

check_known <- function(x, known, arg, call) {
  unknown <- setdiff(x, known)
  if (length(unknown) == 0) return(invisible(x))
  stop_warrant(
    c(
      sprintf("`%s` must name what the evaluation has.", arg),
      x = sprintf("It has no \"%s\".", unknown[1]),
      i = sprintf("Known: %s.", paste(unique(known), collapse = ", "))
    ),
    "input", "unknown_name", argument = arg, call = call
  )
}

draw_intervals <- function(data, level) {
  # Columns are named through .data, which rlang exports.
  .data <- rlang::.data
  percents <- all(data$type == "rate")
  plot <- ggplot2::ggplot(data, ggplot2::aes(x = .data$estimate, y = .data$row)) +
    ggplot2::geom_vline(
      ggplot2::aes(xintercept = .data$reference), linetype = "dashed", colour = "grey60",
      na.rm = TRUE
    ) +
    ggplot2::geom_segment(
      ggplot2::aes(x = .data$from, xend = .data$to, yend = .data$row), na.rm = TRUE,
      colour = "grey30"
    ) +
    ggplot2::geom_point(ggplot2::aes(shape = .data$marked), size = 2, fill = "white", na.rm = TRUE) +
    ggplot2::scale_shape_manual(values = c(`FALSE` = 21, `TRUE` = 19), guide = "none") +
    ggplot2::facet_wrap(ggplot2::vars(.data$metric), scales = if (percents) "fixed" else "free_x") +
    ggplot2::labs(
      x = NULL, y = NULL,
      caption = sprintf(
        "Exact %s%% intervals, missing cases counted both ways. Slices are exploratory.",
        format_percentile(level)
      )
    ) +
    ggplot2::theme_minimal() +
    ggplot2::theme(panel.spacing.x = ggplot2::unit(1, "lines"))
  if (!percents) return(plot)
  plot + ggplot2::scale_x_continuous(
    limits = c(0, 1), breaks = c(0, 0.5, 1), labels = c("0%", "50%", "100%")
  )
}
