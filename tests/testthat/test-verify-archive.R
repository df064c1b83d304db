test_that("one byte changed in any file is found, and the file is named", {
  set.seed(20)
  made <- study_archive_made()
  files <- list.files(made$dir, recursive = TRUE, all.files = TRUE)
  for (file in files) {
    dir <- copy_of(made$dir)
    path <- file.path(dir, file)
    bytes <- readBin(path, "raw", file.size(path))
    at <- sample(length(bytes), 1)
    bytes[at] <- xor(bytes[at], as.raw(2^sample(0:7, 1)))
    writeBin(bytes, path)
    report <- verify_archive(dir)
    info <- sprintf("%s at byte %d", file, at)
    expect_equal(attr(report, "state"), "broken", info = info)
    named <- if (file == "hashes.sha256") c(report$file, file) else report$file[report$kind == "changed"]
    expect_true(file %in% named, info = info)
    unlink(dir, recursive = TRUE)
  }
})

test_that("one file fewer or more is found, hidden ones and links too", {
  made <- study_archive_made()
  files <- setdiff(list.files(made$dir, recursive = TRUE), "hashes.sha256")
  dir <- copy_of(made$dir)
  for (file in files) {
    file.rename(file.path(dir, file), tempfile(tmpdir = dirname(dir)) -> aside)
    report <- verify_archive(dir)
    expect_true(file %in% report$file[report$kind == "missing"], info = file)
    file.rename(aside, file.path(dir, file))
  }
  expect_equal(nrow(verify_archive(dir)), 0L)
  for (file in c("more.txt", ".hidden", "journals/more.jsonl", "tables/.x")) {
    writeLines("x", file.path(dir, file))
    report <- verify_archive(dir)
    expect_true(file %in% report$file[report$kind == "extra"], info = file)
    unlink(file.path(dir, file))
  }
  dir.create(file.path(dir, "empty"))
  expect_true("empty" %in% verify_archive(dir)$file)
  unlink(file.path(dir, "empty"), recursive = TRUE)
  skip_on_os("windows")
  file.symlink("METHODS.md", file.path(dir, "link.md"))
  expect_true("link.md" %in% verify_archive(dir)$file)
})

test_that("a journal in place of another, or cut, is found behind a new seal", {
  made <- study_archive_made()
  dir <- copy_of(made$dir)
  id <- made$study$runs[[1]]$run_id
  journal <- file.path(dir, "journals", paste0(id, ".jsonl"))
  write_bytes(utils::head(readLines(journal, encoding = "UTF-8"), -1), journal)
  seal_again(dir)
  report <- verify_archive(dir)
  expect_true("cut" %in% report$kind[report$run %in% id])
  expect_false(any(report$kind == "changed"))
  expect_true("seal" %in% verify_archive(dir, made$archive$seal)$kind)
})

test_that("what does not agree is found behind a new seal", {
  made <- study_archive_made()
  id <- made$study$runs[[1]]$run_id
  found <- function(name, from, to) {
    dir <- copy_of(made$dir)
    on.exit(unlink(dir, recursive = TRUE))
    edit_file(dir, name, from, to)
    seal_again(dir)
    report <- verify_archive(dir)
    unique(report$kind[startsWith(report$file, sub("[.].*", "", name)) | report$file == name])
  }
  expect_equal(found("manifest.json", "Five runs.", "Six runs."), "manifest")
  expect_true("table" %in% found("tables/runs.csv", "completed", "failed"))
  expect_true("table" %in% found("tables/tool_calls.csv", "86420", "86421"))
  expect_true("table" %in% found("tables/approvals.csv", "Ann", "Bob"))
  expect_equal(found("trajectories.jsonl", "86420", "86421"), "trajectory")
  expect_equal(found("archive.json", "\"runs\": 5,", "\"runs\": 4,"), "archive")
  expect_equal(found("ro-crate-metadata.json", "\"tables/runs.csv\"", "\"tables/walks.csv\""), "crate")
  expect_equal(found("heads.csv", ",stopped,", ",completed,"), "head")
  expect_equal(found(sprintf("content/%s.content", id), "86420", "86421"), c("content_mismatch", "content_missing"))
  expect_true("key_mismatch" %in% found(sprintf("content/%s.content", id), "key ", "key 0"))
  expect_true("digest" %in% found(sprintf("journals/%s.jsonl", id), "\"step\":1", "\"step\":2"))
})

test_that("rows of a table that belong to nobody, and lost ones, are found", {
  made <- study_archive_made()
  dir <- copy_of(made$dir)
  file <- file.path(dir, "tables", "tool_calls.csv")
  lines <- readLines(file, encoding = "UTF-8")
  write_bytes(c(lines, sub("^[^,]*", "nobody", lines[[2]])), file)
  seal_again(dir)
  report <- verify_archive(dir)
  expect_equal(unique(report$kind), "table")
  expect_true(any(grepl("no head", report$what)))
  write_bytes(lines[-2], file)
  seal_again(dir)
  expect_true(sub(",.*", "", lines[[2]]) %in% verify_archive(dir)$run)
})

