#' Keep an audit trail in a file
#'
#' Gives [agent()] a file to which every record of every run is added as one line,
#' while the run goes on. Several runs, and several processes, can share one file:
#' each append is made whole, under a lock.
#'
#' Runs in the file are chained with each other by `link` lines: one before a run
#' begins, one after it ends, each with the digest of the line before it and of the
#' link before it. So removing a whole run shows as soon as a later link is there.
#' An unterminated last line, as a crash leaves it, is moved to `<path>.torn-1` (then
#' `-2` and so on) at the next append, and a `recovered` line says how many bytes.
#'
#' @param path The file; made at the first append.
#' @param fsync Whether each append waits until it is on the disk. An append takes
#'   about 2 microseconds without, and what the disk's sync costs with.
#' @returns A list of class `audit_sink`, for `agent(audit = )`. An append that fails
#'   raises a condition of class `warrant_error_audit`.
#' @seealso [verify_audit()], [read_audit()], [audit_head()]
#' @examples
#' audit_jsonl(tempfile(fileext = ".jsonl"))
#' @export
audit_jsonl <- function(path, fsync = FALSE) {
  path <- check_file_path(path)
  if (!is.logical(fsync) || length(fsync) != 1 || is.na(fsync)) {
    stop_warrant("`fsync` must be TRUE or FALSE.", kind = "input", arg = "fsync")
  }
  at <- function() floor(now() * 1000)
  structure(list(
    path = path,
    fsync = fsync,
    # Adds records; links are made where runs begin and end.
    append = function(lines) {
      unwrap_core(rs_audit_append(path, as.character(lines), at(), fsync))
      invisible(NULL)
    },
    # Completes a run whose lines here begin the same as `lines`, and refuses any
    # other difference; `head` is a digest that must be among them already.
    complete = function(run_id, lines, head = "") {
      invisible(unwrap_core(
        rs_audit_complete(path, run_id, as.character(lines), head, at(), fsync)
      ))
    },
    has_run = function(run_id) unwrap_core(rs_audit_has_run(path, run_id))
  ), class = "audit_sink")
}

is_audit_sink <- function(x) inherits(x, "audit_sink")

#' @export
format.audit_sink <- function(x, ...) {
  c(
    "<audit_sink> jsonl",
    sprintf("* path: %s", x$path),
    sprintf("* fsync: %s", if (x$fsync) "each append" else "no")
  )
}

#' @export
print.audit_sink <- function(x, ...) {
  writeLines(format(x, ...))
  invisible(x)
}

check_file_path <- function(path, arg = "path", call = caller_env()) {
  if (!is.character(path) || length(path) != 1 || is.na(path) || !nzchar(path)) {
    stop_warrant(
      sprintf("`%s` must be the path of one file.", arg), kind = "input", arg = arg, call = call
    )
  }
  path <- path.expand(enc2utf8(path))
  if (dir.exists(path)) {
    stop_warrant(c(
      sprintf("`%s` must be a file.", arg),
      x = sprintf("%s is a directory.", encodeString(path, quote = "\""))
    ), kind = "audit", code = "audit_path", arg = arg, path = path, call = call)
  }
  # A later setwd() must not move the trail.
  file.path(normalizePath(dirname(path), mustWork = FALSE), basename(path))
}
