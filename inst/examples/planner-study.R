# Which planner finds the passage a sentence comes from? Three rules, one corpus: the
# help pages and vignettes of this package, cut into passages of about 500 characters.
# Every run is bounded, recorded and verified; the checks at the end say what held.
library(warrant)

# ---- the corpus ------------------------------------------------------------------
plain_text <- function(rd) {
  text <- capture.output(tools::Rd2txt(rd, options = list(underline_titles = FALSE, code_quote = FALSE)))
  gsub("_\b", "", text)
}
# From the sources, where this script stands in them; else from the installed package.
script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
root <- if (length(script)) dirname(dirname(dirname(normalizePath(script[[1]])))) else ""
rd_files <- list.files(file.path(root, "man"), "[.]Rd$", full.names = TRUE)
help_pages <- if (length(rd_files)) rd_files else tools::Rd_db("warrant")
help_pages <- lapply(help_pages, plain_text)
rmd_folder <- if (length(rd_files)) file.path(root, "vignettes") else system.file("doc", package = "warrant")
vignettes <- lapply(list.files(rmd_folder, "[.]Rmd$", full.names = TRUE), readLines)
passages_of <- function(lines) {
  text <- trimws(gsub("[[:space:]]+", " ", strsplit(paste(lines, collapse = "\n"), "\n[ \t]*\n")[[1]]))
  text <- text[nzchar(text)]
  if (length(text) == 0) return(character())
  place <- (cumsum(nchar(text)) - 1) %/% 500
  vapply(split(text, place), paste, "", collapse = " ", USE.NAMES = FALSE)
}
corpus <- unique(unlist(lapply(c(help_pages, vignettes), passages_of)))
words_of <- function(text) {
  words <- regmatches(tolower(text), gregexpr("[a-z0-9_]{2,}", tolower(text)))
  if (length(text) == 1) words[[1]] else words
}

# ---- search: BM25 (Robertson and Zaragoza 2009, eq. 3.15; k1 = 1.2, b = 0.75) -----
counts <- lapply(words_of(corpus), table)
lengths <- vapply(counts, sum, 0)
vocabulary <- unlist(lapply(counts, names))
rarity <- log(1 + (length(corpus) - table(vocabulary) + 0.5) / (table(vocabulary) + 0.5))
bm25 <- function(query, k = 5) {
  words <- intersect(words_of(query), names(rarity))
  scores <- vapply(seq_along(counts), function(i) {
    tf <- as.numeric(counts[[i]][words])
    tf[is.na(tf)] <- 0
    norm <- 1.2 * (1 - 0.75 + 0.75 * lengths[[i]] / mean(lengths))
    sum(rarity[words] * tf * 2.2 / (tf + norm))
  }, 0)
  utils::head(order(-scores, seq_along(scores)), k)
}

# ---- tasks: the first half of one sentence of a passage ---------------------------
sentences <- lapply(corpus, function(p) {
  s <- strsplit(p, "(?<=[.]) ", perl = TRUE)[[1]]
  s[nchar(s) > 60 & nchar(s) < 200 & !grepl("[{}<>]|\\$", s)]
})
usable <- which(lengths(sentences) > 0)
usable <- usable[round(seq(1, length(usable), length.out = min(100, length(usable))))]
tasks <- lapply(usable, function(i) {
  sentence <- sentences[[i]][[1]]
  list(start = substr(sentence, 1, nchar(sentence) %/% 2), passage = i)
})

