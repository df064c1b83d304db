# The run as a value: made from its journal, checked against it, and printed.

read_kept <- function(store, run_id, call = caller_env()) {
  named_for(
    list(run_id = run_id, lines = store$read(run_id), content = store$get_content(run_id)), call
  )
}

view_of <- function(kept, upto = NULL, call = caller_env()) {
  read <- unwrap_core(rs_run_read(kept$lines, kept$content, upto), call)
  view <- read$view
  if (view$run_id != kept$run_id) {
    stop_warrant(
      c(paste0("The journal of run ", kept$run_id, " must be its own."),
        x = paste0("Its records are those of run ", view$run_id, ".")),
      "state", code = "other_run", run_id = kept$run_id, call = call
    )
  }
  view$steps <- read$steps
  view["goal"] <- list(read$goal)
  view$judged <- "done" %in% names(kept$content)
  view
}

new_run <- function(store, view, trail_head = "") {
  steps <- view$steps
  if (!is.null(view$open_step)) steps[[length(steps) + 1L]] <- view$open_step
  run <- structure(
    list(
      run_id = view$run_id, status = view$status, stop_reason = view$stop_reason,
      answer = view$answer, error = view$error, goal = view$goal, steps = steps,
      pending = lapply(view$pending, new_approval_request), used = view$used,
      limits = view$limits,
      audit_head = view$head, records = view$records, store = store
    ),
    class = "agent_run"
  )
  attr(run, "trail_head") <- trail_head
  attr(run, "judged") <- view$judged
  run
}

# The head that the trail of this run was seen to hold last.
trail_head <- function(run) {
  head <- if (inherits(run, "agent_run")) attr(run, "trail_head")
  if (is.null(head)) "" else head
}

# What a run object says must be what its journal said when it was made.
check_unedited <- function(run, kept, call = caller_env()) {
  fresh <- new_run(run$store, view_of(kept, run$audit_head, call))
  fields <- setdiff(names(fresh), c("store", "used"))
  differ <- !vapply(fields, function(f) identical(run[[f]], fresh[[f]]), NA)
  if (any(differ)) {
    stop_warrant(
      c(
        "A run must be as it was when it was made or read.",
        x = paste0("Its ", paste0("`", fields[differ], "`", collapse = ", "), " differs from its journal."),
        i = "Read it again with read_run()."
      ),
      "state", code = "run_edited", run_id = run$run_id, fields = fields[differ], call = call
    )
  }
}

#' @export
format.agent_run <- function(x, ...) {
  state <- paste0(x$status, if (!is.null(x$stop_reason)) paste0(" (", x$stop_reason, ")"))
  used <- x$used
  c(
    paste0("<agent_run> ", state),
    paste0("* run_id: ", x$run_id),
    if (!is.null(x$answer)) paste0("* answer: ", one_line(x$answer)),
    if (!is.null(x$error)) paste0("* error: ", one_line(x$error)),
    paste0("* steps: ", length(x$steps), format_outcomes(x$steps)),
    sprintf(
      "* used: %g calls, %g tokens, cost %g, %.3g s", used$tool_calls, used$tokens, used$cost,
      used$seconds
    ),
    if (length(x$pending)) paste0("* pending: ", vapply(x$pending, format_request, "")),
    sprintf("* audit head: %s (%g records)", substr(x$audit_head, 1, 8), x$records)
  )
}

format_outcomes <- function(steps) {
  outcomes <- unlist(lapply(steps, function(s) s$outcome))
  if (length(outcomes) == 0L) return("")
  outcomes[is.na(outcomes)] <- "under way"
  counts <- table(factor(outcomes, unique(outcomes)))
  paste0(" (", paste(names(counts), as.integer(counts), collapse = ", "), ")")
}

one_line <- function(x) {
  text <- if (is.character(x) && length(x) == 1L) x else unwrap_core(rs_to_json(x))
  text <- gsub("[[:space:]]+", " ", text)
  if (nchar(text) > 70L) paste0(substr(text, 1L, 67L), "...") else text
}

#' @export
print.agent_run <- function(x, ...) {
  writeLines(format(x, ...))
  invisible(x)
}
