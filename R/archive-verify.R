#' Verify an archive
#'
#' Checks an archive made by [archive_study()] and says what is wrong with it, where.
#'
#' First the *seal*: every file has the digest that `hashes.sha256` states, none is
#' missing, and there is none more, hidden files and links included. Then the *meaning*:
#' each journal verifies, chain and rules, up to the head that the archive states; each
#' value is what its address was made from under the run's key; trajectories and rows of
#' the tables are what the journals tell; the manifest has its hash and its form; the
#' RO-Crate names every file.
#'
#' @section What this proves:
#' Any change after the archive was made is found, unless whoever made it also made
#' everything else in the archive agree with it. Against a `seal` kept elsewhere that
#' cannot be done at all. Where values were left out, what depends on them is not checked:
#' `not_checked` says so.
#'
#' @param dir The folder.
#' @param seal What [archive_study()] gave as `seal`, or `NULL`.
#' @returns A tibble of class `archive_report`, a row for each fault: `kind`, `file`,
#'   `line`, `run`, `what`. No rows when nothing is wrong. Attribute `state` is `"sound"`,
#'   `"unsealed"` (it has no `hashes.sha256`: it was interrupted, or is no archive) or
#'   `"broken"`; `seal` is the SHA-256 of its `hashes.sha256`; `counts` has files and runs;
#'   `not_checked` says what was not.
#'
#'   Kinds of the seal: `changed`, `missing`, `extra`, `unreadable`, `list`, `unsealed`,
#'   `seal`; of the parts: `manifest`, `archive`, `heads`, `head`, `trajectory`, `table`,
#'   `crate`; of the content: `content`, `content_mismatch`, `content_missing`,
#'   `content_extra`, `key_mismatch`, `key_missing`, `rule`; and those of [verify_audit()]
#'   for journals. What stands in an archive never raises an error; a folder that is not there
#'   is one of class `warrant_error_input`.
#' @seealso [archive_study()]
#' @inherit archive_study examples
#' @export
verify_archive <- function(dir, seal = NULL) {
  check_string(dir)
  check_string(seal, null = TRUE)
  if (!dir.exists(dir)) stop_type(dir, "dir", "a folder that exists", rlang::current_env())
  dir <- enc2utf8(path.expand(dir))
  scan <- unwrap_core(rs_archive_scan(dir))
  found <- list(as_findings(scan$found))
  if (!is.null(seal) && !identical(seal, scan$seal)) {
    found <- c(found, list(fault(
      "seal", "hashes.sha256", "the list of digests is not the one that was sealed"
    )))
  }
  heads <- read_heads(dir)
  found <- c(
    found, heads$found, verify_parts(dir, scan$files, heads$rows), verify_runs(dir, heads$rows)
  )
  new_archive_report(do.call(rbind, unname(found)), scan, heads$rows)
}

as_findings <- function(found) {
  tibble(
    kind = found$kind, file = found$file, line = as.numeric(found$line), run = found$run,
    what = found$what
  )
}

fault <- function(kind, file, what, line = NA_real_, run = NA_character_) {
  n <- length(what)
  tibble(
    kind = rep_len(kind, n), file = rep_len(file, n), line = rep_len(as.numeric(line), n),
    run = rep_len(run, n), what = what
  )
}

# Lines of a text file; none of one that is not there.
lines_of <- function(dir, name) {
  file <- file.path(dir, name)
  if (!file.exists(file) || dir.exists(file)) return(character())
  text <- tryCatch(read_utf8(file), error = function(e) "", warning = function(e) "")
  strsplit(text, "\n", fixed = TRUE, useBytes = TRUE)[[1]]
}

no_heads <- data.frame(
  run_id = character(), head = character(), records = character(), status = character(),
  content = character(), judged = character()
)

