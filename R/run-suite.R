#' Run a system over the cases of a suite
#'
#' Each case is run once, and its answer, error and recorded trajectory are kept as
#' data: a case that fails or runs out of time never stops the others. A
#' *malformed* trajectory does stop the run, since it says that the recording is
#' wrong and not the system.
#'
#' Cases run over the user's [future::plan()] when the future.apply package is
#' installed, else one after the other. Each case has a random stream of its own,
#' made from `seed` and the case's id: order, plan and number of workers change
#' nothing, and the session's `.Random.seed` is left as it was. Time limits are those
#' of session isolation: code that never lets R look up cannot be stopped before it
#' returns, and is then a timeout all the same.
#'
#' Ctrl-C ends the run after putting the cases so far in order: the rest is
#' `NOT_RUN`, a warning of class `warrant_warning_interrupted` says so, and the release
#' gate blocks on such a partial run. With `file` the cases that ended are on disk, and
#' the same call goes on where it stopped, also after a crash. Two calls cannot write
#' to one file at a time (`warrant_error_already_running`).
#'
#' @param suite A suite, see [suite()] and [read_suite()].
#' @param system A function of one case, an agent, or an [agent_system()]; the suite's own
#'   by default.
#' @param ... Must be empty.
#' @param seed A whole number. `NULL` draws one, which is kept in the result.
#' @param timeout_s Time limit of each case in seconds.
#' @param file Path of a JSONL file to which each case is written as it ends, and
#'   from which cases that ended before are taken.
#' @param progress Whether to show a progress bar.
#' @returns An `agent_runs` object for [evaluate()], with the `seed`.
#' @export
#' @examples
#' sums <- suite(
#'   data.frame(id = c("a", "b"), input = c("2 + 2", "3 * 3"), expected = c("4", "9")),
#'   list(criterion_equals("answer"))
#' )
#' run_suite(sums, function(case) as.character(eval(parse(text = case$input))))
run_suite <- function(suite, system = NULL, ..., seed = NULL, timeout_s = 120,
                      file = NULL, progress = interactive()) {
  check_suite(suite)
  check_dots(...)
  check_seconds(timeout_s)
  check_seed(seed)
  check_flag(progress)
  system <- ready_system(suite, system)
  check_records(suite, system)
  if (!is.null(file)) {
    check_string(file)
    lock <- unwrap_core(rs_run_lock(path.expand(file)))
    on.exit(rs_run_unlock(lock))
  }
  log <- open_log(file, suite, system, seed)
  rows <- vector("list", length(suite$cases$id))
  rows[match(names(log$rows), suite$cases$id)] <- log$rows
  rows <- run_cases(case_jobs(suite, log$seed), rows, system, timeout_s, log, progress)
  runs_of(suite, rows, log$seed, system)
}

ready_system <- function(suite, system, call = caller_env()) {
  if (!is.null(system)) return(as_system(system, suite$system, call))
  system <- suite$system
  if (is.null(system)) {
    stop_warrant(
      c("`system` must be given: the suite names none.", i = "Pass a function of one case."),
      "suite", "no_system", argument = "system", call = call
    )
  }
  if (is.null(system$fn)) load_callable(system, call) else system
}

check_records <- function(suite, system, call = caller_env()) {
  if (trajectory_schema %in% system$records) return(invisible())
  types <- vapply(suite$criteria, `[[`, "", "type")
  needs <- vapply(suite$criteria, `[[`, "", "criterion")[startsWith(types, "agent_")]
  needs <- c(needs, grep("^metadata[.]", suite$slices, value = TRUE, invert = TRUE))
  if (length(needs) == 0) return(invisible())
  stop_warrant(
    c(
      "The system must say that it records trajectories: these read them.",
      x = paste(needs, collapse = ", "),
      i = sprintf("Use agent_system(fn, ..., records = \"%s\") and record_trajectory().", trajectory_schema)
    ),
    "suite", "records_needed", needs = needs, call = call
  )
}

case_jobs <- function(suite, seed) {
  cases <- suite$cases
  streams <- unwrap_core(rs_case_streams(as.numeric(seed), cases$id))
  lapply(seq_along(cases$id), function(i) {
    list(
      id = cases$id[i], input = cases$input[i], metadata = cases$metadata[i],
      stream = streams[[i]], digest = case_digest(cases$input[i], cases$metadata[i]),
      pid = Sys.getpid()
    )
  })
}

case_digest <- function(input, metadata) unwrap_core(rs_hash_content(paste0(input, "\n", metadata)))

# In batches, so that what ended is written down, the bar moves and Ctrl-C is
# heard. `rows` has a row for each case that ended before, NULL for the others.
run_cases <- function(jobs, rows, system, timeout_s, log, progress) {
  map <- case_map()
  left <- which(vapply(rows, is.null, NA))
  bar <- if (progress) cli::cli_progress_bar("Running cases", total = length(left))
  tryCatch(
    for (first in seq(1, by = map$batch, length.out = ceiling(length(left) / map$batch))) {
      batch <- left[first:min(first + map$batch - 1, length(left))]
      ended <- map$apply(jobs[batch], run_case, system, timeout_s)
      stop_on_malformed(ended)
      append_log(log, ended)
      rows[batch] <- ended
      if (progress) cli::cli_progress_update(length(batch), id = bar)
    },
    interrupt = function(cnd) {
      warn_interrupted(sum(!vapply(rows, is.null, NA)), length(jobs))
    }
  )
  if (progress) cli::cli_progress_done(id = bar)
  rows
}

