# `make demo` and `make test` are all a new user needs; everything sets itself up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
EXTRAS := train,serve,milvus,postgres,ray,bench,dev
WORKERS ?= 2

.PHONY: setup demo test torture bench check clean

setup: $(STAMP)

$(STAMP): pyproject.toml setup.py constraints.txt $(wildcard src/bitscale/native/src/*)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[$(EXTRAS)]'
	touch $@

demo: setup
	$(BIN)/bitscale demo

test: setup check
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal tests

# The endurance counts in full, and the kernel under AddressSanitizer.
torture: setup
	BITSCALE_TORTURE=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal tests
	$(BIN)/python tests/native/sanitize.py

bench: setup
	$(BIN)/bitscale bench search

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) build dist src/*.egg-info src/bitscale/native/*.so
