skip_without_interrupts <- function() {
  skip_if_not(rs_watch_enforced(), "interrupts can be sent")
}

expect_stopped <- function(f, timeout_s = 0.15, within = 2) {
  out <- limit_call(f, timeout_s)
  expect_s3_class(out, "warrant_timed_out")
  expect_identical(out$whose, "own")
  expect_gte(out$elapsed_s, timeout_s)
  expect_lt(out$elapsed_s, within)
  invisible(out)
}

# What a late signal would break: code that is interrupted, or a later limit.
expect_undisturbed <- function() {
  expect_identical(tryCatch({
    Sys.sleep(0.25)
    "whole"
  }, interrupt = function(cnd) "interrupted"), "whole")
  expect_identical(limit_call(function() "again", 5), "again")
}

test_that("a call in time gives its value, NULL and functions included", {
  expect_identical(limit_call(function() 42L, 5), 42L)
  expect_null(limit_call(function() NULL, 5))
  expect_identical(limit_call(function() sum, 5), sum)
  expect_identical(limit_call(function() "x", Inf), "x")
  expect_identical(limit_call(function() "x", NULL), "x")
  expect_identical(limit_call(function() "x", 1e300), "x")
})

test_that("work that fits is never stopped", {
  for (i in 1:10) {
    expect_identical(limit_call(function() {
      Sys.sleep(0.08)
      i
    }, 0.4), i)
  }
})

test_that("loops, sleep and a waiting socket are stopped", {
  skip_without_interrupts()
  expect_true(expect_stopped(function() repeat NULL)$interrupted)
  expect_true(expect_stopped(function() Sys.sleep(10))$interrupted)
  server <- serverSocket(port <- 20000L + Sys.getpid() %% 20000L)
  withr::defer(close(server))
  expect_true(expect_stopped(function() {
    con <- socketConnection(port = port, open = "rb", blocking = TRUE, timeout = 10)
    on.exit(close(con))
    readBin(con, "raw", 1)
  })$interrupted)
  expect_undisturbed()
})

test_that("a tool that swallows errors is stopped, one that swallows an interrupt gets the next", {
  skip_without_interrupts()
  expect_stopped(function() repeat try(stop("no"), silent = TRUE))
  swallowed <- 0
  out <- expect_stopped(function() {
    tryCatch(Sys.sleep(10), interrupt = function(cnd) swallowed <<- swallowed + 1)
    Sys.sleep(10)
  })
  expect_identical(swallowed, 1)
  expect_gte(out$elapsed_s, 0.3)
  expect_undisturbed()
})

test_that("what cannot be stopped is timed out on return, its value withheld", {
  late <- function() {
    tryCatch(Sys.sleep(0.3), interrupt = function(cnd) Sys.sleep(0.1))
    "late"
  }
  expect_false(expect_stopped(late)$interrupted)
  skip_on_os("windows")
  expect_false(expect_stopped(function() system("sleep 0.4"))$interrupted)
  backtrack <- function() grepl("^(a+)+\\1b$", strrep("a", 24))
  expect_false(expect_stopped(backtrack, 0.05, within = 60)$interrupted)
  # Compiled code runs to its end; the first R code after it is interrupted.
  expect_stopped(function() dist(matrix(0, 6000, 20)), 0.05, within = 60)
  expect_undisturbed()
})

test_that("an error after the limit is a time-out, one before it keeps its class", {
  expect_error(limit_call(function() rlang::abort("early", class = "of_tool"), 5), class = "of_tool")
  expect_stopped(function() {
    tryCatch(Sys.sleep(0.4), interrupt = function(cnd) NULL)
    stop("late")
  })
  expect_undisturbed()
})

test_that("conditions reach outer handlers, errors with the stack they came from", {
  seen <- character()
  value <- withCallingHandlers(
    limit_call(function() {
      warning("careful")
      message("hello")
      "value"
    }, 5),
    warning = function(cnd) {
      seen <<- c(seen, conditionMessage(cnd))
      invokeRestart("muffleWarning")
    },
    message = function(cnd) {
      seen <<- c(seen, conditionMessage(cnd))
      invokeRestart("muffleMessage")
    }
  )
  expect_identical(value, "value")
  expect_identical(seen, c("careful", "hello\n"))
  thrower <- function() stop("deep")
  calls <- NULL
  try(withCallingHandlers(limit_call(thrower, 5), error = function(cnd) calls <<- sys.calls()), silent = TRUE)
  expect_true(any(vapply(calls, function(x) identical(x, quote(f())), TRUE)))
})

