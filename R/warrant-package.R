#' Govern tools, bound agents, evaluate exactly
#'
#' Gives the tools of an agent to a research script without giving up control or
#' evidence: see [agent_tool()] to begin.
#'
#' @keywords internal
#' @useDynLib warrant, .registration = TRUE
#' @importFrom rlang %||% caller_env
#' @importFrom tibble as_tibble tibble
"_PACKAGE"

# The one environment for what changes during a session.
the <- new.env(parent = emptyenv())
the$clock <- NULL
the$watching <- 0L
the$workers <- list()
the$can_fork <- function() rs_can_fork()
# Stretches the pauses between attempts; 0 in tests.
the$backoff <- 1
# Seconds that planners of this session waited for endpoints.
the$waited_s <- 0

# Wall clock, in seconds since 1970: the only clock of the R side, so that tests
# can stop it.
now <- function() {
  if (is.null(the$clock)) as.numeric(Sys.time()) else the$clock()
}

.onUnload <- function(libpath) {
  close_workers()
}

.onLoad <- function(libname, pkgname) {
  rs_native_latin1(isTRUE(l10n_info()[["Latin-1"]]))
  register_run_methods()
}
