# Ember. `make run` and `make test` do all their own set-up; `make help` lists the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCH := .venv-bench

.DEFAULT_GOAL := help
.PHONY: help install run test test-fast services lint format docs bench bench-swap bench-memory bench-prefetch bench-overhead bench-cost bench-cold lock clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- set-up -------------------------------------------------------------------------------------

# `--without-pip` and `pip --python` need no ensurepip, which Debian ships in a package of its own.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Ember needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv --without-pip $(VENV)

PIP = $(PYTHON) -m pip --quiet --disable-pip-version-check --python $(BIN)/python

$(VENV)/.run: locks/run.txt pyproject.toml | $(BIN)/python
	@echo "Installing what Ember needs into $(VENV); this is done once."
	@$(PIP) install --require-hashes -r locks/run.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: locks/dev.txt $(VENV)/.run
	@echo "Installing what its tests need into $(VENV); this is done once."
	@$(PIP) install --require-hashes -r locks/dev.txt
	@touch $@

install: $(VENV)/.run ## everything that serving needs, into .venv

services: ## programs that tests drive: installs them as root on Debian, else names them
	@sh tests/services.sh

# --- the main job -------------------------------------------------------------------------------

run: install ## serve on http://localhost:8080, with a page to try it; or PORT=9000 make run
	@$(BIN)/ember serve

# --- checks -------------------------------------------------------------------------------------

test: $(VENV)/.dev services lint ## lint, types, import arrows and the whole test suite
	$(BIN)/python -m pytest --cov --cov-report=term:skip-covered

test-fast: $(VENV)/.dev ## the tests without the slow suites
	$(BIN)/python -m pytest -m "not slow"

lint: $(VENV)/.dev ## ruff, mypy --strict, import arrows, generated docs up to date
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m tests.docs --check

format: $(VENV)/.dev ## format the code and mend what ruff can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(VENV)/.dev ## write the generated tables of docs/
	$(BIN)/python -m tests.docs

# --- measurements -------------------------------------------------------------------------------

bench: bench-swap bench-memory bench-prefetch bench-overhead ## every benchmark

bench-swap: $(VENV)/.dev ## time of a swap against the bare model runs; 1 and 8 clients
	$(BIN)/python -m tests.bench.swap

bench-memory: $(VENV)/.dev ## resident memory over 300 swaps of mixed sizes
	$(BIN)/python -m tests.bench.memory

bench-prefetch: $(VENV)/.dev ## getting models against cp + sha256sum and against one stream
	$(BIN)/python -m tests.bench.prefetch

bench-overhead: $(VENV)/.dev ## a call that does nothing, through all of admission, against bare aiohttp
	$(BIN)/python -m tests.bench.overhead $(ARGS)

bench-cost: $(VENV)/.dev ## what a swap costs in each class of the price list, and fair prices
	$(BIN)/python -m tests.bench.cost $(ARGS)

$(BENCH)/.done: tests/bench/cold/requirements.lock
	@echo "Installing what Ember is compared with into $(BENCH); this is done once."
	@$(PYTHON) -m venv --without-pip $(BENCH)
	@$(PYTHON) -m pip --quiet --disable-pip-version-check --python $(BENCH)/bin/python \
		install --require-hashes -r tests/bench/cold/requirements.lock
	@touch $@

bench-cold: $(BENCH)/.done ## cold starts of Ember and of others side by side; or ARGS=--quick
	$(BENCH)/bin/python -m tests.bench.cold $(ARGS)

# --- upkeep -------------------------------------------------------------------------------------

UV_COMPILE = uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header --no-annotate pyproject.toml

lock: ## refresh locks/ (needs uv)
	$(UV_COMPILE) --extra cli --extra heic --group build -o locks/run.txt
	$(UV_COMPILE) --extra cli --extra heic --group build --group dev -c locks/run.txt -o locks/dev.txt
	$(UV_COMPILE) tests/bench/cold/requirements.in -c locks/run.txt -o tests/bench/cold/requirements.lock

clean: ## remove everything that make made
	rm -rf $(VENV) $(BENCH) build dist *.egg-info .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
