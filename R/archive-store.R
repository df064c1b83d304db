#' Look at the runs of an archive
#'
#' Gives the runs of an archive as a store that can only be read: for [read_run()], and so
#' for [tool_log()], [as_trajectory()], [view_run()] and [verify_audit()]. It does not
#' verify; do that first, with [verify_archive()]. Values that are not in the archive are
#' `NULL`, or `NA` in a log.
#'
#' @param dir The folder of an archive.
#' @returns A store, see [stores]. To write to it is an error of class
#'   `warrant_error_read_only`; a folder that is no archive is one of class
#'   `warrant_error_input`.
#' @seealso [archive_study()]
#' @examples
#' half <- agent_tool(function(x) x / 2, "half", "Half of a number.",
#'   parameters = list(x = list(type = "number")), side_effects = "none"
#' )
#' planner <- function(state, tools) {
#'   if (length(state$steps)) decide_finish("done") else decide_act("half", list(x = 3))
#' }
#' dir <- tempfile("one-half")
#' archive_study(dir, run_agent(agent(half, planner), "halve"))
#' store <- archive_store(dir)
#' run <- read_run(store, store$runs())
#' tool_log(run)[c("name", "arguments", "result")]
#' @export
archive_store <- function(dir) {
  check_string(dir)
  dir <- path.expand(enc2utf8(dir))
  if (!file.exists(file.path(dir, "archive.json"))) {
    stop_type(dir, "dir", "the folder of an archive", rlang::current_env())
  }
  dir <- normalizePath(dir)
  base <- function(folder, run_id) file.path(dir, folder, check_run_id(run_id))
  refuse <- function(...) {
    stop_warrant(
      "An archive cannot be written to.", "store", code = "read_only", path = dir,
      call = quote(archive_store())
    )
  }
  heads <- read_heads(dir)$rows
  get_content <- function(run_id, addresses = NULL) {
    found <- unwrap_core(rs_content_all(base("content", run_id)))
    all <- stats::setNames(found$text, found$address)
    if (identical(heads$judged[match(run_id, heads$run_id)], "true")) all <- c(all, done = "true")
    if (!is.null(addresses)) return(stats::setNames(all[addresses], addresses))
    # To look at a run its key is not needed: where it was left out, another stands in.
    if ("key" %in% names(all)) all else c(all, key = strrep("0", 64))
  }
  structure(
    new_store("archive",
      append = refuse, read = function(run_id) unwrap_core(rs_store_read(base("journals", run_id))),
      runs = function() heads$run_id, get_content = get_content, lock = refuse, renew = refuse,
      unlock = refuse
    ),
    about = c(archive = dir)
  )
}
