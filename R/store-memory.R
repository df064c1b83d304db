#' @rdname stores
#' @export
memory_store <- function() {
  journals <- new.env(parent = emptyenv())
  locks <- new.env(parent = emptyenv())

  held <- function(token) {
    inherits(token, "memory_token") && identical(locks[[token$run_id]], token)
  }
  append <- function(run_id, lines, expect_head, head, content = NULL, token = NULL, sync = FALSE) {
    check_run_id(run_id)
    if (!held(token)) stop_not_owner(run_id)
    journal <- journals[[run_id]]
    if (is.null(journal)) {
      if (nzchar(expect_head)) stop_no_such_run(run_id)
      journal <- new_memory_journal()
      journals[[run_id]] <- journal
    }
    if (length(lines) && !identical(journal$head, expect_head)) {
      if (!nzchar(expect_head)) stop_run_exists(run_id)
      stop_stale_head(run_id, expect_head, journal$head)
    }
    keep_in_memory(journal, lines, head, content)
  }
  read <- function(run_id) {
    journal <- journals[[check_run_id(run_id)]]
    if (is.null(journal) || journal$chunks == 0L) stop_no_such_run(run_id)
    keys <- as.character(seq_len(journal$chunks))
    unlist(mget(keys, envir = journal$lines), use.names = FALSE)
  }
  runs <- function() {
    ids <- sort(ls(journals, all.names = TRUE), method = "radix")
    ids[vapply(ids, function(id) journals[[id]]$chunks > 0L, NA)]
  }
  get_content <- function(run_id, addresses = NULL) {
    journal <- journals[[check_run_id(run_id)]]
    if (is.null(journal)) {
      return(stats::setNames(rep(NA_character_, length(addresses)), addresses))
    }
    addresses <- addresses %||% sort(ls(journal$content), method = "radix")
    found <- mget(as.character(addresses), envir = journal$content, ifnotfound = NA_character_)
    unlist(found) %||% stats::setNames(character(), character())
  }
  lock <- function(run_id, hold_s = 60) {
    check_run_id(run_id)
    if (!is.null(locks[[run_id]])) stop_already_running(run_id, "this session")
    token <- structure(list(run_id = run_id, key = new.env()), class = "memory_token")
    locks[[run_id]] <- token
    token
  }
  renew <- function(token, hold_s = 60) {
    if (!held(token)) stop_not_owner(token$run_id)
    invisible(token)
  }
  unlock <- function(token) {
    if (held(token)) rm(list = token$run_id, envir = locks)
    invisible(NULL)
  }
  new_store("memory", append, read, runs, get_content, lock, renew, unlock)
}

new_memory_journal <- function() {
  journal <- new.env(parent = emptyenv())
  journal$lines <- new.env(parent = emptyenv())
  journal$content <- new.env(parent = emptyenv())
  journal$chunks <- 0L
  journal$head <- ""
  journal
}

keep_in_memory <- function(journal, lines, head, content) {
  for (address in names(content)) {
    if (is.null(journal$content[[address]])) {
      journal$content[[address]] <- content[[address]]
    }
  }
  if (length(lines)) {
    # Numbered chunks in an environment: an append costs the same however long
    # the journal is.
    journal$chunks <- journal$chunks + 1L
    journal$lines[[as.character(journal$chunks)]] <- lines
    journal$head <- head
  }
  invisible(NULL)
}
