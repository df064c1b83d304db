#!/bin/sh
# One digest of every file that the source package is built from.
cd "`dirname "$0"`/.." || exit 1
find DESCRIPTION NAMESPACE NEWS.md LICENSE .Rbuildignore configure cleanup R src inst man tests vignettes tools/check.sh tools/build.sh \
  \( -path src/rust/target -o -path src/rust/vendor -o -path src/rust/cargo-home \) -prune -o \
  -type f ! -name '*.o' ! -name '*.so' ! -path src/Makevars -print 2>/dev/null |
  LC_ALL=C sort | while IFS= read -r f; do sha256sum "$f"; done | sha256sum | cut -d' ' -f1
