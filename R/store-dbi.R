#' @rdname stores
#' @export
dbi_store <- function(con, lease_s = 60) {
  rlang::check_installed("DBI", "for a store in a database.")
  if (!inherits(con, "DBIConnection") || !DBI::dbIsValid(con)) {
    stop_warrant("`con` must be an open connection of DBI.", kind = "input", arg = "con")
  }
  if (!is.numeric(lease_s) || length(lease_s) != 1 || is.na(lease_s) || lease_s <= 0) {
    stop_warrant("`lease_s` must be a number of seconds.", kind = "input", arg = "lease_s")
  }
  db <- new_dbi(con)
  make_dbi_tables(db)

  append <- function(run_id, lines, expect_head, head, content = NULL, token = NULL, sync = FALSE) {
    check_run_id(run_id)
    db$transaction(run_id, {
      # Content alone is taken from a late owner too.
      if (length(lines)) {
        renew_dbi_lease(db, token, run_id, lease_s)
        append_dbi_lines(db, run_id, as.character(lines), expect_head, head)
      }
      append_dbi_content(db, run_id, content)
    })
    invisible(NULL)
  }
  read <- function(run_id) {
    check_run_id(run_id)
    rows <- db$get(
      run_id, "SELECT line FROM warrant_records WHERE run_id = ? ORDER BY seq", list(run_id)
    )
    if (!nrow(rows)) stop_no_such_run(run_id)
    enc2utf8(rows$line)
  }
  runs <- function() {
    rows <- db$get("", "SELECT run_id FROM warrant_runs", list())
    sort(as.character(rows$run_id), method = "radix")
  }
  get_content <- function(run_id, addresses = NULL) {
    check_run_id(run_id)
    get_dbi_content(db, run_id, addresses)
  }
  lock <- function(run_id, hold_s = lease_s) {
    check_run_id(run_id)
    db$transaction(run_id, take_dbi_lease(db, run_id, max(hold_s, lease_s)))
  }
  renew <- function(token, hold_s = lease_s) {
    if (!inherits(token, "dbi_token")) stop_not_owner("?")
    db$transaction(
      token$run_id, renew_dbi_lease(db, token, token$run_id, max(hold_s, lease_s))
    )
    invisible(token)
  }
  unlock <- function(token) {
    if (inherits(token, "dbi_token")) {
      db$run(token$run_id, paste(
        "UPDATE warrant_leases SET owner = NULL, held_until = 0",
        "WHERE run_id = ? AND owner = ? AND fence = ?"
      ), list(token$run_id, token$owner, token$fence))
    }
    invisible(NULL)
  }
  structure(
    new_store("dbi", append, read, runs, get_content, lock, renew, unlock),
    about = c(connection = class(con)[1])
  )
}

# Statements with `?` for parameters, spelled as the database wants them; each
# error of the database is one of ours.
new_dbi <- function(con) {
  dollar <- inherits(con, c("PqConnection", "PostgreSQLConnection"))
  spell <- function(sql) {
    if (!dollar) {
      return(sql)
    }
    # The space keeps what follows a `?` at the end.
    parts <- strsplit(paste0(sql, " "), "?", fixed = TRUE)[[1]]
    marks <- c(sprintf("$%d", seq_along(parts[-1])), "")
    trimws(paste0(parts, marks, collapse = ""), "right")
  }
  guarded <- function(run_id, expr) {
    tryCatch(expr, error = function(e) {
      if (inherits(e, "warrant_error")) stop(e)
      stop_warrant(c(
        "The database refused to read or write.", x = conditionMessage(e)
      ), kind = "store", code = "store_write", run_id = run_id, call = NULL)
    })
  }
  run <- function(run_id, sql, params) {
    guarded(run_id, {
      statement <- DBI::dbSendStatement(con, spell(sql))
      on.exit(DBI::dbClearResult(statement))
      if (length(params)) DBI::dbBind(statement, params)
      DBI::dbGetRowsAffected(statement)
    })
  }
  get <- function(run_id, sql, params) {
    guarded(run_id, if (length(params)) {
      DBI::dbGetQuery(con, spell(sql), params = params)
    } else {
      DBI::dbGetQuery(con, spell(sql))
    })
  }
  sqlite <- inherits(con, "SQLiteConnection")
  if (sqlite) guarded("", DBI::dbExecute(con, "PRAGMA busy_timeout = 10000"))
  transaction <- function(run_id, expr) {
    # SQLite takes its write lock at the start, so that two writers wait for each
    # other and do not fail half way.
    guarded(run_id, if (sqlite) DBI::dbExecute(con, "BEGIN IMMEDIATE") else DBI::dbBegin(con))
    done <- FALSE
    on.exit(if (!done) try(if (sqlite) DBI::dbExecute(con, "ROLLBACK") else DBI::dbRollback(con), TRUE))
    value <- guarded(run_id, expr)
    guarded(run_id, if (sqlite) DBI::dbExecute(con, "COMMIT") else DBI::dbCommit(con))
    done <- TRUE
    value
  }
  has <- function(table) guarded("", DBI::dbExistsTable(con, table))
  list(run = run, get = get, has = has, transaction = transaction)
}

