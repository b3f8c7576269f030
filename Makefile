# Everything runs in .venv, which `setup` makes from pinned, hashed requirements.
PYTHON ?= python3
HOST ?= 127.0.0.1
PORT ?= 8000
DATA ?= ../shared/data/retrieval
# Many tests wait for a server or a deadline: half as many workers again as there are cores.
WORKERS ?= $(shell echo $$(( ($$(getconf _NPROCESSORS_ONLN) * 3 + 1) / 2 )))
BIN := .venv/bin
READY := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: help setup run ask test acceptance check format pin screenshots bench bench-retrieval soak fuzz

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## make .venv with everything in it (the other targets do this first)

# uv is several times faster; where its index cannot be reached as it is configured, pip does the same.
# Compiled once here, each command starts in half the time, also where Python may not write bytecode.
$(READY): pyproject.toml requirements-dev.txt requirements-uv.txt
	@$(PYTHON) -c 'import sys; sys.exit("apidesk needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --require-hashes -r requirements-uv.txt
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r requirements-dev.txt \
	  || $(BIN)/pip install --quiet --require-hashes -r requirements-dev.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --no-index --editable .
	@touch $@

run: setup ## index the platform if need be, then serve http://127.0.0.1:8000 (PORT=...)
	@exec $(BIN)/apidesk serve --host $(HOST) --port $(PORT)

ask: setup ## ask one question: make ask Q="怎么发货"
	@$(BIN)/apidesk ask "$$Q"

test: setup ## run the tests, but for those of whole processes and of a browser
	@$(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not acceptance"

acceptance: setup ## run those
	@$(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m acceptance

check: setup ## lint and types, as CI runs them
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: setup ## format and sort imports
	@$(BIN)/ruff check --fix --quiet .
	@$(BIN)/ruff format .

pin: setup ## renew all pinned requirements
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-header --upgrade pyproject.toml -o requirements.txt
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-header --upgrade --group dev pyproject.toml -o requirements-dev.txt
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-header --upgrade benchmarks/peers/requirements.in -o benchmarks/peers/requirements.txt

screenshots: setup ## take the pictures of docs/page.md anew
	@$(BIN)/python -m tests.screenshots

bench: setup ## twenty minutes of speed beside other systems, written into docs/performance.md
	@$(BIN)/python -m benchmarks.performance

bench-retrieval: setup ## measure retrieval and write it into docs/retrieval.md (DATA=...)
	@$(BIN)/python -m benchmarks.retrieval --data "$(DATA)"

soak: setup ## ten minutes of everything at once, written into docs/reliability.md
	@$(BIN)/python -m benchmarks.soak

fuzz: setup ## schemathesis against the description of the API, written into docs/reliability.md
	@$(BIN)/python -m benchmarks.fuzz
