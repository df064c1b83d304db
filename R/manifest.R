#' Record what a study is made of
#'
#' Collects what identifies a study: its title and design, the tools with their
#' specification hashes and policies, data files with their SHA-256, parameters,
#' and the versions of R and of the packages. The manifest hash covers these and
#' leaves out what does not identify a study (when and where it was made).
#' Running the tools changes nothing in it; tightening any limit, changing a
#' schema or a value that a tool captures does.
#'
#' @param title,design Text, or `NULL`.
#' @param tools A tool or a list of tools.
#' @param data Paths of data files; the manifest keeps their base names and
#'   digests.
#' @param parameters A named list of anything else that identifies the study, such
#'   as a model and its settings or a seed. It must have a JSON form.
#' @param packages Names of packages whose versions are recorded; by default this
#'   one.
#' @param ... Not used.
#' @returns A list of class `study_manifest`, with the hash as `manifest_hash`. A
#'   file that cannot be read is an error of class `warrant_error_input`.
#' @seealso [diff_manifest()].
#' @examples
#' half <- agent_tool(function(x) x / 2, "half", "Half of a number.",
#'                    parameters = list(x = list(type = "number")), side_effects = "none")
#' manifest <- study_manifest(title = "Halves", tools = half, parameters = list(seed = 1))
#' manifest
#' tight <- agent_tool(function(x) x / 2, "half", "Half of a number.", max_calls = 10,
#'                     parameters = list(x = list(type = "number")), side_effects = "none")
#' again <- study_manifest(title = "Halves", tools = tight, parameters = list(seed = 1))
#' diff_manifest(manifest, again)
#' @export
study_manifest <- function(title = NULL, design = NULL, tools = list(), data = NULL,
                           parameters = list(), packages = "warrant", ...) {
  check_string(title, null = TRUE)
  check_string(design, null = TRUE)
  check_names(data, null = TRUE)
  check_names(packages)
  check_dots(...)
  cores <- lapply(as_tools(tools), tool_core, arg = "tools")
  identity <- list(
    schema = "study_manifest/v1", title = title, design = design,
    tools = named_list(manifest_tools(cores)), data = named_list(manifest_data(data)),
    parameters = named_list(as.list(parameters)), r_version = as.character(getRversion()),
    packages = named_list(manifest_packages(packages))
  )
  new_study_manifest(identity, list(created_at = now(), host = Sys.info()[["nodename"]]))
}

new_study_manifest <- function(identity, made) {
  canonical <- unwrap_core(rs_to_json(identity))
  structure(
    c(
      unwrap_core(rs_from_json(canonical)),
      list(manifest_hash = sha256(canonical), made = made)
    ),
    class = "study_manifest"
  )
}

sha256 <- function(text) unwrap_core(rs_sha256(text))

manifest_tools <- function(cores) {
  specs <- lapply(cores, function(core) {
    spec <- tool_spec(core)
    c(list(spec_hash = spec$digest), unwrap_core(rs_from_json(spec$spec)))
  })
  names(specs) <- vapply(cores, function(core) core$spec$name, "")
  specs
}

manifest_data <- function(paths, call = caller_env()) {
  paths <- as.character(paths)
  gone <- paths[!file.exists(paths) | dir.exists(paths)]
  if (length(gone)) {
    stop_warrant(
      c("`data` must name files that can be read.", x = paste0("Not a file: ", paste(gone, collapse = ", "), ".")),
      "input", argument = "data", call = call
    )
  }
  names <- basename(paths)
  if (anyDuplicated(names)) {
    stop_warrant(
      c("Data files must have different base names.",
        x = paste0("Twice: ", paste(unique(names[duplicated(names)]), collapse = ", "), ".")),
      "input", argument = "data", call = call
    )
  }
  out <- lapply(paths, function(path) list(sha256 = unwrap_core(rs_sha256_file(enc2utf8(path.expand(path))), call), bytes = file.size(path)))
  names(out) <- names
  out
}

manifest_packages <- function(packages) {
  versions <- lapply(packages, function(p) {
    if (nzchar(system.file(package = p))) as.character(utils::packageVersion(p)) else NA
  })
  names(versions) <- packages
  versions
}

#' @rdname study_manifest
#' @param x A manifest.
#' @export
manifest_hash <- function(x) {
  check_manifest(x)
  x$manifest_hash
}

#' Compare two manifests
#'
#' Names what differs between two studies, value by value.
#'
#' @param a,b Manifests made by [study_manifest()].
#' @returns A tibble with a row a difference: `path` (where in the manifest), `a`
#'   and `b` (the values as JSON, `NA` where there is none). Zero rows when the
#'   two identify the same study.
#' @examples
#' a <- study_manifest(title = "One", parameters = list(seed = 1))
#' b <- study_manifest(title = "One", parameters = list(seed = 2))
#' diff_manifest(a, b)
#' @export
diff_manifest <- function(a, b) {
  check_manifest(a)
  check_manifest(b)
  a <- leaves(manifest_identity(a))
  b <- leaves(manifest_identity(b))
  paths <- union(names(a), names(b))
  paths <- paths[order_c(paths)]
  a <- unname(a[paths])
  b <- unname(b[paths])
  differ <- is.na(a) != is.na(b) | !is.na(a) & !is.na(b) & a != b
  # A tool's own hash follows from the rest.
  derived <- grepl("^tools[.][^.]+[.]spec_hash$", paths) & sum(differ) > 1L
  keep <- differ & !derived
  tibble(path = paths[keep], a = a[keep], b = b[keep])
}

manifest_identity <- function(x) unclass(x)[setdiff(names(x), c("manifest_hash", "made"))]

# The leaves of a nested list as JSON, by dotted path.
leaves <- function(x, path = character()) {
  if (is.list(x) && length(x) && !is.null(names(x))) {
    parts <- lapply(names(x), function(name) leaves(x[[name]], c(path, name)))
    return(unlist(parts))
  }
  structure(unwrap_core(rs_to_json(x)), names = paste(path, collapse = "."))
}

check_manifest <- function(x, arg = caller_arg(x), call = caller_env()) {
  if (!inherits(x, "study_manifest")) stop_type(x, arg, "made by study_manifest()", call)
  invisible(x)
}

#' @export
format.study_manifest <- function(x, ...) {
  words <- function(what, names) {
    if (length(names)) paste0("* ", what, ": ", paste(names, collapse = ", "))
  }
  c(
    paste0("<study_manifest> ", x$title %or% "(no title)"),
    if (!is.null(x$design)) paste0("* design: ", x$design),
    words("tools", sprintf("%s (%s)", names(x$tools), substr(vapply(x$tools, function(t) t$spec_hash, ""), 1L, 8L))),
    words("data", names(x$data)),
    words("parameters", names(x$parameters)),
    paste0("* hash: ", x$manifest_hash)
  )
}

#' @export
print.study_manifest <- function(x, ...) {
  writeLines(format(x, ...))
  invisible(x)
}