# The heads, each row of which must have its form.
read_heads <- function(dir) {
  lines <- lines_of(dir, "heads.csv")
  if (length(lines) == 0L || lines[[1]] != paste(names(no_heads), collapse = ",")) {
    return(list(rows = no_heads, found = list(fault("heads", "heads.csv", "is not a list of heads", 1))))
  }
  form <- paste0(
    "^[A-Za-z0-9][A-Za-z0-9._-]{0,127},[0-9a-f]{64},[1-9][0-9]{0,14},[a-z_]+,",
    "(whole|keyless|partial|none),(true|false)$"
  )
  good <- grepl(form, lines[-1], useBytes = TRUE)
  cells <- do.call(rbind, strsplit(lines[-1][good], ",", fixed = TRUE))
  rows <- if (is.null(cells)) no_heads else stats::setNames(as.data.frame(cells), names(no_heads))
  twice <- duplicated(rows$run_id)
  list(rows = rows[!twice, , drop = FALSE], found = list(
    fault("heads", "heads.csv", rep("is not the head of a run", sum(!good)), which(!good) + 1),
    fault("heads", "heads.csv", rep("a run has two heads", sum(twice)), run = rows$run_id[twice])
  ))
}

# ---- the parts that are not of single runs ------------------------------------------

verify_parts <- function(dir, files, heads) {
  list(
    verify_manifest_file(dir), verify_facts(dir, heads), verify_crate(dir, files),
    verify_places(files, heads)
  )
}

verify_manifest_file <- function(dir) {
  file <- file.path(dir, "manifest.json")
  if (!file.exists(file)) return(fault("manifest", "manifest.json", "is not there"))
  read <- tryCatch(manifest_of(read_utf8(file), "manifest.json"), error = identity)
  if (!inherits(read, "error")) return(no_fault())
  fault("manifest", "manifest.json", one_line(plain(conditionMessage(read))))
}

no_fault <- function() fault("", "", character())

read_json_file <- function(dir, name) {
  none <- function(cnd) NULL
  value <- tryCatch(
    unwrap_core(rs_from_json(read_utf8(file.path(dir, name)))), error = none, warning = none
  )
  if (is.list(value)) value
}

verify_facts <- function(dir, heads) {
  facts <- read_json_file(dir, "archive.json")
  if (!identical(facts$schema, "study_archive/v1")) {
    return(fault("archive", "archive.json", "does not describe an archive of this form"))
  }
  manifest <- read_json_file(dir, "manifest.json")
  rows <- vapply(names(facts$tables), function(name) {
    length(lines_of(dir, sprintf("tables/%s.csv", name))) - 1
  }, 0)
  differ <- names(rows)[rows != unlist(facts$tables)]
  more <- setdiff(sub("[.]csv$", "", list.files(file.path(dir, "tables"))), names(facts$tables))
  lines <- length(lines_of(dir, "trajectories.jsonl"))
  bare <- facts$trajectories_without_run
  rbind(
    if (!identical(as.numeric(facts$runs), as.numeric(nrow(heads)))) {
      fault("archive", "archive.json", "states another number of runs than heads.csv")
    },
    if (!identical(facts$manifest_hash, manifest$manifest_hash)) {
      fault("archive", "archive.json", "names another manifest")
    },
    if (!is.numeric(bare) || lines != nrow(heads) + bare) {
      fault("trajectory", "trajectories.jsonl", "has another number of lines than archive.json states")
    },
    table_faults(differ, "has another number of rows than archive.json states"),
    table_faults(more, "is not named in archive.json")
  )
}

table_faults <- function(names, what) {
  fault("table", sprintf("tables/%s.csv", names), rep(what, length(names)))
}

verify_crate <- function(dir, files) {
  crate <- read_json_file(dir, "ro-crate-metadata.json")
  graph <- crate$`@graph`
  if (!is.list(graph)) return(fault("crate", "ro-crate-metadata.json", "is not an RO-Crate"))
  is_file <- vapply(graph, function(x) is.list(x) && "File" %in% unlist(x$`@type`), NA)
  named <- vapply(graph[is_file], function(x) {
    if (is.character(x$`@id`)) x$`@id`[[1]] else ""
  }, "")
  there <- c(setdiff(files, "ro-crate-metadata.json"), "hashes.sha256")
  words <- function(files, what) {
    fault("crate", "ro-crate-metadata.json", sprintf("%s %s", what, files))
  }
  rbind(
    words(setdiff(there, named), "does not name"),
    words(setdiff(named, there), "names what is not there:")
  )
}

# Each journal and each content belongs to a run that has a head.
verify_places <- function(files, heads) {
  of <- function(folder, ext) grep(sprintf("^%s/.*[.]%s$", folder, ext), files, value = TRUE)
  journals <- setdiff(of("journals", "jsonl"), sprintf("journals/%s.jsonl", heads$run_id))
  content <- setdiff(of("content", "content"), sprintf("content/%s.content", heads$run_id))
  files <- c(journals, content)
  fault("heads", files, rep("belongs to no run in heads.csv", length(files)))
}

