test_that("no name is defined in two files", {
  files <- list.files(file.path(source_root(), "R"), full.names = TRUE)
  names_in <- function(file) {
    calls <- Filter(function(x) is.call(x) && identical(x[[1]], as.name("<-")), parse(file))
    names <- lapply(calls, function(x) if (is.name(x[[2]])) as.character(x[[2]]))
    unique(unlist(names))
  }
  names <- unlist(lapply(files, names_in))
  expect_equal(names[duplicated(names)], character())
})

test_that("no name of ours hides one that R attaches", {
  files <- list.files(file.path(source_root(), "R"), full.names = TRUE)
  calls <- unlist(lapply(files, function(file) as.list(parse(file))))
  calls <- Filter(function(x) is.call(x) && identical(x[[1]], as.name("<-")) && is.name(x[[2]]), calls)
  ours <- vapply(calls, function(x) as.character(x[[2]]), "")
  attached <- unlist(lapply(c("base", "stats", "utils", "methods"), getNamespaceExports))
  expect_equal(intersect(ours, attached), character())
})
