#' Hash a value
#'
#' The SHA-256 of the canonical JSON of a value: RFC 8785, with one extension for
#' integers beyond 2^53, which keep their digits. Equal values have equal
#' digests on every machine, under every locale, time zone and encoding, and a
#' reader can recompute them in another language: the rules, test vectors and
#' reference code in Python are in
#' `system.file("spec", "digest-v1.md", package = "warrant")`.
#'
#' @section How R values become JSON:
#' `NULL` and `NA` are `null`; an atomic vector of length one is a scalar, any
#' other length and `I(x)` an array; a named list is an object, an unnamed one an
#' array; `list()` is `[]` and an empty named list `{}`. `NaN`, `Inf` and `-Inf`
#' are the strings `"NaN"`, `"Infinity"` and `"-Infinity"`. A factor is its
#' labels, a `Date` is `"2026-01-31"`, a `POSIXct` is RFC 3339 in UTC, a
#' `difftime` is in seconds, raw bytes are base64. A data frame is an array of
#' row objects with every column in every row; row names are not part of it. A
#' matrix is an array of rows. Text of class `json` stands for what it parses to.
#' Text is re-encoded to UTF-8. Names of atomic vectors and other attributes are
#' not part of the value. Functions, environments, pointers, connections, code
#' and S4 objects have no JSON form and are refused.
#'
#' @param x Any R value that has a JSON form.
#' @returns A string of 64 lowercase hex digits. What has no JSON form is an error
#'   of class `warrant_error_input` that names the element.
#' @examples
#' hash_content(list(item = "pear", n = 2))
#' hash_content(list(n = 2L, item = "pear"))
#' @export
hash_content <- function(x) {
  unwrap_core(rs_hash_content(x))
}

#' Hash what a tool is
#'
#' The digest of a tool's specification: name, description, schema, policy, the
#' function as a normalised parse tree (no source references, comments, spacing or
#' bytecode) and the values that the function captures. Use it to tell whether two
#' runs or studies used the same tool. Calling a tool never changes it; tightening
#' a limit, or editing a lookup table that the function closes over, does.
#'
#' @section What is captured:
#' Variables that the function, or a function it captures, takes from its
#' environments up to the global one; not what comes from packages. A captured
#' tool enters by its own hash. A variable that the code assigns to (`<<-`,
#' `assign()`), an environment, a pointer or a connection has no stable value: it
#' enters by name and type, and is listed as `not_covered` in the attribute of
#' that name. Names that exist nowhere, such as columns in `subset()`, are not
#' captures. A tool with `isolation = "process"` has the values that it captured when
#' it was defined, and is hashed with those. Give `captures =` to [agent_tool()] where this finds the wrong ones.
#'
#' @inheritParams human_gate
#' @returns A string of 64 lowercase hex digits. Attribute `not_covered` is there
#'   when something is not covered: a named character vector of types.
#' @examples
#' prices <- c(apple = 0.5, pear = 0.75)
#' price <- agent_tool(function(item) prices[[item]], "price", "Price of an item.",
#'                     parameters = list(item = list(type = "string")))
#' before <- hash_tool_spec(price)
#' invisible(call_tool(price, list(item = "pear")))
#' identical(hash_tool_spec(price), before)
#' prices[["pear"]] <- 0.8
#' identical(hash_tool_spec(price), before)
#' @export
hash_tool_spec <- function(tool) {
  spec <- tool_spec(tool_core(tool))
  structure(spec$digest, not_covered = if (length(spec$not_covered)) spec$not_covered)
}

# The specification of a tool as canonical JSON, its digest, and what that does
# not cover.
tool_spec <- function(core, seen = list()) {
  taken <- core$taken %or% taken_captures(core, seen)
  spec <- unwrap_core(rs_tool_spec(
    tool_ptr(core), rs_hash_object(core$raw_fn)$digest, named_list(taken$digests),
    named_list(as.list(taken$not_covered)),
    named_list(redact_digests(core$redact, c(seen, list(core))))
  ))
  c(spec, list(not_covered = taken$not_covered))
}

# The digests of what a tool captures: as it is now, or, where each call starts
# from the values as defined, as it was then (`core$taken`).
taken_captures <- function(core, seen = list()) {
  found <- function_captures(core$raw_fn, core$captures)
  captures <- lapply(found$values, capture_digest, seen = c(seen, list(core)))
  whole <- vapply(captures, function(x) isTRUE(x$whole), NA)
  list(
    digests = lapply(captures, function(x) x$digest),
    not_covered = c(found$not_covered, vapply(found$values[!whole], typeof, ""))
  )
}

