suite_of <- function(n, ...) tiny_suite(list(criterion_tool_called("a"), criterion_max_steps(2)), rep("null", n), ...)

test_that("counts hold every case once, over all and by group", {
  suite <- suite_of(
    4, metadata = c('{"k":"u"}', '{"k":1}', '{"k":"1"}', "{}"),
    metrics = list(quantile_of("agent_steps")), slices = c("metadata.k", "tool_calls:1")
  )
  ev <- evaluate(suite, list(a = acts("a"), b = acts("b - -"), c = acts("a a a ..."), d = acts("...")))
  rates <- ev$counts$rates
  whole <- rates[rates$slice == "", ]
  expect_equal(whole$n_passed, c(2, 1))
  expect_equal(whole$n_failed, c(1, 2))
  expect_equal(whole$missing_reasons[[1]], c(truncated_trajectory = 1L))
  expect_equal(unique(rates$value[rates$slice == "metadata.k"]), c("1", "u"))
  expect_equal(rates$n_total[rates$slice == "metadata.k" & rates$value == "1"], c(2, 2))
  expect_equal(unique(rates$value[rates$slice == "tool_calls:1"]), "le_1")
  quantiles <- ev$counts$quantiles
  expect_equal(quantiles$values[[1]], c(1, 3))
  expect_equal(quantiles$counts[[1]], c(1, 1))
  expect_equal(quantiles$n_missing[1], 2)
})

test_that("an evaluation is plain data", {
  ev <- evaluate(suite_of(1), list(a = acts("a")))
  file <- tempfile()
  saveRDS(ev, file)
  expect_equal(verdicts(readRDS(file)), verdicts(ev))
})

test_that("suite and runs must have the same cases", {
  suite <- suite_of(2)
  expect_warrant_error(evaluate(suite, list(a = acts("a"))), "no_record", case_id = "b")
  expect_warrant_error(evaluate(suite, list(a = acts("a"), b = acts("a"), x = acts("a"))), "unknown_case", case_id = "x")
  expect_warrant_error(evaluate(suite, new_agent_runs(c("a", "a", "b"), "OK")), "duplicate_record", case_id = "a")
  ev <- evaluate(suite, list(a = acts("a"), x = acts("a")), strict = FALSE)
  expect_equal(ev$problems$error_kind, c("unknown_case", "no_record"))
  expect_equal(verdicts(ev)$reason, c(NA, NA, "not_run", "not_run"))
})

test_that("a record that breaks a rule is refused, or set aside and counted", {
  suite <- suite_of(2)
  runs <- new_agent_runs(c("a", "b"), "OK", trajectory = list(acts("a")$json, '{"steps":[{"index":2,"kind":"final"}]}'))
  expect_warrant_error(evaluate(suite, runs), "indexes_not_contiguous", case_id = "b", pointer = "/steps/0/index")
  ev <- evaluate(suite, runs, strict = FALSE)
  expect_equal(verdicts(ev)$reason[3:4], rep("invalid_trajectory", 2))
  expect_equal(ev$problems$case_id, "b")
  several <- new_agent_runs(c("a", "b"), "OK", trajectory = list(acts("a")$json, rep(acts("a")$json, 2)))
  expect_equal(verdicts(evaluate(suite, several))$reason[3:4], rep("several_trajectories", 2))
})

test_that("a line that cannot be used is refused with file, line and case", {
  suite <- suite_of(3)
  good <- acts("a")$json
  file_of <- function(...) read_trajectories(jsonl(...))
  refused <- function(code, ..., lines) {
    runs <- file_of(lines)
    expect_warrant_error(evaluate(suite, runs), code, file = runs$file, ...)
  }
  ab <- record_of(c("a", "b"), good)
  refused("not_json", line = 3L, lines = c(ab, substr(record_of("c", good), 1, 40)))
  refused("duplicate_record", line = 3L, case_id = "a", pointer = "/case_id", lines = c(ab, ab[1]))
  refused("unknown_case", line = 3L, case_id = "z", lines = c(ab, record_of("z", good)))
  refused("no_record", case_id = "c", lines = ab)
  refused("missing_field", line = 3L, case_id = "c", pointer = "/trajectory", lines = c(ab, record_of("c", "{}")))
  refused("unknown_field", line = 1L, lines = '{"case_id":"a","trajectory":null,"run":1}')
  refused("not_utf8", line = 1L, lines = rawToChar(as.raw(c(0x22, 0xff, 0x22))))
})

test_that("with strict = FALSE bad lines are set aside, listed and missing", {
  suite <- suite_of(4)
  good <- acts("a")$json
  lines <- c(
    record_of("a", good), "", record_of("b", "{}"), record_of("c", good), record_of("c", good),
    record_of("z", good), substr(record_of("d", good), 1, 5)
  )
  ev <- evaluate(suite, read_trajectories(jsonl(lines)), strict = FALSE)
  expect_equal(ev$problems$line, c(3, 5, 6, 7))
  expect_equal(ev$problems$error_kind, c("missing_field", "duplicate_record", "unknown_case", "not_json"))
  rows <- verdicts(ev)
  expect_equal(
    rows$reason[rows$criterion == "agent_steps_le_2"],
    c(NA, "invalid_trajectory", "several_trajectories", "no_trajectory")
  )
})

