# A run that is refused, asks, is edited and fails, with texts of one's choice.
told_run <- function(text = "plain", store = memory_store()) {
  look <- agent_tool(function(n) list(said = text, n = n), "look", "Looks.",
    parameters = list(n = list(type = "string")), side_effects = "read"
  )
  send <- agent_tool(function(to) stop(text), "send", "Sends.",
    parameters = list(to = list(type = "string")), side_effects = "write"
  )
  deny <- agent_tool(function() 1, "deny", "Needs a scope.", side_effects = "read", scopes = "s")
  planner <- script_planner(
    decide_act("look", list(n = text)),
    decide_act("deny", list()),
    decide_act(text, list(n = "x")),
    decide_act("send", list(to = text)),
    answer = list(text = text)
  )
  a <- agent(list(look, send, deny), planner, policy = writes(), store = store)
  run <- run_agent(a, text)
  run <- approve_tool_call(run, "edit", approver = "A person", arguments = list(to = paste0(text, "2")))
  resume_run(a, run)
}

page_of <- function(...) {
  path <- view_run(..., open = FALSE)
  paste(readLines(path, encoding = "UTF-8", warn = FALSE), collapse = "\n")
}

# Tags, comments and text of a page as a reader of HTML finds them: after the style
# sheet, whose content is text.
tags_of <- function(page) {
  body <- sub("^.*</style>", "", page)
  regmatches(body, gregexpr("<[^>]*>", body))[[1]]
}

chromium <- function() {
  found <- Sys.which(c("chromium", "chromium-browser", "google-chrome"))
  unname(found[nzchar(found)][1])
}

# What a browser makes of a page, scripts run if it lets them.
browser_dom <- function(path) {
  testthat::skip_on_cran()
  testthat::skip_if(is.na(chromium()), "no Chromium here")
  profile <- withr::local_tempdir()
  out <- suppressWarnings(system2(chromium(), c(
    "--headless", "--no-sandbox", "--disable-gpu", paste0("--user-data-dir=", profile),
    "--virtual-time-budget=2000", "--dump-dom", shQuote(paste0("file://", path))
  ), stdout = TRUE, stderr = FALSE, timeout = 60))
  testthat::skip_if(length(out) == 0, "Chromium does not start here")
  paste(out, collapse = "\n")
}
