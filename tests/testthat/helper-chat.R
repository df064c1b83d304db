# The tools of the recorded tool loop in fixtures/llmr-tool-loop.json.
loop_tools <- function() {
  tools <- list(
    agent_tool(function(city) paste("Sunny in", city),
      name = "get_weather",
      description = "Current weather for a city.", parameters = list(city = list(type = "string")),
      side_effects = "external", max_calls = 5
    ),
    human_gate(agent_tool(function(item, n) paste("ordered", n, item), "place_order", "Order an item.",
      parameters = list(item = list(type = "string"), n = list(type = "integer", minimum = 1)),
      side_effects = "write"
    ), "Place this order?"),
    agent_tool(function() 7, "lucky_number", "A lucky number.", side_effects = "none", max_calls = 1),
    agent_tool(function(tags) list(tags = I(tags), n = length(tags)), "tags", "Counts tags.",
      parameters = list(tags = list(type = "array", items = list(type = "string"))),
      side_effects = "none"
    )
  )
  stats::setNames(tools, vapply(tools, function(tool) tool$name, ""))
}

loop_statuses <- c(
  "executed", "invalid_arguments", "approval_required", "executed", "tool_exhausted",
  "invalid_arguments", "executed"
)

# jsonlite comes with testthat.
loop_record <- function() read_json(readLines(test_path("fixtures", "llmr-tool-loop.json"), encoding = "UTF-8"))
read_json <- function(text) jsonlite::fromJSON(text, simplifyVector = FALSE)
write_json <- function(x) as.character(jsonlite::toJSON(x, auto_unbox = TRUE, null = "null"))

# Answers the requests of a chat client with these bodies, one after the other, in
# a process of its own. Gives the port.
local_chat_server <- function(bodies, env = parent.frame()) {
  folder <- tempfile()
  dir.create(folder)
  saveRDS(bodies, file.path(folder, "bodies"))
  code <- bquote({
    folder <- .(folder)
    for (port in 20000 + sample.int(20000, 50)) {
      socket <- tryCatch(serverSocket(port), error = function(e) NULL, warning = function(w) NULL)
      if (!is.null(socket)) break
    }
    writeLines(as.character(port), file.path(folder, "writing"))
    file.rename(file.path(folder, "writing"), file.path(folder, "port"))
    for (body in readRDS(file.path(folder, "bodies"))) {
      con <- socketAccept(socket, blocking = TRUE, open = "r+b", timeout = 60)
      size <- 0
      repeat {
        line <- readLines(con, 1)
        if (!length(line) || !nzchar(line)) break
        if (grepl("^content-length:", line, ignore.case = TRUE)) size <- as.integer(sub(".*: *", "", line))
      }
      while (size > 0) size <- size - length(readBin(con, "raw", size))
      head <- paste0(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: ",
        nchar(body, "bytes"), "\r\n\r\n"
      )
      writeBin(charToRaw(paste0(head, body)), con)
      flush(con)
      close(con)
    }
  })
  script <- file.path(folder, "server.R")
  writeLines(deparse(code), script)
  system2(file.path(R.home("bin"), "Rscript"), c("--vanilla", shQuote(script)), wait = FALSE, stdout = FALSE, stderr = FALSE)
  do.call("on.exit", list(bquote(unlink(.(folder), recursive = TRUE)), add = TRUE), envir = env)
  for (i in 1:100) {
    if (file.exists(file.path(folder, "port"))) return(readLines(file.path(folder, "port")))
    Sys.sleep(0.1)
  }
  stop("The server did not start.")
}