make_dbi_tables <- function(db) {
  tables <- c(
    "warrant_runs (run_id VARCHAR(128) PRIMARY KEY, records BIGINT NOT NULL, head CHAR(64) NOT NULL)",
    paste(
      "warrant_records (run_id VARCHAR(128) NOT NULL, seq BIGINT NOT NULL, line TEXT NOT NULL,",
      "PRIMARY KEY (run_id, seq))"
    ),
    paste(
      "warrant_content (run_id VARCHAR(128) NOT NULL, address VARCHAR(64) NOT NULL,",
      "value TEXT NOT NULL, PRIMARY KEY (run_id, address))"
    ),
    paste(
      "warrant_leases (run_id VARCHAR(128) PRIMARY KEY, owner VARCHAR(64), fence BIGINT NOT NULL,",
      "host VARCHAR(255), pid BIGINT, started VARCHAR(40), heartbeat DOUBLE PRECISION,",
      "held_until DOUBLE PRECISION NOT NULL)"
    )
  )
  # They are made together; the last is there when all are. PostgreSQL says a word for
  # each that is there already.
  if (db$has("warrant_leases")) return(invisible(NULL))
  db$transaction("", {
    for (table in tables) db$run("", paste("CREATE TABLE IF NOT EXISTS", table), list())
  })
}

append_dbi_lines <- function(db, run_id, lines, expect_head, head) {
  known <- db$get(
    run_id, "SELECT records, head FROM warrant_runs WHERE run_id = ?", list(run_id)
  )
  n <- length(lines)
  if (!nrow(known)) {
    if (nzchar(expect_head)) stop_no_such_run(run_id)
    first <- 0
    db$run(
      run_id, "INSERT INTO warrant_runs (run_id, records, head) VALUES (?, ?, ?)",
      list(run_id, n, head)
    )
  } else {
    if (!nzchar(expect_head)) stop_run_exists(run_id)
    first <- as.numeric(known$records)
    changed <- db$run(
      run_id, "UPDATE warrant_runs SET records = ?, head = ? WHERE run_id = ? AND head = ?",
      list(first + n, head, run_id, expect_head)
    )
    if (changed != 1) stop_stale_head(run_id, expect_head, known$head)
  }
  db$run(
    run_id, "INSERT INTO warrant_records (run_id, seq, line) VALUES (?, ?, ?)",
    list(rep(run_id, n), first + seq_len(n) - 1, lines)
  )
}

append_dbi_content <- function(db, run_id, content) {
  if (length(content)) {
    content <- content[!duplicated(names(content))]
    db$run(run_id, paste(
      "INSERT INTO warrant_content (run_id, address, value) VALUES (?, ?, ?)",
      "ON CONFLICT (run_id, address) DO NOTHING"
    ), list(rep(run_id, length(content)), names(content), unname(as.character(content))))
  }
}

