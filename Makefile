# make dev       install a development build into $(LIB), fast
# make document  rewrite R/extendr-wrappers.R, NAMESPACE and man/
CACHE ?= $(HOME)/.cache/warrant
LIB ?= $(CACHE)/lib
export WARRANT_TARGET_DIR ?= $(CACHE)/target
export R_LIBS := $(LIB):$(R_LIBS)

.PHONY: dev document

dev:
	@mkdir -p $(LIB)
	WARRANT_DEV=true WARRANT_PROFILE=devrel R CMD INSTALL --no-docs --no-byte-compile --no-test-load --library=$(LIB) .

document: dev
	Rscript tools/document.R --wrappers
	@$(MAKE) dev
	Rscript tools/document.R
