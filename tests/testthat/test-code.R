# Code that no parser would give, put together by hand.
odd_bodies <- function() {
  call_of <- function(...) as.call(list(...))
  list(
    call_of(as.name("for"), 1, 2, 3), call_of(as.name("for")), call_of(character()),
    call_of(as.name("<-")), call_of(as.name("<-"), 3, 4), call_of(as.name("<-"), character(), 4),
    call_of(as.name("function")), call_of(as.name("function"), 1, 2),
    call_of(as.name("<<-"), call_of(as.name("x")), 1), call_of(as.name("assign"), character()),
    call_of(as.name("$")), call_of(as.name("::")), call_of(NULL, NULL), call_of(new.env(), 1)
  )
}

test_that("badly formed and very deep code is read without a crash", {
  f <- function() NULL
  for (code in odd_bodies()) {
    body(f) <- code
    expect_named(rs_free_names(f), c("used", "called", "assigned"))
    expect_match(rs_hash_object(f)$digest, "^[0-9a-f]{64}$")
  }
  deep <- quote(x)
  for (i in 1:20000) deep <- call("(", deep)
  body(f) <- deep
  expect_named(rs_free_names(f), c("used", "called", "assigned"))
  expect_false(rs_hash_object(f)$whole)
})

test_that("what is no function takes no names from outside", {
  expect_equal(rs_free_names(1)$used, character())
  expect_equal(rs_free_names(sum)$called, character())
})
