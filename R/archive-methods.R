# The methods paragraph of an archive: facts only, each of which stands in another file
# as well. Private.

methods_text <- function(study) {
  manifest <- study$manifest
  paragraphs <- list(
    c(manifest$title, manifest$design), methods_runs(study), methods_agents(manifest),
    methods_tools(study), methods_approvals(study), methods_data(study),
    unlist(lapply(study$evaluations, methods_evaluation)), methods_archive(study)
  )
  text <- vapply(paragraphs, function(parts) {
    paste(full_stop(plain_line(parts)), collapse = " ")
  }, "")
  c("# Methods (draft from the record)", paste0("\n", text[nzchar(text)]))
}

# One line, in which nothing is markup.
plain_line <- function(x) {
  x <- gsub("[[:space:]]+", " ", enc2utf8(as.character(x)))
  gsub("([\\\\`*_<>#|\\[\\]])", "\\\\\\1", x, perl = TRUE)
}

full_stop <- function(x) ifelse(grepl("[.!?]$", x), x, paste0(x, "."))

spaced <- function(words) gsub("_", " ", words, fixed = TRUE)

listed <- function(x) paste(x, collapse = ", ")

counted_words <- function(x) {
  counts <- table(x)
  counts <- counts[order(-counts, order_c(names(counts)))]
  listed(sprintf("%s %d", names(counts), as.integer(counts)))
}

# What stands under a name in each run.
of_runs <- function(runs, name) unlist(lapply(runs, `[[`, name))

models_of <- function(runs) {
  models <- unique(as.character(of_runs(runs, "models")))
  models[order_c(models)]
}

methods_runs <- function(study) {
  runs <- study$runs
  bare <- length(study$records)
  about_bare <- if (bare) sprintf("%d trajectories were recorded without a journal", bare)
  versions <- sprintf(
    "The manifest names warrant %s and R %s",
    study$manifest$packages$warrant %or% utils::packageVersion("warrant"), study$manifest$r_version
  )
  if (length(runs) == 0L) return(c(versions, "No run was archived", about_bare))
  status <- of_runs(runs, "status")
  reason <- of_runs(runs, "stop_reason")
  steps <- of_runs(runs, "steps")
  open <- sum(status %in% c("running", "awaiting_approval"))
  models <- models_of(runs)
  c(
    sprintf(
      "%s recorded from %s to %s",
      if (length(runs) == 1L) "One run was" else paste(length(runs), "runs were"),
      min(of_runs(runs, "started")), max(of_runs(runs, "last"))
    ),
    versions,
    paste("Status:", counted_words(spaced(
      ifelse(nzchar(reason), sprintf("%s (%s)", status, reason), status)
    ))),
    if (open) sprintf("%d had not ended when the archive was made", open),
    sprintf("Steps a run: median %g, at most %g", stats::median(steps), max(steps)),
    if (length(models)) {
      paste("Models that answered, as their endpoints named them:", listed(models))
    },
    about_bare
  )
}

methods_agents <- function(manifest) {
  unlist(lapply(names(manifest$agents), function(name) {
    agent <- manifest$agents[[name]]
    limits <- unlist(Filter(
      Negate(is.null), agent$limits[c("steps", "tool_calls", "tokens", "cost", "seconds")]
    ))
    asks <- unlist(agent$policy$approve_effects)
    c(
      sprintf("Agent %s: %s", name, planner_words(agent$planner)),
      if (length(limits)) {
        paste("Its limits:", listed(paste(spaced(names(limits)), format_number(limits))))
      },
      sprintf(
        "It may use tools with side effects %s, and asks a person for %s",
        listed(unlist(agent$policy$allow_effects)), if (length(asks)) listed(asks) else "none"
      ),
      if (length(agent$guardrails)) paste("Guardrails:", listed(names(agent$guardrails)))
    )
  }))
}