# ---- runs ----------------------------------------------------------------------------

verify_runs <- function(dir, heads) {
  trajectories <- lines_of(dir, "trajectories.jsonl")
  n <- nrow(heads)
  tables <- lapply(c(runs = "runs", calls = "tool_calls", approvals = "approvals"), function(name) {
    rows_by_run(lines_of(dir, sprintf("tables/%s.csv", name)), heads$run_id)
  })
  found <- lapply(c("runs", "tool_calls", "approvals"), function(name) {
    stray_rows(dir, name, heads$run_id)
  })
  last <- sprintf("%s:%.0f:%s", heads$run_id, as.numeric(heads$records) - 1, heads$head)
  at <- split(seq_len(n), (seq_len(n) - 1L) %/% 500L)
  checked <- each(at, "Verifying runs", function(i) {
    as_findings(unwrap_core(rs_archive_check(
      dir, heads$run_id[i], last[i], heads$status[i], heads$content[i], as.integer(heads$judged[i] == "true"),
      paste0(or_na(trajectories[i]), "\n"), tables$runs[i], tables$calls[i], tables$approvals[i]
    )))
  })
  rest <- trajectories[seq_along(trajectories) > n]
  bad <- which(vapply(rest, function(line) is_fault(rs_canonical(line)), NA, USE.NAMES = FALSE))
  bare <- fault("trajectory", "trajectories.jsonl", rep("is not JSON", length(bad)), bad + n)
  c(found, checked, list(bare))
}

or_na <- function(x) ifelse(is.na(x), "", x)

# Rows of a table by run, as they stand in the file. Ids of runs need no quotes.
rows_by_run <- function(lines, ids) {
  rows <- lines[-1]
  out <- stats::setNames(rep("", length(ids)), ids)
  if (length(rows)) {
    by <- split(rows, factor(sub(",.*", "", rows, useBytes = TRUE), ids))
    out[] <- vapply(by, function(x) if (length(x)) paste0(x, "\n", collapse = "") else "", "")
  }
  unname(out)
}

stray_rows <- function(dir, name, ids) {
  lines <- lines_of(dir, sprintf("tables/%s.csv", name))
  file <- sprintf("tables/%s.csv", name)
  header <- rs_archive_headers()[[name]]
  stray <- which(!sub(",.*", "", lines[-1], useBytes = TRUE) %in% ids)
  rbind(
    if (length(lines) == 0L || lines[[1]] != header) {
      fault("table", file, "does not begin with the names of its columns", 1)
    },
    fault("table", file, rep("is of a run that has no head", length(stray)), stray + 1)
  )
}

new_archive_report <- function(report, scan, heads) {
  unsealed <- any(report$kind == "unsealed")
  bare <- sum(heads$content == "none")
  keyless <- sum(heads$content %in% c("partial", "keyless"))
  not_checked <- c(
    if (bare) sprintf("values of %d runs: they are not in the archive", bare),
    if (keyless) sprintf("addresses of %d runs: their keys are not in the archive", keyless)
  )
  structure(
    report, class = c("archive_report", class(report)),
    state = if (unsealed) "unsealed" else if (nrow(report)) "broken" else "sound",
    seal = scan$seal, counts = c(files = length(scan$files) + 1L, runs = nrow(heads)),
    not_checked = not_checked
  )
}

#' @export
format.archive_report <- function(x, ...) {
  counts <- attr(x, "counts")
  c(
    sprintf("<archive_report> %s", attr(x, "state")),
    sprintf("* files: %d, runs: %d", counts[["files"]], counts[["runs"]]),
    sprintf("* seal: %s", attr(x, "seal")),
    sprintf("* not checked: %s", attr(x, "not_checked")),
    sprintf("* faults: %d", nrow(x))
  )
}

#' @export
print.archive_report <- function(x, ...) {
  if (!is.null(attr(x, "state"))) writeLines(format(x))
  if (nrow(x) || is.null(attr(x, "state"))) {
    plain <- x
    class(plain) <- setdiff(class(x), "archive_report")
    print(plain, ...)
  }
  invisible(x)
}
