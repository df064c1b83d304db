#' Verify an audit trail
#'
#' Checks a trail and says what is wrong with it, where. Use it on any file that
#' [audit_jsonl()] wrote, on a run, on a store, or on the lines of a journal.
#'
#' First the *chain*: every line is a record in canonical form, states its own
#' digest, and builds on the record before it in its run; runs in a file are linked
#' with each other. Then the *meaning*: the records are a history that the run machine
#' could have produced under the policy and the limits that the trail itself
#' declares; so a call beyond its limit, or without the approval it needed, is
#' found although its digests are right.
#'
#' @section What this proves:
#' Any change that does not recompute the chain is found: a changed byte, a record
#' that was dropped, repeated, moved or slipped in, a run that was removed before a
#' later link. So is any change whatever, relative to a head that was kept elsewhere
#' ([audit_head()] prints it; states, manifests and archives keep it).
#'
#' Who holds the file and knows that no head of it is kept can rewrite it from any
#' record on, or cut its end, and leave a trail that verifies. A trail does
#' not prove that what it records happened, nor that nothing else did: only that the
#' records are those that were written, in their order, and obey their rules.
#'
#' Values stand in a trail only by address: an HMAC under a key that is kept with
#' the content. Without content the chain and the meaning are checked in full, except
#' what can only be judged from values. With `content = ` every
#' address is recomputed from the value that the store has.
#'
#' @param x Path of a file, an [audit_jsonl()] sink, a run, a store, or the lines of
#'   a journal.
#' @param head Heads that the trail must hold: character, `run:seq:digest` or the
#'   digest alone.
#' @param content A store (see [stores]) with the runs' content.
#' @returns `verify_audit()` gives a tibble of class `audit_report`, a row for each
#'   fault: `kind`, `line`, `run`, `seq` (of the first missing record where some are
#'   missing), `what`. No rows when nothing is wrong. Attribute `state` is `"sound"`,
#'   `"open"` (nothing is wrong and some run has no end), `"cut"` (it ends within a line
#'   or before a known head) or `"broken"`; `counts` has lines, records,
#'   runs, open runs and recoveries; `heads` is what [audit_head()] gives; `not_checked`
#'   says what was not.
#'
#'   Kinds of the chain: `unreadable`, `not_canonical`, `digest`, `missing`,
#'   `order`, `prev`, `time`, `after_end`, `link`, `link_missing`, `torn`, `cut`, `head`; of the
#'   meaning: `event`, `meaning`; of the content: `key_missing`, `key_mismatch`,
#'   `content_missing`, `content_mismatch`, `rule` (arguments that do not match the schema of
#'   their tool or grant; not judged where parameters are secret). Missing content is no change of the trail,
#'   so it leaves the state as it is.
#'
#'   Content of the file never raises an error. A file that cannot be opened
#'   raises one of class `warrant_error_audit`.
#' @examples
#' path <- system.file("extdata", "trail.jsonl", package = "warrant")
#' verify_audit(path)
#' head <- audit_head(path)
#'
#' # Somebody cuts the last three lines, which a later reader can only see
#' # against a head kept elsewhere.
#' cut <- head(readLines(path), -3)
#' attr(verify_audit(cut), "state")
#' verify_audit(cut, head = head)
#'
#' # Somebody changes a number.
#' changed <- sub('"tool_calls":2', '"tool_calls":9', readLines(path), fixed = TRUE)
#' verify_audit(changed)
#' @export
verify_audit <- function(x, head = NULL, content = NULL) {
  source <- audit_source(x)
  heads <- check_heads(head)
  if (!is.null(content) && !is_store(content)) {
    stop_warrant("`content` must be a store, or NULL.", kind = "input", arg = "content")
  }
  found <- run_verifier(source, heads, claims = !is.null(content))
  report <- tibble(
    kind = found$kind, line = found$line, run = found$run, seq = found$seq, what = found$what
  )
  state <- found$state
  if (!is.null(content)) {
    extra <- rbind(check_content(found$claims, content), check_rules(found$rules, content))
    if (any(extra$kind %in% c("key_mismatch", "content_mismatch", "rule"))) state <- "broken"
    report <- rbind(report, extra)
  }
  new_audit_report(report, state, found, is.null(content))
}

