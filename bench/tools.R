# What governing a call costs, beside the bare R call and beside what a package in
# R alone would pay for digests of the arguments and of the result.
us <- function(seconds) 1e6 * seconds

one <- function(x) x + 1
tool <- agent_tool(one, "one", "One more.", list(x = list(type = "number")), side_effects = "none", record = "hashes")
args <- list(x = 1)
bare <- bench_median(one(1))
bench_report("bare call, one argument", us(bare), "us")
bench_report("call_tool() added, list", us(bench_median(call_tool(tool, args)) - bare), "us", goal = "< 25")
bench_report("call_tool() added, JSON text", us(bench_median(call_tool(tool, '{"x":1}')) - bare), "us", goal = "< 25")
bench_report("tool$fn() added", us(bench_median(tool$fn(x = 1)) - bare), "us", goal = "< 25")
full <- agent_tool(one, "one", "One more.", list(x = list(type = "number")), side_effects = "none")
bench_report("call_tool() added, texts kept", us(bench_median(call_tool(full, args)) - bare), "us", goal = "< 25")
timed <- agent_tool(one, "one", "One more.", list(x = list(type = "number")), side_effects = "none",
                    record = "hashes", timeout_s = 60)
bench_report("call_tool() added, with a time limit", us(bench_median(call_tool(timed, args)) - bare), "us", goal = "< 85")

# ten arguments, twenty rows
types <- list(
  a = list(type = "string"), b = list(type = "integer"), c = list(type = "number"), d = list(type = "boolean"),
  e = list(type = "array", items = list(type = "string")), f = list(type = "string", enum = c("x", "y")),
  g = list(type = "integer", minimum = 0), h = list(type = "number"), i = list(type = "string"),
  j = list(type = "array", items = list(type = "number"))
)
rows <- data.frame(
  item = sprintf("item-%02d", 1:20), price = (1:20) / 7, n = 1:20, open = rep(c(TRUE, FALSE), 10),
  note = rep(c("fresh", "sold by the piece"), 10)
)
ten <- function(a, b, c, d, e, f, g, h, i, j) rows
wide <- agent_tool(ten, "ten", "Twenty rows.", types, side_effects = "read", record = "hashes")
args <- list(a = "pear", b = 3L, c = 0.25, d = TRUE, e = c("red", "green"), f = "x", g = 12L, h = 1e-3, i = "note",
             j = c(1.5, 2.5, 3.5))
bare <- bench_median(do.call(ten, args))
governed <- bench_median(call_tool(wide, args)) - bare
if (requireNamespace("jsonlite", quietly = TRUE) && requireNamespace("digest", quietly = TRUE)) {
  hash <- function(x) digest::digest(jsonlite::toJSON(x, auto_unbox = TRUE, digits = NA), "sha256", serialize = FALSE)
  in_r <- bench_median({
    hash(args)
    hash(rows)
  })
  bench_report("ten arguments, 20 rows: added, against R only", us(governed), "us", us(in_r), goal = "10x")
} else {
  bench_report("ten arguments, 20 rows: added", us(governed), "us")
}

# the n-th call
log_of <- function(n) {
  tool <- agent_tool(one, "one", "One more.", list(x = list(type = "number")), side_effects = "none", record = "hashes")
  for (i in seq_len(n)) call_tool(tool, list(x = i))
  tool
}
early <- log_of(1e3)
before <- bench_rss()
late <- log_of(1e6)
bench_report("memory a logged call, 1e6 calls", (bench_rss() - before) / 1e6, "bytes", goal = "< 200")
both <- bench_pair(function() call_tool(early, list(x = 1)), function() call_tool(late, list(x = 1)))
bench_report("call number 1e6, against number 1e3", us(both[2]), "us", us(both[1]), goal = "0.8x")
bench_report("tool_log() of 1e6 calls", bench_time(log <- tool_log(late)), "s")
stopifnot(nrow(log) >= 1e6)

# a large result
text <- strrep("Line of a long report, with an \u00e9 in it.\n", 10e6 %/% 42)
size <- nchar(text, "bytes") / 1e6
long <- agent_tool(function() text, "long", "A long text.", side_effects = "read", max_bytes = 4000, record = "hashes")
bench_report("a 10 MB text hashed and cut", size / bench_median(call_tool(long), n = 20), "MB/s", goal = ">= 300")

# a function of a page
page <- eval(parse(text = c(
  "function(item, n, region = 'all') {", sprintf("  v%d <- stock$price[match(item, stock$item)] * n + %d", 1:40, 1:40),
  "  if (region != 'all') v1 <- v1 * rate", "  sum(v1, v2, v3)", "}"
)))
environment(page) <- list2env(list(stock = rows, rate = 1.2), parent = globalenv())
paged <- agent_tool(page, "page", "A page.", list(item = list(type = "string"), n = list(type = "integer")),
                    required = c("item", "n"), side_effects = "read")
bench_report("hash_tool_spec() of a one-page function", us(bench_median(hash_tool_spec(paged))), "us", goal = "< 300")
