test_that("the order desk does for each request what its case expects", {
  cases <- lapply(readLines(system.file("extdata", "order-desk.jsonl", package = "warrant"), encoding = "UTF-8"), read_json)
  expect_gte(length(cases), 40)
  expect_identical(anyDuplicated(vapply(cases, `[[`, "", "id")), 0L)
  desk <- new.env(parent = globalenv())
  printed <- capture.output(sys.source(system.file("examples", "order-desk.R", package = "warrant"), desk))
  expect_identical(desk$requests, vapply(cases, `[[`, "", "input"))
  for (case in cases) {
    steps <- desk$planner(case$input)
    expect_identical(vapply(steps, `[[`, "", "tool"), vapply(case$expected$tools, `[[`, "", "name"), label = case$id)
    # A call of the island's carrier takes its whole time limit: once is enough.
    for (i in if (!grepl("Ushant", case$input)) seq_along(steps)) {
      said <- call_tool(fresh_tool(desk$tools[[steps[[i]]$tool]]), steps[[i]]$arguments)
      want <- call_tool(fresh_tool(desk$tools[[steps[[i]]$tool]]), case$expected$tools[[i]]$arguments)
      expect_identical(said$arguments_hash, want$arguments_hash, label = case$id)
    }
  }
  outcomes <- unlist(lapply(cases, function(case) case$metadata$outcomes))
  expect_identical(vapply(desk$results, function(r) r$status, ""), outcomes)
  expect_setequal(
    unique(outcomes),
    c("executed", "invalid_arguments", "approval_denied", "timed_out", "tool_exhausted")
  )
  expect_setequal(unique(desk$answers), c("approve", "edit", "reject"))
  expect_gt(sum(desk$log$truncated), 0)
  expect_match(printed, paste0("manifest: ", study_manifest(title = "Order desk", tools = desk$tools)$manifest_hash), all = FALSE)
})
