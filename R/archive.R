#' Put a study into an archive
#'
#' Writes a folder that a reader can check byte by byte, with ordinary tools and with
#' [verify_archive()]: the manifest, the journals of the runs with their heads, the
#' content with its keys, trajectories, tables, a paragraph on methods drafted from the
#' facts, a description as RO-Crate, and the SHA-256 of every file in the form that
#' `sha256sum -c hashes.sha256` reads. Everything in it is described in
#' `system.file("spec", "archive-v1.md", package = "warrant")`.
#'
#' The archive is written beside its place, under a name that begins with that of `dir`
#' and has `.part-` in it, and moved there when it is complete. So an interrupted one is
#' not mistaken for a whole one. A folder that is there already is left alone; with
#' `overwrite = TRUE` an archive is replaced as a whole, and the old one is kept until
#' the new one is complete. Anything that is no archive is never overwritten. What a
#' killed process left beside `dir` can be deleted.
#'
#' Print the result, and keep its `seal` elsewhere: who holds an archive and no seal of
#' it can make another one that agrees with itself.
#'
#' @section What is handed over:
#' With `include_content = FALSE` neither values nor keys are in the archive: goals,
#' arguments, results, answers, errors and notes are left out of the trajectories and
#' tables too, and ids of cases that were made from their content are replaced by
#' numbers. What stands in the journals are addresses made under keys that are not
#' there, so nothing can be guessed from them, and the chains still verify. Names of
#' tools, approvers and models, times and sizes are told in any case, and so is what you
#' put into the manifest: its digests of data files, suites and values that tools capture are
#' plain SHA-256, so what is short there can be guessed.
#'
#' `redact` leaves out some values: names of members, such as `"email"`, wherever they
#' occur in a value; or a function of a value and of `where`, a list of `run_id`, `kind`
#' (`"goal"`, `"arguments"`, `"result"`, `"answer"`, `"text"`, `"note"`, `"notes"`,
#' `"prompt"`, `"error"`) and `tool`, which returns the value to show. What stands under a
#' name that is left out is also looked for in all other values of the run, when it has
#' four characters or more: an error message that repeats it is left out whole. The same
#' is done with what the environment variables of [secret_env()] hold. A run of
#' which something was left out, or that was given a secret, is archived without its key:
#' otherwise guesses could be tried. Its content then cannot be held against its journal,
#' and the archive says so (`content` in `heads.csv` is `partial` or `keyless`).
#'
#' @param dir The folder to make.
#' @param runs A run, a list of runs, what [run_suite()] gives (or a list of these with
#'   names, the arms of a study), a store (all its runs), or ids of runs in `store`. Runs that
#'   wait or go on are archived as they stand. `list()` for none.
#' @param manifest A [study_manifest()], or `NULL` for one that only says what the runs
#'   tell. Tools of the runs that are not those of the manifest are named in `archive.json`
#'   and `METHODS.md`. Its data files are read again; one that changed is an error of class
#'   `warrant_error_data_changed`, and of one that is not where it was the archive says
#'   so.
#' @param evaluation An evaluation, see [evaluate()], a list of them named by the arms, or
#'   `NULL`.
#' @param include_content Whether values and keys are in the archive.
#' @param redact Names of members, a function, or `NULL`.
#' @param ... Must be empty.
#' @param store A store, where `runs` are ids.
#' @param authors Names of people, for the description.
#' @param license The address of a licence, such as
#'   `"https://creativecommons.org/licenses/by/4.0/"`, or a text.
#' @param overwrite Whether an archive that is there is replaced.
#' @returns A list of class `study_archive`, invisibly: `dir`, `seal` (the SHA-256 of
#'   `hashes.sha256`), `runs`, `files` and `bytes`. Errors: `warrant_error_archive_exists`
#'   (a `warrant_error_state`), `warrant_error_input`, and those of the store.
#' @seealso [verify_archive()], [study_manifest()]
#' @examples
#' half <- agent_tool(function(x) x / 2, "half", "Half of a number.",
#'   parameters = list(x = list(type = "number")), side_effects = "none"
#' )
#' planner <- function(state, tools) {
#'   if (length(state$steps)) decide_finish("done") else decide_act("half", list(x = 3))
#' }
#' halver <- agent(half, planner)
#' manifest <- study_manifest("Halves", agent = halver)
#' runs <- lapply(1:2, function(i) run_agent(halver, "halve"))
#' dir <- tempfile("halves")
#' archive_study(dir, runs, manifest)
#' verify_archive(dir)
#' list.files(dir, recursive = TRUE)
#' @export
archive_study <- function(dir, runs, manifest = NULL, evaluation = NULL, include_content = TRUE,
                          redact = NULL, ..., store = NULL, authors = NULL, license = NULL,
                          overwrite = FALSE) {
  check_string(dir)
  if (!is.null(manifest)) check_manifest(manifest)
  if (!is.null(evaluation) && !is_arms(evaluation, "agent_evaluation")) {
    check_class(evaluation, "agent_evaluation", "evaluate()")
  }
  check_flag(include_content)
  check_left_out(redact)
  check_dots(...)
  check_names(authors, null = TRUE)
  check_string(license, null = TRUE)
  check_flag(overwrite)
  sources <- run_sources(runs, store)
  evaluations <- of_arms(evaluation, "agent_evaluation")
  check_something(sources, manifest, evaluations)
  target <- archive_target(dir, overwrite)
  data <- data_state(manifest)
  part <- part_folder(target)
  on.exit(unlink(part, recursive = TRUE))
  study <- list(
    manifest = manifest, evaluations = evaluations, content = include_content, redact = redact,
    authors = authors, license = license, data = data, created_at = iso_time(now()),
    cases = public_cases(sources, evaluations, include_content)
  )
  study <- write_runs(part, sources, study)
  if (length(manifest$tools)) study$planned <- manifest$tools
  if (is.null(manifest)) study$manifest <- manifest_of_runs(study$runs)
  write_study(part, study)
  seal <- unwrap_core(rs_archive_seal(part))
  archive <- new_study_archive(part, target, seal, length(study$runs))
  put_in_place(part, target, overwrite)
  invisible(archive)
}

