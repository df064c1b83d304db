# What an archive says of itself in words, and as RO-Crate. Private.

# A draft of the methods: facts only, each of which stands in another file as well.
methods_text <- function(study) {
  manifest <- study$manifest
  paragraphs <- list(
    c(manifest$title, manifest$design), methods_runs(study), methods_agents(manifest),
    methods_tools(study), methods_approvals(study), methods_data(study),
    methods_evaluation(study$evaluation), methods_archive(study)
  )
  text <- vapply(paragraphs, function(parts) paste(full_stop(plain_line(parts)), collapse = " "), "")
  c("# Methods (draft from the record)", paste0("\n", text[nzchar(text)]))
}

# One line, in which nothing is markup.
plain_line <- function(x) {
  x <- gsub("[[:space:]]+", " ", enc2utf8(as.character(x)))
  gsub("([\\\\`*_<>#|\\[\\]])", "\\\\\\1", x, perl = TRUE)
}

full_stop <- function(x) ifelse(grepl("[.!?]$", x), x, paste0(x, "."))

spaced <- function(words) gsub("_", " ", words, fixed = TRUE)

counted_words <- function(x) {
  counts <- table(x)
  counts <- counts[order(-counts, order_c(names(counts)))]
  paste(sprintf("%s %d", names(counts), as.integer(counts)), collapse = ", ")
}

methods_runs <- function(study) {
  runs <- study$runs
  versions <- sprintf("The manifest names warrant %s and R %s", study$manifest$packages$warrant %or% utils::packageVersion("warrant"), study$manifest$r_version)
  if (length(runs) == 0L) {
    return(c(
      versions, "No run was archived",
      if (length(study$records)) sprintf("%d trajectories were recorded without a journal", length(study$records))
    ))
  }
  status <- vapply(runs, `[[`, "", "status")
  reason <- vapply(runs, `[[`, "", "stop_reason")
  word <- spaced(ifelse(nzchar(reason), sprintf("%s (%s)", status, reason), status))
  models <- unique(as.character(unlist(lapply(runs, `[[`, "models"))))
  open <- sum(status %in% c("running", "awaiting_approval"))
  c(
    sprintf("%s recorded from %s to %s", if (length(runs) == 1L) "One run was" else paste(length(runs), "runs were"),
      min(vapply(runs, `[[`, "", "started")), max(vapply(runs, `[[`, "", "last"))),
    versions, paste("Status:", counted_words(word)),
    if (open) sprintf("%d had not ended when the archive was made", open),
    sprintf("Steps a run: median %g, at most %g", stats::median(vapply(runs, `[[`, 0, "steps")), max(vapply(runs, `[[`, 0, "steps"))),
    if (length(models)) paste("Models that answered, as their endpoints named them:", paste(models[order_c(models)], collapse = ", ")),
    if (length(study$records)) sprintf("%d more trajectories were recorded without a journal", length(study$records))
  )
}

methods_agents <- function(manifest) {
  unlist(lapply(names(manifest$agents), function(name) {
    a <- manifest$agents[[name]]
    limits <- Filter(Negate(is.null), a$limits[c("steps", "tool_calls", "tokens", "cost", "seconds")])
    c(
      sprintf("Agent %s: %s", name, planner_words(a$planner)),
      if (length(limits)) paste("Its limits:", paste(spaced(names(limits)), format_number(unlist(limits)), collapse = ", ")),
      sprintf("It may use tools with side effects %s and asks a person for %s",
        paste(unlist(a$policy$allow_effects), collapse = ", "), paste(unlist(a$policy$approve_effects), collapse = ", ")),
      if (length(a$guardrails)) paste("Guardrails:", paste(names(a$guardrails), collapse = ", "))
    )
  }))
}

methods_tools <- function(study) {
  tools <- study$manifest$tools
  about <- vapply(names(tools), function(name) {
    effects <- tools[[name]]$policy$side_effects
    sprintf("%s (%s%s)", name, if (is.null(effects)) "" else paste0(effects, ", "), substr(tools[[name]]$spec_hash, 1L, 8L))
  }, "")
  outcomes <- unlist(lapply(study$runs, `[[`, "outcomes"))
  outcomes[!nzchar(outcomes)] <- "under way"
  c(
    if (length(about)) paste("Tools, with side effects and the beginning of their hash:", paste(about, collapse = ", ")),
    if (length(outcomes)) sprintf("Of %d actions the outcomes were: %s", length(outcomes), counted_words(spaced(outcomes)))
  )
}

