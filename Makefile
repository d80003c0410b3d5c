# Two commands do everything on a fresh Debian machine with Python, make and the package indexes:
#   make demo   environment, models, the sample scored with all five metrics, an HTML report
#   make test   environment, everything the suite needs, lint, types, all tests
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt
DEMO := demo-out
FIVE := qrelscore,qascore,qsts,bleu1-kpqa,rouge-l-kpqa,bertscore-kpqa,questeval

.PHONY: demo test lint unit models browser clean

$(VENV)/.made:
	$(PYTHON) -m venv $(VENV)
	$(PIP) -U pip
	touch $@

# torch first, by its pinned version: the constraint keeps every later step on the CPU build.
$(VENV)/.demo: $(VENV)/.made pyproject.toml constraints.txt
	$(PIP) torch==2.13.0
	$(PIP) -e ".[models]"
	touch $@

$(VENV)/.test: $(VENV)/.demo pyproject.toml constraints.txt
	$(PIP) -e ".[test]"
	touch $@

models: $(VENV)/.demo
	$(BIN)/quaestor models pull

demo: models
	mkdir -p $(DEMO)
	$(BIN)/quaestor score sample/records.jsonl -m bleu,rouge-l,bertscore,likelihood,$(FIVE) --explain -o $(DEMO)/scores.jsonl > $(DEMO)/explained.txt
	$(BIN)/quaestor score sample/records.jsonl -m bleu,rouge-l,bertscore,likelihood,$(FIVE) --explain -o $(DEMO)/scores.jsonl --resume
	$(BIN)/quaestor report $(DEMO)/scores.jsonl -o $(DEMO)/report.html
	@echo "Report: $(DEMO)/report.html   Evidence of every score: $(DEMO)/explained.txt"

# A browser and a PostgreSQL server for the tests of the study app, where this user may install them.
browser:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	   { [ ! -x /usr/bin/chromium ] || ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; }; then \
	   apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium postgresql >/dev/null; fi

lint: $(VENV)/.test
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy

unit: $(VENV)/.test
	$(BIN)/python -m pytest

test: $(VENV)/.test models browser lint unit

clean:
	rm -rf $(VENV) $(DEMO) build *.egg-info src/*.egg-info
