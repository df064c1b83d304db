#!/bin/sh
# Installs the package from this folder.
#   install.sh dev       into $LIB, little optimised, a few seconds
#   install.sh release   into $BENCH_LIB, optimised as users get it
cd "`dirname "$0"`/.." || exit 1
. tools/common.sh

case "$1" in
  dev) profile=devrel; lib="$LIB"; compile=--no-byte-compile ;;
  release) profile=release; lib="$BENCH_LIB"; compile=--byte-compile ;;
  *) echo "usage: install.sh dev|release" >&2; exit 2 ;;
esac
mkdir -p "$lib" || exit 1
have R || { complain "R is not on the PATH: 'make setup' installs it."; exit 1; }
rustc_is_new_enough || { complain "cargo and rustc $MSRV or newer are not on the PATH: 'make setup' tries to install them."; exit 1; }
use_crates || exit 1

say "install: a $1 build into $lib"
WARRANT_DEV=true WARRANT_PROFILE="$profile" R CMD INSTALL --no-docs \
  $compile --no-test-load --library="$lib" . >"$LOGS/install.log" 2>&1 || {
  tail -n 60 "$LOGS/install.log" >&2
  complain "The package could not be installed; all of it stands in $LOGS/install.log."
  exit 1
}
grep -A12 '^warning' "$LOGS/install.log" || true
