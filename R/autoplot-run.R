#' Plot a run, or the calls of tools
#'
#' `autoplot()` of a run draws its timeline: a row for each tool, a mark for each action
#' where its outcome became known, the pauses, and what people decided. Of a tool log
#' (see [tool_log()]) it draws how many calls of each tool ended in which status.
#' Needs ggplot2.
#'
#' Every outcome has a shape or a place of its own, so nothing rests on colour alone.
#' Colours tell apart what ran, what failed, what was refused and what waits.
#'
#' @param object A run, or a tool log.
#' @param ... Must be empty.
#' @param by `"step"`: the steps are evenly spaced. `"seconds"`: along working time, with a
#'   line from start to end of each call; pauses take no room.
#' @returns A ggplot.
#' @seealso [view_run()] for the whole of a run.
#' @exportS3Method ggplot2::autoplot
#' @examplesIf requireNamespace("ggplot2", quietly = TRUE)
#' half <- agent_tool(function(x) x / 2, "half", "Half of a number.",
#'   parameters = list(x = list(type = "number")), side_effects = "none"
#' )
#' planner <- function(state, tools) {
#'   n <- length(state$steps)
#'   if (n < 3) decide_act("half", list(x = if (n == 1) "two" else n)) else decide_finish("done")
#' }
#' run <- run_agent(agent(half, planner), "halve")
#' ggplot2::autoplot(run)
#' ggplot2::autoplot(tool_log(run))
autoplot.agent_run <- function(object, ..., by = c("step", "seconds")) {
  check_dots(...)
  by <- arg_match(by)
  draw_timeline(timeline_data(run_events(object)), by)
}

#' @rdname autoplot.agent_run
#' @exportS3Method ggplot2::autoplot
autoplot.tool_log <- function(object, ...) {
  check_dots(...)
  lacking <- setdiff(c("name", "status"), names(object))
  if (length(lacking)) {
    stop_warrant(
      c("`object` must have the columns `name` and `status` of a tool log.",
        x = sprintf("It has no `%s`.", lacking[1])),
      "input", argument = "object"
    )
  }
  draw_log(log_counts(object))
}

# ---- what is drawn ----------------------------------------------------------------

# One row an action or answer, one row a pause.
timeline_data <- function(events) {
  events <- events[!events$event %in% c("run_started", "plan_started", "guardrail", "grant_used"), ]
  read <- lapply(events$data, function(text) unwrap_core(rs_from_json(text)))
  rows <- new.env(parent = emptyenv())
  rows$all <- list()
  rows$requests <- list()
  pauses <- list()
  for (i in seq_len(nrow(events))) {
    data <- read[[i]]
    second <- events$active_ms[i] / 1000
    take_event(rows, events$event[i], data, second, events$digest[i])
    if (events$event[i] == "paused") pauses <- c(pauses, list(list(step = last_step(rows), seconds = second)))
  }
  list(actions = frame_of(rows$all, action_columns), pauses = frame_of(pauses, pause_columns))
}

action_columns <- list(
  step = 0, action = 0, row = "", outcome = "", start = 0, end = 0, decision = ""
)
pause_columns <- list(step = 0, seconds = 0)

frame_of <- function(rows, columns) {
  cells <- lapply(names(columns), function(name) {
    vapply(rows, function(row) row[[name]], columns[[name]])
  })
  names(cells) <- names(columns)
  as.data.frame(cells, stringsAsFactors = FALSE)
}

last_step <- function(rows) {
  n <- length(rows$all)
  if (n) rows$all[[n]]$step else 0
}

take_event <- function(rows, event, data, second, digest) {
  set <- function(...) set_action(rows, data$step, data$action, second, ...)
  decide <- function(...) {
    at <- rows$requests[[data$request]]
    if (!is.null(at)) set_action(rows, at[1], at[2], second, ...)
  }
  switch(event,
    decided = add_actions(rows, data, second),
    answer_rejected = set_action(rows, data$step, 0, second, outcome = "answer_rejected"),
    finished = if (!is.null(data$answer)) {
      set_action(rows, last_step(rows), 0, second, outcome = "answer")
    },
    denied = set(outcome = data$outcome),
    approval_requested = {
      rows$requests[[digest]] <- c(data$step, data$action)
      set(outcome = "approval_required", decision = "asked")
    },
    approved = decide(decision = "approved"),
    edited = decide(decision = "edited"),
    rejected = decide(decision = "rejected", outcome = "approval_denied"),
    expired = decide(decision = "expired", outcome = "approval_expired"),
    call_started = set(outcome = "under way", start = second),
    call_finished = set(outcome = data$outcome),
    recovered = if (!is.null(data$action) && !is.null(data$outcome)) set(outcome = data$outcome)
  )
}

add_actions <- function(rows, data, second) {
  # Environments: a row is changed in place, however many there are.
  one <- function(action, tool) {
    list2env(list(
      step = data$step, action = action, row = tool, outcome = "under way", start = second,
      end = second, decision = ""
    ))
  }
  new <- if (data$decision == "finish") {
    list(one(0, answer_row))
  } else {
    Map(one, seq_along(data$actions) - 1, vapply(data$actions, function(a) a$tool, ""))
  }
  rows$all <- c(rows$all, unname(new))
}

answer_row <- "(answer)"

# Actions are settled close to the end of the list.
set_action <- function(rows, step, action, second, ...) {
  at <- length(rows$all)
  while (at > 0 && !(rows$all[[at]]$step == step && rows$all[[at]]$action == action)) at <- at - 1
  if (at == 0) return()
  list2env(list(..., end = second), rows$all[[at]])
}

