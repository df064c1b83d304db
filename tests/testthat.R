library(testthat)
library(warrant)

test_check("warrant")