test_that("the person's Ctrl-C stays an interrupt", {
  skip_on_os("windows")
  ctrl_c <- function() {
    tools::pskill(Sys.getpid(), tools::SIGINT)
    Sys.sleep(1)
    "swallowed"
  }
  interrupt <- function(cnd) "interrupt"
  expect_identical(tryCatch(limit_call(ctrl_c, 5), interrupt = interrupt), "interrupt")
  expect_identical(tryCatch(limit_call(ctrl_c), interrupt = interrupt), "interrupt")
  expect_identical(
    tryCatch(limit_call(function() limit_call(ctrl_c, 5), 6), interrupt = interrupt), "interrupt"
  )
  # Also when it comes after the limit, into a tool that swallows all it gets.
  late <- function() {
    tryCatch(Sys.sleep(2), interrupt = function(cnd) NULL)
    tools::pskill(Sys.getpid(), tools::SIGINT)
    tryCatch(Sys.sleep(2), interrupt = function(cnd) NULL)
    "swallowed"
  }
  expect_identical(tryCatch({
    limit_call(late, 0.1)
    Sys.sleep(1)
  }, interrupt = interrupt), "interrupt")
  expect_undisturbed()
})

test_that("an inner call is stopped by the outer limit, and each says whose it was", {
  skip_without_interrupts()
  for (own in list(NULL, 5)) {
    inner <- NULL
    out <- expect_stopped(function() {
      inner <<- limit_call(function() Sys.sleep(10), own)
      Sys.sleep(10)
    })
    expect_identical(inner$whose, "outer")
    expect_lt(out$elapsed_s, 2)
  }
  value <- limit_call(function() {
    inner <<- limit_call(function() Sys.sleep(10), 0.1)
    "outer value"
  }, 5)
  expect_identical(value, "outer value")
  expect_identical(inner$whose, "own")
  expect_undisturbed()
})

test_that("on.exit code of a stopped tool is not interrupted in its turn", {
  skip_without_interrupts()
  tidied <- FALSE
  expect_stopped(function() {
    on.exit({
      Sys.sleep(0.5)
      tidied <<- TRUE
    })
    Sys.sleep(10)
  })
  expect_true(tidied)
})

test_that("a jump out of the call disarms the limit", {
  leave <- function() {
    for (i in 1:3) limit_call(function() break, 0.1)
    "left"
  }
  out <- tryCatch(leave(), error = function(cnd) "left")
  expect_identical(out, "left")
  expect_identical(
    withRestarts(limit_call(function() invokeRestart("away", 7), 0.1), away = identity), 7
  )
  expect_identical(the$watching, 0L)
  expect_undisturbed()
})

test_that("no signal comes late, however close the race", {
  rounds <- 400
  late <- 0
  withCallingHandlers(
    for (i in seq_len(rounds)) {
      limit_call(function() for (k in 1:2000) k, runif(1, 0, 2e-4))
      for (k in 1:200) k
    },
    interrupt = function(cnd) {
      late <<- late + 1
      tryInvokeRestart("resume")
    }
  )
  expect_identical(late, 0)
  expect_undisturbed()
})

test_that("limits hold in a forked child and the parent keeps its own", {
  skip_on_os("windows")
  skip_without_interrupts()
  limit_call(function() 1, 5)
  out <- parallel::mclapply(1:2, function(i) {
    c(limit_call(function() Sys.sleep(10), 0.1)$whose, limit_call(function() "value", 5))
  }, mc.cores = 2)
  expect_identical(out, list(c("own", "value"), c("own", "value")))
  expect_stopped(function() Sys.sleep(10))
  expect_undisturbed()
})

test_that("a limit leaves random numbers and suspended interrupts as they were", {
  set.seed(1)
  want <- runif(2)
  set.seed(1)
  got <- c(limit_call(function() runif(1), 5), runif(1))
  expect_identical(got, want)
})
