#!/bin/sh
# R CMD check of the source package as CRAN runs it: built from the vendored
# crates, with no network and an empty HOME. Errors, warnings and notes that
# cran-comments.md does not list fail it.
cd "`dirname "$0"`/.." || exit 1
. tools/common.sh
sh tools/build.sh || exit 1
package=`ls "$CACHE"/build/warrant_*.tar.gz` || exit 1

_R_CHECK_SYSTEM_CLOCK_=false
_R_CHECK_CRAN_INCOMING_REMOTE_=false
_R_CHECK_FORCE_SUGGESTS_=false
export _R_CHECK_SYSTEM_CLOCK_ _R_CHECK_CRAN_INCOMING_REMOTE_ _R_CHECK_FORCE_SUGGESTS_

# rustup finds its toolchain through HOME unless it is told
RUSTUP_HOME="${RUSTUP_HOME:-$HOME/.rustup}"
[ -d "$RUSTUP_HOME" ] && export RUSTUP_HOME || unset RUSTUP_HOME
unset CARGO_TARGET_DIR CARGO_HOME WARRANT_TARGET_DIR
options=""
have pdflatex || options="--no-manual"
mkdir -p "$CACHE/empty-home"
rm -rf "$CACHE/build/warrant.Rcheck"
(cd "$CACHE/build" && HOME="$CACHE/empty-home" R CMD check --as-cran $options "$package")
# what the check's own log cuts short
for rout in "$CACHE"/build/warrant.Rcheck/tests/*.Rout.fail; do
  [ -f "$rout" ] && tail -n 60 "$rout"
done
Rscript tools/check.R "$CACHE/build/warrant.Rcheck/00check.log" cran-comments.md