# ---- what is archived --------------------------------------------------------------

# Runs as a list of `run_id`, `store` and `case_id`, in the order of their ids, and
# records of cases that have no run.
run_sources <- function(runs, store = NULL, call = caller_env()) {
  if (!is.null(store)) {
    check_class(
      store, "warrant_store", "memory_store(), file_store(), dbi_store() or new_store()", call = call
    )
  }
  records <- list()
  found <- if (is.null(runs)) {
    list()
  } else if (inherits(runs, "agent_runs") || is_arms(runs, "agent_runs")) {
    suites <- lapply(of_arms(runs, "agent_runs"), suite_sources, store)
    records <- unlist(lapply(suites, `[[`, "records"), FALSE)
    unlist(lapply(suites, `[[`, "runs"), FALSE)
  } else if (inherits(runs, "warrant_store")) {
    lapply(runs$runs(), run_source, runs)
  } else if (is.character(runs)) {
    if (is.null(store)) {
      stop_type(runs, "runs", "runs; for ids of runs `store` must be given", call)
    }
    lapply(runs, function(id) run_source(check_run_id(id, "runs", call), store))
  } else {
    if (inherits(runs, "agent_run")) runs <- list(runs)
    good <- is.list(runs) && all(vapply(runs, inherits, NA, "agent_run"))
    if (!good) {
      stop_type(runs, "runs", "a run, a list of runs, runs of a suite, a store or ids", call)
    }
    lapply(unname(runs), function(run) run_source(run$run_id, run$store))
  }
  ids <- vapply(found, `[[`, "", "run_id")
  check_different(ids, call)
  list(runs = found[order_c(ids)], records = records)
}

