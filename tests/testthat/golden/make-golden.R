# Builds the golden trail: the same bytes each time, from made-up runs with fixed
# ids, key and clock. Changing it needs a line in NEWS.md, and a new format version
# when the bytes of a record change for the same event.
#
#   Rscript tests/testthat/golden/make-golden.R
#
# writes trail-v1.jsonl and the content of its first run beside this file, and the
# same trail to inst/extdata/trail.jsonl.

golden <- local({
  core <- function(name, ...) warrant:::unwrap_core(get(name, asNamespace("warrant"))(...))
  key <- strrep("2a", 32)
  address <- function(json) core("rs_content_addresses", key, json)
  q <- function(x) paste0("\"", x, "\"")
  hex <- function(n) strrep(sprintf("%02x", n), 32)

  goal <- q("what is a span?")
  schema <- paste0(
    "{\"properties\":{\"topic\":{\"enum\":[\"spans\",\"ids\"],\"type\":\"string\"}},",
    "\"required\":[\"topic\"],\"type\":\"object\"}"
  )
  arguments <- "{\"topic\":\"spans\"}"
  result <- q("A span is half open.")
  refusal <- q("BLOCKED: the tool needs the scope docs:read, which is not granted")

  started <- function(nonce, scopes) {
    sprintf(paste0(
      "{\"content_key\":\"%s\",\"goal\":\"%s\",\"limits\":{\"active_ms\":null,",
      "\"call_timeout_ms\":null,\"cost_nano\":null,\"per_tool\":{},\"steps\":4,\"tokens\":null,",
      "\"tool_calls\":2},\"nonce\":\"%s\",\"policy\":{\"allow_effects\":[\"none\",\"read\"],",
      "\"approve_effects\":[\"external\",\"write\"],\"granted_scopes\":[%s],\"grants\":[]},",
      "\"schema\":\"warrant_audit/v1\",\"tools\":[{\"calls_before\":0,\"cost_nano\":0,",
      "\"idempotent\":true,\"max_calls\":null,\"name\":\"lookup\",\"requires_approval\":false,",
      "\"schema\":\"%s\",\"scopes\":[\"docs:read\"],\"side_effects\":\"read\",\"spec_hash\":\"%s\",",
      "\"timeout_ms\":null,\"ttl_ms\":null}]}"
    ), core("rs_key_commitment", key), address(goal), nonce, scopes, address(schema), hex(3))
  }
  act <- sprintf(paste0(
    "{\"actions\":[{\"arguments\":\"%s\",\"tool\":\"lookup\"}],\"answer\":null,",
    "\"decision\":\"act\",\"step\":1,\"usage\":{\"cost_nano\":0,\"tokens\":0}}"
  ), address(arguments))
  finish <- sprintf(paste0(
    "{\"actions\":[],\"answer\":\"%s\",\"decision\":\"finish\",\"step\":2,",
    "\"usage\":{\"cost_nano\":0,\"tokens\":0}}"
  ), address(result))
  finished <- function(calls, denied) {
    sprintf(paste0(
      "{\"answer\":\"%s\",\"counts\":{\"actions\":1,\"calls_finished\":%d,\"calls_started\":%d,",
      "\"cost_nano\":0,\"denied\":%d,\"requests\":0,\"steps\":2,\"tokens\":0},\"error\":null,",
      "\"status\":\"completed\",\"stop_reason\":null}"
    ), address(result), calls, calls, denied)
  }
  plan <- function(step) sprintf("{\"step\":%d}", step)

  seal <- function(run, events, t0) {
    n <- length(events)
    core("rs_seal_lines", run, 0, "", names(events), unlist(events), t0 + seq_len(n), seq_len(n) - 1)$lines
  }
  executed <- seal("0123456789abcdef0123456789abcdef", list(
    run_started = started(hex(1), q("docs:read")),
    plan_started = plan(1),
    decided = act,
    call_started = sprintf(paste0(
      "{\"action\":0,\"arguments\":\"%s\",\"attempt\":1,\"cost_nano\":0,\"request\":null,",
      "\"spec_hash\":\"%s\",\"step\":1,\"timeout_ms\":null,\"tool\":\"lookup\"}"
    ), address(arguments), hex(3)),
    call_finished = sprintf(paste0(
      "{\"action\":0,\"attempt\":1,\"bytes\":20,\"duration_us\":41,\"notes\":null,",
      "\"outcome\":\"executed\",\"result\":\"%s\",\"step\":1,\"text\":null,\"truncated\":false}"
    ), address(result)),
    plan_started = plan(2),
    decided = finish,
    finished = finished(1, 0)
  ), 1767225600000)
  denied <- seal("fedcba9876543210fedcba9876543210", list(
    run_started = started(hex(2), ""),
    plan_started = plan(1),
    decided = act,
    denied = sprintf(
      "{\"action\":0,\"limit\":null,\"outcome\":\"scope_denied\",\"step\":1,\"text\":\"%s\"}",
      address(refusal)
    ),
    plan_started = plan(2),
    decided = finish,
    finished = finished(0, 1)
  ), 1767225700000)

  # The file's own lines, as audit_jsonl() makes them, but with a fixed name.
  digest_of <- function(line) sub(".*,\"digest\":\"([0-9a-f]{64})\",\"event\".*", "\\1", line)
  last <- function(x) x[length(x)]
  link <- "{\"after\":\"%s\"}"
  own <- core("rs_seal_lines", strrep("11", 16), 0, "", rep("link", 3), c(
    "{\"after\":null,\"schema\":\"warrant_audit/v1\"}",
    sprintf(link, digest_of(last(executed))), sprintf(link, digest_of(last(denied)))
  ), 1767225600000, 0)$lines
  content <- c(goal, schema, arguments, result)
  list(
    trail = c(own[1], executed, own[2], denied, own[3]),
    run = "0123456789abcdef0123456789abcdef",
    content = paste(c("key", address(content)), c(key, content))
  )
})

if (sys.nframe() == 0L) {
  write <- function(lines, path) {
    con <- file(path, "wb")
    on.exit(close(con))
    writeLines(enc2utf8(lines), con, sep = "\n", useBytes = TRUE)
  }
  here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)))
  write(golden$trail, file.path(here, "trail-v1.jsonl"))
  write(golden$content, file.path(here, paste0(golden$run, ".content")))
  write(golden$trail, file.path(here, "../../../inst/extdata/trail.jsonl"))
}
