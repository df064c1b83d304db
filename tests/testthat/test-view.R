test_that("a page tells goal, steps, refusals, approvals and the verifier's findings", {
  page <- page_of(told_run("a plain word"))
  for (part in c(
    "a plain word", "Step 4", "Refused by the policy: it does not grant a scope",
    "Refused by the list of tools", "Approved with other arguments by", "A person", "plain word2",
    "The tool raised an error", "The run paused, with 1 request open", "No faults were found"
  )) {
    expect_match(page, part, fixed = TRUE)
  }
  expect_match(page, "<html lang=\"en\">", fixed = TRUE)
  expect_match(page, "^<!DOCTYPE html>")
})

test_that("the same run gives the same bytes, and the path is given back", {
  run <- told_run()
  file <- withr::local_tempfile(fileext = ".html")
  expect_equal(basename(expect_invisible(view_run(run, file, open = FALSE))), basename(file))
  first <- readBin(file, "raw", 1e6)
  view_run(run, file, open = FALSE)
  expect_equal(readBin(file, "raw", 1e6), first)
  expect_false(file.exists(paste0(file, ".part")))
})

test_that("a run that waits shows its request, and is open", {
  send <- agent_tool(function(to) to, "send", "Sends.",
    parameters = list(to = list(type = "string")), side_effects = "write"
  )
  a <- agent(human_gate(send, "Send it?"), script_planner(decide_act("send", list(to = "all"))), writes())
  page <- page_of(run_agent(a, "x"))
  expect_match(page, "Waiting for a person", fixed = TRUE)
  expect_match(page, "Send it?", fixed = TRUE)
  expect_match(page, "awaiting approval", fixed = TRUE)
  expect_match(page, "The run has no end yet", fixed = TRUE)
})

test_that("literal secrets are not on the page", {
  pay <- agent_tool(function(token) nchar(token), "pay", "Pays.",
    parameters = list(token = list(type = "string", secret = TRUE)), side_effects = "read"
  )
  withr::local_envvar(WARRANT_TEST_TOKEN = "from-the-environment")
  a <- agent(pay, script_planner(
    decide_act("pay", list(token = "sk-literal-12345")),
    decide_act("pay", list(token = secret_env("WARRANT_TEST_TOKEN")))
  ))
  page <- page_of(run_agent(a, "x"))
  expect_no_match <- function(text) expect_false(grepl(text, page, fixed = TRUE))
  expect_no_match("sk-literal")
  expect_no_match("from-the-environment")
  expect_match(page, "&lt;redacted&gt;", fixed = TRUE)
  expect_match(page, "secret_env(&quot;WARRANT_TEST_TOKEN&quot;)", fixed = TRUE)
})

test_that("long values are cut at the bytes asked for, with the size of the whole", {
  run <- told_run(strrep("long ", 2e5))
  page <- page_of(run, max_bytes = 1000)
  expect_match(page, "shown are 1,000 of 1,000,000 bytes", fixed = TRUE)
  expect_lt(nchar(page), 60000)
})

test_that("a store or a trail is shown as well, the trail without values", {
  store <- memory_store()
  run <- told_run("the word", store)
  expect_equal(page_of(store), page_of(run))
  told_run("other", store)
  expect_warrant_error(view_run(store, open = FALSE), "which_run")
  expect_equal(page_of(store, run_id = run$run_id), page_of(run))

  trail <- page_of(system.file("extdata", "trail.jsonl", package = "warrant"), run_id = "0123456789abcdef0123456789abcdef")
  expect_match(trail, "by address only", fixed = TRUE)
  lines <- store$read(run$run_id)
  expect_false(grepl("the word2", page_of(lines), fixed = TRUE))
  expect_match(page_of(lines[-3]), "Faults of the trail", fixed = TRUE)
})

test_that("an evaluation of the run is on its page", {
  run <- told_run()
  cases <- suite(data.frame(id = c("a", "b"), input = "q"), list(criterion_tool_called("look"), criterion_max_steps(2)))
  ev <- evaluate(cases, list(a = agent_trajectory(list(agent_step("final"))), b = as_trajectory(run)))
  page <- page_of(run, evaluation = ev)
  expect_match(page, "How case <code>b</code> was judged", fixed = TRUE)
  expect_match(page, "agent_tool_look_called", fixed = TRUE)
  expect_match(page_of(run, evaluation = ev, case_id = "a"), "How case <code>a</code>", fixed = TRUE)
  expect_warrant_error(view_run(run, evaluation = ev, case_id = "z", open = FALSE), "unknown_case")
  other <- told_run("another")
  expect_warrant_error(view_run(other, evaluation = ev, open = FALSE), "which_case")
})

test_that("bad arguments are named", {
  run <- told_run()
  expect_warrant_error(view_run(1, open = FALSE), "input")
  expect_warrant_error(view_run(tempfile(), open = FALSE), "audit_open")
  expect_warrant_error(view_run(run, file = 1, open = FALSE), "input")
  expect_warrant_error(view_run(run, tempfile(tmpdir = file.path(tempdir(), "not", "there")), open = FALSE), "cannot_write")
  expect_warrant_error(view_run(run, run_id = "another", open = FALSE), "which_run")
  expect_warrant_error(view_run(run, evaluation = 1, open = FALSE), "input")
  expect_warrant_error(view_run(run, max_bytes = 0, open = FALSE), "input")
  expect_warrant_error(view_run(run, tempfile(), TRUE), "input")
})

