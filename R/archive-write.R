# The files of an archive. Private.

# Journals, content, and what is said of each run.
write_runs <- function(part, sources, study) {
  n <- length(sources$runs)
  if (n) dir.create(file.path(part, "journals"))
  if (n && study$content) dir.create(file.path(part, "content"))
  names <- if (is.character(study$redact)) study$redact else character()
  shown <- study$cases[vapply(sources$runs, `[[`, "", "case_id")]
  jobs <- Map(function(source, case) c(source, list(case = case)), sources$runs, unname(shown))
  study$runs <- each(jobs, "Archiving runs", function(source) about_run(source$run_id, {
    lines <- source$store$read(source$run_id)
    content <- source$store$get_content(source$run_id)
    replaced <- if (is.function(study$redact) && study$content) {
      replaced_values(source$run_id, lines, content, study$redact)
    }
    unwrap_core(rs_archive_run(
      part, lines, content, source$case, study$content, names, replaced %or% empty_texts
    ))
  }))
  study$records <- lapply(sources$records, function(record) {
    unwrap_core(rs_record_line(study$cases[[record$case_id]], record$json, study$content, names))
  })
  study
}

# A run that cannot be read is named.
about_run <- function(run_id, expr) {
  tryCatch(expr, warrant_error = function(e) {
    if (is.null(e[["run_id"]])) {
      e$run_id <- run_id
      e$message <- sprintf("Run %s cannot be archived: %s", run_id, e$message)
    }
    e$call <- quote(archive_study())
    rlang::cnd_signal(e)
  })
}

empty_texts <- stats::setNames(character(), character())

# The values that a function shows instead, by address.
replaced_values <- function(run_id, lines, content, redact) {
  values <- unwrap_core(rs_run_values(lines))
  there <- values$address %in% names(content)
  out <- vapply(which(there), function(i) {
    text <- content[[values$address[[i]]]]
    where <- list(run_id = run_id, kind = values$kind[[i]], tool = values$tool[[i]])
    shown <- redact(unwrap_core(rs_from_json(text)), where)
    # A value that is given back as it was read is as it was written.
    if (identical(shown, unwrap_core(rs_from_json(text)))) return(NA_character_)
    unwrap_core(rs_to_json(shown))
  }, "")
  names(out) <- values$address[there]
  out[!is.na(out)]
}

write_study <- function(part, study) {
  put <- function(name, text) unwrap_core(rs_write_new(file.path(part, name), enc2utf8(text)))
  runs <- study$runs
  column <- function(name) vapply(runs, function(run) as.character(run[[name]]), "")
  put("heads.csv", csv_table(list(
    run_id = column("run_id"), head = column("head"), records = column("records"),
    status = column("status"), content = column("content"),
    judged = tolower(column("judged"))
  )))
  put("trajectories.jsonl", c(column("trajectory"), unlist(study$records), ""))
  headers <- rs_archive_headers()
  put("tables/runs.csv", c(headers$runs, "\n", column("run_row")))
  put("tables/tool_calls.csv", c(headers$tool_calls, "\n", column("call_rows")))
  put("tables/approvals.csv", c(headers$approvals, "\n", column("approval_rows")))
  tables <- evaluation_tables(study$evaluations, study$cases)
  for (name in names(tables)) put(paste0("tables/", name, ".csv"), tables[[name]])
  manifest <- manifest_text(study$manifest, study$manifest$made["created_at"])
  put("manifest.json", paste0(manifest, "\n"))
  put("METHODS.md", paste0(methods_text(study), "\n"))
  put("archive.json", pretty_json(archive_facts(part, study)))
  files <- list.files(part, recursive = TRUE)
  put("ro-crate-metadata.json", pretty_json(crate(part, files[order_c(files)], study)))
}

pretty_json <- function(x) paste0(unwrap_core(rs_json_pretty(unwrap_core(rs_to_json(x)))), "\n")

archive_facts <- function(part, study) {
  words <- vapply(study$runs, `[[`, "", "content")
  tables <- list.files(file.path(part, "tables"))
  tables <- tables[order_c(tables)]
  rows <- lapply(tables, function(name) {
    length(readLines(file.path(part, "tables", name), warn = FALSE, encoding = "UTF-8")) - 1L
  })
  list(
    schema = "study_archive/v1", created_at = study$created_at,
    warrant_version = as.character(utils::packageVersion("warrant")),
    manifest_hash = study$manifest$manifest_hash, runs = length(study$runs),
    trajectories_without_run = length(study$records), content = study$content,
    content_of_runs = as.list(table(factor(words, c("whole", "keyless", "partial", "none")))),
    redacted = !is.null(study$redact), models_served = I(models_of(study$runs)),
    data = named_list(study$data), tools_not_of_the_manifest = I(unplanned_tools(study)),
    tables = stats::setNames(rows, sub("[.]csv$", "", tables))
  )
}

# A named list of vectors as CSV. Texts are guarded, numbers have all their digits.
csv_table <- function(columns) {
  plain <- vapply(columns, function(x) !is.character(x), NA)
  texts <- lapply(columns, function(x) {
    if (is.list(x)) return(vapply(x, function(value) unwrap_core(rs_to_json(as.list(value))), ""))
    if (is.logical(x)) return(c("false", "true")[x + 1L])
    if (is.numeric(x)) return(number_texts(x))
    as.character(x)
  })
  plain <- plain & !vapply(columns, is.list, NA)
  unwrap_core(rs_csv(names(columns), unname(texts), as.integer(plain)))
}

number_texts <- function(x) {
  out <- vapply(x, function(number) unwrap_core(rs_to_json(as.numeric(number))), "")
  out[is.na(x)] <- NA_character_
  # Infinity is a text in JSON.
  gsub("\"", "", out)
}

# The tables of evaluations; of several arms, one below the other.
evaluation_tables <- function(evaluations, cases) {
  if (length(evaluations) == 0L) return(list())
  judged <- function(evaluation) {
    rows <- verdicts(evaluation)[c("case_id", "criterion", "verdict", "reason")]
    rows$case_id <- unname(cases[rows$case_id])
    rows
  }
  lapply(list(metrics = metrics, verdicts = judged, slices = slices), function(table_of) {
    tables <- lapply(evaluations, function(evaluation) {
      table <- as.list(table_of(evaluation))
      n <- length(table[[1]])
      c(if (!is.null(evaluation$arm)) list(arm = rep(evaluation$arm, n)), table)
    })
    columns <- names(tables[[1]])
    names(columns) <- columns
    csv_table(lapply(columns, function(column) {
      do.call(c, unname(lapply(tables, `[[`, column)))
    }))
  })
}