#' Read an audit trail as a table
#'
#' Gives one row a record, to look into what happened. It does not verify: see
#' [verify_audit()]. Lines that are not records are passed over.
#'
#' @inheritParams verify_audit
#' @returns A tibble: `line`, `run`, `seq`, `event`, `at` (`POSIXct`, UTC), `active_ms`
#'   (working time of the run in milliseconds), `data` (JSON text), `prev`, `digest`.
#'   The file's own `link` and `recovered` lines are rows too.
#' @examples
#' path <- system.file("extdata", "trail.jsonl", package = "warrant")
#' read_audit(path)
#' @export
read_audit <- function(x) {
  source <- audit_source(x)
  columns <- unwrap_core(rs_audit_records(source$paths, source$lines))
  columns$at <- as.POSIXct(columns$at, origin = "1970-01-01", tz = "UTC")
  tibble::as_tibble(columns)
}

#' The head of an audit trail
#'
#' Names the last record, for keeping where the trail is not: in a lab book, a
#' paper, a message to a colleague. Against it, [verify_audit()] finds any later
#' change of what was there, also a cut at the end.
#'
#' @inheritParams verify_audit
#' @returns A character vector, each `run:seq:digest`: of an audit file the head of its
#'   own link lines, which covers every run that has ended, then one for each run that
#'   is open; of a journal its last record.
#' @examples
#' audit_head(system.file("extdata", "trail.jsonl", package = "warrant"))
#' @export
audit_head <- function(x) {
  run_verifier(audit_source(x), character(), claims = FALSE, meaning = FALSE)$heads
}

# What to read: paths of files, or lines.
audit_source <- function(x, arg = "x", call = caller_env()) {
  if (is_audit_sink(x)) {
    return(list(paths = x$path, lines = character()))
  }
  if (is_store(x)) {
    lines <- unlist(lapply(x$runs(), x$read), use.names = FALSE)
    return(list(paths = character(), lines = as.character(lines)))
  }
  if (inherits(x, "agent_run")) {
    return(list(paths = character(), lines = run_lines(x)))
  }
  if (!is.character(x) || anyNA(x)) {
    stop_warrant(c(
      sprintf("`%s` must be a path, an audit sink, a run, a store or lines of a journal.", arg),
      x = sprintf("It is %s.", if (is.character(x)) "a missing text" else class(x)[1])
    ), kind = "input", arg = arg, call = call)
  }
  if (length(x) > 1 && !any(startsWith(x, "{")) && all(file.exists(x))) {
    stop_warrant(
      sprintf("`%s` must be the path of one file: each is verified by itself.", arg),
      kind = "input", arg = arg, call = call
    )
  }
  # No path begins as a record does.
  if (length(x) != 1 || startsWith(x, "{")) {
    return(list(paths = character(), lines = enc2utf8(x)))
  }
  list(paths = path.expand(enc2utf8(x)), lines = character())
}

run_lines <- function(run) {
  if (!is.null(run$journal)) as.character(run$journal) else run$store$read(run$run_id)
}

check_heads <- function(head, call = caller_env()) {
  if (is.null(head)) {
    return(character())
  }
  if (!is.character(head) || anyNA(head)) {
    stop_warrant(
      "`head` must be character: what audit_head() gives, or digests.",
      kind = "input", arg = "head", call = call
    )
  }
  unname(head)
}

# A file is read in steps of a tenth of a second or so, between which R sees an
# interrupt.
run_verifier <- function(source, heads, claims, meaning = TRUE, call = caller_env()) {
  id <- unwrap_core(rs_verify_start(heads, meaning, claims), call)
  on.exit(rs_verify_drop(id))
  for (path in source$paths) {
    unwrap_core(rs_verify_open(id, path), call)
    bar <- if (rlang::is_interactive()) {
      cli::cli_progress_bar("Verifying", total = file.size(path), type = "tasks")
    }
    while (!unwrap_core(rs_verify_read(id, 2^25), call)) {
      if (!is.null(bar)) cli::cli_progress_update(2^25, id = bar)
    }
    if (!is.null(bar)) cli::cli_progress_done(id = bar)
  }
  if (length(source$lines)) unwrap_core(rs_verify_lines(id, source$lines), call)
  unwrap_core(rs_verify_finish(id), call)
}

