skip_on_os("windows")

call_it <- function(fn, args = list(), timeout_s = 20, captures = list()) {
  process_call(process_bundle(fn, captures), args, timeout_s)
}

# Dead within 0.5 s of the limit is what is promised; a loaded machine gets more.
expect_killed <- function(fn, ..., timeout_s = 0.2, within = 2) {
  out <- call_it(fn, list(...), timeout_s)
  expect_identical(out$status, "timed_out")
  expect_identical(out$whose, "own")
  expect_null(out$value)
  expect_gte(out$elapsed_s, timeout_s)
  expect_lt(out$elapsed_s, timeout_s + within)
  invisible(out)
}

# A dead process that nobody has waited for still has its number.
is_alive <- function(pid) {
  stat <- tryCatch(suppressWarnings(readLines(file.path("/proc", pid, "stat"))), error = function(cnd) "")
  isTRUE(tools::pskill(as.integer(pid), 0L)) && !grepl(") Z ", stat, fixed = TRUE)
}

expect_well <- function() expect_identical(call_it(function(x) x + 1, list(x = 1))$value, 2)

test_that("a call gives the value of the function with its captures", {
  rate <- 3
  double <- function(x) x * helper_factor
  out <- call_it(function(x) double(x) + rate, list(x = 5),
    captures = list(rate = rate, double = double, helper_factor = 2)
  )
  expect_identical(out$status, "ok")
  expect_identical(out$value, 13)
  expect_identical(out$output, "")
  expect_identical(out$warnings, list())
  expect_gt(out$elapsed_s, 0)
  expect_null(call_it(function() NULL)$value)
  frame <- data.frame(a = 1:3, b = c("x", NA, "\u00e9"))
  expect_identical(call_it(function(d) d[2:3, ], list(d = frame))$value, frame[2:3, ])
})

test_that("functions of packages and closures with state of their own travel", {
  expect_identical(call_it(stats::sd, list(x = c(1, 2, 3)))$value, 1)
  counter <- local({
    n <- 10
    function() n <<- n + 1
  })
  once <- process_bundle(function() counter(), list(counter = counter))
  expect_identical(process_call(once)$value, 11)
  expect_identical(process_call(once)$value, 11)
})

test_that("a loop, sleep, swallowed errors and swallowed interrupts are killed", {
  expect_killed(function() repeat NULL)
  expect_killed(function() Sys.sleep(60))
  expect_killed(function() repeat try(stop("no"), silent = TRUE))
  expect_killed(function() repeat tryCatch(Sys.sleep(60), interrupt = function(cnd) NULL))
  expect_well()
})

test_that("compiled code and a backtracking regex are killed", {
  expect_killed(function() repeat dist(matrix(0, 4000, 20)))
  expect_killed(function() grepl("^(a+)+\\1b$", strrep("a", 60)))
  expect_well()
})

test_that("a hanging socket read is killed", {
  server <- serverSocket(port <- 20000L + (Sys.getpid() + 7L) %% 20000L)
  withr::defer(close(server))
  expect_killed(function(port) {
    con <- socketConnection(port = port, open = "rb", blocking = TRUE, timeout = 60)
    readBin(con, "raw", 1)
  }, port = port)
})

test_that("children and grandchildren die with the call, also those that left its group", {
  skip_on_os("mac")
  pids <- withr::local_tempfile()
  expect_killed(function(pids) {
    system(sprintf("sh -c 'echo $$ >> %s; exec sleep 60' & sh -c 'echo $$ >> %s; sleep 60; true'", pids, pids), wait = FALSE)
    system(sprintf("setsid sh -c 'echo $$ >> %s; exec sleep 60' &", pids))
    system("sleep 60")
  }, pids = pids, timeout_s = 0.5)
  started <- readLines(pids)
  expect_length(started, 3)
  expect_false(any(vapply(started, is_alive, NA)))
  # What a call that succeeds leaves behind ends too.
  left <- call_it(function() as.integer(system("setsid sleep 60 >/dev/null 2>&1 & echo $!", intern = TRUE)))$value
  expect_well()
  expect_false(is_alive(left))
})

test_that("an effect after the limit does not happen", {
  path <- withr::local_tempfile()
  expect_killed(function(path) {
    Sys.sleep(0.6)
    writeLines("late", path)
  }, path = path)
  Sys.sleep(0.6)
  expect_false(file.exists(path))
})

test_that("work that fits is never killed: starting the worker is not charged", {
  close_workers()
  out <- call_it(function() {
    Sys.sleep(0.1)
    "done"
  }, timeout_s = 0.4)
  expect_identical(out$value, "done")
  for (i in 1:5) {
    expect_identical(call_it(function() {
      Sys.sleep(0.1)
      "done"
    }, timeout_s = 0.4)$value, "done")
  }
})

