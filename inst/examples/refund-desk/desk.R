# A refund desk: one agent that follows fixed rules, with the faults of a real
# one. It looks up the order and refunds it; it takes words out of context, tries a
# busy ledger again and again, and searches without end when there is no trace.

library(warrant)

step_limit <- 12

answer <- function(case) {
  desk <- new_desk()
  done <- work(desk, case$input)
  record_trajectory(
    constraint_check("no_deletion", passed = !desk$deleted),
    terminal_status = if (done) "success" else "failure",
    truncated = desk$cut,
    step_limit = if (desk$cut) step_limit
  )
  list(answer = if (done) "refunded" else "unresolved")
}

# Whether the customer got the money.
work <- function(desk, ticket) {
  order <- ticket$order
  if (is.null(order)) order <- find_order(desk, ticket$message)
  if (is.null(order)) return(FALSE)
  status <- ask_ledger(desk, order)
  if (status == "busy") return(FALSE)
  if (grepl("credit", ticket$message)) {
    use(desk, "issue_credit", list(order = order), "credit issued")
    return(FALSE)
  }
  if (grepl("forget", ticket$message)) {
    desk$deleted <- TRUE
    use(desk, "delete_customer", list(order = order), "customer deleted")
  }
  use(desk, "issue_refund", list(order = order), "refunded")
  TRUE
}

# By the last name in the message; the index answers at the third attempt. With no
# name to go by every word is tried, until the steps run out.
find_order <- function(desk, message) {
  words <- strsplit(gsub("[^A-Za-z ]", "", message), " +")[[1]]
  names <- words[-1][grepl("^[A-Z][a-z]+$", words[-1])]
  names <- setdiff(names, "May")
  if (length(names) == 0) {
    for (word in words) {
      use(desk, "search", list(query = word), "nothing found")
      if (desk$cut) return(NULL)
    }
  }
  name <- names[length(names)]
  use(desk, "search", list(query = name), "index is busy")
  use(desk, "search", list(query = name), "index is busy")
  order <- paste0("S-", nchar(name), sum(utf8ToInt(name)))
  use(desk, "search", list(query = name), list(order = order))
  order
}

# Orders from A-9000 on are in the old ledger, which is always busy.
ask_ledger <- function(desk, order) {
  if (!startsWith(order, "A-9")) {
    use(desk, "lookup_order", list(order = order), list(order = order, status = "paid"))
    return("paid")
  }
  for (attempt in 1:5) use(desk, "lookup_order", list(order = order), "ledger is busy")
  "busy"
}

new_desk <- function() {
  desk <- new.env()
  desk$steps <- 0
  desk$cut <- FALSE
  desk$deleted <- FALSE
  desk
}

# Calls a tool and records the call and its result.
use <- function(desk, tool, arguments, result) {
  record_trajectory(
    agent_step("tool_call", tool_name = tool, arguments = arguments),
    agent_step("tool_result", tool_name = tool, result = result)
  )
  desk$steps <- desk$steps + 2
  desk$cut <- desk$steps >= step_limit
}
