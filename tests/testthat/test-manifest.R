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
  expect_equal(hash_manifest(a), hash_manifest(b))
  expect_equal(nrow(diff_manifest(a, b)), 0)
  expect_false(identical(a$made, b$made))
})

test_that("running a tool changes nothing, tightening any limit is named", {
  t <- tool()
  before <- study_manifest(tools = t)
  call_tool(t, list(x = "a"))
  expect_equal(hash_manifest(study_manifest(tools = t)), hash_manifest(before))
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
  expect_equal(hash_manifest(study_manifest(data = elsewhere)), hash_manifest(a))
  cat("d", file = one, append = TRUE)
  expect_match(diff_manifest(a, study_manifest(data = one))$path, "sha256|bytes")
})

# A study with one of everything.
study_parts <- function(k = 3) {
  half <- human_gate(agent_tool(function(x) x / 2, "half", "Half of a number.",
    parameters = list(x = list(type = "number")), side_effects = "write"
  ))
  rails <- guardrails(
    guardrail("small", function(value) k < 5, on_fail = "warn", stage = c("tool", "input")),
    guardrail_flow(after = "half", never = "double")
  )
  list(
    ruled = agent(half, function(state, tools) decide_finish(k),
      policy = agent_policy(
        granted_scopes = "s", allow_effects = "write",
        grants = grant("half", list(x = list(maximum = 2)), count = 2, until = as.POSIXct("2030-01-01", tz = "UTC"))
      ),
      limits = agent_limits(steps = 4, per_tool = c(half = 2)), guardrails = rails,
      approver = function(request) "approve", done = function(answer, state) answer > k
    ),
    asked = agent(half, planner_llm(
      model_openai("http://localhost:1/v1?api-version=2&sig=abcdef", "m-1", "A_KEY", temperature = 0, seed = 12L),
      "Halve it.", price = c(input = 1, output = 2)
    )),
    own = agent(half, planner_llm(function(messages, tools) list(role = "assistant", content = k)))
  )
}

study_cases <- function(k = 3) {
  suite(
    data.frame(id = c("a", "b"), input = c("x", "y"), expected = c("1", "2")),
    list(criterion(function(output) nchar(output) < k, "short"), criterion_max_steps(2)), name = "two"
  )
}

whole_study <- function(..., k = 3) {
  study_manifest(
    title = "T\u00e9 \U1F600", design = "two arms", agent = study_parts(k), suite = study_cases(k),
    seed = 12345678901, ...,
    parameters = list(
      big = structure("76561198003753554", class = "json"), null = NULL, none = list(),
      empty = structure(list(), names = character()), one = I(1), x = 0.1, text = "\u4e2d \"q\"\n"
    )
  )
}

written <- function(manifest) {
  file <- tempfile(fileext = ".json")
  write_manifest(manifest, file)
  file
}

test_that("a manifest survives its file, whatever it holds", {
  m <- whole_study()
  r <- read_manifest(written(m))
  expect_identical(hash_manifest(r), hash_manifest(m))
  expect_equal(nrow(diff_manifest(r, m)), 0)
  expect_identical(r$parameters, m$parameters)
  expect_identical(r$title, m$title)
  again <- written(r)
  expect_identical(readLines(again, encoding = "UTF-8"), readLines(written(m), encoding = "UTF-8"))
  small <- study_manifest()
  expect_identical(hash_manifest(read_manifest(written(small))), hash_manifest(small))
})

