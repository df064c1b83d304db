test_that("the golden trail is what its script builds, and sound", {
  made <- new.env()
  sys.source(golden_path("make-golden.R"), made)
  expect_equal(made$golden$trail, golden_trail())
  report <- verify_audit(golden_path("trail-v1.jsonl"))
  expect_equal(nrow(report), 0)
  expect_equal(attr(report, "state"), "sound")
  expect_equal(
    attr(report, "counts"),
    c(lines = 18, records = 18, runs = 2, open = 0, recoveries = 0)
  )
  shipped <- system.file("extdata", "trail.jsonl", package = "warrant")
  expect_equal(readLines(shipped), golden_trail())
})

test_that("lines, files, sinks and stores are read alike", {
  lines <- golden_trail()
  expect_equal(trail_state(lines), "sound")
  expect_equal(trail_state(audit_jsonl(golden_path("trail-v1.jsonl"))), "sound")
  dir <- withr::local_tempdir()
  run <- "0123456789abcdef0123456789abcdef"
  file.copy(golden_path(paste0(run, ".content")), dir)
  write_bytes(grep(run, lines, value = TRUE, fixed = TRUE), file.path(dir, paste0(run, ".jsonl")))
  store <- file_store(dir)
  expect_equal(trail_state(store), "sound")
  expect_equal(read_audit(store)$event, read_audit(lines)$event[2:9])
  expect_equal(audit_head(store), sprintf("%s:7:%s", run, read_audit(lines)$digest[9]))
})

test_that("a report says what is wrong and where", {
  lines <- golden_trail()
  lines[5] <- sub("\"step\":1", "\"step\":7", lines[5], fixed = TRUE)
  report <- verify_audit(lines)
  expect_equal(report$kind, "digest")
  expect_equal(report$line, 5)
  expect_equal(report$run, "0123456789abcdef0123456789abcdef")
  expect_equal(report$seq, 3)
  expect_equal(attr(report, "state"), "broken")
  expect_equal(verify_audit(golden_trail()[-6])$kind, "missing")
  expect_output(print(report), "<audit_report> broken")
  expect_output(print(verify_audit(golden_trail())), "faults: 0")
})

test_that("a cut shows against a head that was kept", {
  lines <- golden_trail()
  head <- audit_head(lines)
  expect_length(head, 1)
  expect_equal(trail_state(lines, head = head), "sound")
  cut <- verify_audit(lines[1:15], head = head)
  expect_equal(attr(cut, "state"), "cut")
  expect_equal(cut$seq, 2)
  expect_equal(trail_state(character(), head = head), "cut")
  expect_equal(trail_state(lines[1:15]), "open")
  digest <- sub(".*:", "", head)
  expect_equal(trail_state(lines, head = digest), "sound")
  other <- sub("[0-9a-f]{64}$", strrep("0", 64), head)
  expect_equal(verify_audit(lines, head = other)$kind, "head")
})

test_that("content is held against its addresses, and its absence is named", {
  dir <- withr::local_tempdir()
  run <- "0123456789abcdef0123456789abcdef"
  content <- readLines(golden_path(paste0(run, ".content")))
  lines <- grep(run, golden_trail(), value = TRUE, fixed = TRUE)
  verify <- function(content) {
    if (length(content)) write_bytes(content, file.path(dir, paste0(run, ".content")))
    verify_audit(lines, content = file_store(dir))
  }
  expect_equal(verify(NULL)$kind, "key_missing")
  expect_equal(nrow(verify(content)), 0)
  expect_null(attr(verify(content), "not_checked"))
  changed <- sub("half open", "half shut", content)
  report <- verify(changed)
  expect_equal(unique(report$kind), "content_mismatch")
  expect_equal(report$seq, c(4, 6, 7))
  expect_equal(attr(report, "state"), "broken")
  report <- verify(grep("half open", content, invert = TRUE, value = TRUE))
  expect_equal(unique(report$kind), "content_missing")
  expect_equal(attr(report, "state"), "sound")
  expect_equal(verify(sub("^key 2a", "key 2b", content))$kind, "key_mismatch")
})

test_that("short values cannot be guessed from a trail without its content", {
  skip_if_not_installed("digest")
  key <- warrant:::unwrap_core(warrant:::rs_random_hex())
  key <- paste0(key, key)
  pin <- warrant:::rs_content_addresses(key, "\"4711\"")
  guesses <- sprintf("\"%04d\"", 0:9999)
  sha <- vapply(guesses, digest::digest, "", algo = "sha256", serialize = FALSE)
  expect_false(pin %in% sha)
  # Nor with what the trail does say: the commitment to the key.
  commitment <- warrant:::rs_key_commitment(key)
  expect_false(pin %in% warrant:::rs_content_addresses(commitment, guesses))
  expect_true(pin %in% warrant:::rs_content_addresses(key, guesses))
})

