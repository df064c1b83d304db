sample <- function(n = 4L) warrant:::sample_run(n)
add <- function(...) warrant:::add_sample(...)

# Two connections to one database, as two machines have them.
two_stores <- function(lease_s = 60, env = parent.frame()) {
  skip_if_not_installed("RSQLite")
  path <- withr::local_tempfile(fileext = ".sqlite", .local_envir = env)
  lapply(1:2, function(i) {
    con <- DBI::dbConnect(RSQLite::SQLite(), path)
    withr::defer(DBI::dbDisconnect(con), envir = env)
    dbi_store(con, lease_s)
  })
}

test_that("a lease runs out, and its owner is then fenced off", {
  wait <- local_clock(1000)
  stores <- two_stores(lease_s = 60)
  run <- sample()
  old <- stores[[1]]$lock(run$id)
  add(stores[[1]], run, 1, 1, old)
  wait(59)
  expect_warrant_error(stores[[2]]$lock(run$id), "already_running", run_id = run$id)
  wait(2)
  new <- stores[[2]]$lock(run$id)
  expect_gt(new$fence, old$fence)
  expect_warrant_error(add(stores[[1]], run, 2, 2, old), "not_owner")
  expect_warrant_error(stores[[1]]$renew(old), "not_owner")
  stores[[1]]$unlock(old)
  add(stores[[2]], run, 2, 2, new)
  expect_equal(stores[[1]]$read(run$id), run$lines[1:2])
})

test_that("an append and a renewal keep the lease", {
  wait <- local_clock(1000)
  stores <- two_stores(lease_s = 60)
  run <- sample()
  token <- stores[[1]]$lock(run$id)
  wait(50)
  add(stores[[1]], run, 1, 1, token)
  wait(50)
  expect_warrant_error(stores[[2]]$lock(run$id), "already_running")
  stores[[1]]$renew(token, 300)
  wait(299)
  # An append in the meantime does not shorten what was asked for.
  add(stores[[1]], run, 2, 2, token)
  expect_warrant_error(stores[[2]]$lock(run$id), "already_running")
  wait(61)
  stores[[2]]$unlock(stores[[2]]$lock(run$id))
})

test_that("a refused append leaves neither lines nor content", {
  stores <- two_stores()
  run <- sample()
  token <- stores[[1]]$lock(run$id)
  add(stores[[1]], run, 1, 2, token)
  expect_warrant_error(add(stores[[1]], run, 2, 2, token, c(aa = "1")), "stale_head")
  expect_equal(stores[[2]]$read(run$id), run$lines[1:2])
  expect_equal(stores[[2]]$get_content(run$id, "aa"), c(aa = NA_character_))
  expect_length(stores[[2]]$get_content(run$id), 0)
})

test_that("an error of the database is one of ours", {
  skip_if_not_installed("RSQLite")
  con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
  store <- dbi_store(con)
  expect_output(print(store), "SQLiteConnection")
  DBI::dbDisconnect(con)
  expect_warrant_error(store$runs(), "store_write")
  expect_output(print(store), "not readable")
  expect_warrant_error(dbi_store(con), "input")
  expect_warrant_error(dbi_store("x"), "input")
  other <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
  expect_warrant_error(dbi_store(other, lease_s = 0), "input")
  DBI::dbDisconnect(other)
})

test_that("statements are spelled as the database wants them", {
  pq <- structure(list(), class = "PqConnection")
  db <- warrant:::new_dbi(pq)
  spell <- environment(db$run)$spell
  expect_equal(spell("UPDATE t SET a = ? WHERE b = ? AND c = ?"), "UPDATE t SET a = $1 WHERE b = $2 AND c = $3")
  expect_equal(spell("VALUES (?, ?)"), "VALUES ($1, $2)")
  expect_equal(spell("SELECT 1"), "SELECT 1")
})
