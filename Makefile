# Everything below sets up .venv by itself, once; a second run starts at once.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# Sourced before anything that starts Spark: finds a JDK 17+, installs one on Debian/Ubuntu as root, or says what to do.
JDK    := . scripts/jdk.sh

# The versions of Spark that the engine is tested on; the lock has the last one.
SPARKS := 4.1.* 4.2.* 4.3.*

.PHONY: help demo test test-matrix check bench docs lock format clean
.DEFAULT_GOAL := help

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "Evenkeel needs Python 3.10 or newer; $(PYTHON) is $$($(PYTHON) --version). Set PYTHON=/path/to/python3.10+"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(READY)  ## run the main job on Spark
	@$(JDK) && $(BIN)/evenkeel demo

test: $(READY)  ## every test that CI needs (starts two local Sparks)
	@$(JDK) && $(BIN)/python -m pytest -q -n 2 -m "not spark" && $(BIN)/python -m pytest -q -n 2 --dist loadfile -m spark --durations=15

test-matrix: $(READY)  ## the Spark tests on every supported version of Spark
	@$(JDK) && for version in $(SPARKS); do \
	  venv=.venv-spark-$${version%.*}; \
	  [ $$venv/.locked -nt requirements.lock ] || { $(PYTHON) -m venv $$venv \
	    && $$venv/bin/python -m pip install --quiet --require-hashes -r requirements.lock \
	    && $$venv/bin/python -m pip install --quiet --no-deps --no-build-isolation -e . \
	    && $$venv/bin/python -m pip install --quiet "pyspark==$$version" && touch $$venv/.locked; } || exit 1; \
	  echo "Spark $$($$venv/bin/python -c 'import pyspark; print(pyspark.__version__)')"; \
	  $$venv/bin/python -m pytest -q -n 2 --dist loadfile -m spark || exit 1; \
	done

check: $(READY)  ## lint, format, types, import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)  ## benchmarks: ratios against peers, in one run
	@$(BIN)/python -m benchmarks

docs: $(READY)  ## the docs site, in site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

format: $(READY)  ## apply the formatter and the safe fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: $(READY)  ## renew requirements.lock: exact versions with hashes, no URLs
	$(BIN)/python -m pip install --quiet uv
	UV_PYTHON_DOWNLOADS=never $(BIN)/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes \
	  --no-emit-index-url --no-header --no-annotate --extra spark --extra dev pyproject.toml -o requirements.lock

clean:  ## remove what the build made
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis dist
