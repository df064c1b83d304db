# The file that run_suite() writes as cases end. Private.

# Opens the log of a run, or an empty one in memory: rows of cases that ended
# before, by id, and the seed.
open_log <- function(file, suite, system, seed, call = caller_env()) {
  if (is.null(file)) return(list(file = NULL, rows = list(), seed = or_else(seed, fresh_seed())))
  if (!file.exists(file) || file.size(file) == 0) {
    log <- list(file = file, rows = list(), seed = or_else(seed, fresh_seed()))
    header <- list(
      schema = "agent_runs/v1", seed = log$seed, system = system$name, version = system$version
    )
    append_lines(file, paste0(unwrap_core(rs_to_json(header)), "\n"))
    return(log)
  }
  bytes <- readBin(file, "raw", file.size(file))
  read <- with_place(file, unwrap_core(rs_suite_log(bytes), call), call)
  header <- json_as_list(read$header)
  check_same_run(header, seed, system, file, call)
  if (read$whole < length(bytes)) set_torn_aside(file, bytes, read$whole)
  list(file = file, rows = logged_rows(read, suite, file, call), seed = header$seed)
}

check_same_run <- function(header, seed, system, file, call) {
  other <- c(
    if (!is.null(seed) && seed != header$seed) {
      sprintf("seed %s, now %s", format(header$seed), format(seed))
    },
    if (system$name != header$system) sprintf("system %s, now %s", header$system, system$name),
    if (system$version != header$version) {
      sprintf("version %s, now %s", header$version, system$version)
    }
  )
  if (length(other) == 0) return(invisible())
  stop_warrant(
    c(
      sprintf("%s holds the runs of something else.", file),
      stats::setNames(other, rep("x", length(other))),
      i = "Use another file, or the same seed, system and version."
    ),
    "state", "other_run", file = file, call = call
  )
}

# A line cut by a crash is kept beside the log; its case is run again.
set_torn_aside <- function(file, bytes, whole) {
  torn <- paste0(file, ".torn")
  writeBin(bytes[seq(whole + 1, length(bytes))], torn)
  temp <- paste0(file, ".new")
  writeBin(bytes[seq_len(whole)], temp)
  file.rename(temp, file)
}

logged_rows <- function(read, suite, file, call) {
  at <- match(read$case_id, suite$cases$id)
  rows <- list()
  for (i in which(!is.na(at))) {
    digest <- case_digest(suite$cases$input[at[i]], suite$cases$metadata[at[i]])
    if (digest != read$case_digest[i]) {
      stop_warrant(
        c(
          sprintf("Case `%s` has changed since %s recorded it.", read$case_id[i], file),
          i = "Give the case another id, or use another file."
        ),
        "state", "case_changed", case_id = read$case_id[i], file = file, call = call
      )
    }
    row <- list(
      id = read$case_id[i], status = read$status[i], trajectory = read$trajectory[[i]],
      run_ids = read$runs[[i]]
    )
    if (!is.na(read$output[i])) row$output <- read$output[i]
    if (!is.na(read$error[i])) row$error <- read$error[i]
    rows[[row$id]] <- row
  }
  rows
}

append_log <- function(log, rows) {
  if (is.null(log$file)) return(invisible())
  lines <- vapply(rows, function(row) {
    unwrap_core(rs_suite_line(
      row$id, row$digest, row$status, row$output, row$error, as.character(row$trajectory),
      as.character(row$run_ids)
    ))
  }, "")
  append_lines(log$file, lines)
}

append_lines <- function(file, lines, call = caller_env(2)) {
  failed <- function(e) {
    stop_warrant(
      c(sprintf("Could not write to %s.", file), x = conditionMessage(e)),
      "store", "write_failed", file = file, call = call
    )
  }
  tryCatch(
    {
      con <- file(file, "ab")
      on.exit(if (!is.null(con)) close(con))
      writeBin(charToRaw(enc2utf8(paste(lines, collapse = ""))), con)
      close(con)
      con <- NULL
    },
    error = failed, warning = failed
  )
}

fresh_seed <- function() unwrap_core(rs_fresh_seed())
