# Runs every bench/*.R (or those named) in a process of its own, on an optimised
# build, and prints one table. In them:
#
#   bench_report(name, value, unit, against = NULL, goal = NULL)
#     name     what was measured, in a few words
#     value    the figure
#     unit     its unit: "us", "ms", "s", "MB/s", "bytes", "x", ...
#     against  the figure of what it is compared with, in the same unit
#     goal     "< 25", "<= 25", "> 300", ">= 300" of the value; "10x" when value/against
#              (or against/value, where less is better) shall be ten or more
#   bench_median(expr, n = 200, setup = NULL)   median seconds of one evaluation
#   bench_pair(f, g)   median seconds of both, in turns, so that both see the same machine
#   bench_time(expr)                            seconds of one evaluation
#   bench_memory(expr)                          bytes that R holds more afterwards
#   bench_rss()                                 bytes the process holds now (Linux; else NA)
#   bench_scratch()                             a folder that is removed in the end

bench_units_of_rates <- function(unit) grepl("/s$", unit)

bench_report <- function(name, value, unit, against = NULL, goal = NULL) {
  stopifnot(is.character(name), is.numeric(value), length(value) == 1, is.character(unit))
  ratio <- NA_real_
  if (!is.null(against)) ratio <- if (bench_units_of_rates(unit)) value / against else against / value
  met <- NA
  if (!is.null(goal)) {
    met <- if (grepl("x$", goal)) {
      ratio >= as.numeric(sub("x$", "", goal))
    } else {
      parts <- regmatches(goal, regexec("^(<=|>=|<|>) *([0-9.e+-]+)$", goal))[[1]]
      if (length(parts) != 3) stop("a goal reads like '< 25' or '10x', not '", goal, "'")
      match.fun(parts[2])(value, as.numeric(parts[3]))
    }
  }
  row <- data.frame(
    name = name, value = value, unit = unit, against = if (is.null(against)) NA_real_ else against,
    ratio = ratio, goal = if (is.null(goal)) "" else goal, met = met
  )
  out <- Sys.getenv("WARRANT_BENCH_OUT")
  if (nzchar(out)) {
    utils::write.table(row, out, append = file.exists(out), col.names = !file.exists(out), row.names = FALSE, sep = "\t")
  }
  cat(bench_line(row), "\n", sep = "")
  invisible(row)
}

bench_line <- function(row) {
  figure <- function(x) format(signif(x, 3), big.mark = ",", scientific = FALSE, trim = TRUE)
  paste0(
    "   ", formatC(row$name, width = -52), formatC(figure(row$value), width = 10), " ", formatC(row$unit, width = -8),
    if (!is.na(row$against)) formatC(paste0("against ", figure(row$against)), width = 18) else strrep(" ", 18),
    if (!is.na(row$ratio)) formatC(paste0(figure(row$ratio), "x"), width = 9) else strrep(" ", 9),
    if (nzchar(row$goal)) paste0("   goal ", row$goal, if (row$met) ": met" else ": NOT met") else ""
  )
}

bench_time <- function(expr) {
  expr <- substitute(expr)
  where <- parent.frame()
  gc(FALSE)
  start <- bench_clock()
  eval(expr, where)
  bench_clock() - start
}

# Microseconds matter, so evaluations are timed in batches of at least 1 ms, and
# the median is taken over the batches.
bench_median <- function(expr, n = 200, setup = NULL) {
  f <- eval(call("function", NULL, substitute(expr)), parent.frame())
  f <- compiler::cmpfun(f)
  for (i in 1:3) f()
  batch <- 1
  repeat {
    start <- bench_clock()
    for (i in seq_len(batch)) f()
    if (bench_clock() - start > 1e-3 || batch > 1e5) break
    batch <- batch * 4
  }
  rounds <- max(11, min(n, ceiling(2e4 / batch)))
  times <- vapply(seq_len(rounds), function(k) {
    if (!is.null(setup)) setup()
    start <- bench_clock()
    for (i in seq_len(batch)) f()
    (bench_clock() - start) / batch
  }, 0)
  stats::median(times)
}

bench_pair <- function(f, g, rounds = 200, batch = 20) {
  once <- function(f) {
    start <- bench_clock()
    for (i in seq_len(batch)) f()
    (bench_clock() - start) / batch
  }
  once(f)
  once(g)
  times <- vapply(seq_len(rounds), function(k) c(once(f), once(g)), c(0, 0))
  c(stats::median(times[1, ]), stats::median(times[2, ]))
}

bench_clock <- function() proc.time()[["elapsed"]]
if (requireNamespace("bench", quietly = TRUE)) {
  bench_clock <- function() as.numeric(bench::hires_time())
}

bench_memory <- function(expr) {
  expr <- substitute(expr)
  where <- parent.frame()
  before <- sum(gc(full = TRUE)[, 1] * c(56, 8))
  eval(expr, where)
  sum(gc(full = TRUE)[, 1] * c(56, 8)) - before
}

bench_rss <- function() {
  if (!file.exists("/proc/self/statm")) return(NA_real_)
  gc(full = TRUE)
  4096 * as.numeric(strsplit(readLines("/proc/self/statm"), " ")[[1]][2])
}

bench_scratch <- function() {
  dir <- tempfile("bench")
  dir.create(dir)
  dir
}

bench_one <- function(file) {
  suppressPackageStartupMessages(library(warrant))
  # files of bench/ find one another's data from the folder of the package
  sys.source(file, envir = new.env(parent = globalenv()))
}

bench_all <- function(names) {
  files <- list.files("bench", "[.]R$", full.names = TRUE)
  have <- sub("[.]R$", "", basename(files))
  if (length(names)) {
    unknown <- setdiff(names, have)
    if (length(unknown)) stop("there is no bench/", unknown[1], ".R; there are: ", paste(have, collapse = ", "), call. = FALSE)
    files <- files[have %in% names]
  }
  out <- tempfile("bench", fileext = ".tsv")
  Sys.setenv(WARRANT_BENCH_OUT = out)
  ended <- vapply(files, function(file) {
    cat("-- bench: ", file, "\n", sep = "")
    system2(file.path(R.home("bin"), "Rscript"), c("tools/bench.R", "--one", file))
  }, 0L)
  rows <- if (file.exists(out)) utils::read.delim(out, colClasses = c(goal = "character")) else NULL
  cat("\n", R.version.string, ", ", parallel::detectCores(), " cores, ", as.character(Sys.Date()), "\n", sep = "")
  for (i in seq_len(NROW(rows))) cat(bench_line(replace(rows[i, ], "goal", ifelse(is.na(rows$goal[i]), "", rows$goal[i]))), "\n", sep = "")
  if (NROW(rows)) {
    cat(sprintf(
      "%d figures; of %d goals %d are met\n", nrow(rows), sum(!is.na(rows$met)), sum(rows$met, na.rm = TRUE)
    ))
  }
  if (any(ended != 0)) {
    cat("ended with an error: ", paste(files[ended != 0], collapse = ", "), "\n", sep = "")
    quit(status = 1)
  }
  if (!NROW(rows)) stop("no benchmark reported a figure", call. = FALSE)
}

args <- commandArgs(TRUE)
if (length(args) && args[1] == "--one") bench_one(args[2]) else bench_all(args)
