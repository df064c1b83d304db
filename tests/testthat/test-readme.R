test_that("the R code of the README runs", {
  lines <- readLines(file.path(source_root(), "README.md"), encoding = "UTF-8")
  fences <- grep("^```", lines)
  opens <- fences[seq(1, length(fences), 2)]
  closes <- fences[seq(2, length(fences), 2)]
  r <- which(lines[opens] == "```r")
  expect_gt(length(r), 0)
  folder <- tempfile("readme")
  dir.create(folder)
  old <- setwd(folder)
  on.exit(setwd(old))
  env <- new.env(parent = globalenv())
  for (i in r) {
    code <- lines[(opens[[i]] + 1):(closes[[i]] - 1)]
    expect_error(capture.output(eval(parse(text = code), env)), NA)
  }
  expect_identical(
    tool_log(env$order)$status, c("approval_required", "executed")
  )
  expect_identical(tool_log(env$lookup)$status, c("executed", "invalid_arguments", "executed"))
})
