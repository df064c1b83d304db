# An order desk: 48 requests of customers, four governed tools, no model.
# Run it with:  Rscript -e 'source(system.file("examples/order-desk.R", package = "warrant"))'
library(warrant)

stock <- data.frame(
  item = c("apple", "pear", "plum", "quince", "fig", "medlar"),
  price = c(0.5, 0.75, 0.4, 1.2, 0.9, 2), n = c(120L, 8L, 300L, 14L, 60L, 0L)
)
item <- list(type = "string", enum = stock$item)

# 1. Tools: an R function, its arguments as JSON Schema, what it does to the world, its limits.
lookup_stock <- agent_tool(
  function(items) stock[match(items, stock$item), ],
  "lookup_stock", "Price and stock of items.",
  parameters = list(items = list(type = "array", items = item, minItems = 1)), side_effects = "read"
)
list_orders <- agent_tool( # more rows than a model should be sent: whole rows, at most 400 bytes
  function(customer) data.frame(customer, order = 1:40, item = stock$item[1 + (1:40) %% 6]),
  "list_orders", "Past orders of a customer.",
  parameters = list(customer = list(type = "string")), side_effects = "read", max_bytes = 400, max_calls = 7
)
quote_shipping <- agent_tool( # the island's carrier answers late: stopped at the limit
  function(city, kg) { if (city == "Ushant") Sys.sleep(5); sprintf("%.2f", 4 + 1.5 * kg) },
  "quote_shipping", "Price of sending a parcel.",
  parameters = list(city = list(type = "string"), kg = list(type = "number", exclusiveMinimum = 0, maximum = 30)),
  side_effects = "external", timeout_s = 0.25
)
place_order <- human_gate( # asks a person before it runs
  agent_tool(
    function(item, n) paste("ordered", n, item),
    "place_order", "Order an item.",
    parameters = list(item = item, n = list(type = "integer", minimum = 1)), side_effects = "write"
  ),
  prompt = "Place this order?"
)
tools <- list(lookup_stock, list_orders, quote_shipping, place_order)
names(tools) <- vapply(tools, function(tool) tool$name, "")
# 2. The person: here a rule. It answers "approve", "reject" or "edit".
answers <- character()
approver <- function(request) {
  want <- request$arguments
  have <- stock$n[match(want$item, stock$item)]
  answer <- if (have == 0) "reject" else if (want$n > have) "edit" else "approve"
  answers <<- c(answers, answer)
  if (answer == "edit") return(list(decision = "edit", arguments = list(item = want$item, n = have)))
  list(decision = answer, reason = if (have == 0) "none in stock")
}
# 3. The planner: a function from a request to tool calls. A model would stand here.
planner <- function(text) {
  call <- function(tool, ...) list(tool = tool, arguments = list(...))
  number <- function(unit) as.numeric(sub(paste0(".*?(-?[0-9.]+) ", unit, ".*"), "\\1", text, perl = TRUE))
  found <- regmatches(text, gregexpr("[[:alpha:]]+", text))[[1]]
  items <- intersect(sub("s$", "", found), c(stock$item, "durian")) # no durian in the schema: refused
  if (grepl("\\bmy orders\\b", text)) return(list(call("list_orders", customer = sub(":.*", "", text))))
  if (grepl("\\b(send|post)\\b", text)) {
    return(list(call("quote_shipping", city = sub(".* to ([[:alpha:]]+).*", "\\1", text), kg = number("kg"))))
  }
  look <- if (length(items)) list(call("lookup_stock", items = items))
  if (!grepl("\\b(order|buy)\\b", text)) return(look)
  c(look, list(call("place_order", item = items[1], n = number("[a-z]+"))))
}

# 4. The day: each call is checked, bounded, hashed and logged. What goes wrong is a value.
desk <- system.file("extdata/order-desk.jsonl", package = "warrant")
requests <- sub('.*"input":"([^"]*)".*', "\\1", readLines(desk, encoding = "UTF-8"))
results <- list()
for (text in requests) for (step in planner(text)) {
  results[[length(results) + 1]] <- call_tool(tools[[step$tool]], step$arguments, approver = approver)
}

# 5. What happened: one row a call, refused or run. The manifest says what the study is made of.
log <- tool_log(tools)
cat(length(requests), "requests,", nrow(log), "calls\n")
print(table(outcome = log$status, tool = log$name))
cat("\nthe person answered:", paste(names(table(answers)), table(answers), collapse = ", "),
  "\nresults cut to their bound:", sum(log$truncated), "\n\n")
for (status in setdiff(unique(log$status), "executed")) print(results[[match(status, log$status)]])
print(log[c("name", "arguments", "status", "bytes", "result_hash")])
cat("manifest:", study_manifest(title = "Order desk", tools = tools)$manifest_hash, "\n")