test_that("values beyond those that the journal names are found", {
  made <- study_archive_made()
  dir <- copy_of(made$dir)
  id <- made$study$runs[[4]]$run_id
  file <- file.path(dir, "content", paste0(id, ".content"))
  cat(strrep("0", 64), " \"slipped in\"\n", file = file, sep = "", append = TRUE)
  seal_again(dir)
  expect_equal(unique(verify_archive(dir)$kind), "content_extra")
})

test_that("an archive without content has none, also behind a new seal", {
  study <- study_runs()
  dir <- tempfile()
  archive_study(dir, study$runs[1], include_content = FALSE)
  dir.create(file.path(dir, "content"))
  whole <- study_archive_made()
  name <- sprintf("content/%s.content", study$runs[[1]]$run_id)
  writeLines("x y", file.path(dir, name))
  seal_again(dir)
  expect_true("content_extra" %in% verify_archive(dir)$kind)
  # The record tells what was left out of it, not more.
  dir <- tempfile()
  archive_study(dir, study$runs[1], include_content = FALSE)
  edit_file(dir, "trajectories.jsonl", "\"withheld\"", "\"added\"")
  seal_again(dir)
  expect_equal(verify_archive(dir)$kind, "trajectory")
})

test_that("redacted runs are held against the journal as far as it goes", {
  study <- study_runs()
  dir <- tempfile()
  archive_study(dir, study$runs[1], redact = "pin")
  edit_file(dir, "tables/tool_calls.csv", ",look,executed,", ",look,error,")
  seal_again(dir)
  expect_equal(verify_archive(dir)$kind, "table")
})

test_that("nothing that stands in an archive raises an error", {
  set.seed(21)
  made <- study_archive_made()
  files <- setdiff(list.files(made$dir, recursive = TRUE, all.files = TRUE), "hashes.sha256")
  garbage <- list(raw(0), as.raw(c(0xff, 0xfe, 0, 10)), charToRaw("\n"), charToRaw("{\"a\":["), charToRaw("a,b\n\"x"), as.raw(sample(0:255, 500, TRUE)))
  for (file in files) {
    dir <- copy_of(made$dir)
    writeBin(garbage[[sample(length(garbage), 1)]], file.path(dir, file))
    seal_again(dir)
    report <- verify_archive(dir)
    expect_s3_class(report, "archive_report")
    if (!file %in% c("METHODS.md", "tables/metrics.csv", "tables/verdicts.csv", "tables/slices.csv")) {
      expect_gt(nrow(report), 0L)
    }
    unlink(dir, recursive = TRUE)
  }
  dir <- copy_of(made$dir)
  for (bytes in garbage) {
    writeBin(bytes, file.path(dir, "hashes.sha256"))
    expect_gt(nrow(verify_archive(dir)), 0L)
  }
})

test_that("a folder that is no archive is told, one that is not there is an error", {
  dir <- tempfile()
  dir.create(dir)
  expect_equal(attr(verify_archive(dir), "state"), "unsealed")
  expect_warrant_error(verify_archive(tempfile()), "input", argument = "dir")
  expect_warrant_error(verify_archive(dir, seal = 1), "input", argument = "seal")
})

test_that("a report prints its state, and its faults as a table", {
  made <- study_archive_made()
  report <- verify_archive(made$dir)
  expect_match(format(report), "<archive_report> sound", all = FALSE)
  expect_match(format(report), made$archive$seal, all = FALSE)
  dir <- copy_of(made$dir)
  unlink(file.path(dir, "METHODS.md"))
  expect_output(print(verify_archive(dir)), "METHODS.md")
})

test_that("a verifier in another language finds archives sound, and broken, too", {
  script <- system.file("verify", "verify_archive.py", package = "warrant")
  said <- function(dir, ...) suppressWarnings(system2(python(), c(shQuote(script), shQuote(dir), ...), stdout = TRUE, stderr = TRUE))
  made <- study_archive_made()
  expect_equal(said(made$dir, made$archive$seal), "sound", ignore_attr = TRUE)
  for (how in list(list(include_content = FALSE), list(redact = c("email", "pin")))) {
    dir <- tempfile()
    do.call(archive_study, c(list(dir, made$study$runs), how))
    expect_equal(said(dir), "sound", ignore_attr = TRUE)
  }
  dir <- copy_of(made$dir)
  edit_file(dir, sprintf("content/%s.content", made$study$runs[[1]]$run_id), "86420", "86421")
  found <- said(dir)
  expect_equal(utils::tail(found, 1), "broken")
  expect_match(found, "^changed\t", all = FALSE)
  expect_match(found, "was not made from its value", all = FALSE)
})