test_that("a file in many blocks is judged as a whole", {
  n <- 3000
  ids <- sprintf("case%d", seq_len(n))
  set.seed(1)
  kinds <- sample(c("a", "a b", "- - -", "b ..."), n, TRUE)
  known <- vapply(unique(kinds), \(x) acts(x)$json, "")
  # Padding makes a line longer than one piece of a block.
  padded <- sub("{", paste0("{", strrep(" ", 6000)), known[kinds], fixed = TRUE)
  file <- jsonl(record_of(rev(ids), rev(padded)))
  suite <- suite_of(n, ids = ids, slices = "first_tool", metrics = list(quantile_of("agent_tool_calls")))
  ev <- evaluate(suite, read_trajectories(file))
  runs <- new_agent_runs(ids, "OK", trajectory = unname(known[kinds]))
  expect_equal(ev$counts, evaluate(suite, runs)$counts)
  expect_equal(nrow(inspect_case(ev, "case7")$verdicts), 2)
})

test_that("any split of the cases gives the same counts", {
  ids <- sprintf("c%02d", 1:24)
  set.seed(2)
  trajectories <- lapply(sample(c("a", "a b -", "...", "b"), 24, TRUE), acts)
  names(trajectories) <- ids
  all_of <- function(rows, group = NULL) {
    evaluate(
      suite_of(
        length(rows), ids = ids[rows], metadata = sprintf('{"k":%d}', rows %% 3),
        slices = c("metadata.k", "first_tool"), metrics = list(quantile_of("agent_steps")),
        group_id = group[rows]
      ),
      trajectories[rows]
    )
  }
  for (group in list(NULL, sprintf("g%d", 1:24 %% 7))) {
    whole <- all_of(1:24, group)
    for (k in 1:3) {
      part <- sample(1:3, 24, TRUE)
      combined <- combine_evaluations(lapply(split(1:24, part), all_of, group = group))
      expect_equal(combined$counts, whole$counts)
      expect_setequal(combined$case_id, ids)
    }
  }
  expect_warrant_error(combine_evaluations(whole, whole), "case_in_several_parts")
  other <- evaluate(tiny_suite(list(criterion_max_steps(9)), "null", "x"), list(x = acts("a")))
  expect_warrant_error(combine_evaluations(whole, other), "other_suite")
  expect_warrant_error(combine_evaluations(1), "input")
})

test_that("trials of an item are one unit", {
  ids <- letters[1:6]
  suite <- tiny_suite(list(criterion_tool_called("a")), rep("null", 6), ids, group_id = c("p", "p", "q", "q", "r", "r"))
  ev <- evaluate(suite, list(
    a = acts("a"), b = acts("b"), c = acts("a"), d = acts("a"), e = acts("a"), f = acts("...")
  ))
  rates <- ev$counts$rates
  expect_equal(rates$n_total, 3)
  expect_equal(rates$n_missing, 1)
  expect_equal(rates$shares, list(c(0.5, 1)))
})

test_that("no cases are judged as none", {
  ev <- evaluate(tiny_suite(list(criterion_max_steps(1)), character()), structure(list(), names = character()))
  expect_equal(ev$counts$rates$n_total, 0)
  expect_equal(nrow(verdicts(ev)), 0)
})

test_that("a worker of a fork judges too", {
  skip_on_os("windows")
  suite <- suite_of(2)
  runs <- read_trajectories(jsonl(record_of(c("a", "b"), acts("a")$json)))
  here <- evaluate(suite, runs)$counts
  there <- parallel::mclapply(1:2, \(i) evaluate(suite, runs)$counts, mc.cores = 2)
  expect_equal(there, list(here, here))
})

test_that("arguments are checked", {
  expect_warrant_error(evaluate(1, list()), "input", argument = "suite")
  expect_warrant_error(evaluate(suite_of(1), 1), "input", argument = "runs")
  expect_warrant_error(evaluate(suite_of(1), list(a = acts("a")), strict = NA), "input", argument = "strict")
})

test_that("a NUL in a name is no end of it", {
  json <- '{"steps":[{"index":1,"kind":"tool_call","tool_name":"a\\u0000b"}]}'
  suite <- tiny_suite(list(criterion_max_steps(1)), metadata = '{"k":"x\\u0000y"}', slices = c("first_tool", "metadata.k"))
  ev <- evaluate(suite, new_agent_runs("a", "OK", trajectory = list(json)))
  expect_equal(ev$counts$rates$value, c("", "a\ufffdb", "x\ufffdy"))
})

test_that("an error names the function that the user called", {
  named <- function(expr) as.character(conditionCall(tryCatch(expr, error = identity))[[1]])
  suite <- suite_of(1)
  bad <- record_of("a", "{}")
  expect_equal(named(evaluate(suite, read_trajectories(jsonl(bad)))), "evaluate")
  expect_equal(named(evaluate(suite, new_agent_runs("a", "OK", trajectory = list("{}")))), "evaluate")
  expect_equal(named(evaluate(suite, list(b = acts("a")))), "evaluate")
  expect_equal(named(write_trajectories(1, tempfile())), "write_trajectories")
  expect_equal(named(read_trajectories(jsonl(bad), jsonl("{"))), "read_trajectories")
  expect_equal(named(agent_trajectory(list(agent_step("x")))), "agent_trajectory")
  expect_equal(named(criterion_max_steps(0)), "criterion_max_steps")
  expect_equal(named(inspect_case(evaluate(suite, list(a = acts("a"))), "z")), "inspect_case")
})
