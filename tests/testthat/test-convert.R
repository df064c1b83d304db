# JSON to R: what a tool's function is given.

test_that("arrays of one scalar type are vectors at every length", {
  for (type in c("number", "integer", "string", "boolean")) {
    array <- list(type = "array", items = list(type = type))
    value <- c(number = "1.5", integer = "1", string = "\"a\"", boolean = "true")[[type]]
    kind <- c(number = "double", integer = "integer", string = "character", boolean = "logical")[[type]]
    for (n in 0:3) {
      x <- given(paste0("[", paste(rep(value, n), collapse = ","), "]"), array)
      expect_identical(typeof(x), kind)
      expect_length(x, n)
    }
  }
})

test_that("without a schema the same is read off the values", {
  expect_identical(given("[1,2,3]"), 1:3)
  expect_identical(given("[1,2.5]"), c(1, 2.5))
  expect_identical(given("[\"a\"]"), "a")
  expect_identical(given("[true,null]"), c(TRUE, NA))
  expect_identical(given("[]"), list())
})

test_that("numbers of a number schema are doubles, of an integer schema integers", {
  expect_identical(given("3", list(type = "number")), 3)
  expect_identical(given("3", list(type = "integer")), 3L)
  expect_identical(given("3.0", list(type = "integer")), 3L)
  expect_identical(given("[1,2]", list(type = "array", items = list(type = "number"))), c(1, 2))
  expect_identical(given("3000000000", list(type = "integer")), 3e9)
  expect_identical(given("-0.0", list(type = "number")), 0)
})

test_that("integers past 2^53 keep their digits (A11)", {
  integer <- list(type = "integer")
  expect_identical(given("76561198003753554", integer), "76561198003753554")
  expect_identical(given("9007199254740991", integer), 9007199254740991)
  expect_identical(given("9007199254740993", integer), "9007199254740993")
  expect_identical(given("1267650600228229401496703205376", integer), "1267650600228229401496703205376")
  ids <- given("[1,76561198003753554]", list(type = "array", items = integer))
  expect_identical(ids, c("1", "76561198003753554"))
  expect_identical(shown(given("[76561198003753554]")), "76561198003753554")
})

test_that("the exact digits are what is hashed and recorded (A11)", {
  tool <- echo_tool(list(type = "integer"))
  a <- call_tool(tool, "{\"x\":76561198003753554}")
  b <- call_tool(tool, "{\"x\":76561198003753555}")
  expect_false(a$arguments_hash == b$arguments_hash)
  expect_identical(tool_log(tool)$arguments[[1]], "{\"x\":76561198003753554}")
  listed <- call_tool(tool, list(x = "76561198003753554"))
  expect_identical(listed$status, "executed")
  expect_identical(listed$arguments_hash, a$arguments_hash)
})

test_that("a string stays the string it is (A07, A08, A17)", {
  string <- list(type = "string")
  expect_identical(given("\"00501\"", string), "00501")
  expect_identical(given("\"null\"", string), "null")
  expect_identical(given("\"TRUE\"", string), "TRUE")
  expect_identical(given("[\"NA\",\"NA\"]", list(type = "array", items = string)), c("NA", "NA"))
  expect_false(anyNA(given("[\"NA\"]")))
  expect_identical(given("\"2026-01-31\""), "2026-01-31")
})

test_that("a mixed array keeps the type of each element (A16)", {
  expect_identical(given("[1,\"a\",null,true]"), list(1L, "a", NULL, TRUE))
})

test_that("null is NULL for a scalar, and NA in a vector", {
  tool <- agent_tool(function(x = 3) is.null(x), "is_null", "Is it NULL?",
    parameters = list(x = list(type = c("number", "null"))), required = character(),
    side_effects = "none"
  )
  expect_identical(call_tool(tool, "{\"x\":null}")$content, "true")
  expect_identical(call_tool(tool, "{}")$content, "false")
  array <- list(type = "array", items = list(type = c("number", "null")))
  expect_identical(given("[1,null]", array), c(1, NA))
  expect_identical(given("[null]", array), NA_real_)
})

