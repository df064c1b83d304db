#' Time limits and isolation: what stops what
#'
#' A tool with `timeout_s` is stopped when its time is up. How, and how surely,
#' is the choice of `isolation` in [agent_tool()]: `"session"` interrupts the
#' tool where it runs, `"process"` kills the process it runs in. Read this page
#' before you give an agent a tool that calls other programs, the network or
#' long computations.
#'
#' @section In the session:
#' The function runs in your session, at the cost of some microseconds, and may
#' change it: globals, options, open connections. At the limit it receives what a
#' Ctrl-C would send, and again every 200 ms until it is back. That stops R
#' loops, `Sys.sleep()`, waiting reads from the network, and functions that
#' swallow errors or an occasional interrupt. Code in `on.exit()` then has 5
#' seconds to tidy up before it is interrupted in its turn.
#'
#' It does not stop compiled code that never looks for an interrupt (a large
#' decomposition, some regular expressions), nor a program started with
#' `system()`. Such a call is `timed_out` when it comes back, however late, and
#' its value is withheld: with a limit of 1 second, a `system("sleep 10")` takes
#' 10 seconds and is then reported as timed out. A function that swallows every
#' interrupt for ever is not stopped at all; only `"process"` holds it.
#'
#' Your own Ctrl-C stays an interrupt: it ends the script as ever and is not
#' taken for a time limit, even when both come at once. Interrupts can only
#' arrive where R looks for them. Code that suspends them, as the loading of
#' some packages and event loops do, delays the limit until it is through; in a
#' Shiny observer the limit covers the tool's call, not what other observers do
#' meanwhile.
#'
#' @section In a process:
#' The function runs in a worker process that stays warm: some milliseconds a
#' call. At the limit the call is killed with every process below it, also those
#' that left its group (on Linux; on other systems those that stayed in it).
#' Nothing holds against that. A program that a call leaves running ends with the
#' call, also when the call succeeds.
#'
#' Each call starts from the values the function captured where it was defined,
#' with an empty workspace, R's default options and a fresh random seed. It sees
#' the working folder and environment variables that the session has at the
#' call. What it changes is gone afterwards: only packages it loaded stay loaded,
#' and files it wrote outside `tempdir()` stay written. A value that cannot
#' travel, such as a connection or a handle of a database, is named when the tool
#' is defined; open it inside the function.
#'
#' Warnings, messages and printed output come back with the result, up to 100
#' conditions of 5,000 characters and 100,000 bytes of output. A worker that dies
#' (`quit()`, a crash, lack of memory) is an error of that call; the next one
#' gets a new process. The time of a call starts when its process is ready, so
#' that starting the worker is not charged.
#'
#' @section Nested calls:
#' A tool that calls another tool passes its deadline on: the earlier of both
#' counts, and the record of the inner call says that the outer limit ended it.
#'
#' A tool with `isolation = "process"` cannot take another tool from where it is
#' defined: its count of calls is kept in the session, so the definition is refused
#' (`warrant_error_cannot_travel`). It can make one inside its function, in either isolation, and
#' call it; an inner `"process"` tool starts a worker of its own at each outer call, about
#' half a second, and is killed with the outer call.
#'
#' @section Systems:
#' Limits are measured on a monotonic clock. On Linux both kinds are tested. The
#' code for macOS is the same, apart from the search for processes that left
#' their group, and was not tried. On Windows a call in the session cannot be
#' interrupted: a passed limit is noticed when the call is back; in a process,
#' each call starts a fresh one.
#'
#' A tool that is killed may have done part of its work. Unless it is declared
#' idempotent, a timed-out call has an unknown effect, and an equal call asks a
#' person again.
#'
#' @name isolation
#' @aliases timeouts
#' @seealso [agent_tool()] for `timeout_s` and `isolation`.
#' @examples
#' # A limit in the session stops this sleep after a fifth of a second.
#' nap <- agent_tool(
#'   function(seconds) Sys.sleep(seconds),
#'   name = "nap", description = "Waits.",
#'   parameters = list(seconds = list(type = "number")),
#'   side_effects = "none", timeout_s = 0.2
#' )
#' call_tool(nap, list(seconds = 5))$status
NULL
