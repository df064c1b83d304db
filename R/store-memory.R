#' @rdname stores
#' @export
memory_store <- function() {
  journals <- new.env(parent = emptyenv())
  locks <- new.env(parent = emptyenv())

  held <- function(token) {
    inherits(token, "memory_token") && identical(locks[[token$run_id]], token)
  }
  append <- function(run_id, lines, expect_head, head, content = NULL, token = NULL, sync = FALSE) {
    # Whoever holds the run has had its id checked.
    if (!held(token) || !identical(token$run_id, run_id)) stop_not_owner(check_run_id(run_id))
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
    if (is.null(journal) || !nzchar(journal$head)) stop_no_such_run(run_id)
    unpacked(journal$lines)
  }
  runs <- function() {
    ids <- sort(ls(journals, all.names = TRUE), method = "radix")
    ids[vapply(ids, function(id) nzchar(journals[[id]]$head), NA)]
  }
  get_content <- function(run_id, addresses = NULL) {
    journal <- journals[[check_run_id(run_id)]]
    rows <- if (is.null(journal)) character() else unpacked(journal$content)
    space <- regexpr(" ", rows, fixed = TRUE)
    names <- substr(rows, 1L, space - 1L)
    addresses <- addresses %||% sort(unique(names), method = "radix")
    # The first of equal names: what is there already stays.
    rows <- rows[match(addresses, names)]
    rest <- substring(rows, nchar(addresses) + 2L, .Machine$integer.max)
    stats::setNames(rest, addresses)
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

# An append costs the same however long the journal is. Texts are kept as bytes: R looks
# at each string it holds at each garbage collection, and never forgets the name of a
# member that an environment had.
new_memory_journal <- function() {
  journal <- new.env(parent = emptyenv())
  journal$lines <- growing_list(list())
  journal$content <- growing_list(list())
  journal$head <- ""
  journal
}

keep_in_memory <- function(journal, lines, head, content) {
  if (length(content)) journal$content$add(packed(paste(names(content), content)))
  if (length(lines)) {
    journal$lines$add(packed(lines))
    journal$head <- head
  }
  invisible(NULL)
}

packed <- function(texts) charToRaw(paste(enc2utf8(texts), collapse = "\n"))

# JSON on one line has no line breaks of its own.
unpacked <- function(pieces) {
  texts <- vapply(pieces$get(), rawToChar, "")
  texts <- as.character(unlist(strsplit(texts, "\n", fixed = TRUE, useBytes = TRUE)))
  Encoding(texts) <- "UTF-8"
  texts
}
