# Files that people write: YAML or JSON, as JSON text for the core. Private.

config_json <- function(file, call = caller_env()) {
  text <- config_text(file, call)
  if (grepl("\\.json$", file, ignore.case = TRUE)) {
    with_place(file, unwrap_core(rs_canonical(text), call), call)
  } else {
    rs_to_json(read_yaml(text, file, call))
  }
}

check_config_file <- function(file, call = caller_env()) {
  if (!is.character(file) || length(file) != 1 || is.na(file)) {
    stop_warrant("`file` must be the path of one file.", "input", "invalid_path", call = call)
  }
  if (!file.exists(file) || dir.exists(file)) {
    stop_warrant(
      c("`file` must be a file that exists.", x = sprintf("%s is not there.", file)),
      "input", "no_such_file", file = file, call = call
    )
  }
  invisible(file)
}

config_text <- function(file, call = caller_env()) {
  check_config_file(file, call)
  bytes <- readBin(file, "raw", file.size(file))
  # A byte order mark is no part of the text.
  if (identical(bytes[1:3], as.raw(c(0xef, 0xbb, 0xbf)))) bytes <- bytes[-(1:3)]
  # A NUL is an error; looking for one in R would take four times the file.
  text <- tryCatch(rawToChar(bytes), error = function(e) NA_character_)
  if (length(bytes) > 0 && bytes[length(bytes)] == 0) text <- NA_character_
  Encoding(text) <- "UTF-8"
  if (is.na(text) || !validUTF8(text)) {
    stop_warrant(
      c("The file must be UTF-8.", x = sprintf("%s holds other bytes.", file)),
      "input", "not_utf8", file = file, call = call
    )
  }
  text
}

read_yaml <- function(text, file, call = caller_env()) {
  if (!requireNamespace("yaml", quietly = TRUE)) {
    stop_warrant(
      c(
        "Reading YAML needs the package yaml, which is not installed.",
        i = "Install it with install.packages(\"yaml\"), or write the file as .json."
      ),
      "input", "package_needed", package = "yaml", call = call
    )
  }
  # A sequence stays a list, so that a list of one does not become a scalar.
  tryCatch(
    yaml::yaml.load(text, handlers = list(seq = function(x) as.list(x)), eval.expr = FALSE),
    error = function(e) {
      message <- gsub("\\s+", " ", conditionMessage(e))
      # The last line named is where reading failed, an earlier one where a block began.
      line <- regmatches(message, regexec(".*line ([0-9]+)", message))[[1]][2]
      stop_warrant(
        c(sprintf("%s is not YAML that can be read.", file), x = message),
        "suite", "yaml_syntax", file = file,
        line = if (is.na(line)) NULL else as.integer(line), call = call
      )
    }
  )
}

# Raises a fault of the core again with file and line of the field it names.
with_place <- function(file, expr, call = caller_env()) {
  tryCatch(expr, warrant_error = function(e) {
    if (!is.null(e[["file"]])) rlang::cnd_signal(e)
    line <- e[["line"]]
    if (is.null(line) && !is.null(e[["pointer"]])) line <- line_of(file, e[["pointer"]])
    where <- paste0(file, if (!is.null(line)) paste0(", line ", line))
    e$message <- paste0(where, ": ", e$message)
    e$file <- file
    e$line <- line
    e$call <- call
    rlang::cnd_signal(e)
  })
}

# Line of a JSON pointer in a file in the usual block layout: each part is looked
# for below the line of the part before. NULL where it cannot be told.
line_of <- function(file, pointer) {
  lines <- readLines(file, encoding = "UTF-8", warn = FALSE)
  parts <- strsplit(sub("^/", "", pointer), "/", fixed = TRUE)[[1]]
  parts <- gsub("~0", "~", gsub("~1", "/", parts, fixed = TRUE), fixed = TRUE)
  at <- 0L
  depth <- -1L
  for (part in parts) {
    found <- next_part(lines, at, depth, part)
    if (is.null(found)) return(if (at > 0) at)
    at <- found$line
    depth <- found$depth
  }
  if (at > 0) at
}

next_part <- function(lines, at, depth, part) {
  indent <- nchar(sub("^([ ]*(- +)*).*$", "\\1", lines))
  start <- nchar(sub("^( *).*$", "\\1", lines))
  later <- seq_along(lines) > at | (seq_along(lines) == at & grepl("^ *- ", lines))
  if (grepl("^[0-9]+$", part)) {
    items <- which(seq_along(lines) > at & grepl("^ *(- |-$|\\{)", lines) & start >= max(depth, 0))
    if (length(items) == 0) return(NULL)
    items <- items[start[items] == start[items[1]]]
    item <- items[as.integer(part) + 1]
    return(if (!is.na(item)) list(line = item, depth = start[item] + 1L))
  }
  key <- paste0("^ *(- +)*[\"']?", gsub("([^A-Za-z0-9_ ])", "\\\\\\1", part), "[\"']? *:")
  hits <- which(later & grepl(key, lines) & indent >= max(depth, 0))
  if (length(hits)) list(line = hits[1], depth = indent[hits[1]])
}

json_as_list <- function(text, call = caller_env()) unwrap_core(rs_from_json(text), call)

# A JSON value in which every array is a list, so that a list of one stays one.
json_as_tree <- function(text, call = caller_env()) {
  parts <- unwrap_core(rs_members(text), call)
  if (is.null(parts)) return(json_as_list(text, call))
  values <- lapply(parts$texts, json_as_tree, call)
  if (is.null(parts$names)) values else stats::setNames(values, parts$names)
}
