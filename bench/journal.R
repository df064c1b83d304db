# Verifying and writing trails.
scratch <- bench_scratch()
core <- function(name, ...) warrant:::unwrap_core(getFromNamespace(name, "warrant")(...))

# A million records of about 400 bytes: runs of one call a step, as the run machine
# writes them, made by the package's own writer.
hex <- function(x) sprintf("%064x", x)
started <- sprintf(paste0(
  "{\"content_key\":\"%s\",\"goal\":\"%s\",\"limits\":{\"active_ms\":null,\"call_timeout_ms\":null,",
  "\"cost_nano\":null,\"per_tool\":{},\"steps\":null,\"tokens\":null,\"tool_calls\":null},\"nonce\":\"%s\",",
  "\"policy\":{\"allow_effects\":[\"none\",\"read\"],\"approve_effects\":[\"external\",\"write\"],",
  "\"granted_scopes\":[],\"grants\":[]},\"schema\":\"warrant_audit/v1\",\"tools\":[{\"calls_before\":0,",
  "\"cost_nano\":0,\"idempotent\":true,\"max_calls\":null,\"name\":\"lookup\",\"requires_approval\":false,",
  "\"schema\":\"%s\",\"scopes\":[],\"side_effects\":\"read\",\"spec_hash\":\"%s\",\"timeout_ms\":null,\"ttl_ms\":null}]}"
), hex(1L), hex(2L), hex(3L), hex(4L), hex(5L))
steps <- 2500L
step <- seq_len(steps)
four <- rbind(
  sprintf("{\"step\":%d}", step),
  sprintf(paste0(
    "{\"actions\":[{\"arguments\":\"%s\",\"tool\":\"lookup\"}],\"answer\":null,\"decision\":\"act\",",
    "\"step\":%d,\"usage\":{\"cost_nano\":0,\"tokens\":120}}"
  ), hex(6L), step),
  sprintf(paste0(
    "{\"action\":0,\"arguments\":\"%s\",\"attempt\":1,\"cost_nano\":0,\"request\":null,",
    "\"spec_hash\":\"%s\",\"step\":%d,\"timeout_ms\":null,\"tool\":\"lookup\"}"
  ), hex(6L), hex(5L), step),
  sprintf(paste0(
    "{\"action\":0,\"attempt\":1,\"bytes\":20,\"duration_us\":41,\"notes\":null,\"outcome\":\"executed\",",
    "\"result\":\"%s\",\"step\":%d,\"text\":null,\"truncated\":false}"
  ), hex(7L), step)
)
last <- steps + 1L
data <- c(
  started, four, sprintf("{\"step\":%d}", last),
  sprintf(paste0(
    "{\"actions\":[],\"answer\":\"%s\",\"decision\":\"finish\",\"step\":%d,\"usage\":{\"cost_nano\":0,\"tokens\":0}}"
  ), hex(8L), last),
  sprintf(paste0(
    "{\"answer\":\"%s\",\"counts\":{\"actions\":%d,\"calls_finished\":%d,\"calls_started\":%d,\"cost_nano\":0,",
    "\"denied\":0,\"requests\":0,\"steps\":%d,\"tokens\":%d},\"error\":null,\"status\":\"completed\",\"stop_reason\":null}"
  ), hex(8L), steps, steps, steps, last, 120L * steps)
)
events <- c(
  "run_started", rep(c("plan_started", "decided", "call_started", "call_finished"), steps),
  "plan_started", "decided", "finished"
)
trail <- file.path(scratch, "trail.jsonl")
sink <- audit_jsonl(trail)
runs <- 100L
writing <- bench_time(for (i in seq_len(runs)) {
  id <- core("rs_random_hex")
  sink$append(core("rs_seal_lines", id, 0, "", events, data, 1767225600000, 1)$lines)
})
report <- verify_audit(trail)
stopifnot(nrow(report) == 0, attr(report, "state") == "sound")
n <- attr(report, "counts")[["records"]]
bench_report("bytes a record, with its newline", file.size(trail) / n, "bytes")
bench_report("records sealed and appended", n / writing, "rec/s")

