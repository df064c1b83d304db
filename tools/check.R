# Reads the log of R CMD check. Fails on an error, a warning, or a note whose
# first line is not listed in cran-comments.md.
args <- commandArgs(TRUE)
log <- readLines(args[1], warn = FALSE)
starts <- grep("^\\* ", log)
blocks <- split(log, cumsum(seq_along(log) %in% starts))
is <- function(word) vapply(blocks, function(x) any(grepl(paste0("\\.\\.\\. (\\[[^]]*\\] ?)?", word, "$"), x)), NA)

comments <- readLines(args[2], warn = FALSE)
explained <- sub("^\\* note: `(.*)`.*$", "\\1", grep("^\\* note: `", comments, value = TRUE))
known <- vapply(blocks, function(x) {
  any(vapply(explained, function(e) any(grepl(e, x, fixed = TRUE)), NA))
}, NA)
bad <- blocks[is("ERROR") | is("WARNING") | (is("NOTE") & !known)]

done <- any(grepl("^Status: ", log)) || any(grepl("^\\* DONE", log))
if (!done) cat("R CMD check did not come to its end.\n")
for (b in bad) writeLines(b)
cat(sprintf(
  "R CMD check: %d errors, %d warnings, %d notes (%d of them explained)\n",
  sum(is("ERROR")), sum(is("WARNING")), sum(is("NOTE")), sum(is("NOTE") & known)
))
quit(status = as.integer(length(bad) > 0 || !done))
