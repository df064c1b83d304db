# Read by the other scripts of this folder: where things stand, how a stage is
# told, and where cargo takes its crates from.

CACHE="${CACHE:-$HOME/.cache/warrant}"
LIB="${LIB:-$CACHE/lib}"
BENCH_LIB="${BENCH_LIB:-$CACHE/lib-release}"
WARRANT_TARGET_DIR="${WARRANT_TARGET_DIR:-$CACHE/target}"
CARGO_TARGET_DIR="$WARRANT_TARGET_DIR"
R_LIBS="$LIB${R_LIBS:+:$R_LIBS}"
PATH="$PATH:$HOME/.cargo/bin"
export CACHE LIB BENCH_LIB WARRANT_TARGET_DIR CARGO_TARGET_DIR R_LIBS PATH

MSRV=1.89
LOGS="$CACHE/log"
mkdir -p "$LIB" "$LOGS" || {
  echo "The folder $CACHE cannot be written: set CACHE to one that can." >&2
  exit 1
}

# A sentence about what happens now.
say() { echo "-- $*"; }

# A sentence about what went wrong; the caller ends.
complain() { echo "!! $*" >&2; }

have() { command -v "$1" >/dev/null 2>&1; }

# rustc_is_new_enough: is there a compiler, and is it new enough?
rustc_is_new_enough() {
  have cargo && have rustc || return 1
  found=`rustc --version 2>/dev/null | sed 's/^rustc \([0-9]*\)\.\([0-9]*\).*$/\1 \2/'`
  need=`echo "$MSRV" | sed 's/\./ /'`
  set -- $found $need
  [ $# -eq 4 ] && { [ "$1" -gt "$3" ] || { [ "$1" -eq "$3" ] && [ "$2" -ge "$4" ]; }; }
}

sha256_of() { sha256sum "$1" 2>/dev/null | cut -d' ' -f1; }

# Cargo takes the crates from its own cache or from the registry; where neither
# has them, from the archives in this repository, through a CARGO_HOME of ours.
use_crates() {
  [ -n "$WARRANT_CRATES" ] && return 0
  lock=`sha256_of src/rust/Cargo.lock`
  if [ "$WARRANT_OFFLINE" != true ]; then
    if (cd src/rust && cargo fetch --locked --offline >/dev/null 2>&1); then
      WARRANT_CRATES=cache
    elif (cd src/rust && CARGO_NET_RETRY=1 CARGO_HTTP_TIMEOUT=20 timeout 300 cargo fetch --locked >"$LOGS/fetch.log" 2>&1); then
      WARRANT_CRATES=registry
    fi
  fi
  if [ -z "$WARRANT_CRATES" ]; then
    [ "$lock" = "`cat src/rust/vendor.lock-sha256 2>/dev/null`" ] || {
      complain "The crate registry cannot be reached, and src/rust/vendor.tar.xz is not of this Cargo.lock (see $LOGS/fetch.log)."
      return 1
    }
    say "crates: the registry cannot be reached, so those in this repository are used"
    crates="$CACHE/crates-`echo "$lock" | cut -c1-16`"
    if [ ! -f "$crates/complete" ]; then
      rm -rf "$crates" && mkdir -p "$crates/home" || return 1
      xz -dc src/rust/vendor.tar.xz | tar -xf - -C "$crates" || return 1
      # the stubs of crates that only tests use make room for the crates
      sed -n 's/^/vendor\//p' tools/vendor-dev.list | while read -r d; do rm -rf "$crates/$d"; done
      xz -dc tools/vendor-dev.tar.xz | tar -xf - -C "$crates" || return 1
      cat > "$crates/home/config.toml" <<CONFIG
[source.crates-io]
replace-with = "vendored"
[source.vendored]
directory = "$crates/vendor"
[net]
offline = true
CONFIG
      touch "$crates/complete"
    fi
    CARGO_HOME="$crates/home"
    export CARGO_HOME
    WARRANT_CRATES=vendored
  fi
  export WARRANT_CRATES
}
