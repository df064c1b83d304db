#' @rdname stores
#' @export
file_store <- function(dir) {
  dir <- check_directory(dir)
  path <- function(run_id, ext) file.path(dir, paste0(check_run_id(run_id), ext))

  append <- function(run_id, lines, expect_head, head, content = NULL, token = NULL, sync = FALSE) {
    if (!inherits(token, "file_token")) stop_not_owner(run_id)
    unwrap_core(rs_store_append(
      path(run_id, ""), token$id, as.character(lines), expect_head,
      names(content) %||% character(), as.character(content), isTRUE(sync)
    ))
    invisible(NULL)
  }
  read <- function(run_id) unwrap_core(rs_store_read(path(run_id, "")))
  runs <- function() {
    files <- list.files(dir, pattern = "[.]jsonl$", all.files = TRUE)
    # A first record that was cut by a crash is no record.
    files <- files[unwrap_core(rs_has_line(file.path(dir, files)))]
    sort(sub("[.]jsonl$", "", files), method = "radix")
  }
  get_content <- function(run_id, addresses = NULL) {
    base <- path(run_id, "")
    if (is.null(addresses)) {
      all <- unwrap_core(rs_content_all(base))
      return(stats::setNames(all$text, all$address))
    }
    addresses <- as.character(addresses)
    stats::setNames(unwrap_core(rs_content_get(base, addresses)), addresses)
  }
  lock <- function(run_id, hold_s = 60) {
    id <- unwrap_core(rs_run_lock(path(run_id, "")))
    structure(list(run_id = run_id, id = id), class = "file_token")
  }
  renew <- function(token, hold_s = 60) {
    if (!rs_run_held(path(token$run_id, ""), token$id)) stop_not_owner(token$run_id)
    invisible(token)
  }
  unlock <- function(token) {
    if (inherits(token, "file_token")) rs_run_unlock(token$id)
    invisible(NULL)
  }
  structure(
    new_store("file", append, read, runs, get_content, lock, renew, unlock),
    about = c(directory = dir)
  )
}

check_directory <- function(dir, arg = "dir", call = caller_env()) {
  if (!is.character(dir) || length(dir) != 1 || is.na(dir) || !nzchar(dir)) {
    stop_warrant(
      sprintf("`%s` must be the path of one directory.", arg),
      kind = "input", arg = arg, call = call
    )
  }
  dir <- path.expand(enc2utf8(dir))
  if (!dir.exists(dir)) {
    suppressWarnings(dir.create(dir, recursive = TRUE, showWarnings = FALSE))
  }
  if (!dir.exists(dir)) {
    stop_warrant(c(
      sprintf("`%s` must be a directory that exists or can be made.", arg),
      x = sprintf("%s is not.", encodeString(dir, quote = "\""))
    ), kind = "store", code = "store_directory", arg = arg, path = dir, call = call)
  }
  normalizePath(dir, mustWork = TRUE)
}
