# Everything runs in .venv, which the first target that needs it makes. PYTHON chooses the interpreter (3.11 or later);
# pip's own variables (PIP_INDEX_URL, PIP_EXTRA_INDEX_URL, ...) choose where packages come from.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
DECLARED := pyproject.toml constraints.txt

.PHONY: quickstart test test-slow lint clean

## From nothing to a trained model: one to four minutes on two x86-64 cores, the installation aside.
quickstart: .venv/.ready
	$(BIN)/strata train-lm --recipe quickstart

## The tests that run on every change, two files at a time.
test: .venv/.ready-test
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

## Accuracy and soak runs besides.
test-slow: .venv/.ready-test
	$(BIN)/python -m pytest -m slow

## Style and types.
lint: .venv/.ready-lint
	$(BIN)/ruff check .
	$(BIN)/mypy

clean:
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

.venv/.python:
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	touch $@

.venv/.ready: .venv/.python $(DECLARED)
	$(PIP) hatchling
	$(PIP) --no-build-isolation -e .
	touch $@

.venv/.ready-test: .venv/.ready
	$(PIP) --no-build-isolation -e '.[test]'
	touch $@

.venv/.ready-lint: .venv/.ready
	$(PIP) --no-build-isolation -e '.[lint]'
	touch $@