# Arms of a study are given by their names.
is_arms <- function(x, class) {
  is.list(x) && !is.object(x) && length(x) > 0L && all(vapply(x, inherits, NA, class)) &&
    length(names(x)) == length(x) && all(nzchar(names(x))) && !anyDuplicated(names(x))
}

# The parts of a study, the ids of whose cases begin with the arm where there are some.
of_arms <- function(x, class) {
  if (!is_arms(x, class)) return(if (is.null(x)) list() else list(x))
  unname(Map(function(part, arm) {
    part$case_id <- paste0(arm, "/", part$case_id, recycle0 = TRUE)
    part$arm <- arm
    part
  }, x, names(x)))
}

run_source <- function(run_id, store, case_id = run_id) {
  list(run_id = run_id, store = store, case_id = case_id)
}

# Journals are files: names that differ only in case are one on some systems.
check_different <- function(ids, call) {
  twice <- unique(ids[duplicated(ids)])
  folded <- chartr("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz", ids)
  if (!length(twice)) twice <- ids[duplicated(folded)]
  if (length(twice) == 0L) return(invisible())
  stop_warrant(
    c(
      "`runs` must be different runs.",
      x = paste0("Twice, or different only in upper case: ", listed(first_few(twice, 5)), ".")
    ),
    "input", code = "run_twice", argument = "runs", run_id = twice, call = call
  )
}

# Cases whose runs are in the store, and the records of all others.
suite_sources <- function(runs, store) {
  store <- store %or% runs$store
  ids <- runs$run_ids
  known <- unlist(ids) %in% if (!is.null(store)) store$runs()
  case <- rep(seq_along(ids), lengths(ids))
  with_runs <- setdiff(case, case[!known])
  of_run <- case %in% with_runs
  bare <- setdiff(seq_along(runs$case_id), with_runs)
  texts <- runs$trajectory[bare]
  list(
    runs = Map(
      run_source, as.character(unlist(ids)[of_run]), list(store), runs$case_id[case[of_run]],
      USE.NAMES = FALSE
    ),
    records = Map(
      function(case_id, json) list(case_id = case_id, json = json),
      rep(runs$case_id[bare], lengths(texts)), as.character(unlist(texts)), USE.NAMES = FALSE
    )
  )
}

check_left_out <- function(redact, call = caller_env()) {
  names <- is.character(redact) && !anyNA(redact) && all(nzchar(redact))
  if (names || is.null(redact) || is.function(redact)) return(invisible())
  stop_type(redact, "redact", "names, a function of a value and where it stands, or NULL", call)
}

check_something <- function(sources, manifest, evaluations, call = caller_env()) {
  some <- length(sources$runs) || length(sources$records) || !is.null(manifest) ||
    length(evaluations)
  if (some) return(invisible())
  stop_warrant(
    c(
      "There must be something to archive.",
      x = "There are no runs, no manifest and no evaluation."
    ),
    "input", code = "nothing_to_archive", argument = "runs", call = call
  )
}

# Of each data file of a manifest whether it is as it was.
data_state <- function(manifest, call = caller_env()) {
  if (is.null(manifest) || length(manifest$data) == 0L) return(list())
  what <- changed_data(manifest)
  stop_changed_data(what[what == "has changed"], call)
  state <- ifelse(names(manifest$data) %in% names(what), "not there", "unchanged")
  stats::setNames(as.list(state), names(manifest$data))
}

# Ids of cases that were made from their content tell of it; a number does not.
public_cases <- function(sources, evaluations, include_content) {
  ids <- c(
    unlist(lapply(evaluations, `[[`, "case_id")), vapply(sources$runs, `[[`, "", "case_id"),
    vapply(sources$records, `[[`, "", "case_id")
  )
  ids <- unique(ids)
  shown <- ids
  if (!include_content) {
    derived <- grepl("(^|/)case_[0-9a-f]{12}(_[0-9]+)?$", ids)
    shown[derived] <- sprintf("%scase-%d", sub("case_[0-9a-f_]*$", "", ids[derived]), which(derived))
  }
  stats::setNames(shown, ids)
}

