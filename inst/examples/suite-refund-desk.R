# One agent and forty tickets, judged: rates with exact intervals, slices, a release
# decision, and a plot. See refund-desk/ for the code judged.
library(warrant)

if (!requireNamespace("yaml", quietly = TRUE)) {
  message("This example needs the yaml package.")
  quit(save = "no")
}
folder <- example_project("refund-desk")
suite <- read_suite(file.path(folder, "suite.yaml"))
runs <- run_suite(suite, seed = 1, progress = FALSE)
ev <- evaluate(suite, runs)

print(ev)
print(slices(ev))
print(decide(ev, read_policy(file.path(folder, "release.yaml"))))

if (requireNamespace("ggplot2", quietly = TRUE)) {
  file <- "refund-desk.png"
  ggplot2::ggsave(
    file, ggplot2::autoplot(ev, slice = c("metadata.surface", "first_tool")),
    width = 9, height = 5, dpi = 120
  )
  cat("plot:", normalizePath(file), "\n")
}
