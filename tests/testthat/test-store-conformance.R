passes <- function(checks) {
  expect_equal(checks$check[!checks$passed], character(), info = paste(checks$message, collapse = "; "))
}

test_that("our stores keep their promises in one process", {
  passes(store_conformance(memory_store))
  dir <- withr::local_tempdir()
  passes(store_conformance(function() file_store(dir)))
  skip_if_not_installed("RSQLite")
  path <- withr::local_tempfile(fileext = ".sqlite")
  passes(store_conformance(function() dbi_store(DBI::dbConnect(RSQLite::SQLite(), path))))
})

test_that("file and database stores keep their promises between processes", {
  skip_on_cran()
  skip_if_not_installed("callr")
  dir <- withr::local_tempdir()
  passes(store_conformance(local({
    dir <- dir
    function() warrant::file_store(dir)
  }), "several_processes"))
  skip_if_not_installed("RSQLite")
  path <- file.path(dir, "runs.sqlite")
  passes(store_conformance(local({
    path <- path
    function() warrant::dbi_store(DBI::dbConnect(RSQLite::SQLite(), path))
  }), "several_processes"))
})

# WARRANT_POSTGRES holds the arguments of dbConnect() as JSON, such as
# {"host": "127.0.0.1", "user": "w", "password": "w", "dbname": "w"}.
test_that("a PostgreSQL store keeps its promises between processes", {
  skip_on_cran()
  skip_if_not_installed("callr")
  skip_if_not_installed("RPostgres")
  arguments <- Sys.getenv("WARRANT_POSTGRES")
  skip_if(!nzchar(arguments), "WARRANT_POSTGRES names no database")
  arguments <- unwrap_core(rs_from_json(arguments))
  passes(store_conformance(local({
    arguments <- arguments
    function() {
      driver <- getExportedValue("RPostgres", "Postgres")()
      warrant::dbi_store(do.call(DBI::dbConnect, c(list(driver), arguments)))
    }
  }), "several_processes"))
})

test_that("a store that breaks a promise is found out", {
  forgetful <- function() {
    store <- memory_store()
    append <- store$append
    store$append <- function(run_id, lines, expect_head, head, content = NULL, token = NULL, sync = FALSE) {
      append(run_id, lines, expect_head, head, NULL, token, sync)
    }
    careless <- store$lock
    store$lock <- function(run_id, hold_s = 60) tryCatch(careless(run_id), error = function(e) "token")
    store
  }
  checks <- store_conformance(forgetful)
  expect_equal(checks$check[!checks$passed], c(
    "content comes back byte for byte, and the first value stays", "a locked run has one owner"
  ))
  expect_match(checks$message[!checks$passed][1], "other content")
  checks <- store_conformance(function() stop("no store"))
  expect_false(any(checks$passed))
})