manifest_of_runs <- function(runs) {
  hashes <- of_runs(runs, "spec_hashes")
  names <- of_runs(runs, "tools")
  first <- !duplicated(paste(names, hashes))
  identity <- list(
    schema = manifest_schema, title = NULL, design = NULL, seed = NULL,
    tools = named_list(tools_with(list(), stats::setNames(hashes[first], names[first]))),
    agents = named_list(list()), suite = NULL, data = named_list(list()),
    parameters = named_list(list()), models_served = I(models_of(runs)),
    r_version = as.character(getRversion()), packages = manifest_packages("warrant")
  )
  new_study_manifest(unwrap_core(rs_to_json(identity)), made_here())
}

# ---- the folder --------------------------------------------------------------------

archive_target <- function(dir, overwrite, call = caller_env()) {
  dir <- sub("/+$", "", path.expand(enc2utf8(dir)))
  target <- file.path(normalizePath(dirname(dir), mustWork = FALSE), basename(dir))
  if (!dir.exists(dirname(target))) {
    stop_warrant(
      c(
        "`dir` must be in a folder that exists.",
        x = sprintf("%s does not.", encodeString(dirname(dir), quote = "\""))
      ),
      "input", code = "archive_directory", argument = "dir", call = call
    )
  }
  if (!file.exists(target)) return(target)
  ours <- dir.exists(target) && file.exists(file.path(target, "archive.json"))
  if (overwrite && ours) return(target)
  stop_warrant(
    c("`dir` must not exist yet.",
      x = if (ours) "There is an archive." else "It is there, and is no archive.",
      i = if (ours) "Use `overwrite = TRUE` to replace it."),
    "state", code = "archive_exists", argument = "dir", path = dir, call = call
  )
}

part_folder <- function(target, call = caller_env()) {
  part <- paste0(target, ".part-", substr(unwrap_core(rs_random_hex()), 1L, 8L))
  made <- suppressWarnings(dir.create(part)) && dir.create(file.path(part, "tables"))
  if (!made) {
    stop_warrant(
      "`dir` must be where a folder can be made.", "input", code = "archive_directory",
      argument = "dir", call = call
    )
  }
  part
}

# The old archive is moved aside, and removed when the new one is in its place.
put_in_place <- function(part, target, overwrite, call = caller_env()) {
  # Somebody may have put one there meanwhile.
  archive_target(target, overwrite, call)
  old <- if (file.exists(target)) sub("[.]part-([0-9a-f]*)$", ".old-\\1", part)
  moved <- is.null(old) || file.rename(target, old)
  placed <- moved && suppressWarnings(file.rename(part, target))
  if (!placed && moved && !is.null(old)) file.rename(old, target)
  if (!placed) {
    stop_warrant(
      "The archive could not be moved to `dir`.", "state", code = "archive_move",
      argument = "dir", call = call
    )
  }
  if (!is.null(old)) unlink(old, recursive = TRUE)
}

new_study_archive <- function(part, target, seal, runs) {
  files <- list.files(part, recursive = TRUE, all.files = TRUE, full.names = TRUE)
  structure(
    list(
      dir = target, seal = seal, runs = runs, files = length(files), bytes = sum(file.size(files))
    ),
    class = "study_archive"
  )
}

#' @export
format.study_archive <- function(x, ...) {
  c(
    paste0("<study_archive> ", x$dir), paste0("* runs: ", x$runs),
    sprintf("* files: %d, %.1f MB", x$files, x$bytes / 1e6), paste0("* seal: ", x$seal)
  )
}

#' @export
print.study_archive <- function(x, ...) {
  writeLines(format(x, ...))
  invisible(x)
}