test_that("another program computes the same hashes from the file", {
  file <- written(whole_study())
  script <- tempfile(fileext = ".py")
  writeLines(c(
    "import json, sys", "sys.path.insert(0, sys.argv[2])", "import digest_v1",
    "whole = digest_v1.read(open(sys.argv[1], encoding='utf-8').read())",
    "said = whole.pop('manifest_hash')", "whole.pop('made')",
    "import hashlib", "sha = lambda x: hashlib.sha256(digest_v1.write(x).encode()).hexdigest()",
    "assert sha(whole) == said, 'manifest'",
    "for tool in whole['tools'].values():", "    stated = tool.pop('spec_hash')", "    assert sha(tool) == stated, 'tool'",
    "print('same')"
  ), script)
  out <- system2(python(), c(shQuote(script), shQuote(file), shQuote(system.file("verify", package = "warrant"))), stdout = TRUE)
  expect_equal(out, "same")
})

test_that("neither a key nor what stands in an address is in a manifest", {
  withr::local_envvar(A_KEY = "sk-test-123456")
  text <- paste(readLines(written(whole_study(data = NULL))), collapse = "\n")
  expect_match(text, "\"api_key_env\": \"A_KEY\"", fixed = TRUE)
  expect_match(text, "api-version=2&sig=<redacted>", fixed = TRUE)
  expect_false(grepl("sk-test-123456|abcdef\"", text))
  secret <- study_manifest(parameters = list(key = secret_env("A_KEY")))
  expect_false(any(grepl("sk-test-123456", readLines(written(secret)))))
})

test_that("each part of a study is named when it differs", {
  a <- whole_study()
  paths <- diff_manifest(a, whole_study(k = 4))$path
  expect_setequal(paths, c(
    "agents.own.planner.model.hash", "agents.ruled.done.hash", "agents.ruled.guardrails.small.check.hash",
    "agents.ruled.planner.hash", "suite.digest", "suite.functions.short.hash"
  ))
  parts <- study_parts()
  changed <- function(...) {
    other <- unclass(parts$ruled)
    other[...names()] <- list(...)
    diff_manifest(
      study_manifest(agent = parts$ruled), study_manifest(agent = structure(other, class = "agent"))
    )$path
  }
  expect_equal(changed(limits = agent_limits(steps = 5, per_tool = c(half = 2))), "agents.agent.limits.steps")
  expect_match(changed(policy = agent_policy(allow_effects = "write", granted_scopes = "s")), "policy[.]grants")
  expect_equal(changed(approver = function(request) "reject"), "agents.agent.approver.hash")
  told <- function(text) study_manifest(agent = agent(list(), planner_llm(function(messages, tools) NULL, text)))
  expect_equal(diff_manifest(told("a"), told("b"))$path, "agents.agent.planner.instructions")
})

test_that("the case that changed in a suite changes its digest", {
  s <- function(y) suite(data.frame(id = "a", input = y), list(criterion_max_steps(2)))
  expect_equal(
    diff_manifest(study_manifest(suite = s("x")), study_manifest(suite = s("y")))$path, "suite.digest"
  )
})

test_that("tools of one name that differ between agents are both there", {
  plan <- function(state, tools) decide_finish(1)
  m <- study_manifest(agent = list(a = agent(tool(), plan), b = agent(tool(max_calls = 3), plan), c = agent(tool(), plan)))
  expect_length(m$tools, 2)
  expect_match(names(m$tools)[[2]], "^look@[0-9a-f]{8}$")
  expect_false(m$agents$a$tools$look == m$agents$b$tools$look)
})

test_that("a data file that changes during the study is found", {
  file <- tempfile(fileext = ".csv")
  writeLines("a", file)
  m <- study_manifest(data = file)
  expect_identical(verify_manifest(m), m)
  expect_identical(verify_manifest(read_manifest(written(m))), read_manifest(written(m)))
  elsewhere <- file.path(tempfile(), basename(file))
  dir.create(dirname(elsewhere))
  file.copy(file, elsewhere)
  cat("b", file = file, append = TRUE)
  expect_warrant_error(verify_manifest(m), "data_changed", files = basename(file))
  expect_identical(verify_manifest(m, data = elsewhere), m)
  unlink(file)
  expect_error(verify_manifest(m), "is not there", class = "warrant_error_state")
})

