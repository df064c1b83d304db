# The entry points of the Rust library, from outside.

entry_points <- function() {
  names <- grep("^rs_", ls(asNamespace("warrant")), value = TRUE)
  stats::setNames(lapply(names, get, envir = asNamespace("warrant")), names)
}

test_that("every registered routine has its wrapper, with as many arguments", {
  routines <- getDLLRegisteredRoutines(getLoadedDLLs()[["warrant"]])$.Call
  routines <- routines[grep("^wrap__rs_", names(routines))]
  registered <- vapply(routines, function(r) r$numParameters, 0L)
  names(registered) <- sub("^wrap__", "", names(registered))
  wrapped <- vapply(entry_points(), function(f) length(formals(f)), 0L)
  expect_equal(wrapped, registered[names(wrapped)])
  expect_setequal(names(wrapped), names(registered))
})

test_that("the wrappers are those that the library would write", {
  root <- source_root("tools")
  code <- parse(file.path(root, "tools", "document.R"), keep.source = FALSE)
  made <- new.env()
  for (line in code) if (identical(line[[1]], quote(`<-`))) eval(line, made)
  expect_equal(readLines(file.path(root, "R", "extendr-wrappers.R")), made$wrappers("warrant"))
})

test_that("garbage never takes the session down", {
  skip_on_cran()
  done <- run_in_process(timeout = 300, quote({
    setwd(tempdir())
    set.seed(1)
    ns <- asNamespace("warrant")
    names <- grep("^rs_", ls(ns), value = TRUE)
    # those that make and end the processes of workers do so here, too
    names <- grep("^rs_(template|child)_", names, value = TRUE, invert = TRUE)
    # no numbers: some entry points take the id of a process
    garbage <- list(
      NULL, NA, list(), list(list(NULL)), character(), NA_character_, "", "{\"a\":1}", "[1,2",
      strrep("[", 1e5), "\u00e9%s%n", c("a", "b"), TRUE, raw(0), as.raw(c(0, 255, 123)),
      function() 1, globalenv(), y ~ x, factor("a"), quote(a + b)
    )
    for (name in names) {
      f <- get(name, ns)
      n <- length(formals(f))
      for (i in seq_len(if (n == 0) 1 else if (n == 1) length(garbage) else 3 * length(garbage))) {
        args <- if (i <= length(garbage)) rep(garbage[i], n) else sample(garbage, n, replace = TRUE)
        cat(name, i, "\n")
        try(do.call(f, args, quote = TRUE), silent = TRUE)
      }
    }
    invisible(gc())
    cat("survived", warrant:::rs_version(), "\n")
  }))
  expect_equal(done$status, 0L, info = paste(utils::tail(done$output, 5), collapse = "\n"))
  expect_match(utils::tail(done$output, 1), "^survived")
})