get_dbi_content <- function(db, run_id, addresses) {
  if (is.null(addresses)) {
    rows <- db$get(
      run_id, "SELECT address, value FROM warrant_content WHERE run_id = ? ORDER BY address",
      list(run_id)
    )
    return(stats::setNames(enc2utf8(as.character(rows$value)), rows$address))
  }
  one <- function(address) {
    rows <- db$get(
      run_id, "SELECT value FROM warrant_content WHERE run_id = ? AND address = ?",
      list(run_id, address)
    )
    if (nrow(rows)) enc2utf8(rows$value[1]) else NA_character_
  }
  addresses <- as.character(addresses)
  stats::setNames(vapply(addresses, one, ""), addresses)
}

# Takes a run that nobody holds: never held, given back, run out, or held by a
# process of this machine that is gone. The fence grows with every owner.
take_dbi_lease <- function(db, run_id, hold_s) {
  me <- this_process()
  held <- db$get(run_id, "SELECT * FROM warrant_leases WHERE run_id = ?", list(run_id))
  fence <- if (nrow(held)) as.numeric(held$fence) + 1 else 1
  if (nrow(held) && !is.na(held$owner) && held$held_until > now() && !owner_gone(held, me)) {
    stop_already_running(run_id, sprintf("process %s on %s", held$pid, held$host))
  }
  values <- list(me$owner, fence, me$host, me$pid, me$started, now(), now() + hold_s, run_id)
  if (nrow(held)) {
    # Whoever else read the same lease has then changed its fence.
    changed <- db$run(run_id, paste(
      "UPDATE warrant_leases SET owner = ?, fence = ?, host = ?, pid = ?, started = ?,",
      "heartbeat = ?, held_until = ? WHERE run_id = ? AND fence = ?"
    ), c(values, list(fence - 1)))
    if (changed != 1) stop_already_running(run_id)
  } else {
    changed <- db$run(run_id, paste(
      "INSERT INTO warrant_leases (owner, fence, host, pid, started, heartbeat, held_until, run_id)",
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run_id) DO NOTHING"
    ), values)
    if (changed != 1) stop_already_running(run_id)
  }
  structure(list(run_id = run_id, owner = me$owner, fence = fence), class = "dbi_token")
}

renew_dbi_lease <- function(db, token, run_id, hold_s) {
  if (!inherits(token, "dbi_token") || !identical(token$run_id, run_id)) stop_not_owner(run_id)
  changed <- db$run(run_id, paste(
    "UPDATE warrant_leases SET heartbeat = ?,",
    "held_until = CASE WHEN held_until > ? THEN held_until ELSE ? END",
    "WHERE run_id = ? AND owner = ? AND fence = ?"
  ), list(now(), now() + hold_s, now() + hold_s, run_id, token$owner, token$fence))
  if (changed != 1) stop_not_owner(run_id)
}

this_process <- function() {
  list(
    owner = unwrap_core(rs_random_hex()),
    host = Sys.info()[["nodename"]],
    pid = Sys.getpid(),
    started = process_start(Sys.getpid())
  )
}

owner_gone <- function(held, me) {
  if (!identical(held$host, me$host)) {
    return(FALSE)
  }
  pid <- as.integer(held$pid)
  !isTRUE(tools::pskill(pid, 0L)) ||
    (nzchar(held$started) && !identical(process_start(pid), held$started))
}

# When a process began, so that another one with its number is told apart: field
# 22 of its line in /proc, and nothing on systems without that.
process_start <- function(pid) {
  path <- sprintf("/proc/%d/stat", pid)
  if (!file.exists(path)) {
    return("")
  }
  line <- tryCatch(readLines(path, 1L, warn = FALSE), error = function(e) "")
  fields <- strsplit(sub("^.*[)] ", "", line), " ", fixed = TRUE)[[1]]
  if (length(fields) >= 20) fields[20] else ""
}
