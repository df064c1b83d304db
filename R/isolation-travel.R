# What cannot go to another process and come back whole. These functions also
# run in workers, so they use base R only.

# The paths of the values in x that cannot travel, at most 20 of them.
cannot_travel <- function(x, name) {
  seen <- new.env(parent = emptyenv())
  seen$paths <- character()
  seen$envs <- list()
  seen$nodes <- 0
  travel_walk(x, name, seen, 0L)
  seen$paths
}

travel_walk <- function(x, path, seen, depth) {
  if (length(seen$paths) >= 20L || depth > 200L || travel_is_plain(x)) return(invisible())
  reason <- travel_obstacle(x)
  if (!is.null(reason)) {
    seen$paths <- c(seen$paths, paste0(path, " (", reason, ")"))
    return(invisible())
  }
  if (is.environment(x)) return(travel_walk_env(x, path, seen, depth))
  if (is.function(x)) travel_walk(environment(x), paste0("environment(", path, ")"), seen, depth + 1L)
  if (is.list(x)) travel_walk_list(x, path, seen, depth)
  kept <- attributes(x)
  kept[c("names", "dim", "dimnames", "class", "row.names", "levels", "tzone", "srcref", ".internal.selfref")] <- NULL
  for (name in names(kept)) travel_walk(kept[[name]], paste0(path, "@", name), seen, depth + 1L)
}

# Vectors without attributes: nearly all that is met.
travel_is_plain <- function(x) is.null(x) || (is.atomic(x) && is.null(attributes(x)))

travel_obstacle <- function(x) {
  if (inherits(x, "connection")) return("a connection")
  switch(typeof(x), externalptr = "an external pointer", weakref = "a weak reference")
}

travel_walk_list <- function(x, path, seen, depth) {
  x <- unclass(x)
  names <- names(x)
  for (i in seq_along(x)) {
    item <- x[[i]]
    if (travel_is_plain(item)) next
    label <- if (is.null(names) || !nzchar(names[[i]])) paste0("[[", i, "]]") else paste0("$", names[[i]])
    travel_walk(item, paste0(path, label), seen, depth + 1L)
  }
}

travel_walk_env <- function(env, path, seen, depth) {
  if (travel_is_known(env)) return(invisible())
  for (other in seen$envs) if (identical(other, env)) return(invisible())
  seen$envs <- c(seen$envs, env)
  for (name in ls(env, all.names = TRUE, sorted = TRUE)) {
    if (bindingIsActive(as.name(name), env)) next
    item <- tryCatch(get(name, envir = env, inherits = FALSE), error = function(e) NULL)
    travel_walk(item, paste0(path, "$", name), seen, depth + 1L)
  }
  travel_walk(parent.env(env), paste0("parent.env(", path, ")"), seen, depth + 1L)
}

# Environments that travel by their name.
travel_is_known <- function(env) {
  identical(env, globalenv()) || identical(env, emptyenv()) || identical(env, baseenv()) ||
    isNamespace(env) || grepl("^(package|imports|Autoloads|tools):?", environmentName(env)) ||
    !is.null(attr(env, "name", exact = TRUE))
}