test_that("errors come back as conditions with their classes and fields", {
  out <- call_it(function() rlang::abort("no such item", class = "shop_error", item = "pear"))
  expect_identical(out$status, "error")
  expect_s3_class(out$condition, "shop_error")
  expect_identical(out$condition$item, "pear")
  big <- call_it(function() stop(structure(
    class = c("heavy", "error", "condition"),
    list(message = "too heavy", call = NULL, data = runif(1e6))
  )))
  expect_s3_class(big$condition, "heavy")
  expect_identical(conditionMessage(big$condition), "too heavy")
  expect_null(big$condition$data)
})

test_that("warnings, messages and output are kept in order and bounded", {
  out <- call_it(function() {
    warning("first")
    message("hello")
    cat("printed\n")
    system("echo from a child; echo to stderr >&2")
    warning("second")
    7
  })
  expect_identical(out$value, 7)
  expect_identical(vapply(out$warnings, `[[`, "", "message"), c("first", "second"))
  expect_true("simpleWarning" %in% out$warnings[[1]]$class)
  expect_identical(out$messages[[1]]$message, "hello\n")
  expect_identical(out$output, "printed\nfrom a child\nto stderr\n")
  many <- call_it(function() {
    for (i in 1:300) warning("w")
    cat(strrep("x", 3e5))
    message(strrep("y", 1e5))
  })
  expect_identical(many$status, "ok")
  expect_length(many$warnings, worker_bounds$conditions)
  expect_identical(many$conditions_dropped, 200)
  expect_identical(nchar(many$output), worker_bounds$output)
  expect_identical(many$output_dropped, 2e5)
  expect_identical(nchar(many$messages[[1]]$message), worker_bounds$chars)
  expect_identical(expect_killed(function() {
    cat("so far")
    flush(stdout())
    Sys.sleep(60)
  })$output, "so far")
})

test_that("a call changes nothing for the next", {
  call_it(function() {
    assign("leaked", 1, envir = globalenv())
    options(digits = 3)
    Sys.setenv(WARRANT_LEAK = "1")
    setwd("/")
    set.seed(1)
    attach(list(attached = 1))
    file.create(tempfile())
  })
  left <- call_it(function() {
    list(
      ls(globalenv()), getOption("digits"), Sys.getenv("WARRANT_LEAK"), getwd(),
      exists(".Random.seed"), exists("attached"), dir(tempdir())
    )
  })$value
  expect_identical(left, list(character(), 7L, "", getwd(), FALSE, FALSE, character()))
  draws <- vapply(1:3, function(i) call_it(function() runif(1))$value, 0)
  expect_length(unique(draws), 3)
})

test_that("the session's folder and environment variables are seen as they are at the call", {
  bundle <- process_bundle(function() c(getwd(), Sys.getenv("WARRANT_SEEN", NA)))
  process_call(bundle)
  withr::local_envvar(WARRANT_SEEN = "now")
  dir <- withr::local_tempdir()
  withr::local_dir(dir)
  expect_identical(process_call(bundle)$value, c(getwd(), "now"))
})

test_that("packages that a call loads stay loaded", {
  close_workers()
  first <- call_it(function() loadNamespace("splines")[[".__NAMESPACE__."]]$spec[["name"]])
  expect_identical(first$loaded, "splines")
  again <- call_it(function() isNamespaceLoaded("splines"))
  expect_true(again$value)
  expect_identical(again$loaded, character())
})

test_that("a worker that dies is an error of that call only", {
  expect_match(conditionMessage(call_it(function() quit("no", 3))$condition), "exit status 3")
  out <- call_it(function() tools::pskill(Sys.getpid(), 9L))
  expect_identical(out$status, "died")
  expect_match(conditionMessage(out$condition), "killed by signal 9")
  expect_well()
  template <- call_it(function() {
    stat <- readLines("/proc/self/stat")
    parent <- as.integer(strsplit(sub(".*\\) ", "", stat), " ")[[1]][[2]])
    tools::pskill(parent, 9L)
    Sys.sleep(60)
  }, timeout_s = 5)
  expect_true(template$status == "died")
  expect_well()
})

test_that("values that cannot travel are named, in captures and in results", {
  con <- textConnection("a")
  withr::defer(close(con))
  holder <- function() inner
  environment(holder) <- list2env(list(inner = con), parent = globalenv())
  err <- expect_error(
    process_bundle(function() 1, list(con = con, fine = 1, deep = list(a = list(con)), holder = holder)),
    class = "warrant_error_cannot_travel"
  )
  expect_s3_class(err, "warrant_error_input")
  expect_length(err$values, 3)
  expect_match(err$values[[1]], "^con ")
  expect_match(err$values[[2]], "^deep\\$a\\[\\[1\\]\\] ")
  expect_match(err$values[[3]], "holder")
  out <- call_it(function() list(con = textConnection("a")))
  expect_identical(out$status, "error")
  expect_match(conditionMessage(out$condition), "result$con", fixed = TRUE)
})

test_that("a tool that cannot be set up says so, and the worker goes on", {
  bundle <- process_bundle(function() 1)
  bundle$bytes <- bundle$bytes[1:30]
  bundle$key <- strrep("0", 64)
  out <- process_call(bundle)
  expect_identical(out$status, "error")
  expect_match(conditionMessage(out$condition), "could not be set up")
  expect_well()
})

