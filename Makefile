# make run: the whole site.  make test: the tests.  make help: everything else.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
export HOST PORT DATA_DIR

.PHONY: help run test check bench docs pictures lock wheel clean venv dev format messages

help:
	@echo "make run      start the site (reads HOST, PORT, DATA_DIR); Ctrl-C stops it"
	@echo "make test     all tests that this machine can run"
	@echo "make check    format, lint, types, import contracts, migrations, templates, translations"
	@echo "make bench    run the benchmarks of docs/benchmarks.md"
	@echo "make format   format Python and templates"
	@echo "make docs     build the documentation as a static site, in site/"
	@echo "make pictures retake the pictures of README and guide (needs Chromium)"
	@echo "make messages extract texts and compile translations"
	@echo "make lock     update requirements*.txt from requirements*.in"
	@echo "make wheel    build the wheel, in dist/"
	@echo "make clean    remove the virtual environment and caches (never the data)"

run: venv
	@exec $(PY) manage.py serve

test: dev
	@$(PY) -m tools.tests $(TESTS)

check: dev
	@$(PY) tools/check.py

bench: dev
	@$(PY) -m tools.bench

format: dev
	@$(VENV)/bin/ruff check --fix . && $(VENV)/bin/ruff format . && $(VENV)/bin/djade --target-version 5.2 $$(git ls-files 'templates/*.html')

messages: dev
	@$(PY) tools/messages.py extract && $(PY) tools/messages.py compile

docs: dev
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict

pictures: dev
	@$(PY) -m tools.pictures

# requirements-build.txt and those after it are held to the versions of requirements.txt.
lock: dev
	@$(PY) -m pip install -q uv
	@for name in "" -scale -mcp -build -dev; do $(VENV)/bin/uv pip compile -q -U --generate-hashes --python-version 3.11 --universal --no-annotate requirements$$name.in -o requirements$$name.txt --custom-compile-command "make lock" || exit 1; done

wheel: dev
	@$(PY) -m hatchling build -t wheel

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

# Installed once for each state of the lock file; a second `make` needs no network.
venv: $(VENV)/.runs
dev: $(VENV)/.tests

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "evalsite needs Python 3.11 or newer; say which with  make run PYTHON=python3.11")'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "Python cannot make a virtual environment here. On Debian and Ubuntu:  sudo apt install python3-venv"; exit 1; }
	@echo "Making a virtual environment in $(VENV) …"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.runs: requirements.txt | $(VENV)/bin/python
	@echo "Installing what evalsite needs (once, some 200 MB to download) …"
	@$(PY) -m pip install -q --disable-pip-version-check --require-hashes -r requirements.txt
	@touch $@

$(VENV)/.tests: requirements.txt requirements-dev.txt | $(VENV)/bin/python
	@echo "Installing what the tests need (once) …"
	@$(PY) -m pip install -q --disable-pip-version-check --require-hashes -r requirements.txt -r requirements-dev.txt
	@touch $@ $(VENV)/.runs
