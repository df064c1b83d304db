# Takes the picture of the README with headless Chromium: Rscript tools/readme-figure.R
# The run is that of the README, with a refusal more.
library(warrant)
stock <- data.frame(item = c("apple", "pear"), price = c(0.5, 0.75), n = c(120L, 8L))
lookup <- agent_tool(function(item) stock[match(item, stock$item), ], "lookup_stock",
  "Price and stock of an item.", parameters = list(item = list(type = "string", enum = stock$item)),
  side_effects = "read", max_calls = 20, timeout_s = 2)
mail <- agent_tool(function(to) "sent", "send_mail", "Write to a supplier.",
  parameters = list(to = list(type = "string")), side_effects = "external", scopes = "mail:send")
order <- human_gate(prompt = "Place this order?", agent_tool(function(item, n) paste("ordered", n, item),
  "place_order", "Order an item.", side_effects = "write",
  parameters = list(item = list(type = "string"), n = list(type = "integer", minimum = 1))))
planner <- function(state, tools) switch(length(state$steps) + 1,
  decide_act("lookup_stock", list(item = "pear"), usage = list(tokens = 412)),
  decide_act("send_mail", list(to = "orchard@example.org"), usage = list(tokens = 388)),
  decide_act("place_order", list(item = "pear", n = 200), usage = list(tokens = 401)),
  decide_finish(state$steps[[3]]$result, usage = list(tokens = 97)))
shop <- agent(list(lookup, mail, order), planner,
  limits = agent_limits(steps = 6, tool_calls = 3, tokens = 4000, cost = Inf),
  policy = agent_policy(allow_effects = c("none", "read", "write", "external")))
run <- run_agent(shop, "Keep twenty pears in stock.", run_id = "pears-1")
run <- approve_tool_call(run, "edit", arguments = list(item = "pear", n = 12), approver = "Kim")
page <- view_run(resume_run(shop, run), open = FALSE)

chromium <- Sys.which(c("chromium", "chromium-browser", "google-chrome"))
chromium <- chromium[nzchar(chromium)][1]
if (is.na(chromium)) stop("No Chromium was found.")
figure <- normalizePath(file.path("man", "figures", "view-run.png"), mustWork = FALSE)
dir.create(dirname(figure), showWarnings = FALSE, recursive = TRUE)
system2(chromium, c(
  "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1240,1640", "--force-device-scale-factor=0.75",
  "--blink-settings=preferredColorScheme=1", paste0("--screenshot=", figure), paste0("file://", page)
), stdout = FALSE, stderr = FALSE)
cat(figure, file.size(figure), "bytes\n")
