# Verdicts of criteria that are R functions, as codes for the core: a column of
# each case's codes, further words and reasons, and the errors.

function_verdicts <- function(functions, suite, runs, answers, work) {
  none <- list(codes = NULL, words = character(), reasons = character(), problems = NULL)
  if (length(functions) == 0) return(none)
  check_have_functions(functions)
  records <- answers$records
  if (!is.null(runs$file)) {
    blank <- list(codes = integer(length(functions) * length(suite$cases$id)), words = character(), reasons = character())
    records <- records_at(runs$file, work(FALSE, blank)$offsets)
  }
  table <- unwrap_core(rs_verdict_codes())
  coder <- new_coder(table)
  answered <- which(answers$status == 0L)
  codes <- matrix(0L, length(functions), length(suite$cases$id))
  for (i in answered) {
    inputs <- function_inputs(suite, answers, records[[i]], i)
    for (j in seq_along(functions)) {
      codes[j, i] <- coder$code(ask_function(functions[[j]], inputs), functions[[j]]$criterion, suite$cases$id[i])
    }
  }
  warn_on_failures(coder$problems)
  list(
    codes = as.integer(codes), words = coder$words, reasons = coder$reasons,
    problems = coder_problems(coder)
  )
}

check_have_functions <- function(functions, call = caller_env(2)) {
  for (x in functions) {
    if (is.function(x$fn)) next
    stop_warrant(
      sprintf("Criterion %s has no function.", x$criterion),
      "suite", "no_function", criterion = x$criterion, call = call
    )
  }
}

function_inputs <- function(suite, answers, texts, i) {
  cases <- suite$cases
  read <- function(text) if (!is.na(text)) unwrap_core(rs_from_json(text))
  list(
    case = list(
      id = cases$id[i], input = read(cases$input[i]), expected = read(cases$expected[i]),
      metadata = read(cases$metadata[i])
    ),
    output = read(answers$output[i]),
    trajectory = if (length(texts) == 1) new_agent_trajectory(texts)
  )
}

ask_function <- function(criterion, inputs) {
  fn <- criterion$fn
  wanted <- names(formals(args(fn)))
  if (!"..." %in% wanted) inputs <- inputs[intersect(names(inputs), wanted)]
  tryCatch(do.call(fn, inputs, quote = TRUE), error = identity)
}

# Gives answers their codes; words and reasons that the core does not know are
# added behind its own.
new_coder <- function(table) {
  coder <- new.env(parent = emptyenv())
  coder$words <- coder$reasons <- character()
  coder$problems <- list()
  known <- function(word, reason) {
    at <- which(c(table$words, coder$words) == word & c(table$reasons, coder$reasons) == reason)
    if (length(at)) return(at[1] - 1L)
    coder$words <- c(coder$words, word)
    coder$reasons <- c(coder$reasons, reason)
    length(table$words) + length(coder$words) - 1L
  }
  coder$code <- function(answer, criterion, id) {
    if (isTRUE(answer)) return(0L)
    if (isFALSE(answer)) return(1L)
    if (inherits(answer, "agent_excluded")) return(known("excluded", answer$reason))
    if (is.atomic(answer) && length(answer) == 1 && is.na(answer)) return(known("missing", "no_answer"))
    said <- if (inherits(answer, "error")) {
      conditionMessage(answer)
    } else {
      sprintf("it must answer TRUE, FALSE, NA or excluded(), not %s", answer_words(answer))
    }
    coder$problems <- c(coder$problems, list(list(id = id, rule = paste0(criterion, ": ", said))))
    known("missing", "evaluator_error")
  }
  coder
}

answer_words <- function(x) {
  if (length(x) == 1 && is.atomic(x)) return(cut_text(format(x), 40))
  sprintf("a value of class %s and length %d", class(x)[1], length(x))
}

coder_problems <- function(coder) {
  if (length(coder$problems) == 0) return(NULL)
  problem_rows(list(
    line = NA_real_, case_id = vapply(coder$problems, `[[`, "", "id"), pointer = "",
    rule = vapply(coder$problems, `[[`, "", "rule"), error_kind = "evaluator_error"
  ))
}

warn_on_failures <- function(problems) {
  if (length(problems) == 0) return(invisible())
  rlang::warn(
    c(
      sprintf("A criterion that is an R function failed on %s, counted as missing.", count_of(length(problems), "case")),
      x = problems[[1]]$rule
    ),
    class = c("warrant_warning_evaluator", "warrant_warning")
  )
}

# The records of a file at these byte positions, as lists of texts.
records_at <- function(file, offsets) {
  con <- base::file(file, "rb")
  on.exit(close(con))
  lapply(offsets, \(at) if (is.nan(at)) character() else record_at(con, at))
}

record_at <- function(con, at) {
  seek(con, at)
  line <- readLines(con, 1, warn = FALSE, encoding = "UTF-8")
  trajectory <- line_record(line)
  if (is.null(trajectory)) character() else trajectory
}
