#' Refer to a secret without writing it down
#'
#' A reference to an environment variable. Pass it as the argument of a tool whose
#' schema marks that parameter `secret = TRUE`: the value is read inside the call
#' and reaches only the function; records, logs and prints show the name of the
#' variable.
#'
#' Only R code can pass a reference: JSON text from a model cannot name an
#' environment variable. A literal that reaches a secret parameter is recorded
#' only as a keyed digest that cannot be guessed from outside the session. What errors,
#' warnings and messages of the tool quote of a secret of three letters or more is
#' struck out. For what is personal rather than secret see `redact` in [agent_tool()].
#'
#' @param name Name of the environment variable.
#' @returns A reference of class `warrant_secret`.
#' @examples
#' Sys.setenv(DEMO_TOKEN = "hush")
#' fetch <- agent_tool(
#'   function(path, token) paste("fetched", path, "with a token of", nchar(token), "letters"),
#'   "fetch", "Fetch a page.",
#'   parameters = list(path = list(type = "string"), token = list(type = "string", secret = TRUE)),
#'   side_effects = "external"
#' )
#' result <- call_tool(fetch, list(path = "/a", token = secret_env("DEMO_TOKEN")))
#' result$content
#' result$arguments
#' @export
secret_env <- function(name) {
  check_string(name)
  structure(list(env = name), class = "warrant_secret")
}

#' @export
format.warrant_secret <- function(x, ...) paste0("<secret> from ", x$env)

#' @export
print.warrant_secret <- function(x, ...) {
  writeLines(format(x))
  invisible(x)
}
