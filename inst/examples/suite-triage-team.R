# Three agents and thirty requests: who got which request, who did what he may not,
# and whether that is good enough to release. See triage-team/ for the code judged.
library(warrant)

folder <- example_project("triage-team")
suite <- read_suite(file.path(folder, "suite.json"))
runs <- run_suite(suite, seed = 1, progress = FALSE)
ev <- evaluate(suite, runs)

print(ev)
print(slices(ev))
print(decide(ev, read_policy(file.path(folder, "release.json"))))

if (requireNamespace("ggplot2", quietly = TRUE)) {
  file <- "triage-team.png"
  ggplot2::ggsave(file, ggplot2::autoplot(ev), width = 9, height = 5, dpi = 120)
  cat("plot:", normalizePath(file), "\n")
}
