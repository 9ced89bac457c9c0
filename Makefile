# Everything sets itself up in .venv; the only needs are Python 3.11 or newer and make.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready

.DEFAULT_GOAL := help
.PHONY: help setup pins demo lab gallery test test-all acceptance check format clean

help: ## list these commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(READY) ## install everything into .venv (the others do so by themselves)

$(READY): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version.split()[0] + "; set PYTHON=...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(READY)

pins: $(READY) ## pin what pyproject.toml asks for, with the hashes of all files (UPGRADE=--upgrade for the newest versions)
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-annotate --custom-compile-command "make pins" \
	  $(UPGRADE) --group dev pyproject.toml --output-file requirements.txt

demo: $(READY) ## plan Nexmark q5 for three rates from runs on a small Spark here; the report is reports/q5.html
	@if $(BIN)/python -c 'import sys; from workbench.testbed.spark import quota_permitted; sys.exit(not quota_permitted())'; then \
	  echo "Planning Nexmark q5 on up to four slots of this machine; first answers come after three to four minutes, the report after eight, ten at most." && \
	  $(BIN)/workbench plan data/q5.yaml --report reports/q5.html; \
	else \
	  echo "No CPU quotas here: measuring one run on whole cores instead; this takes five to nine minutes." && \
	  $(BIN)/workbench measure nexmark:q5 --report reports/q5.html; \
	fi

lab: $(READY) ## open the tour in JupyterLab on this machine
	$(BIN)/jupyter lab --ip=127.0.0.1 --notebook-dir=. notebooks/00_tour.ipynb $(if $(filter 0,$(shell id -u)),--allow-root)

gallery: $(READY) ## draw the notebooks of docs/gallery again, in a real JupyterLab
	GALLERY=1 $(BIN)/python -m pytest tests/browser/test_notebooks.py tests/browser/test_what_if.py tests/browser/test_live_measurement.py
	cp $$(ls artifacts/*.jpg | grep -E '/[0-9]+_[a-z]+(-[0-9]+)?\.jpg$$') docs/gallery/

# Commands, kernels and Spark's workers start by the hundred: with the code compiled before, each starts faster, also
# where PYTHONDONTWRITEBYTECODE is set.
COMPILED := $(BIN)/python -m compileall -q workbench tests/support
SHARED := --numprocesses auto --maxprocesses 8 --no-loadscope-reorder
MEASURED := tests/browser tests/kafka tests/spark
# Tests that share the machine time nothing: without its second compiler, and with its plainest collector, a JVM that
# runs for seconds takes two thirds of the CPU time.
SHORT_JVM := JDK_JAVA_OPTIONS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
LEFT_OUT := long or rare

test: $(READY) ## run tests of every kind, in about 15 minutes on two cores
	$(COMPILED)
	$(SHORT_JVM) $(BIN)/python -m pytest -m "not (alone or long or rare)" $(SHARED)
	$(BIN)/python -m pytest -m "alone and not ($(LEFT_OUT))" $(MEASURED)

test-all: export ALL_EXAMPLES = 1
test-all: export FAULT_TIMES = 2
test-all: $(READY) ## run all tests: first those that share the machine, then those that need it for themselves
	$(COMPILED)
	$(SHORT_JVM) $(BIN)/python -m pytest -m "not (alone or rare)" $(SHARED)
	$(BIN)/python -m pytest -m "alone and not rare" $(MEASURED)

acceptance: $(READY) ## show all that the project promises, with figures (a day; SHOW="--needs minutes" for the quick part)
	$(BIN)/python benchmarks/acceptance.py $(SHOW)

check: $(READY) ## lint, types, layers, words, advisories
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tests/plain_english.py
	$(BIN)/python tests/advisories.py

format: $(READY) ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## remove what the commands above made, .venv apart
	rm -rf reports artifacts .workbench .pytest_cache .mypy_cache .ruff_cache .hypothesis build
