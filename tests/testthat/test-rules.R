policy_file <- function(text, ext = "yaml") {
  file <- tempfile(fileext = paste0(".", ext))
  writeLines(text, file)
  file
}

test_that("a rule says what it demands", {
  expect_equal(format(rule_min("floor", "answer", 0.7)), c(
    "<release_rule> floor", "* answer: at least 70.0%"
  ))
  expect_output(print(rule_max("steps", "p95", 12)), "at most 12", fixed = TRUE)
  expect_output(print(rule_max_failures("none", "answer", 0)), "at most 0 cases failed")
  expect_identical(rule_observed_count, rule_max_failures)
})

test_that("what a rule cannot be is refused with its field", {
  expect_warrant_error(rule_min("", "answer", 0.7), "empty_string", pointer = "/rules/0/id")
  expect_warrant_error(rule_min("r", "answer", "much"), "wrong_type", rule_id = "r")
  expect_warrant_error(rule_max_failures("r", "a", -1), "out_of_range", pointer = "/rules/0/max_failures")
  expect_warrant_error(rule_min("r", "a", 0.5, max_missing_fraction = 2), "suite")
  expect_warrant_error(rule_min("r", "a", NA), "one_bound_needed")
  expect_warrant_error(release_policy(), "empty")
  expect_warrant_error(release_policy(1), "not_a_rule")
  rule <- rule_min("r", "a", 0.5)
  expect_warrant_error(release_policy(rule, rule), "duplicate_rule")
  expect_warrant_error(release_policy(rule, warn_on = "FAIL"), "states_overlap")
  expect_warrant_error(release_policy(rule, confidence_level = 95), "out_of_range", message = "0.95")
})

test_that("a policy file reads the same from YAML and JSON", {
  skip_if_not_installed("yaml")
  yaml <- read_policy(policy_file(c(
    "version: 1", "block_on: [FAIL]", "rules:", "  - id: floor", "    metric: answer",
    "    min: 0.7", "  - {id: none, metric: answer, kind: observed_count, max_failures: 0}"
  )))
  json <- read_policy(policy_file(
    '{"version": 1, "block_on": ["FAIL"], "rules": [{"id": "floor", "metric": "answer", "min": 0.7},
      {"id": "none", "metric": "answer", "kind": "observed_count", "max_failures": 0}]}', "json"
  ))
  expect_equal(yaml, json)
  expect_equal(yaml, release_policy(
    rule_min("floor", "answer", 0.7), rule_max_failures("none", "answer", 0), block_on = "FAIL"
  ))
})

test_that("faults of a policy file name file, line and field", {
  skip_if_not_installed("yaml")
  typo <- policy_file(c(
    "version: 1", "rules:", "  - id: one", "    metric: answer", "    min: 0.5",
    "  - id: two", "    metric: answer", "    mim: 0.5"
  ))
  expect_warrant_error(
    read_policy(typo), "unknown_field",
    pointer = "/rules/1/mim", rule_id = NULL, line = 8L, file = typo
  )
  expect_warrant_error(read_policy(policy_file("rules: [")), "yaml_syntax")
  twice <- policy_file(c("version: 1", "version: 1", "rules: []"))
  expect_warrant_error(read_policy(twice), "yaml_syntax")
  expect_warrant_error(read_policy("no-such.yaml"), "no_such_file")
  expect_warrant_error(read_policy(policy_file("{", "json")), "input")
})

test_that("partial names of fields are not taken for fields", {
  rule <- rule_max_failures("r", "a", 3)
  expect_match(rule_words(rule), "at most 3 cases failed")
})

test_that("a policy file may begin with a byte order mark, and must be UTF-8", {
  file <- policy_file("", "json")
  text <- '{"rules": [{"id": "r", "metric": "a", "min": 0.5}]}'
  writeBin(c(as.raw(c(0xef, 0xbb, 0xbf)), charToRaw(text)), file)
  expect_equal(read_policy(file)$rules[[1]]$id, "r")
  writeBin(c(charToRaw(text), as.raw(0xff)), file)
  expect_warrant_error(read_policy(file), "not_utf8", file = file)
  writeBin(c(charToRaw(text), as.raw(0)), file)
  expect_warrant_error(read_policy(file), "not_utf8")
})