# What a function captures: `values` by name, and `not_covered`, types by name.
function_captures <- function(fn, captures = NULL) {
  env <- environment(fn)
  names <- unwrap_core(rs_free_names(fn))
  if (is.null(captures)) {
    values <- find_captured(names$used, names$called, env)
  } else {
    values <- mget(captures, envir = env, inherits = TRUE, ifnotfound = list(NULL))
  }
  changed <- names(values) %in% names$assigned
  loose <- vapply(values, is_loose, NA)
  list(
    values = values[!(changed | loose)],
    not_covered = vapply(values[changed | loose], type_word, "")
  )
}

# Up to and with the global environment; packages are left out.
find_captured <- function(used, called, env) {
  values <- list()
  left <- union(used, called)
  while (length(left) && !is_package_env(env)) {
    here <- left[vapply(left, exists, NA, envir = env, inherits = FALSE)]
    for (name in here) {
      value <- captured_value(name, env)
      # What is only called is looked up among functions.
      if (!name %in% used && !is.function(value)) next
      values[name] <- list(value)
      left <- setdiff(left, name)
    }
    if (identical(env, globalenv())) break
    env <- parent.env(env)
  }
  values[order_c(names(values))]
}

# What has no value to look at: one that is made anew at each look, or an argument
# that was not given.
captured_value <- function(name, env) {
  unread <- function(why) structure(list(), class = "warrant_unread", why = why)
  if (bindingIsActive(as.name(name), env)) return(unread("active binding"))
  tryCatch(get(name, envir = env, inherits = FALSE), error = function(cnd) unread("missing"))
}

is_package_env <- function(env) {
  identical(env, emptyenv()) || identical(env, baseenv()) || isNamespace(env) ||
    !is.null(attr(env, "name")) && !identical(env, globalenv())
}

is_loose <- function(x) {
  is.environment(x) || inherits(x, "warrant_unread") || typeof(x) %in% c("externalptr", "weakref") || inherits(x, "connection")
}

type_word <- function(x) {
  if (inherits(x, "warrant_unread")) return(attr(x, "why"))
  if (inherits(x, "connection")) "connection" else typeof(x)
}

capture_digest <- function(x, seen) {
  if (inherits(x, "agent_tool")) return(list(digest = list(tool = captured_tool(tool_core(x), seen)), whole = TRUE))
  if (is.primitive(x)) return(list(digest = list(primitive = deparse(x)), whole = TRUE))
  own <- unwrap_core(rs_hash_object(x))
  if (!is.function(x)) return(own)
  # A function that is met again on the way down is known by its code.
  again <- met(x, seen)
  if (again || is_package_env(environment(x))) return(list(digest = list("function" = own$digest), whole = TRUE))
  found <- function_captures(x)
  inner <- lapply(found$values, capture_digest, seen = c(seen, list(x)))
  digest <- list(
    "function" = own$digest, captures = named_list(lapply(inner, function(i) i$digest)),
    not_covered = named_list(as.list(found$not_covered))
  )
  list(digest = digest, whole = all(vapply(inner, function(i) isTRUE(i$whole), NA)))
}

# A tool that is met again on the way down, as one that calls itself, is known by
# its name.
captured_tool <- function(core, seen) {
  if (met(core, seen)) list(again = core$spec$name) else tool_spec(core, seen)$digest
}

met <- function(x, seen) any(vapply(seen, identical, NA, x))

# Named also when it is empty: an object in JSON.
named_list <- function(x) if (length(x)) x else structure(list(), names = character())

# Byte order, whatever the locale.
order_c <- function(x) if (length(x)) order(x, method = "radix") else integer()

# What a tool's function needs in a worker process.
tool_bundle <- function(fn, captures, call) {
  found <- function_captures(fn, captures)
  if (length(found$not_covered)) {
    stop_warrant(
      c("A tool with `isolation = \"process\"` must not take what cannot travel to a worker.",
        x = paste0("It takes ", paste0("`", names(found$not_covered), "` (", found$not_covered, ")", collapse = ", "), "."),
        i = "Make it inside the function, or use isolation = \"session\"."),
      "input", code = "cannot_travel", captures = names(found$not_covered), call = call
    )
  }
  tools <- names(Filter(function(x) inherits(x, "agent_tool"), found$values))
  if (length(tools)) {
    stop_warrant(
      c("A tool with `isolation = \"process\"` must not take another tool from where it is defined.",
        x = paste0("It takes ", paste0("`", tools, "`", collapse = ", "), ", whose count of calls is kept in this session."),
        i = "Make that tool inside the function, or use isolation = \"session\" for this one."),
      "input", code = "cannot_travel", captures = tools, call = call
    )
  }
  process_bundle(fn, found$values)
}
