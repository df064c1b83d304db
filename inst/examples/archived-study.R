# A study from plan to archive: which of two readers finds the year in a note? Tools, a
# manifest written before anything runs, a suite, an evaluation, and a folder that a
# reader can check byte by byte.
library(warrant)

# ---- data, tools, and the two arms -------------------------------------------------
notes <- data.frame(
  note = sprintf("note-%02d", 1:12),
  text = c(
    "Founded in 1871.", "Rebuilt 1902 after the fire of 1899.", "The year is not known.", "Sold in 1888.",
    "Room 1204, opened 1931.", "Closed in 1946.", "Twelve beds, since 1957.", "Moved in 1963.",
    "Opened 1877, closed 1901.", "No. 1515, built in 1920.", "Renamed 1934.", "Opened 1969."
  ),
  year = c(1871, 1902, NA, 1888, 1931, 1946, 1957, 1963, 1877, 1920, 1934, 1969)
)
file <- file.path(tempdir(), "notes.csv")
write.csv(notes, file, row.names = FALSE)

read_note <- agent_tool(
  function(note) notes$text[match(note, notes$note)], "read_note", "The text of a note.",
  parameters = list(note = list(type = "string", enum = notes$note)), side_effects = "read", max_calls = 20
)
years_in <- agent_tool(
  function(text) as.integer(regmatches(text, gregexpr("\\b[0-9]{4}\\b", text))[[1]]),
  "years_in", "Numbers of four digits in a text.",
  parameters = list(text = list(type = "string")), side_effects = "none"
)
reader <- function(pick) {
  planner <- function(state, tools) {
    done <- length(state$steps)
    if (done == 0) return(decide_act("read_note", list(note = state$goal)))
    if (done == 1) return(decide_act("years_in", list(text = state$steps[[1]]$result)))
    years <- unlist(state$steps[[2]]$result)
    decide_finish(if (length(years)) pick(years) else "unknown")
  }
  agent(list(read_note, years_in), planner, limits = agent_limits(steps = 4, tool_calls = 3))
}
arms <- list(first = reader(function(years) years[[1]]), latest = reader(max))

# ---- the plan ----------------------------------------------------------------------
cases <- suite(
  data.frame(id = notes$note, input = notes$note, expected = I(lapply(notes$year, function(y) if (is.na(y)) "unknown" else y))),
  list(
    criterion(function(case, output) identical(as.character(output), as.character(case$expected)), "right_year"),
    criterion_max_steps(6)
  )
)
manifest <- study_manifest(
  title = "Years in notes", design = "Two readers over the same twelve notes.", agent = arms,
  suite = cases, data = file, seed = 7
)
print(manifest)

# ---- the study ---------------------------------------------------------------------
runs <- lapply(arms, function(arm) run_suite(cases, arm, seed = 7, progress = FALSE))
evaluations <- lapply(runs, function(one) evaluate(cases, one))
print(evaluations)

# ---- the archive -------------------------------------------------------------------
folder <- file.path(tempdir(), "years-in-notes")
archive <- archive_study(folder, runs, manifest, evaluations, authors = "R. Reader", overwrite = TRUE)
print(archive)
report <- verify_archive(folder, archive$seal)
print(report)
stopifnot(nrow(report) == 0, archive$runs == 2 * nrow(notes))
cat("\n", readLines(file.path(folder, "METHODS.md")), sep = "\n")
