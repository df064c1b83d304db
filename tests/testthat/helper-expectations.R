# Expects an error of ours with this code (or kind), and fields that have these
# values. `message` is a regular expression for what is said. Gives the condition.
expect_warrant_error <- function(object, code, ..., message = NULL) {
  condition <- tryCatch(
    {
      force(object)
      NULL
    },
    error = identity
  )
  said <- if (is.null(condition)) {
    "no error"
  } else {
    paste0("<", paste(class(condition), collapse = "/"), "> ", conditionMessage(condition))
  }
  class <- paste0("warrant_error_", code)
  testthat::expect(
    inherits(condition, class) && inherits(condition, "warrant_error"),
    paste0("Expected an error of class ", class, ", not ", said)
  )
  fields <- list(...)
  for (name in names(fields)) {
    testthat::expect(
      identical(condition[[name]], fields[[name]]),
      paste0(
        "Field `", name, "` of the error is ", paste(deparse(condition[[name]]), collapse = " "),
        ", not ", paste(deparse(fields[[name]]), collapse = " ")
      )
    )
  }
  if (!is.null(message)) {
    testthat::expect(
      !is.null(condition) && grepl(message, conditionMessage(condition), perl = TRUE),
      paste0("The message does not match '", message, "': ", said)
    )
  }
  invisible(condition)
}

# The root of the sources, or a skip where only the installed package is there.
source_root <- function(file = "DESCRIPTION") {
  root <- testthat::test_path("..", "..")
  here <- file.path(root, c("DESCRIPTION", "src", file))
  testthat::skip_if_not(all(file.exists(here)), "the sources of the package are not here")
  root
}

# Runs R code in a process of its own, which may crash; gives its exit status and
# what it wrote. `code` is an expression.
run_in_process <- function(code, timeout = 120, env = character()) {
  script <- tempfile(fileext = ".R")
  out <- tempfile(fileext = ".txt")
  on.exit(unlink(c(script, out)))
  writeLines(
    c(
      sprintf(".libPaths(%s)", paste(deparse(.libPaths()), collapse = "")),
      deparse(code)
    ),
    script
  )
  status <- suppressWarnings(system2(
    file.path(R.home("bin"), "Rscript"), c("--vanilla", shQuote(script)),
    stdout = out, stderr = out, timeout = timeout, env = env
  ))
  list(status = status, output = readLines(out, warn = FALSE))
}
