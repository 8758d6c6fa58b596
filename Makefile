# Each Python gets one environment of its own, made and brought up to date when a target needs it:
#     make test                       the first of python3.13, 3.12, 3.11, 3.14, python3, python that is new enough
#     make test PYTHON=python3.11     that one
#     make test UV=                   with venv and pip although uv (>= 0.7) is there
.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: demo demo-lowest kernels wheel test test-rest test-all approve check docs walk bench reproduce python clean help

UV ?= $(shell command -v uv 2>/dev/null)
UV := $(UV)

# Prints "3.13 3.13.5" for a usable interpreter and fails for any other, a pyenv shim without a version included.
version_of = $(1) -I -c 'import sys; v = sys.version_info; v < (3, 11) and sys.exit(1); print("%d.%d %d.%d.%d" % (v[:2] + v[:3]))' 2>/dev/null

ifndef PYTHON
PYTHON := $(shell for p in python3.13 python3.12 python3.11 python3.14 python3 python; do \
	$(call version_of,$$p) >/dev/null && { echo $$p; break; }; done)
endif
ifneq ($(strip $(PYTHON)),)
VERSION := $(shell $(call version_of,$(PYTHON)))
else ifneq ($(UV),)
# No Python at all: uv fetches one.
PYTHON := 3.13
VERSION := 3.13
endif

# By its patch release too: Debian's 3.11.2 and pyenv's 3.11.7 may need different versions of the same package.
VENV := .venv/$(lastword $(VERSION))
PY := $(VENV)/bin/python
CONSTRAINTS := $(wildcard constraints/python$(firstword $(VERSION)).txt)
CONSTRAIN := $(addprefix -c ,$(CONSTRAINTS))

# What the caller has set for other projects must not change what happens here.
unexport $(filter PYTHON% NUMBA_% PYTEST_% MYPY%,$(.VARIABLES)) VIRTUAL_ENV
# Not __pycache__: a cache then belongs to this checkout and goes with `make clean`.
export NUMBA_CACHE_DIR := $(CURDIR)/$(VENV)/numba-cache
demo test test-rest test-all approve check bench reproduce: export MPLBACKEND := Agg
# Two workers share two cores, hence no threads within one.
test test-rest test-all: export OPENBLAS_NUM_THREADS := 1
test test-rest test-all: export OMP_NUM_THREADS := 1
docs: export MPLBACKEND := module://matplotlib_inline.backend_inline

demo: $(VENV)/demo.stamp  ## the main job on a small posterior
	$(PY) examples/demo.py

demo-lowest: $(or $(UV),.venv/uv/bin/uv)  ## the same with the lowest versions that pyproject.toml allows
	$(MAKE) demo UV=$< VENV=$(VENV)-lowest CONSTRAIN='--upgrade --resolution lowest-direct'

TEST = $(PY) -m pytest tests -n auto --dist loadgroup --durations 15
# Each night, a test that is not marked slow fails if it takes ten times the two seconds that it may take: some machines
# are slow, and the first test that needs a package has to compile it.
LIMIT := $(if $(CI),--cpu-limit 20)

test: kernels  ## every behaviour once, in about four minutes
	$(TEST) -m 'not slow'

test-rest: kernels  ## slow tests, and those that meet ArviZ, PyMC, pandas and xarray: for a second Python
	$(TEST) -m '(slow or upstream) and not nightly'

test-all: kernels  ## all tests, with random examples, benchmarks and cold caches, in about ten minutes
	$(TEST) --hypothesis-profile random $(LIMIT)

kernels: $(VENV)/test.stamp  # which each worker of a test needs, and the targets after it
	$(VENV)/bin/posterior-consensus compile

wheel: $(VENV)/test.stamp  ## a wheel of this Python and platform with compiled kernels, in dist/
	$(PY) packaging/kernels.py
	$(if $(UV),$(UV) build --quiet --wheel --out-dir dist,$(PY) -m pip wheel --quiet --no-deps --wheel-dir dist .)
	rm -rf posterior_consensus/kernels/compiled

approve: $(VENV)/test.stamp  ## write the sentences in tests/approved/ anew: read the diff
	$(PY) -m pytest tests --approve -q

check: $(VENV)/dev.stamp  ## style, types, layers and doctests
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports
	$(PY) -m pytest --doctest-modules posterior_consensus

docs: $(VENV)/dev.stamp  ## the documentation, in docs/_build/html
	@# One process, which computes each posterior of the pictures once.
	$(PY) -m sphinx -W --keep-going -j 1 -b html docs docs/_build/html

walk: docs  ## the same, and all its pages in Chromium: wide and narrow, light and dark
	$(PY) docs/walk.py

bench: $(VENV)/test.stamp  ## every benchmark, but for the reproductions of papers
	@set -e; for f in $(basename $(notdir $(filter-out benchmarks/_%,$(wildcard benchmarks/*.py)))); do echo "== $$f"; $(PY) -m benchmarks $$f; done

reproduce: $(VENV)/test.stamp  ## tables and figures of the papers, in reproduction/ (half an hour)
	@set -e; for f in $(basename $(notdir $(filter-out benchmarks/reproductions/_%,$(wildcard benchmarks/reproductions/*.py)))); do echo "== $$f"; $(PY) -m benchmarks reproductions.$$f; done

python:  ## the Python that these targets take
	@echo $(PYTHON) $(VERSION)

clean:  ## remove environments, caches, the built documentation and figures
	rm -rf .venv docs/_build docs/api/generated .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis figures reproduction
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help:  ## this list
	@awk -F ':.*  ## ' '/^[a-z-]+:.*  ## / {printf "make %-12s %s\n", $$1, $$2}' Makefile

$(VENV)/demo.stamp: WHAT := -e '.[plots]'
$(VENV)/test.stamp: WHAT := -e '.[all]' --group test
$(VENV)/dev.stamp: WHAT := -e '.[all]' --group dev

$(PY):
	@test -n '$(VERSION)' || { echo "No Python >= 3.11 here ('$(PYTHON)' is none). Install one, or uv, or name one: make PYTHON=/path/to/python"; exit 1; }
	$(if $(UV),$(UV) venv --quiet --python $(PYTHON) $(VENV),$(PYTHON) -m venv --without-pip $(VENV))

.venv/uv/bin/uv:
	$(PYTHON) -m venv .venv/uv
	.venv/uv/bin/python -m pip install --quiet uv

$(VENV)/%.stamp: pyproject.toml $(CONSTRAINTS) | $(PY)
	@echo "Installing into $(VENV); the first time takes a minute or two"
ifneq ($(UV),)
	$(UV) pip install --quiet --python $(PY) $(CONSTRAIN) $(WHAT)
else
	@# Where Python is packaged without ensurepip, its own pip (>= 22.3) can fill the environment.
	$(PY) -m ensurepip >/dev/null 2>&1 || $(PYTHON) -m pip --python $(PY) install --quiet pip
	$(PY) -m pip install --quiet --upgrade 'pip>=25.1'  # the first that reads dependency groups
	@# Of thousands of files, those that are imported are compiled then.
	$(PY) -m pip install --quiet --no-compile $(CONSTRAIN) $(WHAT)
endif
	@touch $@
