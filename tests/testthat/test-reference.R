# The pages of the reference: each topic stands in _pkgdown.yml.

topics <- function(root) {
  pages <- list.files(file.path(root, "man"), "[.]Rd$", full.names = TRUE)
  aliases <- lapply(pages, function(page) {
    lines <- readLines(page, encoding = "UTF-8")
    if (any(lines == "\\keyword{internal}")) return(character())
    sub("^\\\\alias\\{(.*)\\}$", "\\1", grep("^\\\\alias\\{", lines, value = TRUE))
  })
  Filter(length, aliases)
}

# Whether one of the names is meant by an entry of the index.
meant <- function(entry, names) {
  if (!grepl("(", entry, fixed = TRUE)) return(any(names == entry))
  selectors <- list(
    starts_with = function(x) startsWith(names, x), ends_with = function(x) endsWith(names, x),
    contains = function(x) grepl(x, names, fixed = TRUE), matches = function(x) grepl(x, names)
  )
  any(eval(parse(text = entry), selectors, baseenv()))
}

test_that("the index of the reference has every topic", {
  skip_if_not_installed("yaml")
  root <- source_root("_pkgdown.yml")
  index <- yaml::read_yaml(file.path(root, "_pkgdown.yml"))$reference
  entries <- unlist(lapply(index, function(section) section$contents))
  lost <- Filter(function(names) !any(vapply(entries, meant, NA, names = names)), topics(root))
  expect_equal(vapply(lost, `[`, "", 1), character())
})

test_that("every export has a page with an example", {
  root <- source_root("_pkgdown.yml")
  pages <- list.files(file.path(root, "man"), "[.]Rd$", full.names = TRUE)
  texts <- lapply(pages, readLines, encoding = "UTF-8")
  with_example <- Filter(function(x) any(startsWith(x, "\\examples{")) || any(x == "\\keyword{internal}"), texts)
  documented <- unlist(lapply(with_example, function(x) {
    sub("^\\\\alias\\{(.*)\\}$", "\\1", grep("^\\\\alias\\{", x, value = TRUE))
  }))
  expect_equal(setdiff(getNamespaceExports("warrant"), documented), character())
})

test_that("the list of articles has every vignette", {
  skip_if_not_installed("yaml")
  root <- source_root("_pkgdown.yml")
  listed <- unlist(lapply(yaml::read_yaml(file.path(root, "_pkgdown.yml"))$articles, `[[`, "contents"))
  expect_setequal(listed, sub("[.]Rmd$", "", list.files(file.path(root, "vignettes"), "[.]Rmd$")))
})