warn_interrupted <- function(done, total) {
  rlang::warn(
    sprintf("Interrupted: %d of %d cases were run, the others are NOT_RUN.", done, total),
    class = c("warrant_warning_interrupted", "warrant_warning")
  )
}

# The user's plan when future.apply is there and the plan has workers.
case_map <- function() {
  installed <- requireNamespace("future.apply", quietly = TRUE)
  workers <- if (installed) future::nbrOfWorkers() else 1
  if (!installed || inherits(future::plan(), "sequential")) {
    return(list(batch = 1, apply = function(jobs, f, ...) lapply(jobs, f, ...)))
  }
  workers <- if (is.finite(workers)) workers else 16
  list(batch = 4 * workers, apply = function(jobs, f, ...) {
    # The streams are set by case; future need not look after them.
    future.apply::future_lapply(jobs, f, ..., future.seed = NULL, future.packages = "warrant")
  })
}

# One case, in this process or in a worker. Always a row; a malformed trajectory
# is the row's `fault`.
run_case <- function(job, system, timeout_s) {
  before <- the$recorder
  the$recorder <- recorder <- new_recorder()
  on.exit(the$recorder <- before)
  answer <- with_stream(job$stream, tryCatch(
    limit_call(function() answer_json(system, job), timeout_s),
    error = identity
  ))
  row <- list(
    id = job$id, digest = job$digest, trajectory = character(), run_ids = recorder$run_ids
  )
  # A store does not travel from a worker.
  if (identical(job$pid, Sys.getpid())) row$store <- recorder$store
  fault <- recorder$fault
  if (inherits(answer, "warrant_error_trajectory")) fault <- answer
  if (!is.null(fault)) return(c(row, list(fault = fault)))
  if (is_timed_out(answer)) {
    return(c(row, status = "TIMEOUT", error = error_json("timeout", sprintf("no answer within %s s", format(timeout_s)))))
  }
  if (inherits(answer, "error")) {
    return(c(row, status = "ERROR", error = error_json(class(answer)[1], conditionMessage(answer))))
  }
  recorded <- tryCatch(recorded_json(recorder), warrant_error = identity)
  if (inherits(recorded, "error")) return(c(row, list(fault = recorded)))
  row$trajectory <- recorded
  c(row, status = "OK", output = answer)
}

answer_json <- function(system, job) {
  case <- list(
    id = job$id, input = json_as_list(job$input), metadata = json_as_list(job$metadata)
  )
  value <- if (length(system$tools)) {
    system$fn(case, lapply(system$tools, fresh_tool))
  } else {
    system$fn(case)
  }
  unwrap_core(rs_to_json(value))
}

error_json <- function(type, message) {
  unwrap_core(rs_to_json(list(type = type, message = enc2utf8(message))))
}

# Runs `expr` on a random stream of its own and leaves the session's as it was.
with_stream <- function(stream, expr) {
  env <- globalenv()
  before <- env[[".Random.seed"]]
  on.exit(
    if (is.null(before)) {
      if (exists(".Random.seed", env, inherits = FALSE)) rm(".Random.seed", envir = env)
    } else {
      assign(".Random.seed", before, envir = env)
    }
  )
  # 10407: L'Ecuyer-CMRG, inversion, rejection.
  assign(".Random.seed", c(10407L, stream), envir = env)
  expr
}

stop_on_malformed <- function(rows, call = caller_env(2)) {
  for (row in rows) {
    if (is.null(row$fault)) next
    stop_warrant(
      c(
        sprintf("Case `%s` recorded a malformed trajectory; the run stops.", row$id),
        x = conditionMessage(row$fault)
      ),
      "trajectory", "malformed_trajectory", case_id = row$id, parent = row$fault, call = call
    )
  }
}

runs_of <- function(suite, rows, seed, system) {
  part <- function(name, none) {
    vapply(rows, function(row) if (is.null(row[[name]])) none else row[[name]], "")
  }
  new_agent_runs(
    case_id = suite$cases$id, status = part("status", "NOT_RUN"), output = part("output", NA_character_),
    error = part("error", NA_character_),
    trajectory = lapply(rows, function(row) as.character(row$trajectory)),
    seed = seed, system = system[c("name", "version", "records")],
    run_ids = lapply(rows, function(row) as.character(row$run_ids)), store = store_of(rows, system)
  )
}

# The store that holds the runs of all cases, as far as it is known.
store_of <- function(rows, system) {
  stores <- Filter(Negate(is.null), lapply(rows, `[[`, "store"))
  same <- length(stores) > 0L && all(vapply(stores, identical, NA, stores[[1]]))
  if (!is.null(system$store) || !same) system$store else stores[[1]]
}

check_suite <- function(suite, call = caller_env()) {
  if (inherits(suite, "agent_suite")) return(invisible(suite))
  stop_warrant(
    c("`suite` must be a suite, as suite() or read_suite() makes it.", x = class_words(suite)),
    "input", "not_a_suite", argument = "suite", call = call
  )
}

check_seed <- function(seed, call = caller_env()) {
  whole <- is.numeric(seed) && length(seed) == 1 && is.finite(seed) && seed == round(seed)
  if (is.null(seed) || whole) return(invisible(seed))
  stop_warrant("`seed` must be one whole number, or NULL.", "input", "invalid_seed",
    argument = "seed", call = call
  )
}

check_seconds <- function(x, arg = deparse(substitute(x)), call = caller_env()) {
  if (is.numeric(x) && length(x) == 1 && !is.na(x) && x > 0) return(invisible(x))
  stop_warrant(
    sprintf("`%s` must be a number of seconds above 0.", arg), "input", "invalid_seconds",
    argument = arg, call = call
  )
}