methods_approvals <- function(study) {
  asked <- lapply(study$runs, `[[`, "approvals")
  decision <- unlist(lapply(asked, `[[`, "decision"))
  if (length(decision) == 0L) return(if (length(study$runs)) "No approval was asked for")
  people <- unlist(lapply(asked, `[[`, "approver"))
  decision[!nzchar(decision)] <- "pending"
  c(
    sprintf("Approval was asked for %d times: %s", length(decision), counted_words(decision)),
    if (any(nzchar(people))) paste("Decided by:", counted_words(people[nzchar(people)]))
  )
}

methods_data <- function(study) {
  data <- study$manifest$data
  if (length(data) == 0L) return(NULL)
  gone <- names(study$data)[study$data == "not there"]
  c(
    paste("Data files:", paste(sprintf("%s (SHA-256 %s)", names(data), vapply(data, `[[`, "", "sha256")), collapse = ", ")),
    if (length(gone) < length(data)) "They were compared again when the archive was made",
    if (length(gone)) paste("Not found when the archive was made:", paste(gone, collapse = ", "))
  )
}

methods_evaluation <- function(evaluation) {
  if (is.null(evaluation)) return(NULL)
  m <- metrics(evaluation)
  lines <- vapply(seq_len(nrow(m)), function(i) {
    if (is.na(m$estimate[[i]])) return(sprintf("%s: no estimate (%s)", m$metric[[i]], spaced(m$reason[[i]])))
    rate <- m$type[[i]] == "rate"
    figure <- function(x, round) if (is.na(x)) "unbounded" else if (rate) percent(x, round) else format(x)
    interval <- if (is.na(m$confidence_level[[i]])) "no interval" else {
      sprintf("%s%% interval %s to %s", format(100 * m$confidence_level[[i]]), figure(m$lower[[i]], "down"), figure(m$upper[[i]], "up"))
    }
    sprintf("%s: %s (%s; %g eligible, %g missing)", m$metric[[i]], figure(m$estimate[[i]], "even"), interval, m$n_eligible[[i]], m$n_missing[[i]])
  }, "")
  c(sprintf("%d cases were judged. Missing cases widen the intervals", length(evaluation$case_id)), lines)
}

methods_archive <- function(study) {
  words <- vapply(study$runs, `[[`, "", "content")
  some <- sum(words %in% c("partial", "keyless"))
  c(
    sprintf("The manifest has the hash %s", study$manifest$manifest_hash),
    if (!study$content) "Values are left out of this archive, and so are the keys under which their addresses were made",
    if (some) sprintf("Of %d runs the key is left out, since values were redacted or secret; their content cannot be held against their journals", some)
  )
}

# ---- RO-Crate 1.1 and Process Run Crate 0.5 ------------------------------------------

crate <- function(part, files, study) {
  profile <- "https://w3id.org/ro/wfrun/process/0.5"
  people <- unique(c(study$authors, unlist(lapply(study$runs, function(run) run$approvals$approver))))
  people <- people[nzchar(people)]
  software <- crate_software(study)
  runs <- lapply(study$runs, crate_run, study)
  approvals <- unlist(lapply(study$runs, crate_approvals), FALSE)
  title <- study$manifest$title %or% "Runs of agents"
  files <- c(files, "hashes.sha256")
  root <- list(
    `@id` = "./", `@type` = "Dataset", name = title,
    description = study$manifest$design %or% "Journals, trajectories and tables of runs of agents.",
    datePublished = study$created_at, conformsTo = ref(profile),
    license = crate_license(study$license),
    author = if (length(study$authors)) refs(person_id(study$authors)),
    hasPart = lapply(files, ref), mentions = lapply(c(runs, approvals), function(x) ref(x$`@id`))
  )
  graph <- c(
    list(
      list(
        `@id` = "ro-crate-metadata.json", `@type` = "CreativeWork", about = ref("./"),
        conformsTo = ref("https://w3id.org/ro/crate/1.1")
      ),
      Filter(Negate(is.null), root),
      list(`@id` = profile, `@type` = "CreativeWork", name = "Process Run Crate", version = "0.5")
    ),
    crate_license_entity(study$license), lapply(files, crate_file, part), software, runs, approvals,
    lapply(people, function(name) list(`@id` = person_id(name), `@type` = "Person", name = name))
  )
  list(
    `@context` = c("https://w3id.org/ro/crate/1.1/context", "https://w3id.org/ro/terms/workflow-run/context"),
    `@graph` = unname(graph)
  )
}

ref <- function(id) list(`@id` = id)

# One reference stands by itself.
refs <- function(ids) if (length(ids) == 1L) ref(ids) else lapply(ids, ref)

# The profile wants an offset.
offset_time <- function(time) sub("Z$", "+00:00", time)

local_id <- function(kind, name) paste0("#", kind, "-", vapply(enc2utf8(name), utils::URLencode, "", reserved = TRUE, USE.NAMES = FALSE))
person_id <- function(name) local_id("person", name)

