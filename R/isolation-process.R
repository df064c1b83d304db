# Calls in a worker process: see ?isolation. The worker's own code is in
# isolation-worker.R, what crosses the boundary in isolation-travel.R.

# Packs a function with the values it needs, once, at definition.
process_bundle <- function(fn, captures = list(), call = caller_env()) {
  env <- environment(fn)
  enclose <- !is.null(env) && !travel_is_named_home(env)
  shared <- function(f) {
    home <- if (is.function(f)) environment(f)
    !is.null(home) && (identical(home, globalenv()) || identical(home, env)) && !travel_is_named_home(home)
  }
  siblings <- names(captures)[vapply(captures, shared, NA)]
  # These get the captures as their environment, so theirs stays behind.
  travelling <- captures
  for (name in siblings) environment(travelling[[name]]) <- globalenv()
  stuck <- unlist(lapply(names(captures), function(name) cannot_travel(travelling[[name]], name)))
  if (!enclose) stuck <- c(stuck, cannot_travel(fn, "fn"))
  if (length(stuck)) stop_cannot_travel(stuck, call)
  if (enclose) environment(fn) <- globalenv()
  content <- list(fn = fn, captures = travelling, siblings = siblings, enclose = enclose)
  bytes <- serialize(content, NULL, xdr = FALSE)
  list(key = unwrap_core(rs_bundle_key(bytes)), bytes = bytes)
}

# A package's function finds what it needs in its package.
travel_is_named_home <- function(env) isNamespace(env) || identical(env, baseenv())

stop_cannot_travel <- function(stuck, call) {
  stop_warrant(
    c(
      "Values that `fn` needs must be able to travel to a worker process.",
      named_as("x", paste0("`", stuck, "` cannot.")),
      i = "Open connections and handles inside `fn`, or use `isolation = \"session\"`."
    ),
    kind = "input", code = "cannot_travel", values = stuck, call = call
  )
}

named_as <- function(name, x) structure(x, names = rep(name, length(x)))

# Runs a bundle in a worker. The time of the call starts when the worker is
# ready. The answer is a list: `status` ("ok", "error", "timed_out", "died"),
# `whose` (deadline), `value`, `condition`, `warnings`, `messages`, `output`,
# `elapsed_s`, `loaded`, and what was left out for size.
process_call <- function(bundle, args = list(), timeout_s = NULL) {
  started <- rs_monotonic()
  out <- limit_call(function() run_isolated(bundle, args, timeout_s))
  if (!is_timed_out(out)) return(out)
  new_process_result("timed_out", whose = "outer", elapsed_s = rs_monotonic() - started)
}

run_isolated <- function(bundle, args, timeout_s) {
  if (the$can_fork()) worker_call(bundle, args, timeout_s) else fresh_call(bundle, args, timeout_s)
}

new_process_result <- function(status, value = NULL, condition = NULL, warnings = list(),
                               messages = list(), output = "", elapsed_s = 0, loaded = character(),
                               whose = NULL, output_dropped = 0, conditions_dropped = 0) {
  list(
    status = status, value = value, condition = condition, warnings = warnings,
    messages = messages, output = output, elapsed_s = elapsed_s, loaded = loaded,
    whose = whose, output_dropped = output_dropped, conditions_dropped = conditions_dropped
  )
}

worker_call <- function(bundle, args, timeout_s) {
  worker <- ready_worker(bundle)
  if (is.character(worker)) {
    return(new_process_result("error", condition = simpleError(worker)))
  }
  worker$busy <- TRUE
  # An interrupt or an error: the call is killed, and swept up after.
  whole <- FALSE
  on.exit({
    if (!whole) suspendInterrupts(recycle_worker(worker))
    worker$busy <- FALSE
  })
  request <- serialize(worker_request(worker, bundle, args), NULL, xdr = FALSE)
  rs_worker_request(worker$id, request, if (is.null(timeout_s)) Inf else timeout_s, worker_bounds$output)
  repeat {
    end <- unwrap_core(rs_worker_wait(worker$id, 50L))
    if (!is.null(end)) break
    # Looks for an interrupt.
    Sys.sleep(0)
  }
  whole <- end$status == "replied"
  read_end(end, worker)
}

worker_bounds <- list(output = 100000L, conditions = 100L, chars = 5000L, bundles = 32L, start_s = 60)

new_request <- function(bundle, args) {
  list(
    key = bundle$key, args = args, dir = getwd(), env = NULL, unset = character(),
    max_conditions = worker_bounds$conditions, max_chars = worker_bounds$chars
  )
}

# With the environment variables that were changed after the worker started.
worker_request <- function(worker, bundle, args) {
  request <- new_request(bundle, args)
  if (identical(rs_environment_mark(), worker$env_mark)) return(request)
  env <- Sys.getenv()
  then <- worker$env
  request$env <- unclass(env[!names(env) %in% names(then) | env != then[names(env)]])
  request$unset <- setdiff(names(then), names(env))
  request
}

