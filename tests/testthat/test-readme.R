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
  expect_identical(env$run$answer, "ordered 12 pear")
  expect_identical(tool_log(env$run)$status, c("executed", "executed"))
  expect_identical(nrow(verify_audit(env$run)), 0L)
  expect_identical(tool_log(env$order)$status[[1]], "executed")
  expect_identical(verdicts(env$ev)$verdict, c("pass", "pass", "pass", "pass", "fail", "fail"))
})

test_that("the picture of the README is there, and small", {
  file <- file.path(source_root(), "man", "figures", "view-run.png")
  expect_true(file.exists(file))
  expect_lt(file.size(file), 150e3)
})
