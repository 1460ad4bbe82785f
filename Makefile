# Two commands matter: `make demo` and `make test`. Each builds .venv from the lock file first if it has to.

.DEFAULT_GOAL := help
SHELL := bash
BIN := .venv/bin
STAMP := .venv/.installed

# Spark starts its Python workers with this one; without it, with whatever `python3` happens to be.
export PYSPARK_PYTHON := $(CURDIR)/.venv/bin/python

# Arguments go through, as in: make test ARGS="tests/unit -k commits"
ARGS ?=

.PHONY: help demo serve test check format coverage nightly bench bench-contention lock environment java clean

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-17s %s\n", $$1, $$2}'

demo: java $(STAMP)  ## Run the whole demo: server, Spark pipeline on real flights, PyIceberg and DuckDB
	@$(BIN)/icetower demo $(ARGS)

serve: $(STAMP)  ## Start a server on SQLite and a local folder; Ctrl-C stops it
	@$(BIN)/icetower serve $(ARGS)

test: java $(STAMP)  ## Run the whole test suite, Postgres, S3 and Spark included
	@scripts/test $(ARGS)

check: java $(STAMP)  ## Formatting, lint, types, import contracts, then the whole test suite
	@scripts/check $(ARGS)

format: $(STAMP)  ## Format, repair what the linter can repair, redraw the tree in ARCHITECTURE.md
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format --quiet .
	@scripts/architecture-tree --write

coverage: java $(STAMP)  ## Run the whole test suite and show which lines and branches it missed
	@scripts/test --coverage $(ARGS)

nightly: java $(STAMP)  ## Run the test suite with thousands of random cases instead of fifty each
	@scripts/test --nightly $(ARGS)

bench: $(STAMP)  ## Run all benchmarks and write benchmarks/RESULTS.md, 45 minutes (ARGS="loads commits": only print these)
	@$(BIN)/python -m benchmarks $(ARGS)

bench-contention: $(STAMP)  ## Measure many writers on one table, 25 minutes, and write docs/contention.md (ARGS=--quick: 3)
	@$(BIN)/python -m benchmarks.contention $(ARGS)

lock: $(STAMP)  ## Resolve pyproject.toml into the lock files (ARGS=--upgrade takes the newest versions)
	@scripts/lock $(ARGS)

environment: $(STAMP)  ## Build .venv from the lock file

clean:  ## Remove .venv, caches, and what the demo wrote; the tables of `make serve` stay
	rm -rf .venv .demo build dist .coverage .coverage.* htmlcov
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis spark-warehouse metastore_db derby.log
	find app migrations tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

java:
	@scripts/check-java

$(STAMP): requirements/dev.lock pyproject.toml scripts/environment
	@scripts/environment
