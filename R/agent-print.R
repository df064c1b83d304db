# How agents, policies, limits and decisions print.

#' @export
format.agent <- function(x, ...) {
  some <- function(names) {
    if (length(names) > 6L) names <- c(names[1:5], sprintf("and %d more", length(names) - 5L))
    paste(names, collapse = ", ")
  }
  c(
    "<agent>",
    paste0("* tools: ", some(names(x$tools))),
    paste0("* allows: ", paste(x$policy$allow_effects, collapse = ", "),
      "; asks for: ", paste(x$policy$approve_effects, collapse = ", ")),
    if (length(x$policy$granted_scopes)) paste0("* scopes: ", some(x$policy$granted_scopes)),
    paste0("* limits: ", format_limits(x$limits)),
    if (length(x$guardrails)) {
      paste0("* guardrails: ", some(vapply(unclass(x$guardrails), function(rail) rail$name, "")))
    },
    paste0("* store: ", sub("_store$", "", class(x$store)[[1]]),
      if (!is.null(x$audit)) paste0("; audit: ", x$audit$path))
  )
}

format_limits <- function(x) {
  one <- unlist(x[c("steps", "tool_calls", "tokens", "cost", "seconds")])
  one <- one[is.finite(one)]
  per_tool <- x$per_tool
  texts <- c(
    if (length(one)) paste(names(one), format_number(one)),
    if (length(per_tool)) paste0(names(per_tool), " (calls) ", format_number(per_tool))
  )
  if (length(texts)) paste(texts, collapse = ", ") else "none"
}

format_number <- function(x) vapply(x, function(n) format(n, digits = 12, scientific = FALSE), "")

#' @export
print.agent <- function(x, ...) {
  writeLines(format(x, ...))
  invisible(x)
}

#' @export
format.agent_policy <- function(x, ...) {
  none <- function(x) if (length(x)) paste(x, collapse = ", ") else "none"
  c(
    "<agent_policy>",
    paste0("* allows side effects: ", none(x$allow_effects)),
    paste0("* asks a person for: ", none(x$approve_effects)),
    paste0("* granted scopes: ", none(x$granted_scopes)),
    paste0("* standing grants: ", none(vapply(x$grants, function(g) g$tool, "")))
  )
}

#' @export
print.agent_policy <- function(x, ...) {
  writeLines(format(x, ...))
  invisible(x)
}

#' @export
format.agent_limits <- function(x, ...) c("<agent_limits>", paste0("* ", format_limits(x)))

#' @export
print.agent_limits <- function(x, ...) {
  writeLines(format(x, ...))
  invisible(x)
}

#' @export
format.agent_decision <- function(x, ...) {
  if (x$decision == "finish") return("<agent_decision> finish")
  tools <- vapply(x$actions, function(a) a$tool, "")
  c("<agent_decision> act", paste0("* ", tools))
}

#' @export
print.agent_decision <- function(x, ...) {
  writeLines(format(x, ...))
  invisible(x)
}
