# Each target makes what it needs; only git, Python 3.11+ and make have to be there.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: sweep test lint check clean

## the main job: E[X] for every P up to 4096, with error bars and bounds, in run.h5
sweep: $(VENV)/run
	$(BIN)/brwsim sweep --P 1..4096 --dist dirichlet --out run.h5

## the tests
test: $(VENV)/dev
	$(BIN)/python -m pytest -q

## style and types
lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

## all of what CI runs
check: lint test

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/run: setup.cfg pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[plot]'
	touch $@

$(VENV)/dev: $(VENV)/run
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@