verify <- function(path, meaning) {
  warrant:::run_verifier(list(paths = path, lines = character()), character(), FALSE, meaning)
}
# Seconds of the processor, here and in Python: what one core takes, whoever else
# uses the machine.
cpu <- function(expr) sum(system.time(expr)[c("user.self", "sys.self")])
seconds <- function(meaning) min(vapply(1:5, function(i) cpu(verify(trail, meaning)), 0))
chain <- n / seconds(FALSE)
meaning <- n / seconds(TRUE)

# A straightforward verifier: parse, take out the digest, serialise, hash, compare.
python <- Sys.which("python3")
plain <- NULL
if (nzchar(python)) {
  script <- file.path(scratch, "plain.py")
  writeLines(c(
    "import json, hashlib, sys, time",
    "start, heads, n = time.process_time(), {}, 0",
    "for line in open(sys.argv[1], encoding='utf-8'):",
    "    r = json.loads(line)",
    "    digest = r.pop('digest')",
    "    text = json.dumps(r, sort_keys=True, separators=(',', ':'), ensure_ascii=False)",
    "    assert hashlib.sha256(text.encode()).hexdigest() == digest",
    "    assert heads.get(r['run']) == r['prev']",
    "    heads[r['run']] = digest",
    "    n += 1",
    "print(n / (time.process_time() - start))"
  ), script)
  plain <- as.numeric(system2(python, c(script, trail), stdout = TRUE))
}
bench_report("verify, chain, one core", chain, "rec/s", against = plain, goal = ">= 1000000")
bench_report("verify, chain and meaning, one core", meaning, "rec/s", against = plain, goal = ">= 400000")
if (!is.null(plain)) {
  bench_report("verify, chain, to json + hashlib in Python", chain, "rec/s", against = plain, goal = "10x")
}

# Memory does not depend on the length.
tenth <- file.path(scratch, "tenth.jsonl")
writeLines(readLines(trail, n = n %/% 10), tenth)
invisible(gc())
grown <- function(path) {
  before <- bench_rss()
  verify(path, TRUE)
  bench_rss() - before
}
invisible(grown(tenth))
bench_report("memory kept by a tenth of the trail", grown(tenth) / 2^20, "MB")
bench_report("memory kept by all of it", grown(trail) / 2^20, "MB", goal = "< 16")

# One record a time.
one <- function(store, n) {
  run <- warrant:::sample_run(n)
  token <- store$lock(run$id)
  on.exit(store$unlock(token))
  bench_time(for (i in seq_len(n)) {
    store$append(run$id, run$lines[i], run$heads[i], run$heads[i + 1], NULL, token)
  }) / n
}
us <- 1e6
bench_report("append to memory_store()", us * one(memory_store(), 5000L), "us")
bench_report("append to file_store()", us * one(file_store(file.path(scratch, "runs")), 5000L), "us")
if (requireNamespace("RSQLite", quietly = TRUE)) {
  con <- DBI::dbConnect(RSQLite::SQLite(), file.path(scratch, "runs.sqlite"))
  bench_report("append to dbi_store(), SQLite", us * one(dbi_store(con), 300L), "us")
  DBI::dbDisconnect(con)
}
ratio <- function(store) one(store, 10000L) * 10 / one(store, 1000L)
bench_report("10,000 appends to 1,000, memory_store()", ratio(memory_store()), "x", goal = "<= 12")
bench_report("10,000 appends to 1,000, file_store()", ratio(file_store(file.path(scratch, "runs"))), "x", goal = "<= 12")

lines <- warrant:::sample_run(5000L)$lines
tee <- function(fsync, lines) {
  sink <- audit_jsonl(tempfile(tmpdir = scratch), fsync)
  bench_time(for (line in lines) sink$append(line)) / length(lines)
}
bench_report("append to audit_jsonl()", us * tee(FALSE, lines), "us")
durable <- us * tee(TRUE, lines[1:300])
# The disk's own cost of as many writes and syncs, without a lock or a chain.
dd <- Sys.which("dd")
raw <- NULL
if (nzchar(dd)) {
  size <- nchar(lines[1]) + 1L
  raw <- us / 300 * bench_time(system2(dd, c(
    "if=/dev/zero", paste0("of=", file.path(scratch, "raw")), paste0("bs=", size), "count=300", "oflag=dsync"
  ), stderr = FALSE))
}
bench_report("append to audit_jsonl(fsync = TRUE), to dd oflag=dsync", durable, "us", against = raw)
