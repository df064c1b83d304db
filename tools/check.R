# Reads the log of R CMD check. Fails on an error, a warning, or a note with a
# line that is not listed in cran-comments.md.
args <- commandArgs(TRUE)
log <- readLines(args[1], warn = FALSE)
starts <- grep("^\\* ", log)
blocks <- split(log, cumsum(seq_along(log) %in% starts))
is <- function(word) {
  # the word ends the line of its check, or has a line of its own below it
  line <- paste0("(\\.\\.\\. ?(\\[[^]]*\\] ?)?|^ *)", word, "$")
  vapply(blocks, function(x) any(grepl(line, x)), NA)
}

comments <- readLines(args[2], warn = FALSE)
explained <- sub("^\\* note: `(.*)`.*$", "\\1", grep("^\\* note: `", comments, value = TRUE))
# each line of a note has to be one that is explained
known <- vapply(blocks, function(x) {
  said <- x[-1][nzchar(trimws(x[-1])) & !grepl("^ *NOTE$", x[-1])]
  # what a machine without network adds
  said <- said[!grepl("^Warning: unable to access index|^  cannot open URL", said)]
  length(said) > 0 && all(vapply(said, function(line) any(startsWith(line, explained)), NA))
}, NA)
bad <- blocks[is("ERROR") | is("WARNING") | (is("NOTE") & !known)]

status <- grep("^Status: ", log, value = TRUE)
done <- length(status) == 1
# the check's own count is the judge of this reading
if (done && grepl("ERROR|WARNING", status) && !length(bad)) {
  cat("R CMD check says '", status, "', and this script did not find what.\n", sep = "")
  done <- FALSE
}
if (!length(status)) cat("R CMD check did not come to its end.\n")
for (b in bad) writeLines(b)
cat(sprintf(
  "R CMD check: %d errors, %d warnings, %d notes (%d of them explained)\n",
  sum(is("ERROR")), sum(is("WARNING")), sum(is("NOTE")), sum(is("NOTE") & known)
))
quit(status = as.integer(length(bad) > 0 || !done))
