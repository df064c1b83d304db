# A triage team: `triage` reads a request and hands it to `billing` or `tech`, and
# billing hands large sums to a person. Fixed rules, with the faults of a real
# team: words that mislead, an agent that does another's work, and a request that
# nobody takes.

library(warrant)

step_limit <- 12
largest_sum <- 500

answer <- function(case) {
  team <- new_team(case$input)
  said(team, "triage", case$input$request)
  first <- desk_for(case$input$request)
  hand_over(team, "triage", first)
  result <- if (grepl("shared", case$input$request)) {
    nobody(team, first)
  } else {
    at_desk(team, first)
  }
  record_trajectory(
    terminal_status = if (result == "unresolved") "failure" else "success",
    truncated = team$steps >= step_limit,
    step_limit = if (team$steps >= step_limit) step_limit
  )
  list(answer = result)
}

desk_for <- function(request) {
  technical <- "screen|log in|load|sound|printer|camera|search|pairing|clock|messages|app|crash|lamp|door"
  billing <- "refund|charged|invoice|pay|paid|fee|deposit|rental"
  request <- tolower(request)
  if (grepl(technical, request)) return("tech")
  if (grepl(billing, request)) "billing" else "tech"
}

# What the request is really about, which a desk finds out when it reads it.
topic_of <- function(request) {
  if (grepl("money back|want that back", request)) return("billing")
  if (grepl("page stays blank", request)) return("tech")
  desk_for(request)
}

at_desk <- function(team, desk) {
  right <- topic_of(team$input$request)
  if (desk != right) {
    said(team, desk, "this is not ours")
    hand_over(team, desk, "triage")
    hand_over(team, "triage", right)
  }
  if (right == "billing") bill(team) else repair(team)
}

bill <- function(team) {
  order <- list(order = team$input$order)
  use(team, "billing", "lookup_order", order, list(amount = team$input$amount))
  if (team$input$amount > largest_sum) {
    hand_over(team, "billing", "person")
    return("escalated")
  }
  use(team, "billing", "issue_refund", order, "refunded")
  close_case(team, "billing", "refunded")
}

repair <- function(team) {
  use(team, "tech", "search_manual", list(query = team$input$request), "page 9")
  # Out of kindness, and against the rules.
  if (grepl("third time", team$input$request)) {
    use(team, "tech", "issue_refund", list(order = team$input$order), "refunded")
  }
  close_case(team, "tech", "fixed")
}

nobody <- function(team, desk) {
  while (team$steps < step_limit) {
    other <- if (desk == "billing") "tech" else "billing"
    hand_over(team, desk, other)
    desk <- other
  }
  "unresolved"
}

new_team <- function(input) {
  team <- new.env()
  team$input <- input
  team$steps <- 0
  team
}

record <- function(team, ...) {
  steps <- list(...)
  do.call(record_trajectory, steps)
  team$steps <- team$steps + length(steps)
}

said <- function(team, agent, text) {
  record(team, agent_step("message", agent = agent, result = text))
}

hand_over <- function(team, from, to) {
  record(team, agent_step("handoff", agent = from, to_agent = to))
}

use <- function(team, agent, tool, arguments, result) {
  record(
    team,
    agent_step("tool_call", tool_name = tool, agent = agent, arguments = arguments),
    agent_step("tool_result", tool_name = tool, agent = agent, result = result)
  )
}

close_case <- function(team, agent, result) {
  record(team, agent_step("final", agent = agent, result = result))
  result
}
