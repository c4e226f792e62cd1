# `make demo` and `make test` are the two commands of the README; both install what they need into .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= 2
FAST ?= $(addprefix tests/,model engine mechanisms test_house.py test_imports.py test_documents.py test_release_notes.py)

SECONDS_EACH ?= 60

.PHONY: demo studio test test-fast coverage adversary bench fuzz lint docs wheel man clean browser database java r

demo: $(VENV)/installed
	$(BIN)/privacyfunnel demo --into demo --force

# A page in the browser, on the census data; what it publishes goes beside them.
studio: $(VENV)/installed-studio
	test -e demo/adult.csv || $(BIN)/privacyfunnel demo --into demo
	$(BIN)/privacyfunnel studio demo/adult.csv

# As many workers as cores: threads of linear algebra would only wait for each other.
test: $(VENV)/installed-test browser database java r
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

# Releases through the real interface, and what leaks measured from outside: every option alone and in pairs. Half an hour.
adversary: $(VENV)/installed-test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.adversary $(ARGS)

# Theory, engine, mechanisms, and how code and documents are written, in less than 90 seconds on two cores. Left out: designs,
# tables, releases, audits, estimation, commands, report, studio, experiments, golden outputs, Spark, site and wheel.
test-fast: $(VENV)/installed-test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(FAST)

# Which lines and branches the whole suite runs, also in the processes that it starts; the pages are in build/coverage.
coverage: $(VENV)/installed-test browser database java r
	rm -rf build/coverage-data
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m coverage run -m pytest -n $(WORKERS) --dist worksteal
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage html --quiet
	$(BIN)/python -m coverage report --skip-covered --sort=cover

# mypy reads the tests too, so it needs what they import.
lint: $(VENV)/installed-lint $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The documents as a site in build/site.
docs: $(VENV)/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# A wheel and an sdist in dist/; tests/test_wheel.py installs them and runs the demo.
wheel: $(VENV)/installed-wheel
	$(BIN)/python -m build --no-isolation --outdir dist

# The manual page, from the help of all commands.
man: $(VENV)/installed
	$(BIN)/python scripts/make_man.py > man/privacyfunnel.1

# All that ends within hours, or `make bench NAMES="size startup"`. One thread: seconds are those of the processor.
bench: $(VENV)/installed-bench
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks $(NAMES)

# Inputs that a machine makes up, for SECONDS_EACH seconds a target; what crashes is in fuzz/crashes.
fuzz: $(VENV)/installed-fuzz
	$(BIN)/python -m fuzz --seconds $(SECONDS_EACH)

# The report and the studio are tested in a real browser.
browser:
	@for name in chromium chromium-browser google-chrome chrome; do \
	  command -v $$name >/dev/null && exit 0; done; \
	echo "Installing Chromium, in which report and studio are tested."; \
	apt-get update -qq && apt-get install -y -qq chromium >/dev/null

# Queries are tested on a real PostgreSQL, which the tests start themselves on a socket in a temporary folder.
database:
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null && exit 0; \
	echo "Installing PostgreSQL, on which queries are tested."; \
	apt-get update -qq && apt-get install -y -qq postgresql >/dev/null

# Draws on a cluster are tested on a real Spark, which runs on Java.
java:
	@command -v java >/dev/null && exit 0; \
	echo "Installing a Java runtime, on which Spark is tested."; \
	apt-get update -qq && apt-get install -y -qq default-jre-headless >/dev/null

# docs/estimate.R is tested in a real R. Without recommended packages it installs in some 30 seconds.
r:
	@Rscript -e 'library(jsonlite)' >/dev/null 2>&1 && exit 0; \
	echo "Installing R, in which docs/estimate.R is tested."; \
	apt-get update -qq && apt-get install -y -qq --no-install-recommends r-base-core r-cran-jsonlite >/dev/null

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

$(VENV)/installed-%: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[$*]"
	touch $@

clean:
	rm -rf $(VENV) demo build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
