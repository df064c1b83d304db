tool <- function(env = new.env(), ...) {
  env$table <- c(a = 1, b = 2)
  fn <- function(x) table[[x]]
  environment(fn) <- env
  parent.env(env) <- globalenv()
  agent_tool(fn, "look", "Looks a value up.", list(x = list(type = "string")), ...)
}

test_that("the hash covers what identifies a study and leaves out when it was made", {
  local_clock(0)
  a <- study_manifest("T", tools = tool(), parameters = list(seed = 1))
  local_clock(1e6)
  b <- study_manifest("T", tools = tool(), parameters = list(seed = 1))
  expect_equal(manifest_hash(a), manifest_hash(b))
  expect_equal(nrow(diff_manifest(a, b)), 0)
  expect_false(identical(a$made, b$made))
})

test_that("running a tool changes nothing, tightening any limit is named", {
  t <- tool()
  before <- study_manifest(tools = t)
  call_tool(t, list(x = "a"))
  expect_equal(manifest_hash(study_manifest(tools = t)), manifest_hash(before))
  changes <- list(
    max_calls = list(max_calls = 3), max_bytes = list(max_bytes = 3), timeout_s = list(timeout_s = 3),
    requires_approval = list(requires_approval = TRUE), scopes = list(scopes = "s"),
    idempotent = list(idempotent = FALSE), cost_nano = list(cost = 1), side_effects = list(side_effects = "write")
  )
  for (field in names(changes)) {
    other <- study_manifest(tools = do.call(tool, changes[[field]]))
    expect_true(paste0("tools.look.policy.", field) %in% diff_manifest(before, other)$path, info = field)
  }
})

test_that("a captured value that changes is named", {
  env <- new.env()
  t <- tool(env)
  before <- study_manifest(tools = t)
  env$table["a"] <- 7
  expect_equal(diff_manifest(before, study_manifest(tools = t))$path, "tools.look.captures.table")
})

test_that("data files are known by their bytes, not by their place", {
  one <- tempfile(fileext = ".csv")
  writeBin(charToRaw("abc"), one)
  a <- study_manifest(data = one)
  sha <- "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
  expect_equal(a$data[[basename(one)]]$sha256, sha)
  elsewhere <- file.path(tempfile(), basename(one))
  dir.create(dirname(elsewhere))
  file.copy(one, elsewhere)
  expect_equal(manifest_hash(study_manifest(data = elsewhere)), manifest_hash(a))
  cat("d", file = one, append = TRUE)
  expect_match(diff_manifest(a, study_manifest(data = one))$path, "sha256|bytes")
})

test_that("a manifest can be recomputed from what it shows", {
  m <- study_manifest("T", tools = tool(), parameters = list(seed = 1L, p = 0.5))
  expect_equal(hash_content(manifest_identity(m)), m$manifest_hash)
})

test_that("bad input is refused by name", {
  expect_warrant_error(study_manifest(data = "/nowhere/at/all"), "input", argument = "data")
  expect_warrant_error(study_manifest(tools = 1), "input", argument = "tools")
  expect_warrant_error(diff_manifest(1, 2), "input", argument = "a")
})
