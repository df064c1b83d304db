# What a worker runs. The functions named in worker_code() are sent to it, so
# they use base R and each other only.

worker_code <- function() {
  code <- new.env(parent = baseenv())
  names <- c(
    "worker_serve", "worker_obey", "worker_define", "worker_child", "worker_run", "worker_settle",
    "worker_recorder", "worker_pack", "worker_compile", "worker_warm", "worker_once",
    "worker_plain_condition", "cannot_travel", "travel_walk",
    "travel_is_plain", "travel_obstacle", "travel_walk_list", "travel_walk_env", "travel_is_known"
  )
  for (name in names) {
    f <- get(name, mode = "function")
    environment(f) <- code
    assign(name, f, envir = code)
  }
  code
}

# Forks the child of the next call, then waits for orders, for ever.
worker_serve <- function(native) {
  bundles <- new.env(parent = emptyenv())
  note <- raw()
  home <- environment(worker_serve)
  for (name in ls(home)) assign(name, worker_compile(get(name, home)), envir = home)
  worker_warm()
  gc()
  repeat {
    if (identical(native("template_fork", note), 0L)) return(worker_child(bundles, native))
    order <- native("template_next")
    if (is.null(order)) quit("no", runLast = FALSE)
    problem <- tryCatch(worker_obey(unserialize(order), bundles), error = conditionMessage)
    note <- if (is.character(problem)) charToRaw(enc2utf8(problem)) else raw()
  }
}

worker_obey <- function(order, bundles) {
  if (!is.null(order$lib_paths)) .libPaths(order$lib_paths)
  if (length(order$drop)) rm(list = order$drop, envir = bundles)
  for (package in order$load) {
    tryCatch(loadNamespace(package), error = function(e) NULL)
  }
  # A call may have left files here, or removed the folder by quit().
  unlink(list.files(tempdir(check = TRUE), all.files = TRUE, full.names = TRUE, no.. = TRUE), recursive = TRUE)
  if (!is.null(order$define)) {
    assign(order$key, worker_define(unserialize(order$define)), envir = bundles)
    # Old objects are left alone by the children's small collections.
    gc()
  }
  NULL
}

# R reads its own functions from disk at their first use: once here, and not in
# every child.
worker_warm <- function() {
  request <- list(
    args = list(x = list(a = 1, b = "x")), dir = getwd(), env = c(TMPDIR = Sys.getenv("TMPDIR")),
    unset = character(), max_conditions = 1L, max_chars = 10L
  )
  for (fail in c(FALSE, TRUE)) {
    fn <- worker_compile(function(x) {
      warning("warm")
      message("warm")
      if (fail) stop("warm")
      x
    })
    reply <- unserialize(worker_pack(worker_run(fn, unserialize(serialize(request, NULL, xdr = FALSE)))))
    worker_plain_condition(reply$condition)
  }
}

# A function sees its captures as it saw them where it was made. Functions of a
# package stay in it.
worker_define <- function(bundle) {
  env <- list2env(bundle$captures, parent = globalenv())
  for (name in bundle$siblings) {
    f <- env[[name]]
    environment(f) <- env
    assign(name, worker_compile(f), envir = env)
  }
  fn <- bundle$fn
  if (bundle$enclose) environment(fn) <- env
  worker_compile(fn)
}

# Compiled here, once: R would do it again in every child.
worker_compile <- function(f) {
  if (is.primitive(f)) return(f)
  tryCatch(compiler::cmpfun(f, list(suppressAll = TRUE)), error = function(e) f)
}

worker_child <- function(bundles, native) {
  request <- unserialize(native("child_request"))
  reply <- tryCatch(
    worker_run(bundles[[request$key]], request),
    error = function(e) list(status = "error", condition = worker_plain_condition(e))
  )
  native("child_reply", worker_pack(reply))
}

# The one call of a process that was started for it.
worker_once <- function(order, ready, reply) {
  .libPaths(order$lib_paths)
  done <- tryCatch(
    {
      fn <- worker_define(unserialize(order$bundle))
      file.create(ready)
      worker_run(fn, order$request)
    },
    error = function(e) list(status = "error", condition = worker_plain_condition(e))
  )
  part <- paste0(reply, ".part")
  writeBin(worker_pack(done), part)
  invisible(file.rename(part, reply))
}

worker_run <- function(fn, request) {
  loaded <- loadedNamespaces()
  recorder <- worker_recorder(request$max_conditions, request$max_chars)
  outcome <- tryCatch(
    withCallingHandlers(
      {
        if (length(request$env)) do.call(Sys.setenv, as.list(request$env))
        if (length(request$unset)) Sys.unsetenv(request$unset)
        setwd(request$dir)
        worker_settle(do.call("tool", request$args, quote = TRUE, envir = list2env(list(tool = fn))))
      },
      warning = recorder$warning, message = recorder$message
    ),
    error = function(e) list(status = "error", condition = e),
    interrupt = function(e) list(status = "error", condition = worker_plain_condition(e))
  )
  c(outcome, recorder$state(), list(loaded = setdiff(loadedNamespaces(), loaded)))
}

worker_settle <- function(value) {
  stuck <- cannot_travel(value, "result")
  if (length(stuck)) {
    stop("the result cannot leave the worker process: ", paste(stuck, collapse = ", "), call. = FALSE)
  }
  list(status = "ok", value = value)
}

# Keeps warnings and messages in order, and counts what is beyond the bounds.
worker_recorder <- function(max_conditions, max_chars) {
  kept <- list(warnings = list(), messages = list())
  dropped <- 0
  keep <- function(what, cnd) {
    if (length(kept[[what]]) >= max_conditions) {
      dropped <<- dropped + 1
    } else {
      text <- substr(conditionMessage(cnd), 1L, max_chars)
      kept[[what]][[length(kept[[what]]) + 1L]] <<- list(class = class(cnd), message = text)
    }
  }
  list(
    warning = function(cnd) {
      keep("warnings", cnd)
      tryInvokeRestart("muffleWarning")
    },
    message = function(cnd) {
      keep("messages", cnd)
      tryInvokeRestart("muffleMessage")
    },
    state = function() c(kept, list(conditions_dropped = dropped))
  )
}

# A condition that is too large to travel, or holds what cannot be written,
# goes as its class and message.
worker_pack <- function(reply) {
  bytes <- tryCatch(serialize(reply, NULL, xdr = FALSE), error = identity)
  if (is.raw(bytes) && (is.null(reply$condition) || length(bytes) <= 1e6)) return(bytes)
  if (is.null(reply$condition)) {
    reply$status <- "error"
    reply$value <- NULL
    reply$condition <- bytes
  }
  reply$condition <- worker_plain_condition(reply$condition)
  serialize(reply, NULL, xdr = FALSE)
}

worker_plain_condition <- function(cnd) {
  text <- tryCatch(conditionMessage(cnd), error = function(e) "")
  structure(class = class(cnd), list(message = text, call = NULL))
}