log_counts <- function(log) {
  status <- ifelse(is.na(log$status), "under way", log$status)
  pairs <- data.frame(name = as.character(log$name), status = as.character(status), stringsAsFactors = FALSE)
  counts <- unique(pairs)
  counts <- counts[order(counts$status, counts$name, method = "radix"), ]
  cell <- paste(pairs$name, pairs$status, sep = "\r")
  counts$calls <- tabulate(match(cell, paste(counts$name, counts$status, sep = "\r")), nrow(counts))
  counts$name <- factor(counts$name, rev(unique(log$name)))
  counts$status <- factor(counts$status, names(outcome_looks$shape)[names(outcome_looks$shape) %in% status])
  counts$kind <- outcome_looks$kind[as.character(counts$status)]
  counts
}

# ---- how it looks -----------------------------------------------------------------

# Colours by Okabe and Ito (2008), darkened to stand on white.
kind_colours <- c(
  ran = "#00795a", failed = "#c04a00", refused = "#8a3d74", waits = "#0b5f9e", `under way` = "#5a6169"
)

outcome_looks <- local({
  looks <- data.frame(
    outcome = c(
      "executed", "answer", "error", "timed_out", "interrupted", "invalid_arguments", "unknown_tool",
      "effect_denied", "scope_denied", "guardrail_blocked", "tool_exhausted", "limit_reached",
      "approval_denied", "approval_expired", "approval_stale", "answer_rejected",
      "approval_required", "under way"
    ),
    kind = rep(names(kind_colours), c(2, 3, 11, 1, 1)),
    shape = c(16, 18, 4, 13, 8, 0, 2, 5, 6, 7, 9, 12, 14, 10, 11, 15, 1, 3)
  )
  list(
    kind = stats::setNames(looks$kind, looks$outcome),
    shape = stats::setNames(looks$shape, looks$outcome),
    colour = stats::setNames(unname(kind_colours[looks$kind]), looks$outcome)
  )
})

draw_timeline <- function(data, by) {
  .data <- rlang::.data
  actions <- data$actions
  seconds <- by == "seconds"
  present <- names(outcome_looks$shape) %in% actions$outcome
  present <- names(outcome_looks$shape)[present]
  actions$row <- factor(actions$row, rev(row_order(actions$row)))
  actions$outcome <- factor(actions$outcome, present)
  actions$x <- if (seconds) actions$end else spread(actions)
  data$pauses$x <- if (seconds) data$pauses$seconds else data$pauses$step
  plot <- ggplot2::ggplot(actions, ggplot2::aes(x = .data$x, y = .data$row)) +
    ggplot2::geom_vline(
      data = data$pauses, ggplot2::aes(xintercept = .data$x), linetype = "dashed", colour = "grey45"
    )
  if (seconds) {
    plot <- plot + ggplot2::geom_segment(
      ggplot2::aes(x = .data$start, xend = .data$end, yend = .data$row, colour = .data$outcome),
      show.legend = FALSE
    )
  }
  plot <- plot +
    ggplot2::geom_point(ggplot2::aes(colour = .data$outcome, shape = .data$outcome), size = 3, stroke = 0.9) +
    ggplot2::geom_text(
      data = actions[nzchar(actions$decision), ],
      ggplot2::aes(label = .data$decision), nudge_y = 0.36, size = 3, colour = "grey20"
    ) +
    ggplot2::scale_colour_manual(values = outcome_looks$colour, breaks = present) +
    ggplot2::scale_shape_manual(values = outcome_looks$shape, breaks = present) +
    ggplot2::labs(
      x = if (seconds) "Working time in seconds" else "Step", y = NULL, colour = NULL, shape = NULL,
      caption = if (nrow(data$pauses)) "Dashed: the run paused. Words: what a person decided."
    ) +
    ggplot2::theme_minimal() +
    ggplot2::theme(panel.grid.minor = ggplot2::element_blank(), legend.position = "bottom")
  if (seconds) return(plot)
  plot + ggplot2::scale_x_continuous(breaks = function(range) {
    unique(round(base::pretty(c(max(1, ceiling(range[1])), floor(range[2])))))
  })
}

# Tools in the order they were first asked for, the answer last.
row_order <- function(rows) c(setdiff(rows, answer_row), intersect(answer_row, rows))

# Actions of one tool in one step stand side by side.
spread <- function(actions) {
  group <- paste(actions$step, actions$row)
  place <- stats::ave(actions$action, group, FUN = seq_along)
  n <- stats::ave(actions$action, group, FUN = length)
  actions$step + ifelse(n > 1, (place - 1) / (n - 1) - 0.5, 0) * 0.6
}

draw_log <- function(counts) {
  .data <- rlang::.data
  # A scale of no words cannot be drawn.
  if (nrow(counts) == 0L) {
    return(ggplot2::ggplot(counts) + ggplot2::labs(caption = "No calls.") + ggplot2::theme_minimal())
  }
  ggplot2::ggplot(counts, ggplot2::aes(x = .data$status, y = .data$name)) +
    ggplot2::geom_tile(ggplot2::aes(fill = .data$kind), width = 0.92, height = 0.84) +
    ggplot2::geom_text(ggplot2::aes(label = .data$calls), colour = "white", fontface = "bold") +
    ggplot2::scale_fill_manual(values = kind_colours, guide = "none") +
    ggplot2::scale_x_discrete(position = "top", labels = function(x) gsub("_", "\n", x)) +
    ggplot2::labs(x = NULL, y = NULL, caption = "Calls by tool and status.") +
    ggplot2::theme_minimal() +
    ggplot2::theme(panel.grid = ggplot2::element_blank())
}
