#!/bin/sh
# Runs the examples that the package ships, from a folder of their own.
#   demo.sh [NAME]   only inst/examples/NAME.R
cd "`dirname "$0"`/.." || exit 1
. tools/common.sh
here=`pwd`
ran=0
mkdir -p "$CACHE/demo" && cd "$CACHE/demo" || exit 1
for script in "$here"/inst/examples/${1:-*}.R; do
  [ -f "$script" ] || continue
  say "demo: ${script#"$here"/}"
  Rscript "$script" || { complain "${script#"$here"/} ended with an error."; exit 1; }
  ran=$((ran + 1))
done
[ $ran -gt 0 ] || { complain "There is no inst/examples/${1:-*}.R."; exit 1; }
