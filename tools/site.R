# Builds the web pages from the installed package into $CACHE/site. Nothing is
# looked up outside.
cache <- Sys.getenv("CACHE", "~/.cache/warrant")
site <- normalizePath(file.path(cache, "site"), mustWork = FALSE)
options(pkgdown.internet = FALSE)
pkg <- pkgdown::as_pkgdown(".", override = list(destination = site))
pkgdown::init_site(pkg)
pkgdown::build_home(pkg, preview = FALSE)
pkgdown::build_reference(pkg, lazy = FALSE, run_dont_run = FALSE, examples = TRUE, devel = FALSE, preview = FALSE)
pkgdown::build_articles(pkg, lazy = FALSE, preview = FALSE)
pkgdown::build_news(pkg, preview = FALSE)
cat("-- site: ", file.path(site, "index.html"), "\n", sep = "")