test_that("an edited manifest is refused, in a file and in the session", {
  m <- whole_study()
  m$title <- "Another"
  expect_warrant_error(hash_manifest(m), "manifest_edited", argument = "x")
  expect_warrant_error(diff_manifest(study_manifest(), m), "manifest_edited", argument = "b")
  file <- written(whole_study())
  text <- sub("12345678901", "12345678902", readLines(file, encoding = "UTF-8"), fixed = TRUE)
  write_bytes(text, file)
  expect_warrant_error(read_manifest(file), "manifest_edited")
})

test_that("what is no manifest is refused by what it breaks", {
  of <- function(text) read_manifest(write_bytes(text, tempfile(fileext = ".json")))
  expect_error(of("{}"), "missing", class = "warrant_error_schema")
  expect_warrant_error(of("{\"a\":1"), "not_a_manifest")
  expect_warrant_error(of("{\"a\":1,\"a\":2}"), "not_a_manifest")
  expect_warrant_error(of(as.raw(c(0x7b, 0xff, 0x7d))), "not_a_manifest")
  expect_warrant_error(of(raw()), "not_a_manifest")
  text <- readLines(written(whole_study()), encoding = "UTF-8")
  expect_warrant_error(of(sub("\"seed\": 12345678901", "\"seed\": \"1\"", text)), "schema")
  expect_warrant_error(read_manifest(tempfile()), "no_such_file")
  expect_warrant_error(write_manifest(study_manifest(), file.path(tempfile(), "x.json")), "file_write")
})

test_that("bad input is refused by name", {
  expect_warrant_error(study_manifest(data = "/nowhere/at/all"), "input", argument = "data")
  expect_warrant_error(study_manifest(tools = 1), "input", argument = "tools")
  expect_warrant_error(study_manifest(agent = list(1)), "input", argument = "agent")
  expect_warrant_error(study_manifest(agent = unname(study_parts())), "input", argument = "agent")
  expect_warrant_error(study_manifest(parameters = list(1)), "input", argument = "parameters")
  expect_warrant_error(study_manifest(seed = 1.5), "invalid_seed")
  expect_warrant_error(diff_manifest(1, 2), "input", argument = "a")
})

test_that("a manifest and an agent print what they are made of", {
  text <- format(whole_study())
  expect_match(text, "agents: asked (m-1 plans), own (a model of its own plans), ruled (an R function plans)", fixed = TRUE, all = FALSE)
  expect_match(text, "suite: two, 2 cases", all = FALSE)
  expect_match(text, "seed: 12345678901", all = FALSE)
  expect_match(format(study_parts()$ruled), "guardrails: small, no_double_after_half", all = FALSE)
})

test_that("runs tell which models answered, and tools that nothing else tells of", {
  study <- study_runs()
  m <- study_manifest(runs = study$runs)
  expect_equal(unlist(m$models_served), "served-1")
  expect_setequal(names(m$tools), c("look", "put"))
  expect_identical(hash_manifest(read_manifest(written(m))), hash_manifest(m))
  with <- study_manifest(agent = study$agent, runs = study$runs)
  expect_setequal(unique(sub("@.*", "", names(with$tools))), c("look", "put"))
  expect_true("models_served" %in% diff_manifest(with, study_manifest(agent = study$agent))$path)
  expect_setequal(unlist(with$made$runs), vapply(study$runs, `[[`, "", "run_id"))
  expect_warrant_error(study_manifest(runs = "abc"), "input", argument = "runs")
})

test_that("an agent given as tools is refused, since its policy would be left out", {
  half <- agent_tool(function(x) x / 2, "half", "Half.", side_effects = "none",
    parameters = list(x = list(type = "number")))
  one <- agent(half, function(state, tools) decide_finish(1))
  expect_warrant_error(study_manifest(tools = one), "input", argument = "tools")
  expect_named(study_manifest(agent = one)$tools, "half")
})
