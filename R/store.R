#' Keep runs where another process can find them
#'
#' A store keeps the journals of runs, and the content their records refer to.
#' `memory_store()` is the default of [agent()]: it lives as long as the session.
#' `file_store()` keeps a run in files of a directory, so that it survives a crash
#' and can be resumed by another process of the same machine. `dbi_store()` keeps
#' runs in a database. `new_store()` makes a store of your own functions.
#'
#' A journal in a `file_store()` is `<run id>.jsonl`: the same lines as in an
#' [audit_jsonl()] file, so [verify_audit()] reads it. Content is in
#' `<run id>.content`: one line a value, its address, a space, its canonical JSON.
#' Its first line is the key under which the addresses were made: without this file
#' the journal still verifies, and nothing can be guessed from it.
#'
#' A run that is driven is locked. With `memory_store()` and `file_store()` the
#' lock ends with the process that held it, however it ended. With `dbi_store()` it
#' is a lease: it ends `lease_s` seconds after the owner's last sign of life, and
#' at once where the owner was a process of this machine that is gone. Each append
#' renews it. Each lease has a number, and an append under an older one is refused,
#' so an owner who comes back too late changes nothing; the result of a call that it
#' made is kept as a late one ([run_agent()]). Example: with `lease_s = 60`
#' and a tool that may take 300 seconds, the driver holds the lease for 360.
#'
#' @section The protocol of a store:
#' A store is a list of class `warrant_store` with these functions. Texts are UTF-8;
#' a head is the digest of a run's last record, `""` before the first.
#'
#' * `append(run_id, lines, expect_head, head, content, token, sync)`: adds journal
#'   lines (whole records, without newline) after the record `expect_head`; `head` is
#'   the digest of the last of `lines`. `content` is a named character vector, its
#'   names addresses, kept before the lines are; a value that is there already
#'   stays. `token` is what `lock()` gave. With `sync` the lines are on the disk when
#'   it returns. All lines are added or none. With `expect_head = ""` the run is
#'   new. It raises `stale_head` (the run has another head), `run_exists`,
#'   `no_such_run`, `not_owner` (the token holds no longer), or `store_write`.
#'   With no lines, only `content` is kept; a store whose lock can be lost while its
#'   owner lives takes that under an old token too, so that what a late owner has is
#'   not lost.
#' * `read(run_id)`: all lines, in order; raises `no_such_run`.
#' * `runs()`: the ids of all runs that have a record.
#' * `get_content(run_id, addresses = NULL)`: a named character vector, `NA` where the
#'   store has nothing; all of a run's content with `NULL`. The content key of
#'   the run is kept under the name `"key"`.
#' * `lock(run_id, hold_s = 60)`: takes the run and returns a token (any value but
#'   `NULL`); raises `already_running`. The run need not exist yet.
#' * `renew(token, hold_s = 60)`: keeps it for that long from now; raises `not_owner`.
#' * `unlock(token)`: gives it back; without effect when it is gone.
#'
#' [store_conformance()] checks a store against all of this.
#'
#' @param dir A directory; made when it does not exist.
#' @param con A connection of DBI: to SQLite with RSQLite, for one machine, or to
#'   PostgreSQL with RPostgres, for many. It must be open whenever
#'   the store is used, and not be inside a transaction.
#' @param lease_s How long a run stays locked after its owner's last sign of life.
#' @param kind One word for printing.
#' @param append,read,runs,get_content,lock,renew,unlock Functions as described below.
#'
#' @returns A list of class `c("<kind>_store", "warrant_store")`. Its functions raise
#'   conditions of class `warrant_error_store`, and of class
#'   `warrant_error_already_running` (a `warrant_error_state`) for a run that another
#'   owner drives.
#' @examples
#' store <- memory_store()
#' store
#'
#' dir <- tempfile()
#' file_store(dir)$runs()
#' @name stores
NULL