is_address <- function(x) grepl("^https?://", x)

crate_license <- function(license) {
  if (is.null(license)) return("No licence is given.")
  if (is_address(license)) ref(license) else license
}

crate_license_entity <- function(license) {
  if (is.null(license) || !is_address(license)) return(NULL)
  list(list(`@id` = license, `@type` = "CreativeWork", name = license, description = "The licence of this archive."))
}

crate_file <- function(file, part) {
  about <- c(
    "manifest.json" = "What the study is made of.", "heads.csv" = "The last record of each journal.",
    "archive.json" = "What this archive holds.", "METHODS.md" = "A draft of the methods.",
    "trajectories.jsonl" = "What the agents did, a record a case.", "hashes.sha256" = "The SHA-256 of every other file."
  )
  kind <- sub(".*[.]", "", file)
  format <- c(
    json = "application/json", jsonl = "application/jsonl", csv = "text/csv", md = "text/markdown",
    content = "text/plain", sha256 = "text/plain"
  )[[kind]]
  known <- file %in% names(about)
  description <- if (known) about[[file]] else switch(dirname(file),
    journals = "The journal of a run: its records, chained by their digests.",
    content = "The values of a run by their addresses.", "A table of the study."
  )
  size <- file.size(file.path(part, file))
  c(
    list(`@id` = file, `@type` = "File", name = basename(file), description = description, encodingFormat = format),
    # The list of digests is made last.
    if (!is.na(size)) list(contentSize = format(size, scientific = FALSE))
  )
}

crate_software <- function(study) {
  software <- function(id, name, version, ...) {
    list(`@id` = id, `@type` = "SoftwareApplication", name = name, softwareVersion = version, ...)
  }
  tools <- study$manifest$tools
  used <- unique(unlist(lapply(study$runs, function(run) run$called)))
  hashes <- unlist(lapply(study$runs, function(run) stats::setNames(run$spec_hashes, run$tools)))
  names <- unique(c(names(tools), names(hashes)))
  about <- lapply(names, function(name) {
    hash <- tools[[name]]$spec_hash %or% hashes[[name]]
    software(local_id("tool", name), name, hash, description = tools[[name]]$description %or% "A tool that agents may call.")
  })
  models <- unique(as.character(unlist(lapply(study$runs, `[[`, "models"))))
  c(
    list(
      software("#warrant", "warrant", as.character(utils::packageVersion("warrant")), description = "The R package that recorded the runs."),
      software("#R", "R", study$manifest$r_version, url = "https://www.r-project.org/")
    ),
    about,
    lapply(models, function(name) software(local_id("model", name), name, name, description = "A model that answered."))
  )
}

crate_run <- function(run, study) {
  called <- unique(run$called[nzchar(run$outcomes) & run$called %in% run$tools])
  instruments <- c("#warrant", if (length(called)) local_id("tool", called), if (length(run$models)) local_id("model", run$models))
  ended <- !run$status %in% c("running", "awaiting_approval")
  status <- if (!ended) "ActiveActionStatus" else if (run$status == "completed") "CompletedActionStatus" else "FailedActionStatus"
  results <- c(
    sprintf("journals/%s.jsonl", run$run_id), if (run$content != "none") sprintf("content/%s.content", run$run_id)
  )
  c(
    list(
      `@id` = local_id("run", run$run_id), `@type` = "CreateAction", name = paste("Run", run$run_id),
      description = sprintf("A run of an agent in %g steps; it is %s.", run$steps, run$status),
      startTime = offset_time(run$started), instrument = refs(instruments), object = ref("manifest.json"),
      result = refs(results), actionStatus = paste0("http://schema.org/", status)
    ),
    if (ended) list(endTime = offset_time(run$last)),
    if (status == "FailedActionStatus") list(error = run$stop_reason),
    if (length(study$authors)) list(agent = refs(person_id(study$authors)))
  )
}

# Who decided what: only what a person decided.
crate_approvals <- function(run) {
  asked <- run$approvals
  by_person <- which(nzchar(asked$approver))
  words <- c(approve = "Approved", edit = "Approved with other arguments", reject = "Rejected")
  lapply(by_person, function(i) {
    decision <- asked$decision[[i]]
    list(
      `@id` = sprintf("%s-approval-%s.%s-%d", local_id("run", run$run_id), asked$step[[i]], asked$action[[i]], i),
      `@type` = if (decision == "reject") "RejectAction" else "AuthorizeAction",
      name = sprintf("%s: %s in step %s", words[[decision]], asked$tool[[i]], asked$step[[i]]),
      agent = ref(person_id(asked$approver[[i]])), object = ref(local_id("run", run$run_id)),
      startTime = offset_time(asked$requested[[i]]), endTime = offset_time(asked$decided[[i]])
    )
  })
}
