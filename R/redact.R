# What is recorded and shown in place of an argument or a result that is personal.

# Who is redacted: `arguments`, TRUE or a function by name, and `result`.
check_redact <- function(redact, result, fn, call = caller_env()) {
  if (!is.null(result) && !isTRUE(result) && !is.function(result)) {
    stop_type(result, "redact_result", "TRUE, a function of the result, or NULL", call)
  }
  formals <- setdiff(names(formals(fn)), "...")
  if (is.function(redact)) redact <- stats::setNames(rep(list(redact), length(formals)), formals)
  if (is.character(redact)) {
    check_names(redact, "redact", call = call)
    redact <- stats::setNames(rep(list(TRUE), length(redact)), redact)
  }
  good <- is.null(redact) || is.list(redact) && length(redact) == sum(nzchar(names(redact))) &&
    !anyDuplicated(names(redact)) && all(vapply(redact, function(x) isTRUE(x) || is.function(x), NA))
  if (!good) {
    stop_type(redact, "redact", "names of parameters, a list that gives each TRUE or a function, or a function", call)
  }
  list(arguments = as.list(redact), result = result)
}

# Values that a run is told again: a list of what has a JSON form.
check_secrets <- function(x, call = caller_env()) {
  what <- "a vector or a list of values, as they were given before the pause"
  if (inherits(x, "warrant_secret") || !(is.null(x) || is.atomic(x) || is.list(x))) {
    stop_type(x, "secrets", what, call)
  }
  values <- unname(as.list(x))
  for (value in values) {
    if (inherits(value, "warrant_secret") || inherits(rs_to_json(value), "warrant_fault")) {
      # Not what it is: that may be a secret.
      stop_type(values, "secrets", what, call)
    }
  }
  values
}

# The functions among them, for the hash of what a tool is.
redact_digests <- function(redact, seen) {
  functions <- Filter(is.function, redact$arguments)
  digests <- list(
    arguments = lapply(functions, function(f) capture_digest(f, seen)$digest),
    result = if (is.function(redact$result)) capture_digest(redact$result, seen)$digest else redact$result
  )
  Filter(length, digests)
}

# One text in place of a value; NA where the function fails or gives anything else.
redacted_text <- function(f, value) {
  if (!is.function(f)) return(NA_character_)
  text <- tryCatch(suppressMessages(suppressWarnings(f(value))), error = function(e) NULL)
  good <- is.character(text) && length(text) == 1L && !is.na(text) && validUTF8(enc2utf8(text))
  if (good) enc2utf8(as.vector(text)) else NA_character_
}

# The texts for the arguments of a call, by name.
redacted_arguments <- function(core, args) {
  functions <- Filter(is.function, core$redact$arguments)
  names <- intersect(names(functions), names(args))
  vapply(names, function(name) redacted_text(functions[[name]], args[[name]]), "")
}

# A decision, with the texts for what it hands to tools that redact by a function.
with_redacted <- function(decision, cores) {
  if (!identical(decision$decision, "act") || !is.list(decision$actions)) return(decision)
  decision$actions <- lapply(decision$actions, function(action) {
    core <- if (is.list(action) && rlang::is_string(action$tool)) cores[[action$tool]]
    if (is.null(core) || !core$redacts) return(action)
    args <- rs_call_arguments(tool_ptr(core), action$arguments)
    if (is.list(args) && !inherits(args, "warrant_fault")) {
      action$redacted <- redacted_arguments(core, args)
    }
    action
  })
  decision
}

# The end of a call with its result redacted. A run takes the result itself out of
# `kept` and records a keyed digest of it.
with_redacted_result <- function(core, out, kept) {
  if (is.environment(kept)) kept$value <- list(out$value)
  text <- redacted_text(core$redact$result, out$value)
  if (is.na(text) && is.function(core$redact$result)) {
    out$warnings <- c(out$warnings, "The redaction of the result failed, so nothing of it was kept.")
  }
  out$value <- if (is.na(text)) "<redacted>" else text
  out
}

# What errors, warnings and messages quote of secret arguments is struck out.
without_secrets <- function(core, out, args) {
  quoted <- lapply(args[intersect(core$secrets, names(args))], function(x) {
    as.character(unlist(x, use.names = FALSE))
  })
  quoted <- as.character(unlist(quoted, use.names = FALSE))
  # stop() and warning() write what the locale lacks as <U+00E4>.
  quoted <- c(quoted, enc2native(quoted))
  quoted <- unique(quoted[!is.na(quoted) & nchar(quoted) >= 3L])
  strike <- function(texts) {
    if (length(texts) == 0L) return(texts)
    # gsub() refuses bytes that are no text.
    broken <- !validUTF8(texts)
    texts[broken] <- iconv(texts[broken], "UTF-8", "UTF-8", sub = "byte")
    for (secret in quoted[order(-nchar(quoted))]) {
      texts <- gsub(secret, "<redacted>", texts, fixed = TRUE)
    }
    texts
  }
  out$warnings <- strike(out$warnings)
  out$messages <- strike(out$messages)
  if (out$how != "executed") out$value <- strike(out$value)
  out
}

# What a person is shown of hidden arguments.
shown_arguments <- function(args) {
  hidden <- vapply(args, is_hidden, NA)
  args[hidden] <- lapply(args[hidden], function(x) x$redacted %||% "<redacted>")
  args
}

is_hidden <- function(x) {
  is.list(x) && "secret_hmac" %in% names(x) && all(names(x) %in% c("redacted", "secret_hmac"))
}