#' @rdname stores
#' @export
new_store <- function(kind, append, read, runs, get_content, lock, renew, unlock) {
  check_word(kind)
  functions <- list(
    append = append, read = read, runs = runs, get_content = get_content,
    lock = lock, renew = renew, unlock = unlock
  )
  bad <- names(functions)[!vapply(functions, is.function, NA)]
  if (length(bad)) {
    stop_warrant(c(
      sprintf("%s must be functions.", paste0("`", bad, "`", collapse = ", ")),
      i = "See ?stores for what each does."
    ), kind = "input")
  }
  structure(functions, class = c(paste0(kind, "_store"), "warrant_store"))
}

is_store <- function(x) inherits(x, "warrant_store")

#' @export
format.warrant_store <- function(x, ...) {
  kind <- sub("_store$", "", class(x)[1])
  about <- attr(x, "about")
  runs <- tryCatch(as.character(length(x$runs())), error = function(e) "not readable")
  c(
    sprintf("<warrant_store> %s", kind),
    if (!is.null(about)) sprintf("* %s: %s", names(about), unname(about)),
    sprintf("* runs: %s", runs)
  )
}

#' @export
print.warrant_store <- function(x, ...) {
  writeLines(format(x, ...))
  invisible(x)
}

stop_already_running <- function(run_id, holder = NULL, call = caller_env()) {
  stop_warrant(c(
    sprintf("Run %s is driven by another owner.", run_id),
    if (length(holder)) c(x = sprintf("Held by %s.", holder)),
    i = "Wait until it is paused or has ended; the lock ends with its owner."
  ), kind = "state", code = "already_running", run_id = run_id, call = call)
}

stop_store <- function(code, run_id, message, call = caller_env()) {
  stop_warrant(message, kind = "store", code = code, run_id = run_id, call = call)
}

stop_stale_head <- function(run_id, expect_head, head, call = caller_env()) {
  stop_warrant(c(
    sprintf("Run %s has another head than the append builds on.", run_id),
    x = sprintf("Expected %s, found %s.", short_head(expect_head), short_head(head)),
    i = "Somebody else has written; read the run again."
  ), kind = "store", code = "stale_head", run_id = run_id, expected = expect_head,
  found = head, call = call)
}

short_head <- function(x) if (nzchar(x)) substr(x, 1, 8) else "no record"

stop_run_exists <- function(run_id, call = caller_env()) {
  stop_store("run_exists", run_id, c(
    sprintf("The store already holds a run %s.", run_id),
    i = "Choose another id, or leave it out for a random one."
  ), call)
}

stop_no_such_run <- function(run_id, call = caller_env()) {
  stop_store("no_such_run", run_id, sprintf("The store holds no run %s.", run_id), call)
}

stop_not_owner <- function(run_id, call = caller_env()) {
  stop_store("not_owner", run_id, c(
    sprintf("Run %s is no longer held under this token.", run_id),
    i = "Take it again with lock(), and read it again."
  ), call)
}

check_run_id <- function(x, arg = "run_id", call = caller_env()) {
  ok <- is.character(x) && length(x) == 1 && !is.na(x) &&
    # TRE takes most of a millisecond to compile this pattern, PCRE two microseconds.
    grepl("^[A-Za-z0-9][A-Za-z0-9._-]{0,127}\\z", x, perl = TRUE, useBytes = TRUE)
  if (!ok) {
    stop_warrant(c(
      sprintf("`%s` must name a run: 1 to 128 letters, digits, \".\", \"_\" or \"-\".", arg),
      x = if (is.character(x) && length(x) == 1) {
        sprintf("It is %s.", encodeString(substr(x, 1, 60), quote = "\""))
      } else {
        sprintf("It is %s of length %d.", class(x)[1], length(x))
      }
    ), kind = "input", arg = arg, call = call)
  }
  invisible(x)
}

check_word <- function(x, arg = "kind", call = caller_env()) {
  ok <- is.character(x) && length(x) == 1 && !is.na(x) && grepl("^[a-z][a-z0-9_]*$", x)
  if (!ok) {
    stop_warrant(
      sprintf("`%s` must be one lower-case word.", arg), kind = "input", arg = arg, call = call
    )
  }
  invisible(x)
}
