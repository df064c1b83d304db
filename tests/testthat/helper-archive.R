# Runs of every kind: completed with a person's decision, failed, stopped, waiting.
study_runs <- function(store = memory_store()) {
  look <- noting_tool()$tool
  put <- noting_tool("put", "write", fn = function(n) {
    if (n > 2) stop("no room for 6172") else list(tags = I("a"), none = NULL, pin = 4711)
  })$tool
  desk <- agent(list(look, put),
    script_planner(
      decide_act("look", list(n = 8642), note = list(model = "served-1", said = "5309 \u00e9")),
      decide_act(list(
        decide_act("put", list(n = 3)), decide_act("=cmd|' /C calc'!A0\n", list(a = 1)),
        decide_act("put", list(n = 1))
      )),
      answer = "it is \"7531\", says =A1"
    ),
    policy = writes(), store = store, done = function(answer, state) TRUE,
    approver = function(request) list(decision = "approve", approver = "Ann \u00c9")
  )
  list(
    agent = desk,
    runs = list(
      run_agent(desk, "the code is 2468"), run_agent(desk, list(email = "ann@example.org", to = "x")),
      run_agent(agent(look, function(state, tools) stop("down: ann@example.org"), store = store), list(email = "ann@example.org")),
      run_agent(agent(look, always(), limits = agent_limits(steps = 3), store = store), 1357),
      run_agent(agent(put, always("put"), policy = writes(), store = store), "wait")
    )
  )
}

# An archive of them, made once.
study_archive_made <- local({
  made <- NULL
  function() {
    if (is.null(made)) {
      study <- study_runs()
      dir <- tempfile("archive")
      manifest <- study_manifest("A study", "Five runs.", agent = study$agent)
      archive <- archive_study(dir, study$runs, manifest, example_evaluation(), authors = "Bea")
      made <<- list(dir = dir, study = study, manifest = manifest, archive = archive)
    }
    made
  }
})

copy_of <- function(dir) {
  to <- tempfile("copy")
  dir.create(to)
  file.copy(list.files(dir, full.names = TRUE, all.files = TRUE, no.. = TRUE), to, recursive = TRUE)
  to
}

archive_text <- function(dir) {
  files <- list.files(dir, recursive = TRUE, all.files = TRUE, full.names = TRUE)
  unlist(lapply(files, function(file) readLines(file, warn = FALSE, encoding = "UTF-8")))
}

# Whether a text stands anywhere as a word: not within a digest.
tells <- function(dir, text) {
  any(grepl(paste0("(^|[^0-9a-f])", text, "([^0-9a-f]|$)"), archive_text(dir), useBytes = TRUE))
}

# Seals a folder again, as somebody would who changed it and knows how.
seal_again <- function(dir) {
  unlink(file.path(dir, "hashes.sha256"))
  warrant:::unwrap_core(warrant:::rs_archive_seal(dir))
}

edit_file <- function(dir, name, from, to) {
  file <- file.path(dir, name)
  lines <- readLines(file, encoding = "UTF-8")
  new <- sub(from, to, lines, fixed = TRUE)
  stopifnot(!identical(new, lines))
  write_bytes(new, file)
}
