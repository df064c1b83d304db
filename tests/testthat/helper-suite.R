# A suite from JSON texts, without files: cases by id.
tiny_suite <- function(criteria, expected = "null", ids = letters[seq_along(expected)],
                       metadata = "{}", metrics = list(), slices = character(), group_id = NULL,
                       min_slice_support = 1) {
  cases <- list(
    id = ids, input = rep("\"q\"", length(ids)), expected = rep_len(expected, length(ids)),
    metadata = rep_len(metadata, length(ids)), group_id = group_id
  )
  check_suite_parts(structure(
    list(
      cases = cases, criteria = criteria, metrics = metrics, slices = slices,
      min_slice_support = min_slice_support
    ),
    class = "agent_suite"
  ))
}

quantile_of <- function(source, q = 0.5) list(id = paste0(source, "_q"), type = "quantile", source = source, quantile = q)

# Trajectories in short: `a` calls tool a, `-` is a message; `...` marks a prefix.
acts <- function(short) {
  words <- strsplit(short, " ")[[1]]
  words <- words[nzchar(words)]
  cut <- "..." %in% words
  steps <- lapply(setdiff_in_order(words, "..."), function(word) {
    if (word == "-") agent_step("message") else agent_step("tool_call", tool_name = word)
  })
  agent_trajectory(steps, truncated = cut)
}

setdiff_in_order <- function(x, drop) x[!x %in% drop]

jsonl <- function(..., .lines = c(...)) {
  file <- tempfile(fileext = ".jsonl")
  con <- base::file(file, "wb")
  on.exit(close(con))
  writeLines(.lines, con, useBytes = TRUE)
  file
}

record_of <- function(id, trajectory) sprintf("{\"case_id\":\"%s\",\"trajectory\":%s}", id, trajectory)
