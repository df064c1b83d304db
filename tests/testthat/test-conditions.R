# What must be true of the errors of every exported function.

# No argument means any of these, so that a function either takes it for a value
# (hash_content()) or refuses it.
garbage <- function() {
  list(
    an_environment = new.env(), a_function = function(...) NULL, a_null = NULL,
    a_list = list(1, "a", list(TRUE)), a_nan = NaN, no_text = character(), two_texts = c("\u00e9", NA),
    bytes = as.raw(0:3), a_formula = y ~ x, an_object = structure(list(), class = "garbage")
  )
}

# Functions that take anything: an answer of any kind, or a part of a record, which
# is checked with the record that it becomes part of.
take_anything <- c(
  "agent_checkpoint", "agent_step", "constraint_check", "decide_finish", "record_trajectory"
)

exported_functions <- function() {
  names <- getNamespaceExports("warrant")
  with_arguments <- function(n) {
    f <- get(n, asNamespace("warrant"))
    is.function(f) && length(setdiff(names(formals(f)), "..."))
  }
  names <- names[vapply(names, with_arguments, NA)]
  sort(setdiff(names, grep("^(is|has)_|<-$", names, value = TRUE)), method = "radix")
}

# The errors that `name` raises when its required arguments (or its first one)
# are garbage.
errors_of <- function(name) {
  fn <- get(name, asNamespace("warrant"))
  args <- formals(fn)
  required <- names(args)[vapply(args, function(a) identical(a, quote(expr = )), NA)]
  required <- union(setdiff(required, "..."), setdiff(names(args), "...")[1])
  required <- required[!is.na(required)]
  caught <- lapply(garbage(), function(value) {
    call <- as.call(c(as.name(name), stats::setNames(rep(list(quote(value)), length(required)), required)))
    env <- list2env(list(value = value), parent = asNamespace("warrant"))
    tryCatch(
      {
        utils::capture.output(suppressMessages(suppressWarnings(eval(call, env))))
        NULL
      },
      error = identity
    )
  })
  Filter(Negate(is.null), caught)
}

test_that("every error of an exported function is classed and names that function", {
  withr::local_dir(withr::local_tempdir())
  wrong <- character()
  for (name in setdiff(exported_functions(), take_anything)) {
    errors <- errors_of(name)
    if (!length(errors)) wrong <- c(wrong, paste0(name, "(): takes any argument"))
    for (given in names(errors)) {
      e <- errors[[given]]
      call <- conditionCall(e)
      named <- if (is.call(call)) paste(deparse(call[[1]]), collapse = "") else "no call"
      if (!inherits(e, "warrant_error")) {
        wrong <- c(wrong, paste0(name, "(", given, "): not classed: ", conditionMessage(e)))
      } else if (!identical(sub("^warrant::+", "", named), name)) {
        wrong <- c(wrong, paste0(name, "(", given, "): the error names ", named))
      }
    }
  }
  expect_equal(wrong, character())
})

test_that("an error of the core is raised with its class, facts and a sentence", {
  fault <- structure(
    list(code = "too_deep", kind = "schema", message = "a value is nested too deep", facts = "{}"),
    class = "warrant_fault"
  )
  f <- function() unwrap_core(fault)
  e <- expect_warrant_error(f(), "too_deep", message = "^A value is nested too deep[.]$")
  expect_s3_class(e, "warrant_error_schema")
  expect_equal(deparse(conditionCall(e)), "f()")
  # A call that is given is named, not evaluated.
  e <- expect_warrant_error(unwrap_core(fault, quote(stop("ran"))), "too_deep")
  expect_equal(conditionCall(e), quote(stop("ran")))
})

test_that("a value of the core passes", {
  expect_equal(unwrap_core(list(1)), list(1))
})