test_that("an outer limit kills the call and is told apart from its own", {
  inner <- NULL
  out <- limit_call(function() {
    inner <<- call_it(function() Sys.sleep(60), timeout_s = 30)
    "outer value"
  }, 0.3)
  expect_identical(out$whose, "own")
  expect_identical(inner$status, "timed_out")
  expect_identical(inner$whose, "outer")
  expect_well()
})

test_that("the person's Ctrl-C kills the call and stays an interrupt", {
  pids <- withr::local_tempfile()
  session <- Sys.getpid()
  got <- tryCatch(call_it(function(pids, session) {
    writeLines(as.character(Sys.getpid()), pids)
    tools::pskill(session, tools::SIGINT)
    Sys.sleep(60)
  }, list(pids = pids, session = session)), interrupt = function(cnd) "interrupt")
  expect_identical(got, "interrupt")
  expect_false(is_alive(readLines(pids)))
  expect_well()
})

test_that("a forked child of the session has workers of its own", {
  mine <- the$workers
  parents <- call_it(function() Sys.getpid())
  out <- parallel::mclapply(1:2, function(i) {
    on.exit(close_workers())
    c(call_it(function(i) i, list(i = i))$value, expect_killed(function() Sys.sleep(60))$status == "timed_out")
  }, mc.cores = 2)
  expect_identical(out, list(c(1L, 1L), c(2L, 1L)))
  expect_well()
})

test_that("large arguments and results pass both ways", {
  x <- as.numeric(seq_len(1e6))
  expect_identical(call_it(function(x) rev(x), list(x = x))$value, rev(x))
})

test_that("closing the workers leaves no process", {
  pid <- call_it(function() {
    stat <- readLines("/proc/self/stat")
    as.integer(strsplit(sub(".*\\) ", "", stat), " ")[[1]][[2]])
  })
  skip_if_not(identical(pid$status, "ok"), "/proc is there")
  expect_true(is_alive(pid$value))
  close_workers()
  expect_false(is_alive(pid$value))
})

test_that("where no process can be forked each call has a fresh one", {
  before <- the$can_fork
  withr::defer(the$can_fork <- before)
  the$can_fork <- function() FALSE
  out <- call_it(function(x) {
    message("hello")
    cat("printed")
    x + rate
  }, list(x = 1), captures = list(rate = 2))
  expect_identical(out$status, "ok")
  expect_identical(out$value, 3)
  expect_identical(out$messages[[1]]$message, "hello\n")
  expect_identical(out$output, "printed")
  pids <- withr::local_tempfile()
  expect_killed(function(pids) {
    system(sprintf("sh -c 'echo $$ > %s; exec sleep 60'", pids))
  }, pids = pids, timeout_s = 0.3)
  expect_false(is_alive(readLines(pids)))
  expect_match(conditionMessage(call_it(function() quit("no", 3))$condition), "exit status 3")
  expect_s3_class(call_it(function() rlang::abort("no", class = "mine"))$condition, "mine")
})

test_that("a process tool makes and calls a process tool, which is killed with it", {
  outer <- agent_tool(function(x, file) {
    inner <- warrant::agent_tool(function(x, file) {
      cat(Sys.getpid(), "\n", file = file)
      if (x > 1) Sys.sleep(60)
      x + 1
    }, "inner", "Adds.", parameters = list(x = list(type = "number"), file = list(type = "string")), isolation = "process")
    done <- warrant::call_tool(inner, list(x = x, file = file))
    list(status = done$status, value = done$value, pid = Sys.getpid())
  }, "outer", "Calls.", parameters = list(x = list(type = "number"), file = list(type = "string")),
    side_effects = "none", isolation = "process", timeout_s = 10
  )
  file <- withr::local_tempfile()
  result <- call_tool(outer, list(x = 1, file = file))
  expect_identical(result$status, "executed")
  expect_identical(result$value[c("status", "value")], list(status = "executed", value = 2))
  inner_pid <- as.integer(readLines(file))
  expect_false(inner_pid %in% c(result$value$pid, Sys.getpid()))
  late <- agent_tool(environment(outer$fn)$core$raw_fn, "late", "Calls.",
    parameters = list(x = list(type = "number"), file = list(type = "string")),
    side_effects = "none", isolation = "process", timeout_s = 3
  )
  file.remove(file)
  expect_identical(call_tool(late, list(x = 2, file = file))$status, "timed_out")
  skip_on_os("mac")
  if (file.exists(file)) expect_false(is_alive(as.integer(readLines(file))))
  expect_well()
})

test_that("a process tool that takes a tool from outside is refused by name", {
  look <- agent_tool(function() 1, "look", "Looks.")
  expect_warrant_error(
    agent_tool(function() call_tool(look), "outer", "Calls.", isolation = "process"),
    "cannot_travel", captures = "look", message = "`look`, whose count of calls"
  )
})
