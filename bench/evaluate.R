# Judging: small suites from R objects, and a large file with its floor, the plain
# typed parse of the same file on the same threads. WARRANT_BENCH_LINES sets the
# size (a million by default).

if (!exists("bench_report")) {
  bench_report <- function(name, value, unit, against = NULL, goal = NULL) {
    cat(sprintf("   %-52s %12s %s%s\n", name, format(signif(value, 3), big.mark = ","), unit,
      if (is.null(against)) "" else sprintf("  against %s", format(signif(against, 3), big.mark = ","))))
  }
}

criteria <- list(
  criterion_tool_called("lookup_order"), criterion_no_tool_loop(), criterion_tool_sequence(),
  criterion_no_undeclared_tool(), criterion_constraints("no_deletion"), criterion_max_steps(10),
  criterion_tool_permissions(list(triage = "lookup_order", billing = c("issue_refund", "search"))),
  criterion_max_handoffs(2)
)
quantiles <- list(
  metric_quantile("steps_p95", "agent_steps", 0.95),
  metric_quantile("calls_p50", "agent_tool_calls", 0.5)
)
slices_by <- c("metadata.surface", "first_tool", "route", "trajectory_length:4,8")

# A record of ten steps, about 1.5 KB; `i` varies values and what happens.
record <- function(i) {
  second <- c("issue_refund", "search", "delete_customer")[1 + (i %% 7 == 0) + (i %% 31 == 0)]
  step <- function(index, kind, agent, more = "") {
    sprintf('{"index":%d,"kind":"%s","agent":"%s","latency_ms":%d%s}', index, kind, agent, 20 + (i * index) %% 90, more)
  }
  call <- function(index, agent, tool, page) {
    step(index, "tool_call", agent, sprintf(
      ',"tool_name":"%s","call_id":"call_%d","arguments":{"order_id":"ord-%05d","page":%d}',
      tool, index, i %% 5000, page
    ))
  }
  result <- function(index, agent, tool) {
    step(index, "tool_result", agent, sprintf(
      ',"tool_name":"%s","call_id":"call_%d","result":{"order_id":"ord-%05d","total_usd":%d.5,"customer":"cust-%04d"}',
      tool, index - 1, i %% 5000, i %% 300, i %% 900
    ))
  }
  steps <- c(
    step(1, "message", "triage", ',"result":"The customer asks for a refund of a broken item."'),
    call(2, "triage", "lookup_order", 1), result(3, "triage", "lookup_order"),
    step(4, "handoff", "triage", ',"to_agent":"billing"'),
    call(5, "billing", second, 1), result(6, "billing", second),
    call(7, "billing", "issue_refund", if (i %% 5 == 0) 1 else 2), result(8, "billing", "issue_refund"),
    step(9, "message", "billing", ',"result":"Refunded."'), step(10, "final", "billing", ',"result":{"answer":"refunded"}')
  )
  sprintf(
    '{"steps":[%s],"terminal_status":"success","truncated":%s,"step_limit":12,"constraints":[{"name":"no_deletion","passed":%s}],"checkpoints":[]}',
    paste(steps, collapse = ","), if (i %% 40 == 0) "true" else "false",
    if (second == "delete_customer") "false" else "true"
  )
}

write_files <- function(n, folder) {
  bodies <- vapply(seq_len(2000), record, "")
  files <- list(
    trajectories = file.path(folder, sprintf("trajectories-%d.jsonl", n)),
    cases = file.path(folder, sprintf("cases-%d.jsonl", n))
  )
  expected <- c(
    '{"tools":["lookup_order","issue_refund","issue_refund"]}',
    '{"tools":["lookup_order","search","issue_refund"]}', "null"
  )
  cons <- lapply(files, base::file, "wb")
  # Small pieces, so that making the files does not count as memory of judging them.
  for (start in seq(1, n, by = 5000)) {
    i <- start:min(n, start + 4999)
    writeLines(sprintf('{"case_id":"case_%07d","trajectory":%s}', i, bodies[(i * 7) %% 2000 + 1]), cons$trajectories)
    writeLines(sprintf(
      '{"id":"case_%07d","input":{"order":%d},"expected":%s,"metadata":{"surface":"%s"}}', i, i,
      expected[i %% 3 + 1], c("chat", "mail", "phone")[i %% 3 + 1]
    ), cons$cases)
  }
  lapply(cons, close)
  files
}

seconds <- function(expr) system.time(expr)[["elapsed"]]

peak_mb <- function() {
  status <- "/proc/self/status"
  if (!file.exists(status)) return(NA_real_)
  as.numeric(gsub("[^0-9]", "", grep("^VmHWM", readLines(status), value = TRUE))) / 1024
}

# ---- forty cases from R objects ------------------------------------------------
small <- suite(
  data.frame(id = sprintf("c%02d", 1:40), input = "order", expected = I(rep(list(list(tools = c("a", "b"))), 40))),
  criteria[1:6], quantiles, "first_tool"
)
runs <- lapply(1:40, function(i) {
  agent_trajectory(lapply(1:6, function(k) {
    agent_step("tool_call", tool_name = c("a", "b")[1 + k %% 2], arguments = list(k = k))
  }))
})
names(runs) <- small$cases$id
evaluate(small, runs)
bench_report("evaluate() of 40 cases from R objects", 1000 * median(replicate(21, seconds(evaluate(small, runs)))), "ms", goal = "< 50")

# ---- a large file --------------------------------------------------------------
lines <- as.integer(Sys.getenv("WARRANT_BENCH_LINES", "1000000"))
folder <- tempfile("bench")
dir.create(folder)
judge <- function(n) {
  files <- write_files(n, folder)
  big <- suite(files$cases, criteria, quantiles, slices_by)
  gc(FALSE)
  floor <- n / seconds(warrant:::rs_eval_floor(files$trajectories))
  took <- seconds({
    ev <- evaluate(big, read_trajectories(files$trajectories), progress = FALSE)
    metrics(ev)
    slices(ev)
  })
  unlink(unlist(files))
  list(rate = n / took, floor = floor)
}
tenth <- judge(lines %/% 10)
whole <- judge(lines)
label <- format(lines, big.mark = ",", scientific = FALSE)
bench_report(paste(label, "trajectories of 10 steps, 8 criteria, to slices"), whole$rate, "lines/s", against = whole$floor, goal = "> 100000")
bench_report("the same, share of the plain typed parse", 100 * whole$rate / whole$floor, "%", goal = "> 40")
bench_report("time a case against a tenth of the size", 100 * tenth$rate / whole$rate, "%", goal = "< 115")
bench_report("peak memory of the process", peak_mb(), "MB", goal = "< 1000")
unlink(folder, recursive = TRUE)