# ---- hostile texts ---------------------------------------------------------------

hostile <- c(
  "<script>document.title='owned'</script>",
  "</style><script>document.title='owned'</script><style>",
  "</title></head><body onload=\"document.title='owned'\">",
  "\"><img src=x onerror=\"document.title='owned'\">",
  "' onmouseover='document.title=1' x='",
  "<a href=\"javascript:document.title='owned'\">click</a>",
  "<svg onload=document.title='owned'>", "<iframe srcdoc=\"<script>parent.document.title='owned'</script>\">",
  "&lt;script&gt;document.title='owned'&lt;/script&gt;", "&#60;script&#62;", "--><script>document.title='owned'</script><!--",
  "]]><script>document.title='owned'</script>", "</pre></details></main><h1>forged verdict: sound</h1>",
  "<meta http-equiv=refresh content='0;url=https://example.org'>", "<base href=https://example.org>",
  "<form action=https://example.org><input name=x></form>", "</textarea><plaintext>", "{{7*7}} ${7*7} `x`"
)

test_that("texts of models and tools never become markup", {
  known <- unique(tags_of(page_of(told_run("plain"))))
  for (text in hostile) {
    page <- page_of(told_run(text))
    new <- setdiff(unique(tags_of(page)), known)
    # Ids, times and widths of bars differ; no new kind of tag or attribute may.
    kind <- function(tags) unique(gsub("\"[^\"]*\"", "\"\"", tags))
    expect_equal(setdiff(kind(new), kind(known)), character(), info = text)
    values <- unlist(regmatches(new, gregexpr("\"[^\"]*\"", new)))
    expect_false(any(grepl("owned|script|example|[<>']", values)), info = text)
  }
})

test_that("an HTML parser finds the same elements, whatever the texts", {
  skip_if_not_installed("xml2")
  elements <- function(text) {
    page <- xml2::read_html(page_of(told_run(text)))
    found <- xml2::xml_find_all(page, "//*")
    table(xml2::xml_name(found[!xml2::xml_attr(found, "class") %in% "c"]))
  }
  plain <- elements("plain")
  for (text in hostile) expect_equal(names(elements(text)), names(plain), info = text)
})

test_that("characters that hide or reorder text are spelled out", {
  text <- "a\u202eb\u2066c\u200bd\ufeffe\u2028f\u001b[31mg\u0007h\U000E0041i"
  page <- page_of(told_run(text))
  body <- sub("^.*</style>", "", page)
  expect_false(grepl("[\u202e\u2066\u200b\ufeff\u2028\u001b\u0007\U000E0041]", body))
  for (code in c("202E", "2066", "200B", "FEFF", "2028", "E0041")) {
    expect_match(body, paste0("<span class=\"c\">U+", code, "</span>"), fixed = TRUE)
  }
})

test_that("in a browser hostile texts run nothing and change nothing", {
  run <- told_run(paste(hostile, collapse = "\n"))
  path <- view_run(run, withr::local_tempfile(fileext = ".html"), open = FALSE)
  dom <- browser_dom(normalizePath(path))
  expect_match(dom, paste0("<title>Run ", run$run_id, ", completed</title>"), fixed = TRUE)
  tags <- tags_of(dom)
  expect_false(any(grepl("^<(script|img|iframe|form|input|base|plaintext|object|embed)", tags)))
  expect_false(any(grepl("[[:space:]]on[a-z]+=", tags)))
  expect_equal(sum(grepl("^<h1", tags)), 1L)
})

test_that("a run of an archive is shown from there", {
  dir <- file.path(withr::local_tempdir(), "study")
  run <- told_run("the word")
  archive_study(dir, run)
  page <- page_of(archive_store(dir))
  expect_match(page, "the word2", fixed = TRUE)
  expect_match(page, "No faults were found", fixed = TRUE)
})

test_that("values that a store has lost are said to be lost, and the trail is not called broken", {
  run <- told_run("the word")
  store <- run$store
  whole <- store$get_content
  store$get_content <- function(run_id, addresses = NULL) {
    found <- if (is.null(addresses)) whole(run_id) else whole(run_id, addresses)
    found[names(found) == "key"]
  }
  page <- page_of(store, run_id = run$run_id)
  expect_match(page, "not kept with this record", fixed = TRUE)
  expect_match(page, "What was noticed besides", fixed = TRUE)
  expect_match(page, "sound", fixed = TRUE)
})

test_that("bytes that are no text do not break the page", {
  run <- told_run("the word")
  store <- run$store
  whole <- store$get_content
  store$get_content <- function(run_id, addresses = NULL) {
    found <- if (is.null(addresses)) whole(run_id) else whole(run_id, addresses)
    found[which(names(found) != "key")[1]] <- "\xff<script>"
    found
  }
  path <- view_run(store, run_id = run$run_id, open = FALSE)
  lines <- readLines(path, encoding = "UTF-8")
  expect_true(all(validUTF8(lines)))
  expect_false(any(grepl("<script", lines, fixed = TRUE)))
})
