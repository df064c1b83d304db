# What a time limit adds to a call, in the session and in a warm worker.
local({
  limit_call <- asNamespace("warrant")$limit_call
  process_call <- asNamespace("warrant")$process_call
  clock <- asNamespace("warrant")$rs_monotonic
  report <- get0("bench_report", mode = "function", ifnotfound = function(name, value, unit, against = NULL, goal = NULL) {
    cat(sprintf("%-45s %10.2f %s\n", name, value, unit))
  })
  # The median over rounds of the mean of some calls, so that the clock's own
  # cost does not show.
  median_s <- function(f, rounds, calls = 1) {
    f()
    stats::median(vapply(seq_len(rounds), function(i) {
      start <- clock()
      for (k in seq_len(calls)) f()
      (clock() - start) / calls
    }, 0))
  }
  f <- function() 1
  bare <- median_s(f, 200, 100)
  report("bare call", bare * 1e6, "us")
  report("call without a limit: added", (median_s(function() limit_call(f), 200, 100) - bare) * 1e6, "us")
  report("timed call in the session: added", (median_s(function() limit_call(f, 60), 200, 100) - bare) * 1e6, "us", goal = "< 60")
  bundle <- asNamespace("warrant")$process_bundle(f)
  in_worker <- function() process_call(bundle, list(), 60)
  report("timed call in a warm worker: added", median_s(in_worker, 300) * 1e3, "ms", goal = "< 5")
  spaced <- stats::median(vapply(1:100, function(i) {
    Sys.sleep(0.02)
    start <- clock()
    in_worker()
    clock() - start
  }, 0))
  report("the same, calls 20 ms apart: added", spaced * 1e3, "ms", goal = "< 5")
  if (requireNamespace("callr", quietly = TRUE)) {
    report("fresh callr::r() a call", median_s(function() callr::r(f), 5) * 1e3, "ms")
  }
})
