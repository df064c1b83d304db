# The page of a run: 1,000 steps with a text, a small table and a refusal now and then.

if (!exists("bench_report")) {
  bench_report <- function(name, value, unit, against = NULL, goal = NULL) {
    cat(sprintf("   %-52s %12s %s\n", name, format(signif(value, 3), big.mark = ","), unit))
  }
}

look <- agent_tool(
  function(n) list(n = n, text = strrep("word ", 60), rows = data.frame(a = 1:5, b = letters[1:5])),
  "look", "Look.", parameters = list(n = list(type = "integer")), side_effects = "read"
)
walker <- function(steps) {
  force(steps)
  function(state, tools) {
    n <- length(state$steps)
    if (n == steps) return(decide_finish("done"))
    decide_act(if (n %% 50 == 49) "nowhere" else "look", list(n = n))
  }
}
page_s <- function(steps, store) {
  run <- run_agent(agent(look, walker(steps), limits = agent_limits(steps = Inf), store = store), "walk")
  page <- tempfile(fileext = ".html")
  times <- vapply(1:5, function(i) unname(system.time(view_run(run, page, open = FALSE))[["elapsed"]]), 0)
  list(seconds = median(times), bytes = file.size(page))
}
thousand <- page_s(1000, memory_store())
bench_report("view_run() of 1,000 steps, memory", thousand$seconds, "s", goal = "< 1")
bench_report("its page", thousand$bytes / 1e6, "MB")
bench_report("view_run() of 1,000 steps, file_store()", page_s(1000, file_store(tempfile()))$seconds, "s", goal = "< 1")
