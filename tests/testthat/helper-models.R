# A real HTTP server on loopback, in a process of its own, that answers from scripts.
# A script is a folder; its n-th request is answered by what n.rds holds, the last one
# by all that follow, and what was asked is kept in n.txt.
serve_scripts <- function(dir) {
  socket <- NULL
  for (port in sample(20000:40000, 200)) {
    socket <- tryCatch(serverSocket(port), error = function(e) NULL)
    if (!is.null(socket)) break
  }
  file.rename({
    writeLines(as.character(port), file.path(dir, "port.part"))
    file.path(dir, "port.part")
  }, file.path(dir, "port"))
  held <- list()
  read_request <- function(con) {
    head <- character()
    while (length(line <- readLines(con, 1L)) && nzchar(line)) head <- c(head, sub("\r$", "", line))
    if (length(head) == 0L) return(NULL)
    field <- function(name) {
      line <- grep(paste0("^", name, ":"), head, ignore.case = TRUE, value = TRUE)
      if (length(line)) trimws(sub("^[^:]*:", "", line[[1]]))
    }
    if (!is.null(field("expect"))) writeLines("HTTP/1.1 100 Continue\r\n\r", con, sep = "\n")
    size <- as.integer(field("content-length"))
    body <- raw()
    while (length(size) && length(body) < size) body <- c(body, readBin(con, raw(), size - length(body)))
    list(path = strsplit(head[[1]], " ")[[1]][[2]], head = head, body = rawToChar(body))
  }
  answer <- function(con, reply) {
    body <- charToRaw(enc2utf8(reply$body))
    size <- length(body) + if (isTRUE(reply$cut)) 50L else 0L
    type <- if (is.null(reply$type)) "application/json" else reply$type
    head <- c(
      sprintf("HTTP/1.1 %d Scripted", reply$status), paste0("Content-Type: ", type),
      paste0("Content-Length: ", size), "Connection: close", reply$headers, ""
    )
    writeBin(c(charToRaw(paste0(paste(head, collapse = "\r\n"), "\r\n")), body), con)
    flush(con)
  }
  repeat {
    con <- tryCatch(
      socketAccept(socket, blocking = TRUE, open = "r+b", timeout = 600),
      error = function(e) NULL
    )
    if (is.null(con)) next
    keep <- FALSE
    try({
      request <- read_request(con)
      if (!is.null(request)) {
        script <- file.path(dir, strsplit(request$path, "/")[[1]][[2]])
        n <- length(list.files(script, "[.]txt$")) + 1L
        writeLines(c(request$head, "", request$body), file.path(script, paste0(n, ".txt")))
        last <- length(list.files(script, "[.]rds$"))
        reply <- readRDS(file.path(script, paste0(min(n, last), ".rds")))
        if (isTRUE(reply$hang)) keep <- TRUE else if (!isTRUE(reply$drop)) answer(con, reply)
      }
    }, silent = TRUE)
    if (keep) held[[length(held) + 1L]] <- con else try(close(con), silent = TRUE)
  }
}

servers <- new.env(parent = emptyenv())

model_server <- function() {
  skip_if_not_installed("httr2")
  skip_if_not_installed("callr")
  skip_if_not_installed("withr")
  skip_if_not_installed("jsonlite")
  alive <- !is.null(servers$process) && servers$process$is_alive()
  if (!alive) {
    servers$dir <- tempfile("scripts")
    dir.create(servers$dir)
    servers$process <- callr::r_bg(serve_scripts, list(servers$dir), cleanup = TRUE)
    file <- file.path(servers$dir, "port")
    for (i in seq_len(600)) if (file.exists(file)) break else Sys.sleep(0.05)
    servers$port <- readLines(file)
    servers$n <- 0L
    withr::defer(servers$process$kill(), testthat::teardown_env())
  }
  servers
}

# A script of replies: gives the base address, and what was asked so far.
script <- function(..., env = parent.frame()) {
  server <- model_server()
  server$n <- server$n + 1L
  name <- paste0("s", server$n)
  dir <- file.path(server$dir, name)
  dir.create(dir)
  replies <- list(...)
  for (i in seq_along(replies)) saveRDS(replies[[i]], file.path(dir, paste0(i, ".rds")))
  withr::local_envvar(no_proxy = "*", NO_PROXY = "*", .local_envir = env)
  the <- asNamespace("warrant")$the
  before <- the$backoff
  withr::defer(the$backoff <- before, envir = env)
  the$backoff <- 0
  list(
    url = sprintf("http://127.0.0.1:%s/%s/v1", server$port, name),
    count = function() length(list.files(dir, "[.]txt$")),
    head = function(n = 1) {
      lines <- readLines(file.path(dir, paste0(n, ".txt")))
      lines[seq_len(which(lines == "")[[1]] - 1L)]
    },
    text = function(n = 1) {
      lines <- readLines(file.path(dir, paste0(n, ".txt")), encoding = "UTF-8")
      paste(lines[-seq_len(which(lines == "")[[1]])], collapse = "\n")
    },
    body = function(n = 1) {
      lines <- readLines(file.path(dir, paste0(n, ".txt")), encoding = "UTF-8")
      text <- paste(lines[-seq_len(which(lines == "")[[1]])], collapse = "\n")
      jsonlite::fromJSON(text, simplifyVector = FALSE)
    }
  )
}

reply <- function(body, status = 200L, ..., headers = character()) {
  list(body = body, status = as.integer(status), headers = headers, ...)
}

wire_json <- function(x) as.character(jsonlite::toJSON(x, auto_unbox = TRUE, null = "null", digits = NA))

# Answers in OpenAI's form: a text, or calls given as list(name, arguments, id).
says <- function(text, tokens = c(5, 2), finish = "stop") {
  reply(wire_json(list(
    id = "x", model = "served-1",
    choices = list(list(index = 0, message = list(role = "assistant", content = text), finish_reason = finish)),
    usage = list(prompt_tokens = tokens[[1]], completion_tokens = tokens[[2]], total_tokens = sum(tokens))
  )))
}

asks <- function(..., text = NULL) {
  calls <- lapply(list(...), function(call) {
    list(
      id = if (length(call) > 2L) call[[3]] else "call_1", type = "function",
      `function` = list(name = call[[1]], arguments = call[[2]])
    )
  })
  reply(wire_json(list(
    id = "x", model = "served-1",
    choices = list(list(
      index = 0, message = list(role = "assistant", content = text, tool_calls = calls),
      finish_reason = "tool_calls"
    )),
    usage = list(prompt_tokens = 5, completion_tokens = 2, total_tokens = 7)
  )))
}

user <- function(text = "hello") list(list(role = "user", content = text))
