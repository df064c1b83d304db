#!/bin/sh
# Installs what is missing: R, R packages and a Rust compiler. From Debian's
# packages where apt-get is there and we may use it, R packages else from CRAN
# into $LIB. Nothing is done for what is there, so the second time is quick.
#   setup.sh demo    what the package and its examples need
#   setup.sh bench   and what the benchmarks compare with
#   setup.sh test    and what the tests and R CMD check use
#   setup.sh site    and pkgdown
cd "`dirname "$0"`/.." || exit 1
. tools/common.sh
WHAT="${1:-test}"

NEEDED="cli rlang tibble"
OF_BENCH="bench jsonlite digest callr"
OF_TESTS="testthat roxygen2 callr knitr rmarkdown ggplot2 DBI RSQLite httr2 future future.apply progressr yaml withr R6 xml2"
PROGRAMS_OF_TESTS="pandoc checkbashisms:devscripts tidy qpdf"
case "$WHAT" in
  demo) WISHED="yaml"; PROGRAMS="" ;;
  bench) WISHED="$OF_BENCH"; PROGRAMS="" ;;
  test) WISHED="$OF_TESTS $OF_BENCH"; PROGRAMS="$PROGRAMS_OF_TESTS" ;;
  site) WISHED="$OF_TESTS $OF_BENCH pkgdown"; PROGRAMS="$PROGRAMS_OF_TESTS" ;;
  *) echo "usage: setup.sh demo|bench|test|site" >&2; exit 2 ;;
esac

# ---- apt-get, when there is one that we may use -----------------------------
APT=""
if have apt-get; then
  if [ "`id -u`" = 0 ]; then
    APT="env DEBIAN_FRONTEND=noninteractive apt-get"
  elif have sudo && sudo -n true 2>/dev/null; then
    APT="sudo -n env DEBIAN_FRONTEND=noninteractive apt-get"
  fi
fi
APT_UPDATED=no

apt_update() {
  [ "$APT_UPDATED" = yes ] && return 0
  say "setup: reading Debian's package lists"
  $APT -q update >"$LOGS/apt.log" 2>&1 ||
    say "setup: apt-get update failed (see $LOGS/apt.log); going on with the lists that are here"
  APT_UPDATED=yes
}

# apt_install PACKAGE...: those that can be had, in one go.
apt_install() {
  [ -n "$APT" ] || return 1
  apt_update
  can=""
  for p in "$@"; do
    if apt-cache show "$p" >/dev/null 2>&1; then can="$can $p"; fi
  done
  [ -n "$can" ] || return 1
  say "setup: apt-get install$can"
  $APT -q -y --no-install-recommends install $can >>"$LOGS/apt.log" 2>&1 || {
    tail -n 20 "$LOGS/apt.log" >&2
    complain "apt-get could not install$can; all of it stands in $LOGS/apt.log."
    return 1
  }
}

# ---- R -----------------------------------------------------------------------
have Rscript && have R || apt_install r-base-dev
have Rscript && have R || {
  complain "R is not installed, and could not be installed from here. Get R 4.2 or newer from https://cran.r-project.org/ and try again."
  exit 1
}
Rscript -e 'quit(status = getRversion() < "4.2.0")' >/dev/null 2>&1 || {
  complain "R `Rscript -e 'cat(as.character(getRversion()))'` is too old: 4.2 or newer is needed."
  exit 1
}

# ---- what compiles ------------------------------------------------------------

have cc || have gcc || apt_install r-base-dev
have make && have tar && have xz || apt_install make tar xz-utils
have xz || { complain "xz is not installed, and could not be installed from here; the vendored crates are packed with it."; exit 1; }
have cc || have gcc || { complain "A C compiler is not installed, and could not be installed from here."; exit 1; }

rustc_is_new_enough || {
  # Debian 12 keeps a current compiler under the name that its browsers build with
  apt_install cargo-web rustc-web
  hash -r
  rustc_is_new_enough || apt_install cargo rustc
  hash -r
}
rustc_is_new_enough || {
  complain "cargo and rustc $MSRV or newer are needed, and could not be installed from here. Get them from https://rustup.rs/ and try again."
  exit 1
}

# ---- R packages ----------------------------------------------------------------
# absent PACKAGE...: those that R does not find
absent() {
  Rscript -e 'p <- commandArgs(TRUE); cat(p[!nzchar(vapply(p, function(x) system.file(package = x), ""))])' "$@" 2>/dev/null
}
want=`absent $NEEDED $WISHED`
# what could not be had a short while ago is not asked for again
absence="$CACHE/absent-$WHAT"
if [ -n "$want" ] && [ -n "`find "$absence" -mmin -1440 2>/dev/null`" ] && [ "$want" = "`cat "$absence"`" ]; then
  say "setup: not to be had here a short while ago: $want (remove $absence to ask again)"
  want=""
fi
if [ -n "$want" ] && [ -n "$APT" ]; then
  debs=""
  for p in $want; do debs="$debs r-cran-`echo "$p" | tr '[:upper:]' '[:lower:]'`"; done
  apt_install $debs
  want=`absent $want`
fi
if [ -n "$want" ]; then
  say "setup: from CRAN into $LIB: $want"
  Rscript -e '
    p <- commandArgs(TRUE)
    repos <- getOption("repos")
    if (is.null(repos) || identical(unname(repos["CRAN"]), "@CRAN@")) {
      repos <- c(CRAN = Sys.getenv("WARRANT_CRAN", "https://cloud.r-project.org"))
    }
    options(timeout = 60, Ncpus = 2)
    install.packages(p, lib = Sys.getenv("LIB"), repos = repos)' $want >"$LOGS/cran.log" 2>&1
  want=`absent $want`
fi
for p in $want; do
  case " $NEEDED " in
    *" $p "*)
      complain "The R package '$p' is needed, and could be installed neither from Debian nor from CRAN (see $LOGS)."
      exit 1 ;;
    *) say "setup: the R package '$p' cannot be had here; what uses it is skipped" ;;
  esac
done
[ -z "$want" ] || printf '%s' "$want" > "$absence"

# ---- programs that R CMD check uses ----------------------------------------------
debs=""
for p in $PROGRAMS; do have "${p%%:*}" || debs="$debs ${p##*:}"; done
[ -z "$debs" ] || apt_install $debs
for p in $PROGRAMS; do
  have "${p%%:*}" || say "setup: the program '${p%%:*}' cannot be had here; what uses it is skipped"
done
if [ "$WHAT" = test ]; then
  cargo fmt --version >/dev/null 2>&1 || apt_install rustfmt-web
  cargo clippy --version >/dev/null 2>&1 || apt_install rust-web-clippy
fi
exit 0
