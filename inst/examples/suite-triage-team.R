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