# Tools of runs that are not those of the manifest: another was planned.
unplanned_tools <- function(study) {
  if (is.null(study$planned)) return(character())
  names <- of_runs(study$runs, "tools")
  hashes <- of_runs(study$runs, "spec_hashes")
  other <- !hashes %in% vapply(study$planned, `[[`, "", "spec_hash")
  tools <- unique(sprintf("%s (%s)", names, substr(hashes, 1L, 8L))[other])
  tools[order_c(tools)]
}

methods_tools <- function(study) {
  unplanned <- unplanned_tools(study)
  tools <- study$manifest$tools
  about <- vapply(names(tools), function(name) {
    parts <- c(tools[[name]]$policy$side_effects, substr(tools[[name]]$spec_hash, 1L, 8L))
    sprintf("%s (%s)", name, listed(parts))
  }, "")
  outcomes <- as.character(of_runs(study$runs, "outcomes"))
  outcomes[!nzchar(outcomes)] <- "under way"
  c(
    if (length(about)) {
      paste("Tools, with side effects and the beginning of their hash:", listed(about))
    },
    if (length(outcomes)) {
      sprintf("Of %d actions the outcomes were: %s", length(outcomes), counted_words(spaced(outcomes)))
    },
    if (length(unplanned)) {
      paste("Not those of the manifest were these tools of the runs:", listed(unplanned))
    }
  )
}

methods_approvals <- function(study) {
  asked <- lapply(study$runs, `[[`, "approvals")
  decisions <- of_runs(asked, "decision")
  if (length(decisions) == 0L) {
    return(if (length(study$runs)) "No approval was asked for")
  }
  people <- of_runs(asked, "approver")
  people <- people[nzchar(people)]
  decisions[!nzchar(decisions)] <- "pending"
  c(
    sprintf("Approval was asked for %d times: %s", length(decisions), counted_words(decisions)),
    if (length(people)) paste("Decided by:", counted_words(people))
  )
}

methods_data <- function(study) {
  data <- study$manifest$data
  if (length(data) == 0L) return(NULL)
  gone <- names(study$data)[study$data == "not there"]
  digests <- vapply(data, `[[`, "", "sha256")
  c(
    paste("Data files:", listed(sprintf("%s (SHA-256 %s)", names(data), digests))),
    if (length(gone) < length(data)) "They were compared again when the archive was made",
    if (length(gone)) paste("Not found when the archive was made:", listed(gone))
  )
}

methods_evaluation <- function(evaluation) {
  rows <- metrics(evaluation)
  n <- length(evaluation$case_id)
  c(
    if (is.null(evaluation$arm)) {
      sprintf("%d cases were judged. Missing cases widen the intervals", n)
    } else {
      sprintf("In the arm %s, %d cases were judged. Missing cases widen the intervals", evaluation$arm, n)
    },
    vapply(seq_len(nrow(rows)), function(i) metric_words(lapply(rows, `[[`, i)), "")
  )
}

metric_words <- function(row) {
  if (is.na(row$estimate)) {
    return(sprintf("%s: no estimate (%s)", row$metric, spaced(row$reason)))
  }
  # A bound never looks better than it is.
  figure <- function(x, round) {
    if (is.na(x)) return("unbounded")
    if (row$type == "rate") percent(x, round) else format(x)
  }
  interval <- if (is.na(row$confidence_level)) {
    "no interval"
  } else {
    sprintf(
      "%s%% interval %s to %s", format(100 * row$confidence_level), figure(row$lower, "down"),
      figure(row$upper, "up")
    )
  }
  sprintf(
    "%s: %s (%s; %g eligible, %g missing)", row$metric, figure(row$estimate, "even"), interval,
    row$n_eligible, row$n_missing
  )
}

methods_archive <- function(study) {
  some <- sum(of_runs(study$runs, "content") %in% c("partial", "keyless"))
  c(
    sprintf("The manifest has the hash %s", study$manifest$manifest_hash),
    if (!study$content) {
      "Values are left out of this archive, and so are the keys under which their addresses were made"
    },
    if (some) {
      sprintf(paste(
        "Of %d runs the key is left out, since values were redacted or secret;",
        "their content cannot be held against their journals"
      ), some)
    }
  )
}
