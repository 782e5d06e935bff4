# `make help` lists the targets. Everything is installed in .venv; `make install PYTHON=python3.13` selects a Python.
PYTHON = python3
BIN = .venv/bin

.PHONY: help install test unit lint types docs bench build oldest clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 10

install: .venv/installed ## create .venv with everything that development needs

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q -e '.[dev]'
	@touch $@

test: install ## run all tests, including lint, types and documents
	$(BIN)/python -m pytest -n auto

unit: install ## run the fast tests, for use while editing
	$(BIN)/python -m pytest -m unit -n 2

lint: install ## check style, spelling and the order of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/lint-imports

types: install ## check types
	$(BIN)/mypy

docs: install ## build the site in build/site; warnings are errors
	$(BIN)/sphinx-build -q -W --keep-going docs build/site

bench: install ## compare the speed with scikit-learn
	$(BIN)/pip install -q -e '.[bench]'
	$(BIN)/python bench/compare.py

build: install ## build and check the source archive and the wheel, in dist
	rm -rf dist
	$(BIN)/python -m build >/dev/null
	$(BIN)/python -m twine check --strict dist/*

oldest: ## test the oldest allowed versions of the dependencies
	.ci/oldest

clean: ## remove everything that was built, but not .venv
	rm -rf build dist docs/gallery docs/reference/api/generated
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