# ---- tools and planners ----------------------------------------------------------
search <- agent_tool(function(query) I(bm25(query)), "search", "Numbers of passages, best first.",
  parameters = list(query = list(type = "string")), side_effects = "read", scopes = "corpus",
  cost = 1, captures = "bm25"
)
read <- agent_tool(function(passage) corpus[[passage]], "read", "One passage.",
  parameters = list(passage = list(type = "integer", minimum = 1, maximum = length(corpus))),
  side_effects = "read", scopes = "corpus", cost = 0.25, captures = "corpus"
)
write <- agent_tool(function(text) stop("this must never run"), "write_answer", "Keep the answer.",
  parameters = list(text = list(type = "string")), side_effects = "write", cost = 0
)
first_hit <- function(state, tools) {
  if (length(state$steps) == 0) return(decide_act("search", list(query = state$goal)))
  step <- state$steps[[1]]
  if (step$outcome != "executed") return(decide_finish(NULL))
  decide_finish(step$result[[1]])
}
read_until_it_fits <- function(most) function(state, tools) {
  steps <- state$steps
  if (length(steps) == 0) return(decide_act("search", list(query = state$goal)))
  if (steps[[1]]$outcome != "executed") return(decide_finish(NULL))
  hits <- steps[[1]]$result
  looked <- length(steps) - 1
  fits <- looked > 0 && grepl(state$goal, steps[[looked + 1]]$result, fixed = TRUE)
  if (fits) return(decide_finish(hits[[looked]]))
  if (looked == min(most, length(hits))) return(decide_finish(hits[[1]]))
  decide_act("read", list(passage = hits[[looked + 1]]))
}
planners <- list(
  "first hit" = first_hit, "read until it fits" = read_until_it_fits(Inf),
  "read at most three" = read_until_it_fits(3)
)

# ---- the study -------------------------------------------------------------------
granted <- agent_policy(granted_scopes = "corpus")
trail <- tempfile(fileext = ".jsonl")
run_all <- function(planner, policy = granted, tools = list(search, read)) {
  a <- agent(tools, planner, policy = policy, limits = agent_limits(steps = 10, cost = 3), audit = audit_jsonl(trail))
  lapply(tasks, function(task) run_agent(a, task$start))
}
runs <- lapply(planners, run_all)
right <- function(runs) mapply(function(run, task) identical(as.integer(run$answer), task$passage), runs, tasks)
total <- function(runs, what) sum(vapply(runs, function(run) run$used[[what]], 0))
cat(sprintf("%d passages, %d tasks\n\n", length(corpus), length(tasks)))
print(data.frame(
  planner = names(runs), success = vapply(runs, function(r) mean(right(r)), 0),
  cost = vapply(runs, total, 0, "cost"), calls = vapply(runs, total, 0, "tool_calls"), row.names = NULL
), digits = 3)

# ---- what must hold --------------------------------------------------------------
check <- function(what, holds) {
  cat(if (holds) "  holds:  " else "  FAILS:  ", what, "\n", sep = "")
  if (!holds) stop("the study does not hold", call. = FALSE)
}
cat("\n")
recall <- vapply(tasks, function(task) bm25(task$start)[[1]] == task$passage, NA)
check("at least 80 tasks", length(tasks) >= 80)
check("the first planner's success is plain search's recall@1", identical(right(runs[[1]]), recall))
all_runs <- unlist(runs, recursive = FALSE)
check("every run's chain verifies", nrow(verify_audit(trail)) == 0 &&
  all(vapply(all_runs, function(run) nrow(verify_audit(run)) == 0, NA)))
logged <- sum(vapply(all_runs, function(run) sum(tool_log(run)$status == "executed"), 0))
check("every tool call has its record", logged == nrow(tool_log(list(search, read))))
before <- nrow(tool_log(list(search, read)))
denied <- run_all(first_hit, agent_policy())
outcomes <- unlist(lapply(denied, function(run) run$steps[[1]]$outcome))
check("without the scope every action is denied and no tool runs",
  all(outcomes == "scope_denied") && nrow(tool_log(list(search, read))) == before)
writes <- function(state, tools) decide_act("write_answer", list(text = state$goal))
paused <- run_all(writes, agent_policy(allow_effects = "write"), list(fresh_tool(write), fresh_tool(search)))
check("with a write tool and nobody to ask, every run pauses before writing",
  all(vapply(paused, function(run) run$status == "awaiting_approval" && run$used$tool_calls == 0, NA)))
