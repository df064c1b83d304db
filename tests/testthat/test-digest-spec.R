vectors <- function() {
  path <- system.file("spec", "digest-v1-vectors.json", package = "warrant")
  text <- paste(readLines(path, encoding = "UTF-8"), collapse = "\n")
  unwrap_core(rs_from_json(text))
}

test_that("the published vectors are met", {
  for (v in vectors()$accepted) {
    expect_equal(rs_canonical(v$json), v$canonical, info = v$json)
    expect_equal(unwrap_core(rs_sha256(v$canonical)), v$sha256, info = v$json)
  }
})

test_that("what the specification refuses is refused", {
  refused <- vectors()$refused
  expect_gt(length(refused), 20)
  for (v in refused) expect_s3_class(rs_canonical(v$json), "warrant_fault")
})

test_that("the reference code in Python agrees", {
  python <- Sys.which("python3")
  skip_if(!nzchar(python), "python3 is not here")
  script <- system.file("verify", "digest_v1.py", package = "warrant")
  path <- system.file("spec", "digest-v1-vectors.json", package = "warrant")
  out <- suppressWarnings(system2(python, c("-B", script, path), stdout = TRUE, stderr = TRUE))
  expect_match(out[[1]], "^[0-9]+ vectors, 0 wrong$")
})
