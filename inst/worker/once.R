# Started by the package as a worker process for one call: reads the order, and
# runs the code that stands in it; see R/isolation-fresh.R.
local({
  files <- commandArgs(TRUE)
  order <- readRDS(files[[1]])
  order$code$worker_once(order, files[[2]], files[[3]])
})
