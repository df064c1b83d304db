# make demo      install what is missing, build, and run the main job
# make test      install what is missing, then run every test
# make check     R CMD check of the source package, as CRAN runs it
# make bench     the benchmark table (WHAT=name for one file of bench/)
# make dev       a development build in $(LIB), fast
# make document  rewrite R/extendr-wrappers.R, NAMESPACE and man/
# make vendor    pack the crates of Cargo.lock into the source package
# make build     the source package, in $(CACHE)/build
# make site      the web pages, in $(CACHE)/site
#
# Everything that is built stands in $(CACHE), outside the package.
CACHE ?= $(HOME)/.cache/warrant
LIB ?= $(CACHE)/lib
BENCH_LIB ?= $(CACHE)/lib-release
export CACHE LIB BENCH_LIB
export WARRANT_TARGET_DIR ?= $(CACHE)/target
export R_LIBS := $(LIB):$(R_LIBS)

.PHONY: help demo test check bench dev document vendor build site setup

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

demo:
	@sh tools/setup.sh demo
	@sh tools/install.sh dev
	@sh tools/demo.sh

test:
	@sh tools/setup.sh test
	@sh tools/test.sh

check:
	@sh tools/setup.sh test
	@sh tools/check.sh

bench:
	@sh tools/setup.sh bench
	@sh tools/install.sh release
	@R_LIBS=$(BENCH_LIB):$(R_LIBS) Rscript tools/bench.R $(WHAT)

dev:
	@sh tools/install.sh dev

document: dev
	Rscript tools/document.R --wrappers
	@sh tools/install.sh dev
	Rscript tools/document.R

vendor:
	@sh tools/vendor.sh

build:
	@sh tools/build.sh

site:
	@sh tools/setup.sh site
	@sh tools/install.sh dev
	@Rscript tools/site.R

setup:
	@sh tools/setup.sh test
