#!/bin/sh
# Builds the source package into $CACHE/build. Vignettes are run with a
# development build; nothing of it goes into the package.
cd "`dirname "$0"`/.." || exit 1
. tools/common.sh
have R || { complain "R is not on the PATH: 'make setup' installs it."; exit 1; }
sh tools/vendor.sh --check || exit 1
use_crates || exit 1

here=`pwd`
rm -rf "$CACHE/build" && mkdir -p "$CACHE/build" || exit 1
quick=""
Rscript -e 'quit(status = !all(nzchar(vapply(c("knitr", "rmarkdown"), function(x) system.file(package = x), ""))))' >/dev/null 2>&1 &&
  have pandoc && ls vignettes/*.Rmd >/dev/null 2>&1 || quick="--no-build-vignettes"
(cd "$CACHE/build" && WARRANT_DEV=true WARRANT_PROFILE=devrel R CMD build $quick "$here") >"$LOGS/build.log" 2>&1 || {
  tail -n 60 "$LOGS/build.log" >&2
  complain "R CMD build failed; all of it stands in $LOGS/build.log."
  exit 1
}
package=`ls "$CACHE"/build/warrant_*.tar.gz` || exit 1
bytes=`wc -c < "$package"`
say "build: $package, $((bytes / 1024)) KB"
if tar -tzf "$package" | grep -E '/(rust/target|rust/vendor|cargo-home)/|/src/Makevars$|\.(o|so)$'; then
  complain "The source package holds files of a build."
  exit 1
fi
[ "$bytes" -lt 10000000 ] || { complain "The source package is larger than 10 MB."; exit 1; }