test_that("no content of a file raises an error", {
  path <- withr::local_tempfile()
  set.seed(1)
  cases <- list(
    raw(0), charToRaw("\n"), charToRaw("\r\n\r\n"), as.raw(c(0xef, 0xbb, 0xbf)), as.raw(0xc3),
    as.raw(sample(0:255, 5000, TRUE)), charToRaw(strrep("[", 5000)), as.raw(c(0, 10, 0, 10))
  )
  for (bytes in cases) {
    report <- verify_audit(write_bytes(bytes, path))
    expect_true(attr(report, "state") %in% c("open", "cut", "broken"))
    expect_s3_class(read_audit(path), "tbl_df")
  }
  expect_warrant_error(verify_audit(file.path(path, "nowhere")), "audit")
  expect_warrant_error(verify_audit(tempdir()), "audit")
  if (file.exists("/dev/zero")) expect_warrant_error(verify_audit("/dev/zero"), "audit")
  expect_warrant_error(verify_audit(1), "input")
  expect_warrant_error(verify_audit(path, head = "x"), "input")
  expect_warrant_error(verify_audit(path, content = 1), "input")
})

# What Python's verifier says, as a data frame with the state.
ask_python <- function(path, head = character()) {
  script <- system.file("verify", "verify_audit.py", package = "warrant")
  out <- suppressWarnings(system2(python(), c(shQuote(script), shQuote(path), head), stdout = TRUE))
  rows <- out[-length(out)]
  rows <- if (length(rows)) strsplit(paste0(rows, "\t "), "\t", fixed = TRUE)
  column <- function(i) vapply(rows, function(r) r[i], "")
  list(rows = data.frame(
    kind = column(1), line = column(2), run = column(3), seq = column(4)
  ), state = out[length(out)])
}

ours <- function(path, head = NULL) {
  report <- verify_audit(path, head = head)
  report <- report[!report$kind %in% c("meaning", "event"), ]
  text <- function(x) as.character(ifelse(is.na(x), "", format(x, scientific = FALSE, trim = TRUE)))
  data.frame(kind = report$kind, line = text(report$line), run = text(report$run), seq = text(report$seq))
}

test_that("the verifier in Python agrees on every chain finding", {
  python()
  lines <- golden_trail()
  other <- chain_of("other", 3)$lines
  fixtures <- list(
    lines, lines[-1], lines[-6], lines[-10], lines[-17], lines[c(1:5, 5:18)], lines[c(1:5, 7, 6, 8:18)],
    lines[1:12], lines[c(1:9, 2:9, 10:18)], lines[c(1:9, 18)], lines[-(11:17)], lines[-(10:17)],
    sub("\"at\":1767225600003", "\"at\":1767225600004", lines, fixed = TRUE),
    sub("{\"active_ms\":3,", "{ \"active_ms\":3,", lines, fixed = TRUE),
    sub("\"run\":\"f", "\"run\":\"\\u0066", lines, fixed = TRUE),
    sub("\"event\":\"finished\"", "\"event\":\"Finished\"", lines, fixed = TRUE),
    sub("\"digest\":\"8", "\"digest\":\"9", lines), sub("\"prev\":\"6", "\"prev\":\"7", lines),
    append(lines, other, 4), append(lines, "{\"half\":", 7), append(lines, "", 3), c(other, lines),
    paste0(lines, "\r"), append(lines, "{\"a\":1,\"a\":2}", 2), append(lines, "[1e400]", 2), c(lines, lines)
  )
  path <- withr::local_tempfile()
  head <- audit_head(lines)
  for (i in seq_along(fixtures)) {
    write_bytes(fixtures[[i]], path)
    for (known in list(character(), head)) {
      theirs <- ask_python(path, known)
      expect_equal(ours(path, known), theirs$rows, info = paste("fixture", i))
    }
  }
  bytes <- readBin(golden_path("trail-v1.jsonl"), "raw", 1e6)
  for (n in c(0, 1, 100, 999, 4000, length(bytes) - 1)) {
    write_bytes(bytes[seq_len(n)], path)
    expect_equal(ours(path), ask_python(path)$rows, info = paste("cut at", n))
    expect_equal(trail_state(path), ask_python(path)$state)
  }
})

test_that("arguments are held against the schema of their tool", {
  run <- "0123456789abcdef0123456789abcdef"
  address <- function(json) warrant:::rs_content_addresses(strrep("2a", 32), json)
  other <- "{\"topic\":\"moons\"}"
  rows <- read_audit(golden_trail())[2:9, ]
  data <- gsub(address("{\"topic\":\"spans\"}"), address(other), rows$data, fixed = TRUE)
  lines <- warrant:::rs_seal_lines(run, 0, "", rows$event, data, 1, rows$active_ms)$lines
  dir <- withr::local_tempdir()
  content <- readLines(golden_path(paste0(run, ".content")))
  write_bytes(c(content, paste(address(other), other)), file.path(dir, paste0(run, ".content")))
  expect_equal(nrow(verify_audit(lines)), 0)
  report <- verify_audit(lines, content = file_store(dir))
  expect_equal(report$kind, "rule")
  expect_equal(report$seq, 3)
  expect_equal(attr(report, "state"), "broken")
})
