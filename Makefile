PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.installed
SEED   ?= $(shell $(PYTHON) -c 'import secrets; print(secrets.randbelow(10**9))')
SEED   := $(SEED)

.PHONY: help setup demo test lint types unit test-spark fuzz asan mutants bench docs clean
help:          ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## create the environment and install the package with its tools
$(READY): pyproject.toml constraints.txt setup.py $(wildcard src/ptncn/kernels/*.[ch] src/ptncn/kernels/*.inc)
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "ptncn needs Python 3.11 or later; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: setup    ## run the demo: two learners predict a changing stream
	$(BIN)/ptncn demo

test: lint types unit ## ruff, mypy and the whole test suite

lint: setup    ## ruff: style and formatting; import-linter: layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: setup   ## mypy
	$(BIN)/mypy

unit: setup    ## pytest
	$(BIN)/python -m pytest -n auto --dist worksteal -q

test-spark: setup ## install pyspark and run the Spark tests; needs Java 17
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,spark]'
	$(BIN)/python -c 'from ptncn.spark.forecasts import check_java; check_java()'
	$(BIN)/python -m pytest -q tests/spark tests/examples

fuzz: setup    ## test properties with new random examples, and readers with damaged files; SEED=… repeats a run
	@echo "seed $(SEED)"
	$(BIN)/python -m pytest -q -m hypothesis --hypothesis-profile=fuzz --hypothesis-seed=$(SEED)
	$(BIN)/python benchmarks/reliability/inputs.py --seed $(SEED) --count 20000 --out build/fuzz --work build/fuzz

asan: setup    ## test the kernel under sanitizers, with 10,000 random sequences of calls (half an hour; COUNT=… for fewer)
	$(BIN)/python benchmarks/reliability/asan.py --count $(or $(COUNT),10000) --out build/asan

mutants: setup ## break the learning rules one at a time; a test must fail for each
	$(BIN)/python tests/mutants.py

bench: setup   ## time a learning step (a quarter of an hour; needs an otherwise idle machine)
	$(BIN)/python benchmarks/step.py

docs: setup    ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Open site/index.html in a browser."

clean:         ## remove the environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache build site
