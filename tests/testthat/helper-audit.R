golden_path <- function(file) testthat::test_path("golden", file)

golden_trail <- function() readLines(golden_path("trail-v1.jsonl"), encoding = "UTF-8")

# Writes bytes or lines as they are.
write_bytes <- function(x, path) {
  con <- file(path, "wb")
  on.exit(close(con))
  if (is.raw(x)) writeBin(x, con) else writeLines(x, con, sep = "\n", useBytes = TRUE)
  path
}

trail_state <- function(x, ...) attr(verify_audit(x, ...), "state")

# A run of made-up records that the chain accepts.
chain_of <- function(run_id, n, from = 0, head = "") {
  core <- warrant:::unwrap_core(warrant:::rs_seal_lines(
    run_id, from, head, rep("plan_started", n), sprintf("{\"step\":%d}", seq_len(n)), 1, 1
  ))
  core
}

python <- function() {
  path <- Sys.which("python3")
  testthat::skip_if(!nzchar(path), "python3 is not there")
  path
}
