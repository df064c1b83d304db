# Two processes resume one approved run, N times over (100 by default): the action must
# run once each time, and the one who came too late must be told.
#   Rscript tools/resume-race.R [N]
library(warrant)
n <- as.integer(c(commandArgs(TRUE), "100")[[1]])

resume <- function(dir, out, go) {
  library(warrant)
  write_line <- agent_tool(function(text) cat(text, "\n", sep = "", file = out, append = TRUE),
    "write_line", "Write a line.", parameters = list(text = list(type = "string")),
    side_effects = "write", captures = character()
  )
  planner <- function(state, tools) {
    if (length(state$steps)) decide_finish("done") else decide_act("write_line", list(text = state$goal))
  }
  a <- agent(write_line, planner,
    policy = agent_policy(allow_effects = "write"), store = file_store(dir)
  )
  drive <- function(i) {
    file <- file.path(dir, paste0("go-", i))
    while (!file.exists(file)) NULL
    tryCatch(
      resume_run(a, paste0("run-", i))$status,
      warrant_error_already_running = function(e) "already_running"
    )
  }
  if (is.null(go)) return(a)
  vapply(go, drive, "")
}

dir <- tempfile("race")
out <- tempfile("out")
a <- resume(dir, out, NULL)
for (i in seq_len(n)) {
  run <- run_agent(a, paste("line", i), run_id = paste0("run-", i))
  approve_tool_call(run, "approve", approver = "race")
}
jobs <- lapply(1:2, function(i) callr::r_bg(resume, list(dir, out, seq_len(n)), libpath = .libPaths()))
for (i in seq_len(n)) file.create(file.path(dir, paste0("go-", i)))
said <- vapply(jobs, function(job) {
  job$wait()
  job$get_result()
}, character(n))
lines <- readLines(out)
told <- rowSums(said == "already_running")
cat(sprintf("%d runs, %d lines written, %d of them different\n", n, length(lines), length(unique(lines))))
cat(sprintf("a resume was told already_running %d times; the others found the run completed\n", sum(told)))
stopifnot(length(lines) == n, !anyDuplicated(lines), said %in% c("completed", "already_running"))
