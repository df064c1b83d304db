# What an archive says of itself as RO-Crate 1.1, with the profile Process Run Crate 0.5.
# No value of a run is in it. Private.

crate <- function(part, files, study) {
  files <- c(files, "hashes.sha256")
  runs <- lapply(study$runs, crate_run, study)
  approvals <- unlist(lapply(study$runs, crate_approvals), FALSE)
  people <- unique(c(study$authors, of_runs(lapply(study$runs, `[[`, "approvals"), "approver")))
  people <- people[nzchar(people)]
  graph <- c(
    list(
      list(
        `@id` = "ro-crate-metadata.json", `@type` = "CreativeWork", about = ref("./"),
        conformsTo = ref("https://w3id.org/ro/crate/1.1")
      ),
      crate_root(files, c(runs, approvals), study),
      list(
        `@id` = process_run_crate, `@type` = "CreativeWork", name = "Process Run Crate",
        version = "0.5"
      )
    ),
    crate_license(study$license), lapply(files, crate_file, part), crate_software(study), runs,
    approvals,
    lapply(people, function(name) list(`@id` = person_id(name), `@type` = "Person", name = name))
  )
  list(
    `@context` = c(
      "https://w3id.org/ro/crate/1.1/context", "https://w3id.org/ro/terms/workflow-run/context"
    ),
    `@graph` = unname(graph)
  )
}

process_run_crate <- "https://w3id.org/ro/wfrun/process/0.5"

crate_root <- function(files, actions, study) {
  license <- study$license %or% "No licence is given."
  root <- list(
    `@id` = "./", `@type` = "Dataset", name = study$manifest$title %or% "Runs of agents",
    description = study$manifest$design %or%
      "Journals, trajectories and tables of runs of agents.",
    datePublished = study$created_at, conformsTo = ref(process_run_crate),
    license = if (is_address(license)) ref(license) else license,
    author = if (length(study$authors)) refs(person_id(study$authors)),
    hasPart = lapply(files, ref), mentions = lapply(actions, function(x) ref(x$`@id`))
  )
  Filter(Negate(is.null), root)
}

ref <- function(id) list(`@id` = id)

# One reference stands by itself.
refs <- function(ids) if (length(ids) == 1L) ref(ids) else lapply(ids, ref)

local_id <- function(kind, name) {
  encoded <- vapply(enc2utf8(name), utils::URLencode, "", reserved = TRUE, USE.NAMES = FALSE)
  paste0("#", kind, "-", encoded)
}

person_id <- function(name) local_id("person", name)

is_address <- function(x) grepl("^https?://", x)

# The profile wants an offset.
offset_time <- function(time) sub("Z$", "+00:00", time)

crate_license <- function(license) {
  if (is.null(license) || !is_address(license)) return(NULL)
  list(list(
    `@id` = license, `@type` = "CreativeWork", name = license,
    description = "The licence of this archive."
  ))
}

crate_file <- function(file, part) {
  size <- file.size(file.path(part, file))
  c(
    list(
      `@id` = file, `@type` = "File", name = basename(file), description = file_words(file),
      encodingFormat = file_format(file)
    ),
    # The list of digests is made last.
    if (!is.na(size)) list(contentSize = format(size, scientific = FALSE))
  )
}

file_words <- function(file) {
  switch(file,
    "manifest.json" = "What the study is made of.",
    "heads.csv" = "The last record of each journal.",
    "archive.json" = "What this archive holds.",
    "METHODS.md" = "A draft of the methods.",
    "trajectories.jsonl" = "What the agents did, a record a case.",
    "hashes.sha256" = "The SHA-256 of every other file.",
    switch(dirname(file),
      journals = "The journal of a run: its records, chained by their digests.",
      content = "The values of a run by their addresses.",
      "A table of the study."
    )
  )
}

file_format <- function(file) {
  switch(sub(".*[.]", "", file),
    json = "application/json", jsonl = "application/jsonl", csv = "text/csv",
    md = "text/markdown", "text/plain"
  )
}

crate_software <- function(study) {
  software <- function(id, name, version, ...) {
    list(`@id` = id, `@type` = "SoftwareApplication", name = name, softwareVersion = version, ...)
  }
  tools <- study$manifest$tools
  hashes <- stats::setNames(of_runs(study$runs, "spec_hashes"), of_runs(study$runs, "tools"))
  about_tools <- lapply(unique(c(names(tools), names(hashes))), function(name) {
    software(
      local_id("tool", name), name, tools[[name]]$spec_hash %or% hashes[[name]],
      description = tools[[name]]$description %or% "A tool that agents may call."
    )
  })
  about_models <- lapply(models_of(study$runs), function(name) {
    software(local_id("model", name), name, name, description = "A model that answered.")
  })
  version <- as.character(utils::packageVersion("warrant"))
  c(
    list(
      software("#warrant", "warrant", version, description = "The R package that recorded the runs."),
      software("#R", "R", study$manifest$r_version, url = "https://www.r-project.org/")
    ),
    about_tools, about_models
  )
}

crate_run <- function(run, study) {
  # What a model asked for need not be a tool.
  called <- unique(run$called[run$called %in% run$tools])
  instruments <- c(
    "#warrant", if (length(called)) local_id("tool", called),
    if (length(run$models)) local_id("model", run$models)
  )
  results <- c(
    sprintf("journals/%s.jsonl", run$run_id),
    if (run$content != "none") sprintf("content/%s.content", run$run_id)
  )
  status <- switch(run$status,
    running = , awaiting_approval = "Active", completed = "Completed", "Failed"
  )
  c(
    list(
      `@id` = local_id("run", run$run_id), `@type` = "CreateAction",
      name = paste("Run", run$run_id),
      description = sprintf("A run of an agent in %g steps; it is %s.", run$steps, spaced(run$status)),
      startTime = offset_time(run$started), instrument = refs(instruments),
      object = ref("manifest.json"), result = refs(results),
      actionStatus = sprintf("http://schema.org/%sActionStatus", status)
    ),
    if (status != "Active") list(endTime = offset_time(run$last)),
    if (status == "Failed") list(error = run$stop_reason),
    if (length(study$authors)) list(agent = refs(person_id(study$authors)))
  )
}

# Who decided what: only what a person decided.
crate_approvals <- function(run) {
  asked <- run$approvals
  words <- c(approve = "Approved", edit = "Approved with other arguments", reject = "Rejected")
  lapply(which(nzchar(asked$approver)), function(i) {
    decision <- asked$decision[[i]]
    run_ref <- local_id("run", run$run_id)
    list(
      `@id` = sprintf("%s-approval-%s.%s-%d", run_ref, asked$step[[i]], asked$action[[i]], i),
      `@type` = if (decision == "reject") "RejectAction" else "AuthorizeAction",
      name = sprintf("%s: %s in step %s", words[[decision]], asked$tool[[i]], asked$step[[i]]),
      agent = ref(person_id(asked$approver[[i]])), object = ref(run_ref),
      startTime = offset_time(asked$requested[[i]]), endTime = offset_time(asked$decided[[i]])
    )
  })
}
