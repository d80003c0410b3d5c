# Two commands do everything on a fresh Debian machine with Python, make and the package indexes:
#   make demo   environment, models, the sample scored with all five metrics, an HTML report
#   make test   environment, everything the suite needs, lint, types, all tests
# While you work: make unit (tests without models, under a minute)
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt
DEMO := demo-out
FIVE := qrelscore,qascore,qsts,bleu1-kpqa,rouge-l-kpqa,bertscore-kpqa,questeval[form=ours]
NEW := support,equivalent,answerable,wellformed

.PHONY: slim demo test lint suite unit models browser docs clean

$(VENV)/.made:
	$(PYTHON) -m venv $(VENV)
	$(PIP) -U pip
	touch $@

# Not compiled when installed: Python compiles what is imported, a fifth of it, when it is first run.
unexport PYTHONDONTWRITEBYTECODE
$(VENV)/.demo: $(VENV)/.made pyproject.toml constraints.txt
	$(PIP) --no-compile -e packages/elench-models -e ".[models]"
	$(MAKE) --no-print-directory slim
	touch $@

# What no run needs: the tests of NumPy and SciPy, and the symbols that spaCy's binaries carry (where strip is installed).
slim:
	cd $(VENV)/lib/python3*/site-packages && rm -rf spacy/tests thinc/tests && \
	   find numpy scipy -type d -name tests -prune -exec rm -rf {} + && \
	   { ! command -v strip >/dev/null || find spacy thinc blis srsly preshed -name '*.so' -exec strip --strip-unneeded {} +; }

# torch first, by its pinned version: the constraint keeps every later step on the CPU build.
$(VENV)/.test: $(VENV)/.demo pyproject.toml constraints.txt
	$(PIP) torch==2.13.0
	$(PIP) -e packages/elench-models -e ".[test]"
	touch $@

models: $(VENV)/.demo
	$(BIN)/elench models pull

demo: models
	mkdir -p $(DEMO)
	$(BIN)/elench score sample/records.jsonl -m "bleu,rouge-l,bertscore,likelihood,$(FIVE),$(NEW)" --explain -o $(DEMO)/scores.jsonl > /dev/null
	$(BIN)/elench score sample/records.jsonl -m "bleu,rouge-l,bertscore,likelihood,$(FIVE),$(NEW)" --explain -o $(DEMO)/scores.jsonl --resume
	$(BIN)/elench report $(DEMO)/scores.jsonl -o $(DEMO)/report.html
	@echo "Report, with the evidence of every score: $(DEMO)/report.html"

# A browser and a PostgreSQL server for the tests of the study app, where this user may install them.
browser:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	   { [ ! -x /usr/bin/chromium ] || ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; }; then \
	   apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium postgresql >/dev/null; fi

lint: $(VENV)/.test
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy

# Without models, browsers, data sets and other processes (tests/conftest.py says which).
unit: $(VENV)/.test
	$(BIN)/python -m pytest -m unit

suite: $(VENV)/.test
	$(BIN)/python -m pytest

test: $(VENV)/.test models browser lint suite

# The site in build/site: the README as first page, with what it links to; links made relative to docs/.
docs: $(VENV)/.made
	$(PIP) -e ".[docs]"
	rm -rf build/site-source && mkdir -p build && cp -r docs build/site-source
	cp -r CITATION.cff examples build/site-source
	cp --parents packages/elench-models/elench_models/*/card.md build/site-source
	for page in CONTRIBUTING.md CHANGELOG.md; do sed 's#](docs/#](#g' $$page > build/site-source/$$page; done
	sed 's#](docs/#](#g' README.md > build/site-source/index.md
	$(BIN)/mkdocs build -q
	@echo "Site: build/site/index.html"

clean:
	rm -rf $(VENV) $(DEMO) build *.egg-info src/*.egg-info
