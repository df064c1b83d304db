# Archiving a study of 1,000 runs of 10 steps, and verifying the archive.
scratch <- bench_scratch()
look <- agent_tool(function(n) list(value = n * 10, words = c("a", "b", "c")), "look", "Looks.",
  parameters = list(n = list(type = "integer")), side_effects = "read"
)
planner <- function(state, tools) {
  done <- length(state$steps)
  if (done == 9) decide_finish(sprintf("answer %d", done)) else decide_act("look", list(n = done))
}
store <- file_store(file.path(scratch, "runs"))
desk <- agent(look, planner, store = store, limits = agent_limits(steps = 10))
for (i in 1:1000) run_agent(desk, list(question = i))
manifest <- study_manifest("A thousand runs", agent = desk)
dir <- file.path(scratch, "archive")
bench_report("archive_study(), 1,000 runs of 10 steps", bench_time(archive <- archive_study(dir, store, manifest)), "s", goal = "< 10")
bench_report("verify_archive() of it", bench_time(report <- verify_archive(dir, archive$seal)), "s", goal = "< 3")
stopifnot(nrow(report) == 0)
bench_report("size of it", archive$bytes / 1e6, "MB")
bare <- file.path(scratch, "bare")
bench_report("archive_study() without content", bench_time(archive_study(bare, store, manifest, include_content = FALSE)), "s")
bench_report("verify_archive() of that", bench_time(report <- verify_archive(bare)), "s")
stopifnot(nrow(report) == 0)
sums <- Sys.which("sha256sum")
if (nzchar(sums)) {
  here <- setwd(dir)
  bench_report("sha256sum -c of the first", bench_time(system2(sums, c("-c", "--quiet", "hashes.sha256"))), "s")
  setwd(here)
}
run <- read_run(store, store$runs()[[1]])
bench_report("as_trajectory() of one", 1e3 * bench_median(as_trajectory(run)), "ms")
