# Runs tests/testthat against the installed package, and writes how many tests
# passed, failed and were skipped to the file that it is given.
args <- commandArgs(TRUE)
if (!nzchar(system.file(package = "testthat"))) {
  cat("testthat is not installed.\n")
  writeLines("0 1 0", args[1])
  quit(status = 1)
}
# the last one would win, in every test
helpers <- list.files("tests/testthat", "^helper.*[.]R$", full.names = TRUE)
defined <- unlist(lapply(helpers, function(file) {
  code <- parse(file, keep.source = FALSE)
  code <- Filter(function(x) is.call(x) && identical(x[[1]], quote(`<-`)) && is.name(x[[2]]), as.list(code))
  unique(vapply(code, function(x) as.character(x[[2]]), ""))
}))
if (anyDuplicated(defined)) {
  cat("Defined in two files of helpers:", unique(defined[duplicated(defined)]), "\n")
  writeLines("0 1 0", args[1])
  quit(status = 1)
}

# Plots that are built and not shown leave no file.
grDevices::pdf(NULL)
Sys.setenv(NOT_CRAN = "true", TESTTHAT_PARALLEL = "false")
results <- testthat::test_dir(
  "tests/testthat", package = "warrant", load_package = "installed",
  reporter = testthat::CheckReporter, stop_on_failure = FALSE, stop_on_warning = FALSE
)
tests <- as.data.frame(results)
failed <- tests$failed > 0 | tests$error
skipped <- !failed & tests$skipped
counts <- c(sum(!failed & !skipped), sum(failed), sum(skipped))
cat("slowest:\n")
print(utils::head(tests[order(-tests$real), c("file", "test", "real")], 5), row.names = FALSE)
writeLines(paste(counts, collapse = " "), args[1])
quit(status = as.integer(counts[2] > 0))
