#' Keep a manifest in a file
#'
#' `write_manifest()` writes a manifest as JSON, in the form that
#' `system.file("schemas", "study-manifest-v1.json", package = "warrant")` describes;
#' `read_manifest()` reads it back. What is read has the same hash, and
#' [diff_manifest()] finds nothing: integers of any length, empty lists and texts in any
#' script survive. Reading checks the file against that JSON Schema, and computes the
#' hash again: a file that was edited by hand is an error.
#'
#' `verify_manifest()` reads the data files of a study again and raises an error that
#' names those that are gone or not what they were when the manifest was made.
#'
#' @param x A manifest.
#' @param file Path of a JSON file.
#' @param data Where the data files are now: paths with the base names that the manifest
#'   knows. By default they are looked for where they were.
#' @returns `write_manifest()` and `verify_manifest()` give `x`, invisibly;
#'   `read_manifest()` a list of class `study_manifest`. Errors have the class
#'   `warrant_error_input` for a file that is no manifest (`warrant_error_schema` with
#'   what it breaks), and `warrant_error_state` for one that was edited
#'   (`warrant_error_manifest_edited`) and for data that changed
#'   (`warrant_error_data_changed`, with `files`).
#' @seealso [study_manifest()]
#' @examples
#' csv <- tempfile(fileext = ".csv")
#' write.csv(cars, csv, row.names = FALSE)
#' manifest <- study_manifest(title = "Cars", data = csv, seed = 1)
#' file <- tempfile(fileext = ".json")
#' write_manifest(manifest, file)
#' identical(hash_manifest(read_manifest(file)), hash_manifest(manifest))
#' verify_manifest(manifest)
#' cat("50,80\n", file = csv, append = TRUE)
#' try(verify_manifest(manifest))
#' @export
write_manifest <- function(x, file) {
  check_manifest(x)
  check_string(file)
  write_text(manifest_text(x, x$made), file)
  invisible(x)
}

manifest_text <- function(x, made) {
  json <- attr(x, "json")
  rest <- unwrap_core(rs_to_json(list(made = made, manifest_hash = x$manifest_hash)))
  unwrap_core(rs_json_pretty(paste0(sub("}$", ",", json), sub("^[{]", "", rest))))
}

write_text <- function(text, file, call = caller_env()) {
  wrote <- tryCatch(write_whole(text, path.expand(file)), error = identity, warning = identity)
  if (inherits(wrote, "condition") || !isTRUE(wrote)) {
    stop_warrant(
      c(sprintf("`%s` must be a file that can be written.", "file"),
        x = if (inherits(wrote, "condition")) plain(conditionMessage(wrote))),
      "input", code = "file_write", argument = "file", path = file, call = call
    )
  }
}

#' @rdname write_manifest
#' @export
read_manifest <- function(file) {
  check_readable(file)
  manifest_of(read_utf8(file), file)
}

# The whole text of a file; its bytes are checked by whoever parses them.
read_utf8 <- function(file) {
  bytes <- readBin(file, "raw", file.size(file))
  if (any(bytes == 0)) return("")
  text <- rawToChar(bytes)
  Encoding(text) <- "UTF-8"
  text
}

manifest_of <- function(text, file, call = caller_env()) {
  canonical <- rs_canonical(text)
  if (is_fault(canonical)) stop_not_manifest(file, canonical$message, "input", call)
  broken <- unwrap_core(rs_schema_violations(schema_text("study-manifest-v1.json"), canonical), call)
  if (!is.null(broken)) stop_not_manifest(file, gsub("(^|; )arguments: ", "\\1", broken), "schema", call)
  parts <- unwrap_core(rs_from_json(canonical))
  json <- unwrap_core(rs_json_without(canonical, c("made", "manifest_hash")))
  if (sha256(json) != parts$manifest_hash) {
    stop_warrant(
      c(sprintf("%s must be as it was written.", file), x = "It was edited: its hash is another one."),
      "state", code = "manifest_edited", path = file, call = call
    )
  }
  new_study_manifest(json, parts$made)
}

stop_not_manifest <- function(file, what, kind, call) {
  stop_warrant(
    c(sprintf("%s must be a study manifest, as write_manifest() writes it.", file), x = plain(what)),
    kind, code = "not_a_manifest", path = file, call = call
  )
}

schema_text <- function(name) {
  read_utf8(system.file("schemas", name, package = "warrant", mustWork = TRUE))
}

#' @rdname write_manifest
#' @export
verify_manifest <- function(x, data = NULL) {
  check_manifest(x)
  check_names(data, null = TRUE)
  stop_changed_data(changed_data(x, data))
  invisible(x)
}

# What is wrong with each data file of a manifest, by name.
changed_data <- function(x, data = NULL) {
  paths <- unlist(x$made$paths)
  if (!is.null(data)) paths <- stats::setNames(data, enc2utf8(basename(data)))
  what <- vapply(names(x$data), function(name) {
    path <- paths[name]
    if (is.na(path) || !file.exists(path) || dir.exists(path)) return("is not there")
    if (identical(data_facts(path)$sha256, x$data[[name]]$sha256)) "" else "has changed"
  }, "")
  what[nzchar(what)]
}

stop_changed_data <- function(what, call = caller_env()) {
  if (length(what) == 0L) return(invisible())
  stop_warrant(
    c("The data files must be those that the manifest names.",
      stats::setNames(sprintf("%s %s.", names(what), what), rep("x", length(what)))),
    "state", code = "data_changed", files = names(what), call = call
  )
}
