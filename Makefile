# Every target does all its own set-up in .venv inside this checkout.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OLDEST_PYTHON ?= python3.11
OLDEST := .venv-oldest
NIGHTLY := .venv-nightly
# files in this folder do not stand in for packages
export PYTHONSAFEPATH := 1
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -q

.PHONY: demo test test-all test-portable test-oldest test-nightly mutants coverage format lint picture docs build clean

$(VENV)/.demo: pyproject.toml
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "mercerless needs Python 3.11 or newer"'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[cli,strings]"
	touch $@

$(VENV)/.test: pyproject.toml $(VENV)/.demo
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test]"
	touch $@

demo: $(VENV)/.demo
	$(BIN)/mercerless compare --output mercerless-report.html

# What a newcomer waits for: everything but the tests marked slow.
test: $(VENV)/.test
	$(PYTEST) -m "not slow"

test-all: $(VENV)/.test
	MERCERLESS_FUZZ=400 $(PYTEST)

# Random changes of the source that the tests should notice: N of them, drawn by SEED.
N ?= 100
SEED ?= 0
mutants: $(VENV)/.test
	$(BIN)/python tests/mutants.py $(N) $(SEED)

# The numerical tests under other BLAS kernels, NumPy code paths and numbers of threads; RUNS="Haswell Nehalem" some.
test-portable: $(VENV)/.test
	$(BIN)/python tests/portable.py $(RUNS)

# The lowest version of everything that pyproject.toml allows, on the oldest Python.
$(OLDEST)/.test: pyproject.toml
	$(OLDEST_PYTHON) -m venv --clear $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(OLDEST)/bin/uv pip install --quiet --python $(OLDEST)/bin/python --resolution lowest-direct -e ".[test]"
	touch $@

test-oldest: $(OLDEST)/.test
	MERCERLESS_OLDEST=1 OMP_NUM_THREADS=1 $(OLDEST)/bin/python -m pytest -n 2 -q -m "not slow" -W default::DeprecationWarning

# Pre-releases of what the library rests on; a failure here is a warning of what the next release will break.
test-nightly:
	$(PYTHON) -m venv --clear $(NIGHTLY)
	$(NIGHTLY)/bin/python -m pip install --quiet --disable-pip-version-check -e ".[test]"
	$(NIGHTLY)/bin/python -m pip install --quiet --disable-pip-version-check --pre --upgrade \
		numpy scipy scikit-learn pandas
	OMP_NUM_THREADS=1 $(NIGHTLY)/bin/python -m pytest -n 2 -q -m "not slow"

# Lines and branches that the tests not marked slow run; what is missed is listed in htmlcov.
coverage: $(VENV)/.test
	$(PYTEST) -m "not slow" --cov --cov-report=term:skip-covered --cov-report=html --cov-report=xml

# Tracked files only: what users keep in this folder is their own.
PYTHON_FILES := git ls-files -z '*.py' '*.pyi' | xargs -0

format: $(VENV)/.test
	$(PYTHON_FILES) $(BIN)/ruff check --fix --force-exclude
	$(PYTHON_FILES) $(BIN)/ruff format --force-exclude

lint: $(VENV)/.test
	$(PYTHON_FILES) $(BIN)/ruff check --force-exclude
	$(PYTHON_FILES) $(BIN)/ruff format --check --force-exclude
	git ls-files -z | xargs -0 $(BIN)/codespell
	$(BIN)/python tools/mass.py
	$(BIN)/mypy

# The report that the first pages link to.
docs/_extra/sample-report.html: $(VENV)/.demo
	mkdir -p docs/_extra
	$(BIN)/mercerless compare --budget 90s --output $@

# The picture of the first page; look at it before you commit it.
picture: docs/_extra/sample-report.html
	$(BIN)/python docs/images/make.py report

docs: $(VENV)/.test docs/_extra/sample-report.html
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	rm -rf docs/generated  # pages of removed names
	$(BIN)/python -m sphinx -W -b html docs docs/_build/html

# Wheel and sdist, and the tests of the sdist on the installed wheel in an environment of its own.
build: $(VENV)/.test
	rm -rf dist .venv-wheel
	$(BIN)/python -m pip install --quiet --disable-pip-version-check build
	$(BIN)/python -m build --outdir dist
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet --disable-pip-version-check "$$(ls dist/*.whl)[test]"
	mkdir dist/tested && tar -xzf dist/*.tar.gz -C dist/tested --strip-components 1 && rm -r dist/tested/src
	cd dist/tested && OMP_NUM_THREADS=1 ../../.venv-wheel/bin/python -m pytest -n 2 -q -m "not slow" tests
	rm -r dist/tested

clean:
	rm -rf $(VENV) $(OLDEST) $(NIGHTLY) .venv-wheel dist htmlcov docs/_build docs/_extra docs/gallery