test_that("an array of objects is a list of lists, an object a named list (A19)", {
  rows <- given("[{\"a\":1},{\"a\":2,\"b\":\"z\"}]")
  expect_identical(rows, list(list(a = 1L), list(a = 2L, b = "z")))
  expect_identical(given("{\"k\":{\"l\":[1]}}"), list(k = list(l = 1L)))
  expect_identical(given("{}"), structure(list(), names = character()))
})

test_that("text of any script arrives as UTF-8", {
  x <- given("\"gr\\u00fc\\u00df \\ud83d\\ude00\"")
  expect_identical(x, "gr\u00fc\u00df \U1F600")
  expect_identical(Encoding(x), "UTF-8")
})

# R to JSON: what the model is shown.

test_that("a double is the shortest text that reads back as it (C01, C02)", {
  expect_identical(shown(4.321e-5), "0.00004321")
  expect_identical(shown(pi), "3.141592653589793")
  values <- c(1 / 3, 0.1 + 0.2, .Machine$double.eps, .Machine$double.xmax, 5e-324, 1e21, 1e-7, -0.5)
  for (x in values) expect_identical(as.numeric(shown(x)), x)
  expect_identical(vapply(c(1, 1e21, 1e-7, 5e-324), shown, ""), c("1", "1e+21", "1e-7", "5e-324"))
  expect_identical(shown(-0), "0")
})

test_that("digests of numbers are those of RFC 8785 (H05)", {
  expect_identical(hash_content(1), hash_content(1L))
  # printf 1e+21 | sha256sum
  expect_identical(
    hash_content(1e21),
    "241c4643fa70b1dcde1205b71be4e3bebb17e9f880c8e1a33d0ead6c27271d3c"
  )
})

test_that("every column is in every row, a missing cell is null (C04)", {
  rows <- data.frame(a = c(1, NA), b = c(NA, "z"))
  expect_identical(shown(rows), "[{\"a\":1,\"b\":null},{\"a\":null,\"b\":\"z\"}]")
  expect_identical(shown(rows[0, ]), "[]")
})

test_that("the four empties of R stay apart (C05)", {
  expect_identical(shown(NULL), "null")
  expect_identical(shown(list()), "[]")
  expect_identical(shown(character()), "[]")
  expect_identical(shown(structure(list(), names = character())), "{}")
  expect_identical(shown(list(NULL, list(), character(), structure(list(), names = character()))), "[null,[],[],{}]")
  expect_identical(shown(NA), "null")
  expect_identical(shown(list(a = NULL)), "{\"a\":null}")
})

test_that("a character scalar is shown as it is, a vector as an array (C07)", {
  expect_identical(shown("a \"b\""), "a \"b\"")
  expect_identical(shown(c("a", "b")), "[\"a\",\"b\"]")
  expect_identical(shown(I("a")), "[\"a\"]")
  expect_identical(shown(matrix(1:4, 2)), "[[1,3],[2,4]]")
  expect_identical(shown(list(1, "a")), "[1,\"a\"]")
})

test_that("text of class json passes through, once it parses (C08)", {
  json <- function(x) structure(x, class = "json")
  expect_identical(shown(json("[1, 2,3]")), "[1, 2,3]")
  expect_identical(shown("[1, 2,3]"), "[1, 2,3]")
  expect_match(shown(json("[1,")), "^ERROR: ")
  expect_identical(hash_content(json("{\"b\":1.0, \"a\":2}")), hash_content(list(a = 2, b = 1)))
})

