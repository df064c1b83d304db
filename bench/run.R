# Runs: what a step costs over the bare call of its tool, and whether the cost of a
# step grows with the run.

if (!exists("bench_report")) {
  bench_report <- function(name, value, unit, against = NULL, goal = NULL) {
    cat(sprintf("   %-52s %12s %s%s\n", name, format(signif(value, 3), big.mark = ","), unit,
      if (is.null(against)) "" else sprintf("  against %s", format(signif(against, 3), big.mark = ","))))
  }
}

tool <- agent_tool(function(n) n + 1, "add", "Add one.",
  parameters = list(n = list(type = "number")), side_effects = "none", record = "hashes"
)
planner <- function(steps) {
  force(steps)
  function(state, tools) {
    done <- length(state$steps)
    if (done == steps) decide_finish(done) else decide_act("add", list(n = done))
  }
}

seconds_of <- function(steps, store, audit = NULL) {
  a <- agent(tool, planner(steps),
    limits = agent_limits(steps = Inf), store = store, audit = audit
  )
  gc()
  unname(system.time(run <- run_agent(a, "count"))[["elapsed"]])
}

bare <- local({
  times <- vapply(1:5, function(i) {
    unname(system.time(for (n in 1:2000) call_tool(tool, '{"n":1}'))[["elapsed"]]) / 2000
  }, 0)
  median(times)
})

steps <- 2000
step_us <- function(store, audit = NULL) {
  times <- vapply(1:3, function(i) seconds_of(steps, store(), audit()), 0)
  (median(times) / steps - bare) * 1e6
}
nothing <- function() NULL
trail <- function() audit_jsonl(tempfile(fileext = ".jsonl"))
bench_report("a step over the bare governed call, memory", step_us(memory_store, nothing), "us", goal = "< 150")
bench_report("a step, memory and audit_jsonl()", step_us(memory_store, trail), "us", goal = "< 250")
bench_report("a step, file_store()", step_us(function() file_store(tempfile()), nothing), "us")

growth <- function(name, store) {
  short <- median(vapply(1:3, function(i) seconds_of(1000, store()), 0))
  long <- median(vapply(1:3, function(i) seconds_of(10000, store()), 0))
  bench_report(paste("10,000 steps against 1,000,", name), long / short, "times", goal = "< 12")
}
growth("memory", memory_store)
growth("file", function() file_store(tempfile()))
if (requireNamespace("RSQLite", quietly = TRUE) && exists("dbi_store")) {
  growth("SQLite", function() {
    dbi_store(DBI::dbConnect(RSQLite::SQLite(), tempfile(fileext = ".sqlite")))
  })
}
