# Needs only GNU make and Python 3.11 or newer. `make` lists the targets.
#
#   make test PYTHON=python3.13 VENV=.venv313     another interpreter, in its own environment
#   make test PYTEST_ARGS="-x -k dirichlet"       other arguments for pytest

PYTHON ?= python3
VENV ?= .venv
# worksteal keeps the tests of a file in one process, which then traces and compiles its kernels once
PYTEST_ARGS ?= -n 2 --dist worksteal

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq

# The stamps carry the version of Python: another one rebuilds the environment.
PYVER := $(shell $(PYTHON) -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null)
PYTAG := py$(subst .,,$(basename $(PYVER)))
CONSTRAINTS := $(wildcard constraints/$(PYTAG).txt)
INSTALL := $(PIP) install $(addprefix -c ,$(CONSTRAINTS))
RUN := $(VENV)/.stamp-run-$(PYVER)
DEV := $(VENV)/.stamp-dev-$(PYVER)
DOCS := $(VENV)/.stamp-docs-$(PYVER)

PART ?= 1/1

.PHONY: help venv demo test minima slow test-all calibrate lint format mutants bench quality docs links clean
.DELETE_ON_ERROR:

help:
	@echo 'make demo      run the main job: python -m bayesnb compare'
	@echo 'make test      run the quick tests: every capability and every law once (minutes)'
	@echo 'make minima    run them with the lowest versions that pyproject.toml allows (Python 3.11 or 3.12)'
	@echo 'make test-all  run all tests, and docs: test, slow, calibrate, docs and links (an hour on two cores)'
	@echo 'make slow      run those that test leaves out, each marked with its reason; PART=2/3 runs the second third'
	@echo 'make calibrate run simulation-based calibration and joint tests, with their figures'
	@echo 'make mutants   share of 200 small mistakes in the code that the tests notice (an hour or two on two cores)'
	@echo 'make lint      ruff, mypy and import-linter'
	@echo 'make format    let ruff format the code and fix what it can'
	@echo 'make bench     time bayesnb beside scikit-learn'
	@echo 'make quality   score predictions beside other methods: docs/quality.md'
	@echo 'make docs      build the site and run its pages: site/index.html (minutes)'
	@echo 'make links     follow the links of the built site (seconds)'
	@echo 'make venv      set up $(VENV) for development; the targets above do what they need of it'
	@echo 'make clean     remove environments, caches and outputs'
	@echo 'Variables: PYTHON=$(PYTHON) VENV=$(VENV) PYTEST_ARGS="$(PYTEST_ARGS)"'

venv: $(DEV)

demo: $(RUN)
	$(BIN)/python -m bayesnb compare

# Kernels compiled once serve both workers, the processes that tests start, and the next run.
demo test slow calibrate mutants docs: export JAX_COMPILATION_CACHE_DIR ?= $(CURDIR)/.jax_cache
demo test slow calibrate mutants docs: export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS ?= 0
# Compilation takes a third less time without LLVM's expensive passes. Simulations (make calibrate), the demo and the
# pages of the site run kernels as users do.
test slow mutants: export JAX_DISABLE_MOST_OPTIMIZATIONS ?= true

test: $(DEV)
	$(BIN)/python -m pytest $(PYTEST_ARGS)

# tests/docs/test_packaging.py compares the file with pyproject.toml
minima:
	$(MAKE) --no-print-directory test VENV=.venv-minima CONSTRAINTS=constraints/minima.txt

test-all: test slow calibrate docs links

# pytest leaves with 5 when it finds no test to run
slow: $(DEV)
	$(BIN)/python -m pytest -m "slow and not calibration" --part $(PART) $(PYTEST_ARGS) || [ $$? -eq 5 ]

# -rP prints the figures of what passed
calibrate: $(DEV)
	$(BIN)/python -m pytest -m calibration -v -rP --durations=0 $(PYTEST_ARGS)

# benchmarks/mutants.py: another draw by MUTANTS_ARGS="--seed 1 --count 50"
mutants: $(DEV)
	$(BIN)/python -m benchmarks.mutants $(MUTANTS_ARGS)

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy bayesnb
	$(BIN)/lint-imports

format: $(DEV)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(DEV)
	$(BIN)/python -m benchmarks

quality: $(DEV)
	$(BIN)/python -m benchmarks.quality --out docs

docs: $(DOCS)
	$(BIN)/sphinx-build -q -W --keep-going --fresh-env -j auto $(SPHINXOPTS) -b html -d .doctrees docs site
	@echo 'Open site/index.html'

links: $(DOCS)
	@[ -f site/index.html ] || { echo 'There is no site yet: run make docs first'; exit 1; }
	$(BIN)/linkchecker --config docs/_linkcheck.ini --no-status site/index.html

clean:
	rm -rf build dist site .doctrees docs/reference/generated jupyter_execute .hypothesis .import_linter_cache .jax_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name .git -prune -o -path './.venv*' -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
	@for env in $(VENV) .venv*; do \
	    if [ -f "$$env/pyvenv.cfg" ]; then echo "rm -rf $$env"; rm -rf "$$env"; fi; \
	done

# The environment: made anew when Python, pyproject.toml or the constraints change.
$(RUN): pyproject.toml $(CONSTRAINTS)
	@[ -n '$(PYVER)' ] || { echo 'No Python found as "$(PYTHON)": try make PYTHON=/path/to/python3'; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo 'bayesnb needs Python 3.11 or newer, and "$(PYTHON)" is $(PYVER): try make PYTHON=python3.12'; exit 1; }
	@[ ! -e '$(VENV)' ] || [ -f '$(VENV)/pyvenv.cfg' ] || { \
	    echo '$(VENV) is not a virtual environment: left as it is'; exit 1; }
	@echo 'Setting up $(VENV) with Python $(PYVER) (a minute or so) ...'
	@$(if $(CONSTRAINTS),,echo 'No constraints file for Python $(PYVER): taking the newest versions, untested.')
	@$(PYTHON) -m venv --clear '$(VENV)' || { \
	    echo 'Could not make $(VENV): on Debian and Ubuntu the package python3-venv is needed'; exit 1; }
	@$(INSTALL) -e .
	@touch $@

$(DEV): $(RUN)
	@echo 'Installing the development tools into $(VENV) ...'
	@$(INSTALL) -e '.[dev]'
	@touch $@

$(DOCS): $(RUN)
	@echo 'Installing the documentation tools into $(VENV) ...'
	@$(INSTALL) -e '.[all,docs]'
	@touch $@