test_that("dates, times, factors and the rest have one form", {
  expect_identical(shown(as.Date("2026-01-31")), "2026-01-31")
  expect_identical(shown(as.POSIXct(0.5, origin = "1970-01-01", tz = "Asia/Tokyo")), "1970-01-01T00:00:00.5Z")
  expect_identical(shown(as.difftime(2, units = "mins")), "120")
  expect_identical(shown(factor(c("b", "a"))), "[\"b\",\"a\"]")
  expect_identical(shown(as.raw(0:3)), "AAECAw==")
  expect_identical(shown(c(1, NaN, Inf, -Inf, NA)), "[1,\"NaN\",\"Infinity\",\"-Infinity\",null]")
  expect_identical(shown(c(TRUE, NA)), "[true,null]")
  expect_identical(shown(c(a = 1)), "1")
})

test_that("what cannot be JSON is a named error, never a crash or {} (C19)", {
  things <- list(
    environment = new.env(), "function" = function() 1, connection = stdin(),
    model = lm(mpg ~ wt, mtcars), symbol = quote(x), call = quote(f(x)), formula = y ~ x
  )
  for (thing in things) {
    result <- call_tool(agent_tool(function() thing, "show", "Shows.", side_effects = "none"))
    expect_identical(result$status, "error")
    expect_match(result$content, "^ERROR: the result cannot be shown: ")
    expect_null(result$value)
    expect_warrant_error(hash_content(thing), "input")
  }
  expect_match(shown(list(a = list(1, b = new.env()))), "/a/1|a.*b")
})

test_that("R6 and S4 objects are refused too (C19)", {
  where <- new.env()
  make <- methods::setClass("WarrantTestPoint", representation(x = "numeric"), where = where)
  s4 <- make(x = 1)
  expect_warrant_error(hash_content(s4), "input")
  skip_if_not_installed("R6")
  expect_warrant_error(hash_content(R6::R6Class("A", list(x = 1))$new()), "input")
})

test_that("invalid text is an error that names the element (H07)", {
  bad <- "\xff"
  Encoding(bad) <- "UTF-8"
  expect_warrant_error(hash_content(list(ok = "a", bad = bad)), "input", message = "bad")
  expect_match(shown(list(ok = "a", bad = bad)), "^ERROR: .*bad")
  latin1 <- "\xe9"
  Encoding(latin1) <- "latin1"
  expect_identical(shown(latin1), "\u00e9")
  expect_identical(hash_content(latin1), hash_content("\u00e9"))
  expect_identical(hash_content(stats::setNames(list(1), latin1)), hash_content(stats::setNames(list(1), "\u00e9")))
})

test_that("values nested too deep are refused both ways (K01)", {
  deep <- list()
  for (i in 1:5000) deep <- list(deep)
  expect_warrant_error(hash_content(deep), "input")
  text <- paste0("{\"x\":", strrep("[", 10000), strrep("]", 10000), "}")
  expect_identical(call_tool(echo_tool(), text)$status, "invalid_arguments")
})

test_that("lists hand over arguments guided by the schema (B13)", {
  tool <- agent_tool(
    function(id, tags) list(id = id, tags = I(tags)), "tag", "Tags.",
    parameters = list(
      id = list(type = "integer"),
      tags = list(type = "array", items = list(type = "string"))
    ), side_effects = "none"
  )
  listed <- call_tool(tool, list(id = 1, tags = "fruit"))
  expect_identical(listed$content, "{\"id\":1,\"tags\":[\"fruit\"]}")
  text <- call_tool(tool, "{\"tags\":[\"fruit\"],\"id\":1}")
  expect_identical(listed$arguments_hash, text$arguments_hash)
  expect_identical(tool_log(tool)$arguments[[1]], "{\"id\":1,\"tags\":[\"fruit\"]}")
})

test_that("random doubles come back identical", {
  set.seed(20)
  x <- c(rnorm(500), 10^runif(500, -300, 300), sample.int(.Machine$integer.max, 100))
  back <- given(shown(x), list(type = "array", items = list(type = "number")))
  expect_identical(back, as.numeric(x))
})
