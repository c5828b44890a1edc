# Everything a developer does. Each target sets up .venv by itself.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
BASE := .venv/.base

.PHONY: demo quick test check bench regret scaling structure parallel format table figure clean paper crash load shapes suite fuzz coverage audit
.DEFAULT_GOAL := test

$(BASE): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $(BASE)

$(STAMP): $(BASE)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $(STAMP)

demo: $(BASE)            ## optimise a 20-dimensional problem with hidden groups
	$(BIN)/sumbo demo

# What breaks first, and takes little: space, model, ledger, files, and the suggestions that are on record.
QUICK := acquisition compiled decomposition evidence feasibility fit gp kernels learning linalg method_entry_points \
	optimize optimizer problems regret report_maths scales space sparse stored study_file study_programs \
	study_sheets tables threads

quick: $(STAMP)           ## tests for while you work, under a minute on two cores
	$(BIN)/python -m pytest -n 2 --dist worksteal $(QUICK:%=tests/test_%.py) tests/test_golden.py::test_suggestions_are_those_on_record

test: $(STAMP)            ## all tests, some five minutes
	$(BIN)/python -m pytest -n 2 --dist worksteal

check: $(STAMP)           ## lint, format, types, import directions
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: $(STAMP)           ## speed against LAPACK and peers, as ratios; peers by `.venv/bin/pip install -e ".[bench]"`
	$(BIN)/python benchmarks/bench.py

regret: $(STAMP)          ## regret beside other optimisers (hours; goes on where it stopped); peers as for `bench`
	$(BIN)/python benchmarks/regret.py

SET := development
suite: $(STAMP)           ## `auto` beside eleven methods, SET=development or test (hours; goes on where it stopped); peers as for `bench`
	$(BIN)/python benchmarks/suite.py --set $(SET)

scaling: $(STAMP)         ## seconds and memory against observations and parameters
	$(BIN)/python benchmarks/scaling.py --out docs/scaling.jsonl --markdown docs/scaling.md --plot docs/scaling.svg

structure: $(STAMP)       ## how well groups are recovered
	$(BIN)/python benchmarks/structure.py --out docs/structure.jsonl --markdown docs/structure_table.md

parallel: $(STAMP)        ## waiting, regret and speed with many workers (an hour; goes on where it stopped)
	$(BIN)/python benchmarks/parallel.py

crash: $(STAMP)           ## `sumbo run`, its workers and its database killed 200 times (goes on where it stopped)
	$(BIN)/python benchmarks/crash.py

load: $(STAMP)            ## many processes on a study, 100,000 stored trials, a long run (goes on where it stopped)
	$(BIN)/python benchmarks/load.py

shapes: $(STAMP)          ## constraints, conditions, contexts and noise beside other optimisers (hours; goes on where it stopped)
	$(BIN)/python benchmarks/shapes.py

fuzz: $(STAMP)            ## hard spaces, histories and values: over 20,000 of them (half an hour; goes on where it stopped)
	OPENBLAS_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m fuzz.long

coverage: $(STAMP)        ## which lines, branches and errors of src/ the tests reach, processes they start included
	rm -f .coverage .coverage.*
	OPENBLAS_NUM_THREADS=1 $(BIN)/coverage run -m pytest -n 2 --dist worksteal
	$(BIN)/coverage combine --quiet
	$(BIN)/python tests/errors.py
	$(BIN)/coverage report --skip-covered --show-missing --fail-under 95

audit: $(STAMP)           ## known holes in the packages that are installed
	$(BIN)/python tests/audit.py

format: $(STAMP)          ## make `ruff` happy
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

table: $(STAMP)           ## the README's table (about half an hour; goes on where it stopped)
	$(BIN)/python benchmarks/paper_table.py --out docs/paper_table.jsonl --markdown docs/paper_table.md

paper: $(STAMP)           ## docs/paper.md: the paper's experiments (hours; goes on where it stopped)
	$(BIN)/sumbo reproduce all --full --runs 5 --runs synthetic=10 --budget 300 --budget synthetic=200 \
		--configuration 10,3,3 --configuration 24,6,4 --configuration 24,11,2 --configuration 40,5,8 --out docs

figure: $(STAMP)          ## the README's figure
	$(BIN)/python benchmarks/figure.py docs/figure.svg

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache dist