read_end <- function(end, worker) {
  output <- iconv(rawToChar(end$output[end$output != 0]), "UTF-8", "UTF-8", sub = "byte")
  result <- function(status, ...) {
    new_process_result(
      status, ...,
      output = output, output_dropped = end$dropped, elapsed_s = end$elapsed_s
    )
  }
  if (end$status == "timed_out") return(result("timed_out", whose = "own"))
  if (end$status == "died") return(result("died", condition = simpleError(death_text(end$code))))
  reply <- tryCatch(unserialize(end$reply), error = identity)
  if (inherits(reply, "error")) {
    if (!is.null(worker)) order_worker(worker)
    return(result("error", condition = reply))
  }
  if (!is.null(worker)) order_worker(worker, load = reply$loaded)
  do.call(result, c(reply["status"], reply[setdiff(names(reply), "status")]))
}

death_text <- function(code) {
  how <- if (is.na(code)) {
    "ended"
  } else if (code < 0) {
    paste("was killed by signal", -code)
  } else {
    paste("ended with exit status", code)
  }
  paste("the worker process", how, "before the tool returned")
}

# Workers -----------------------------------------------------------------------

# A worker that holds the bundle and has a child waiting; or a text why not.
ready_worker <- function(bundle) {
  for (attempt in 1:2) {
    worker <- idle_worker()
    if (is.character(worker)) return(worker)
    if (!bundle$key %in% worker$keys) define_bundle(worker, bundle)
    problem <- await_worker(worker)
    if (identical(problem, "")) return(worker)
    if (!worker$closed) {
      # The template is well, but could not take this bundle.
      worker$keys <- setdiff(worker$keys, bundle$key)
      order_worker(worker)
      return(paste0("the tool could not be set up in its worker process: ", problem))
    }
  }
  paste0("the worker process could not be started: ", problem)
}

# Of this process: after a fork the parent's workers are the parent's.
idle_worker <- function() {
  if (!identical(the$workers_pid, Sys.getpid())) {
    the$workers_pid <- Sys.getpid()
    the$workers <- list()
  }
  the$workers <- Filter(function(w) !w$closed, the$workers)
  for (worker in the$workers) if (!worker$busy) return(worker)
  worker <- start_worker()
  if (is.environment(worker)) the$workers <- c(the$workers, worker)
  worker
}

start_worker <- function() {
  library <- getLoadedDLLs()[["warrant"]][["path"]]
  script <- system.file("worker", "start.R", package = "warrant")
  id <- unwrap_core(rs_worker_start(
    file.path(R.home("bin"), "R"),
    c("--vanilla", "--no-echo", paste0("--file=", script), "--args", library),
    # Its files are in the session's folder, and go with it.
    "TMPDIR", tempdir(check = TRUE)
  ))
  if (is.character(id)) return(paste0("the worker process could not be started: ", id))
  worker <- new.env(parent = emptyenv())
  worker$id <- id
  worker$busy <- FALSE
  worker$closed <- FALSE
  worker$keys <- character()
  worker$env <- Sys.getenv()
  worker$env_mark <- rs_environment_mark()
  worker$lib_paths <- NULL
  rs_worker_order(id, serialize(worker_code(), NULL, xdr = FALSE))
  reg.finalizer(worker, close_worker, onexit = TRUE)
  worker
}

close_worker <- function(worker) {
  if (!worker$closed) {
    worker$closed <- TRUE
    rs_worker_close(worker$id)
  }
}

close_workers <- function() {
  if (identical(the$workers_pid, Sys.getpid())) lapply(the$workers, close_worker)
  the$workers <- list()
}

order_worker <- function(worker, load = NULL, ...) {
  order <- list(load = if (length(load)) load, ...)
  paths <- .libPaths()
  if (!identical(paths, worker$lib_paths)) {
    worker$lib_paths <- paths
    order$lib_paths <- paths
  }
  rs_worker_order(worker$id, serialize(order, NULL, xdr = FALSE))
}

define_bundle <- function(worker, bundle) {
  keys <- c(worker$keys, bundle$key)
  gone <- keys[seq_len(max(0L, length(keys) - worker_bounds$bundles))]
  worker$keys <- setdiff(keys, gone)
  order_worker(worker, drop = gone, key = bundle$key, define = bundle$bytes)
}

# "" once a child waits; else the problem. A worker that is gone is closed.
await_worker <- function(worker, most_s = worker_bounds$start_s) {
  give_up <- rs_monotonic() + most_s
  repeat {
    ready <- unwrap_core(rs_worker_ready(worker$id, 50L))
    if (is.raw(ready)) return(rawToChar(ready))
    if (is.character(ready) || rs_monotonic() > give_up) {
      close_worker(worker)
      if (!is.character(ready)) return(paste("it was not ready within", most_s, "seconds"))
      return(if (nzchar(ready)) ready else "it ended")
    }
    Sys.sleep(0)
  }
}

# Kills what runs in a worker and waits until nothing of it is left.
recycle_worker <- function(worker) {
  if (worker$closed) return(invisible())
  rs_worker_kill(worker$id)
  order_worker(worker)
  await_worker(worker, 5)
}
