#' Ask a planner again about a run that was made
#'
#' Puts the agent's planner before each state that the run had, with the recorded
#' results, and compares what it decides with what was decided then. No tool is
#' called and nothing is recorded.
#'
#' @inheritParams run_agent
#' @param run A run.
#' @returns A list of class `run_replay`: `same` says whether every decision was the same,
#'   `step` is the first step where it was another one (`NA` where there is none), and
#'   `steps` is a tibble with `step`, `same`, `recorded` and `replayed`, up to that step.
#' @examples
#' half <- agent_tool(function(x) x / 2, "half", "Half of a number.",
#'   parameters = list(x = list(type = "number")), side_effects = "none"
#' )
#' planner <- function(state, tools) {
#'   if (length(state$steps)) return(decide_finish(state$steps[[1]]$result))
#'   decide_act("half", list(x = 3))
#' }
#' a <- agent(half, planner)
#' replay_run(a, run_agent(a, "halve"))
#' @export
replay_run <- function(agent, run) {
  check_class(agent, "agent", "agent()")
  check_class(run, "agent_run", "run_agent(), resume_run() or read_run()")
  kept <- read_kept(run$store, run$run_id)
  lefts <- unwrap_core(rs_run_lefts(kept$lines))
  cards <- tool_cards(agent)
  recorded <- replayed <- character()
  same <- TRUE
  for (i in seq_along(lefts)) {
    state <- list(
      goal = run$goal, steps = run$steps[seq_len(i - 1L)], left = lefts[[i]], run_id = run$run_id
    )
    before <- recorded_decision(run, i)
    if (is.null(before)) break
    again <- tryCatch(agent$planner(state, cards), error = identity)
    recorded[[i]] <- before
    replayed[[i]] <- decision_text(again, agent, kept$content[["key"]])
    same <- identical(recorded[[i]], replayed[[i]])
    if (!same) break
  }
  structure(
    list(
      same = same, step = if (same) NA_integer_ else length(recorded),
      steps = tibble(
        step = seq_along(recorded), same = recorded == replayed, recorded = recorded,
        replayed = replayed
      )
    ),
    class = "run_replay"
  )
}

# What the run decided at a step, as text; NULL where its planner never decided.
recorded_decision <- function(run, i) {
  if (i <= length(run$steps)) {
    step <- run$steps[[i]]
    if (step$decision == "finish") return(finish_text(step$answer))
    asked <- vapply(step$actions, function(a) action_text(a$tool, a$asked), "")
    return(paste(asked, collapse = "; "))
  }
  if (run$status == "completed") finish_text(run$answer)
}

decision_text <- function(decision, agent, key) {
  if (inherits(decision, "error")) return(paste("error:", plain(conditionMessage(decision))))
  if (!inherits(decision, "agent_decision")) return(paste("no decision:", friendly(decision)))
  if (decision$decision == "finish") return(finish_text(decision$answer))
  cores <- lapply(agent$tools, tool_core)
  texts <- vapply(with_redacted(decision, cores)$actions, function(action) {
    core <- cores[[action$tool]]
    ptr <- if (!is.null(core)) tool_ptr(core)
    action_text(
      action$tool, unwrap_core(rs_run_normal(ptr, action$arguments, action$redacted, key))
    )
  }, "")
  paste(texts, collapse = "; ")
}

finish_text <- function(answer) paste("finish", unwrap_core(rs_to_json(normal_form(answer))))

action_text <- function(tool, json) paste(tool, json)

#' @export
format.run_replay <- function(x, ...) {
  if (x$same) return(sprintf("<run_replay> the same over %d decisions", nrow(x$steps)))
  last <- x$steps[x$step, ]
  c(
    sprintf("<run_replay> another decision at step %d", x$step),
    paste0("* recorded: ", one_line(last$recorded)), paste0("* replayed: ", one_line(last$replayed))
  )
}

#' @export
print.run_replay <- function(x, ...) {
  writeLines(format(x, ...))
  invisible(x)
}