check_content <- function(claims, store) {
  claims <- tibble::as_tibble(claims)
  rows <- lapply(split(claims, factor(claims$run, unique(claims$run))), check_run_content, store)
  empty <- content_finding(claims[0, ], character(), character())
  do.call(rbind, c(list(empty), unname(rows)))
}

check_run_content <- function(claims, store) {
  run <- claims$run[1]
  is_key <- claims$member == "content_key"
  key <- unname(store$get_content(run, "key"))
  if (is.na(key)) {
    first <- claims[1, ]
    return(content_finding(
      first, "key_missing", "the store has no key for the run, so no address can be recomputed"
    ))
  }
  kept <- tryCatch(unwrap_core(rs_key_commitment(key)), warrant_error = function(e) "")
  if (any(claims$address[is_key] != kept)) {
    return(content_finding(
      claims[is_key, ][1, ], "key_mismatch",
      "the store's key is not the one that the run committed to"
    ))
  }
  values <- claims[!is_key, ]
  addresses <- unique(values$address)
  texts <- store$get_content(run, addresses)
  there <- !is.na(texts)
  right <- there
  right[there] <- unwrap_core(rs_content_addresses(key, unname(texts[there]))) == addresses[there]
  missing <- values[values$address %in% addresses[!there], ]
  changed <- values[values$address %in% addresses[there & !right], ]
  rbind(
    content_finding(missing, "content_missing", sprintf(
      "the store has nothing for the %s at address %s", missing$member, missing$address
    )),
    content_finding(changed, "content_mismatch", sprintf(
      "what the store has for the %s is not what address %s was made from",
      changed$member, changed$address
    ))
  )
}

# Arguments against the schema of their tool, and of the grant that let them pass.
check_rules <- function(rules, store) {
  rules <- tibble::as_tibble(rules)
  rows <- lapply(split(rules, factor(rules$run, unique(rules$run))), function(rules) {
    texts <- store$get_content(rules$run[1], unique(c(rules$value, rules$schema)))
    values <- unname(texts[rules$value])
    schemas <- unname(texts[rules$schema])
    there <- !is.na(values) & !is.na(schemas)
    kept <- rep(NA, nrow(rules))
    kept[there] <- unwrap_core(rs_content_judge(values[there], schemas[there]))
    broken <- rules[!is.na(kept) & !kept, ]
    content_finding(broken, "rule", sprintf("the arguments do not match the schema of the %s", ifelse(
      broken$member == "grant", "grant that let the call pass", "tool"
    )))
  })
  empty <- content_finding(rules[0, ], character(), character())
  do.call(rbind, c(list(empty), unname(rows)))
}

content_finding <- function(claims, kind, what) {
  tibble(
    kind = rep_len(kind, nrow(claims)), line = claims$line, run = claims$run, seq = claims$seq,
    what = what
  )
}

new_audit_report <- function(report, state, found, no_content) {
  structure(
    report,
    class = c("audit_report", class(report)),
    state = state,
    counts = c(
      lines = found$lines, records = found$records, runs = found$runs, open = found$open,
      recoveries = found$recoveries
    ),
    heads = found$heads,
    not_checked = if (no_content) "addresses, and what only values can show: no content was given"
  )
}

#' @export
format.audit_report <- function(x, ...) {
  counts <- attr(x, "counts")
  number <- function(n) format(n, big.mark = ",", scientific = FALSE)
  not_checked <- attr(x, "not_checked")
  c(
    sprintf("<audit_report> %s", attr(x, "state")),
    sprintf("* records: %s in %s lines", number(counts[["records"]]), number(counts[["lines"]])),
    sprintf("* runs: %s, %s without an end", number(counts[["runs"]]), number(counts[["open"]])),
    if (counts[["recoveries"]] > 0) sprintf("* torn lines set aside: %s", counts[["recoveries"]]),
    if (!is.null(not_checked)) sprintf("* not checked: %s", not_checked),
    sprintf("* faults: %s", number(nrow(x)))
  )
}

#' @export
print.audit_report <- function(x, ...) {
  # Rows picked out of a report are a plain table.
  if (!is.null(attr(x, "state"))) writeLines(format(x))
  if (nrow(x) || is.null(attr(x, "state"))) {
    plain <- x
    class(plain) <- setdiff(class(x), "audit_report")
    print(plain, ...)
  }
  invisible(x)
}
