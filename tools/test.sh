#!/bin/sh
# Every test, the quick ones first. Stops at the first stage that fails; under
# CI=true it goes on, so that one run tells all. The last line sums up.
#   WARRANT_COUNTS=FILE   also write "passed failed skipped" there, and no last line
cd "`dirname "$0"`/.." || exit 1
. tools/common.sh

PASSED=0 FAILED=0 SKIPPED=0
count() { PASSED=$((PASSED + $1)); FAILED=$((FAILED + $2)); SKIPPED=$((SKIPPED + $3)); }

finish() {
  if [ -n "$WARRANT_COUNTS" ]; then
    echo "$PASSED $FAILED $SKIPPED" > "$WARRANT_COUNTS"
  else
    echo "$PASSED passed, $FAILED failed, $SKIPPED skipped"
  fi
  [ "$FAILED" -eq 0 ]
  exit
}

# failed NAME SENTENCE: shows the end of the stage's log.
failed() {
  tail -n 80 "$LOGS/$1.log" >&2
  complain "$2 All of it stands in $LOGS/$1.log."
  [ "$CI" = true ] || finish
}

# stage NAME SENTENCE COMMAND...: one that passes or fails as a whole.
stage() {
  name="$1"; sentence="$2"; shift 2
  say "$name: $sentence"
  if "$@" >"$LOGS/$name.log" 2>&1; then count 1 0 0; else
    count 0 1 0
    failed "$name" "$name failed."
    return 1
  fi
}

skip() { say "$1: skipped, $2"; count 0 0 1; }

in_rust() { (cd src/rust && "$@"); }

rustc_is_new_enough || { complain "cargo and rustc $MSRV or newer are not on the PATH."; count 0 1 0; finish; }
use_crates || { count 0 1 0; finish; }

# ---- the Rust side -------------------------------------------------------------
if cargo fmt --version >/dev/null 2>&1; then
  stage format "the Rust code is formatted" in_rust cargo fmt --check
else
  skip format "rustfmt is not installed"
fi
if cargo clippy --version >/dev/null 2>&1; then
  stage clippy "no lint warns" in_rust cargo clippy -q --locked --workspace --all-targets -- -D warnings
else
  skip clippy "it is not installed"
fi

# tests_of CRATE SENTENCE OPTION...
tests_of() {
  name="test-$1"; say "$name: $2"
  crate="$1"; shift 2
  in_rust cargo test -q --locked --no-fail-fast -p "$crate" "$@" >"$LOGS/$name.log" 2>&1
  status=$?
  sums=`sed -n 's/^test result: [a-zA-Z]*\. \([0-9]*\) passed; \([0-9]*\) failed; \([0-9]*\) ignored.*/\1 \2 \3/p' "$LOGS/$name.log" |
    awk '{p += $1; f += $2; s += $3} END {print p + 0, f + 0, s + 0}'`
  set -- $sums
  # a crate that does not compile, or a test that ends the process, has no line
  if [ $status -ne 0 ] && [ "$2" -eq 0 ]; then set -- "$1" 1 "$3"; fi
  count "$1" "$2" "$3"
  say "$name: passed $1, failed $2, skipped $3"
  [ "$2" -eq 0 ] || failed "$name" "Tests of the Rust crate '$crate' failed."
}
tests_of warrant-core "the core"
# the bindings are linked with R's library, which not every R has
R_SO="`R RHOME 2>/dev/null`/lib"
if [ -n "`R CMD config --ldflags 2>/dev/null`" ]; then
  LD_LIBRARY_PATH="$R_SO${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  export LD_LIBRARY_PATH
  tests_of warrant "the bindings" --lib
else
  skip test-warrant "R was built without a shared library"
fi

core_docs() {
  RUSTDOCFLAGS="-D warnings" in_rust cargo doc -q --locked -p warrant-core --no-deps || return 1
  if in_rust cargo tree --locked -p warrant-core -e normal --prefix none | grep -q '^extendr'; then
    echo "warrant-core depends on extendr, and must not"
    return 1
  fi
}
stage core-docs "the core is documented, and knows nothing of R" core_docs
stage vendored "the vendored crates are those of Cargo.lock" sh tools/vendor.sh --check

# ---- the R side ------------------------------------------------------------------
if stage install-dev "a development build" sh tools/install.sh dev; then
  stage generated "wrappers, NAMESPACE and man/ are up to date" Rscript tools/document.R --check
  say "testthat: the tests of the R package"
  rm -f "$LOGS/testthat.count"
  Rscript tools/testthat.R "$LOGS/testthat.count" >"$LOGS/testthat.log" 2>&1
  set -- `cat "$LOGS/testthat.count" 2>/dev/null || echo 0 1 0`
  count "$1" "$2" "$3"
  say "testthat: passed $1, failed $2, skipped $3"
  [ "$2" -eq 0 ] || failed testthat "Tests of the R package failed."
fi

# ---- the package as CRAN sees it ----------------------------------------------------
inputs=`sh tools/inputs.sh`
if [ "$CI" != true ] && [ "`cat "$CACHE/check.stamp" 2>/dev/null`" = "$inputs" ]; then
  say "r-cmd-check: nothing has changed since the last good one"
  count 1 0 0
elif stage r-cmd-check "the source package, built and checked (some minutes)" sh tools/check.sh; then
  echo "$inputs" > "$CACHE/check.stamp"
fi
finish
