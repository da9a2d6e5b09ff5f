# Every target begins with the same set-up (scripts/setup.py): it does what is missing, and takes a moment when nothing is.
#   make demo                 the console on a bundled engine with sample traffic
#   make demo ENGINE=gpu      the same with vLLM for CUDA
#   make test ARGS="-k name"  arguments for pytest (or for specdeck demo)

ENGINE ?= cpu
PYTHON ?= python3
ARGS ?=
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help setup demo test check bench accept samples gpu-check clean distclean

help: ## what there is to make
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

setup: ## .venv, packages, bundled model: whatever of it is missing
	@$(PYTHON) scripts/setup.py --engine $(ENGINE)

demo: setup ## the console on a bundled engine with sample traffic
	@$(BIN)/specdeck demo $(ARGS)

test: setup ## the whole test suite, on the real engine
	@$(BIN)/python -m pytest -q -n 2 --dist loadgroup $(ARGS)

check: setup ## format, lint, types, import contracts: seconds
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: setup ## the benchmarks, one after the other; they print ratios
	@set -e; for file in tests/benchmarks/bench_*.py; do \
	  echo "== $$file"; $(BIN)/python -m "$$(echo "$${file%.py}" | tr / .)"; done

accept: setup ## the long measurements; writes tests/acceptance/*.json
	@$(BIN)/python -m tests.acceptance $(ARGS)

samples: setup ## record the sample traces again; ARGS=hostile for one of them
	@$(BIN)/python -m tests.samples $(ARGS)

gpu-check: ENGINE := gpu
gpu-check: setup ## for an owner of an NVIDIA GPU: runs what was never run on one, prints a report to send back
	@$(BIN)/python scripts/gpu_check.py $(ARGS)

clean: ## caches and build products
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist snapshot_report.html
	@find console engine store tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## also .venv
	@rm -rf .venv .setup
