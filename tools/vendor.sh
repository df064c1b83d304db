#!/bin/sh
# Packs the crates of src/rust/Cargo.lock for builds without network:
#   src/rust/vendor.tar.xz     what the package is built from; crates that only
#                              tests or other systems use are stubs in it
#   tools/vendor-dev.tar.xz    the crates that only tests use, in full
# The same Cargo.lock gives the same bytes.
#   vendor.sh           packs, when Cargo.lock has changed
#   vendor.sh --force   packs
#   vendor.sh --check   says whether the archives are of this Cargo.lock
cd "`dirname "$0"`/.." || exit 1
. tools/common.sh

lock=`sha256_of src/rust/Cargo.lock`
packed() { [ "$lock" = "`cat src/rust/vendor.lock-sha256 2>/dev/null`" ]; }

case "$1" in
  --check)
    packed || { complain "src/rust/vendor.tar.xz is not of this Cargo.lock: run 'make vendor'."; exit 1; }
    # the seal covers the archives too, so none of them can be swapped alone
    (cd src/rust && sha256sum -c --quiet ../../tools/vendor.sha256) ||
      { complain "An archive of crates is not the one that was packed: run 'sh tools/vendor.sh --force'."; exit 1; }
    exit 0 ;;
  --force) ;;
  "") if packed; then say "vendor: Cargo.lock has not changed"; exit 0; fi ;;
  *) echo "usage: vendor.sh [--check|--force]" >&2; exit 2 ;;
esac
have python3 || { complain "python3 is needed to pack crates."; exit 1; }

say "vendor: copying the crates of Cargo.lock"
work=`mktemp -d` || exit 1
trap 'rm -rf "$work"' EXIT
(cd src/rust && cargo vendor --locked --versioned-dirs "$work/vendor") >"$LOGS/vendor.log" 2>&1 || {
  tail -n 20 "$LOGS/vendor.log" >&2
  complain "cargo vendor failed; the crate registry has to be reached for it."
  exit 1
}

# what R builds the package for
for target in x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu x86_64-unknown-linux-musl \
  x86_64-apple-darwin aarch64-apple-darwin x86_64-pc-windows-gnu aarch64-pc-windows-gnullvm \
  x86_64-unknown-freebsd; do
  (cd src/rust && cargo tree --locked -p warrant --target "$target" -e normal,build --prefix none -f '{p}') || exit 1
done | sed -n 's/^\([^ ]*\) v\([^ ]*\).*$/\1-\2/p' | LC_ALL=C sort -u > "$work/needed"
# and what its tests use on Linux
(cd src/rust && cargo tree --locked --workspace --target x86_64-unknown-linux-gnu -e all --prefix none -f '{p}') |
  sed -n 's/^\([^ ]*\) v\([^ ]*\).*$/\1-\2/p' | LC_ALL=C sort -u > "$work/tested"

say "vendor: dropping what is never built"
mkdir -p "$work/dev" "$work/full"
python3 tools/vendor.py "$work" || exit 1

pack() {
  (cd "$1" && tar --sort=name --mtime='2026-01-01 00:00Z' --owner=0 --group=0 --numeric-owner \
    --mode='u+rwX,go+rX,go-w' --format=ustar -cf - vendor | xz -9e -T1) > "$2"
}
say "vendor: packing"
pack "$work/full" src/rust/vendor.tar.xz || exit 1
pack "$work/dev" tools/vendor-dev.tar.xz || exit 1
cp "$work/dev.list" tools/vendor-dev.list
cp "$work/AUTHORS" inst/AUTHORS
cp "$work/LICENSE.note" LICENSE.note
echo "$lock" > src/rust/vendor.lock-sha256
(cd src/rust && sha256sum vendor.tar.xz ../../tools/vendor-dev.tar.xz) > tools/vendor.sha256
say "vendor: src/rust/vendor.tar.xz has $((`wc -c < src/rust/vendor.tar.xz` / 1024)) KB, tools/vendor-dev.tar.xz $((`wc -c < tools/vendor-dev.tar.xz` / 1024)) KB"
