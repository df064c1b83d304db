# What a manifest says of the parts of a study: plain lists that have a JSON form.
# Private.

# Tools of several agents by name. Where tools of one name differ, the later ones have
# the beginning of their hash in the name.
manifest_tools <- function(tools) {
  out <- list()
  hashes <- character()
  for (tool in tools) {
    spec <- tool_spec(tool_core(tool, "tools"))
    name <- tool$name
    if (name %in% names(out) && hashes[[name]] != spec$digest) {
      name <- paste0(name, "@", substr(spec$digest, 1L, 8L))
    }
    # As it was hashed: R lists would not know an array of one.
    json <- sub("^[{]", sprintf("{\"spec_hash\":\"%s\",", spec$digest), spec$spec)
    out[[name]] <- structure(json, class = "json")
    hashes[[name]] <- spec$digest
  }
  out
}

# With the tools that only runs tell of: of these the hash is known.
tools_with <- function(tools, hashes) {
  named <- vapply(tools, function(json) unwrap_core(rs_from_json(as.character(json)))$spec_hash, "")
  for (name in names(hashes)[!hashes %in% named]) {
    at <- if (name %in% names(tools)) paste0(name, "@", substr(hashes[[name]], 1L, 8L)) else name
    tools[[at]] <- list(spec_hash = hashes[[name]])
  }
  tools
}

# What runs tell of models and tools.
runs_parts <- function(sources) {
  parts <- lapply(sources$runs, function(source) {
    unwrap_core(rs_run_parts(source$store$read(source$run_id), source$store$get_content(source$run_id)))
  })
  names <- unlist(lapply(parts, `[[`, "tools"))
  hashes <- unlist(lapply(parts, `[[`, "spec_hashes"))
  first <- !duplicated(paste(names, hashes))
  models <- unique(as.character(unlist(lapply(parts, `[[`, "models"))))
  list(
    models = models[order_c(models)], tools = stats::setNames(hashes[first], names[first]),
    run_id = vapply(sources$runs, `[[`, "", "run_id")
  )
}

agent_facts <- function(agent) {
  list(
    tools = named_list(as.list(vapply(agent$tools, function(t) as.character(hash_tool_spec(t)), ""))),
    policy = policy_facts(agent$policy), limits = limits_facts(agent$limits),
    planner = planner_facts(agent$planner),
    guardrails = named_list(guardrails_facts(agent$guardrails)),
    approver = function_facts(agent$approver), done = function_facts(agent$done)
  )
}

policy_facts <- function(policy) {
  list(
    granted_scopes = I(policy$granted_scopes), allow_effects = I(policy$allow_effects),
    approve_effects = I(policy$approve_effects),
    grants = lapply(policy$grants, function(g) {
      list(
        tool = g$tool, arguments = g$arguments, run = g$run, count = finite_or_null(g$count),
        until = g$until
      )
    })
  )
}

limits_facts <- function(limits) {
  single <- c("steps", "tool_calls", "tokens", "cost", "seconds", "call_timeout_s")
  one <- lapply(limits[single], finite_or_null)
  per_tool <- as.list(limits$per_tool)
  c(one, list(per_tool = named_list(lapply(per_tool, finite_or_null))))
}

# No limit is null: JSON has no infinity.
finite_or_null <- function(x) if (is.finite(x)) x

guardrails_facts <- function(rails) {
  out <- lapply(unclass(rails), function(rail) {
    c(
      list(stage = I(sort_c(rail$stage)), on_fail = rail$on_fail, check = function_facts(rail$check)),
      if (!is.null(rail$flow)) list(flow = lapply(rail$flow, I))
    )
  })
  names(out) <- vapply(unclass(rails), function(rail) rail$name, "")
  out
}

# A function is known by the hash of its normalised code and of what it captures, as
# in hash_tool_spec(); `not_covered` names what that leaves out.
function_facts <- function(fn) {
  if (is.null(fn)) return(NULL)
  digest <- capture_digest(unclass_function(fn), list())$digest
  list(
    kind = "function", hash = hash_content(digest), not_covered = named_list(not_covered_in(digest))
  )
}

unclass_function <- function(fn) {
  attributes(fn)[setdiff(names(attributes(fn)), "srcref")] <- NULL
  fn
}

# The names that the digest of a function, or of one it captures, does not cover.
not_covered_in <- function(digest) {
  if (!is.list(digest)) return(list())
  out <- as.list(digest$not_covered)
  for (inner in digest$captures) out <- c(out, not_covered_in(inner))
  out <- out[!duplicated(names(out))]
  out[order_c(names(out))]
}

# A suite: its digest covers cases, criteria, metrics and slices.
suite_facts <- function(suite) {
  if (is.null(suite)) return(NULL)
  functions <- Filter(function(criterion) criterion$type == "function", suite$criteria)
  functions <- stats::setNames(
    lapply(functions, function(criterion) function_facts(criterion$fn)),
    vapply(functions, `[[`, "", "criterion")
  )
  whole <- list(
    spec = structure(suite_spec(suite), class = "json"), functions = named_list(functions),
    cases = lapply(suite$cases, as.character)
  )
  list(
    name = suite$name, digest = hash_content(whole), cases = length(suite$cases$id),
    criteria = I(vapply(suite$criteria, `[[`, "", "criterion")), functions = named_list(functions),
    system = suite$system[c("name", "version")]
  )
}

manifest_data <- function(paths, call = caller_env()) {
  paths <- as.character(paths)
  gone <- paths[!file.exists(paths) | dir.exists(paths)]
  if (length(gone)) {
    stop_warrant(
      c("`data` must name files that can be read.", x = paste0("Not a file: ", listed(gone), ".")),
      "input", argument = "data", call = call
    )
  }
  names <- enc2utf8(basename(paths))
  if (anyDuplicated(names)) {
    stop_warrant(
      c("Data files must have different base names.",
        x = paste0("Twice: ", listed(unique(names[duplicated(names)])), ".")),
      "input", argument = "data", call = call
    )
  }
  stats::setNames(lapply(paths, data_facts, call), names)
}

data_facts <- function(path, call = caller_env()) {
  list(sha256 = unwrap_core(rs_sha256_file(enc2utf8(path.expand(path))), call), bytes = file.size(path))
}

manifest_packages <- function(packages) {
  versions <- lapply(packages, function(p) {
    if (nzchar(system.file(package = p))) as.character(utils::packageVersion(p)) else NA
  })
  names(versions) <- packages
  versions
}
