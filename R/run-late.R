# What a driver does that lost its run to another owner while a call was under way.

# The append was refused. Where a call ended in it, its end is kept where it belongs.
stop_lost <- function(drive, error, call) {
  late <- if (identical(error$run_id, drive$run_id)) rs_run_unkept(drive$keeping$lines)
  if (is.null(late) || inherits(late, "warrant_fault")) raise_again(error, call)
  kept <- keep_late(drive, late)
  result <- if (!is.null(late$result)) rs_from_json(drive$keeping$content[[late$result]])
  stop_warrant(c(
    sprintf(
      "A call of `%s` (run %s, step %d) ended after another owner had taken over the run.",
      drive$calling, drive$run_id, late$step
    ),
    x = sprintf("Its outcome is `%s`, and comes too late to count.", late$outcome)[kept != "finished"],
    i = switch(kept,
      finished = "Nobody had given the call up: its end is recorded, and resume_run() goes on.",
      late = "It is kept in the journal as `late_result`; tool_log() shows it.",
      content = "It is kept beside the journal; tool_log() shows it.",
      nowhere = "The store took nothing more. The field `result` of this condition holds it."
    )
  ), kind = "state", code = "late_result", run_id = drive$run_id, tool = drive$calling,
  step = late$step, action = late$action, attempt = late$attempt, outcome = late$outcome,
  result = result, kept = kept, call = call)
}

keep_late <- function(drive, late) {
  store <- drive$store
  # Where the new owner, the next one, or a reader finds it. Content is only ever
  # added, so a store can take it from one who owns the run no more.
  beside <- c(drive$keeping$content, stats::setNames(late$late, late$name))
  head <- drive$keeping$expect_head
  left <- tryCatch({
    store$append(drive$run_id, character(), head, head, beside, drive$token, TRUE)
    "content"
  }, warrant_error = function(e) "nowhere")
  tryCatch(settle_late(drive, beside), warrant_error = function(e) NULL) %||% left
}

# In the journal, where nobody drives the run at the moment.
settle_late <- function(drive, beside) {
  store <- drive$store
  token <- store$lock(drive$run_id)
  on.exit(store$unlock(token))
  journal <- read_kept(store, drive$run_id)
  settled <- unwrap_core(
    rs_run_settle(journal$lines, journal$content, drive$keeping$lines, now_ms())
  )
  if (settled$settled == "nowhere") return(NULL)
  keep <- settled$keep
  store$append(drive$run_id, keep$lines, keep$expect_head, keep$head, beside, token, TRUE)
  if (!is.null(drive$audit)) {
    # A trail that is behind the store is completed; one that differs is left alone.
    try(drive$audit$complete(drive$run_id, c(journal$lines, keep$lines)), silent = TRUE)
  }
  settled$settled
}

# The other side: who took the run over records what a late driver left.
take_late <- function(drive) {
  found <- drive$store$get_content(drive$run_id, drive$lost)
  there <- drive$lost[!is.na(found)]
  for (name in there) rs_run_late(drive$handle, name, found[[name]], now_ms())
  drive$lost <- setdiff(drive$lost, there)
}
