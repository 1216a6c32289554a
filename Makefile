# Every target sets up what it needs. The environment lives in .venv; that of a Python
# that is named, as in make test PYTHON=python3.13, in .venv-python3.13.
VENV := .venv$(if $(findstring command,$(origin PYTHON)),-$(notdir $(PYTHON)))
BIN := $(VENV)/bin
PYTHONS := python3.13 python3.12 python3.11 python3 python
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: pictures demo test quick test-long check testbed soak bench results race mutate accept manifests sbom docs site lock clean

demo: $(VENV)/.run
	@$(BIN)/ringleaf demo

test: $(VENV)/.dev
	@$(BIN)/python -m tests.suite test

quick: $(VENV)/.dev
	@$(BIN)/ruff check --quiet .
	@$(BIN)/python -m tests.suite quick

test-long: $(VENV)/.dev
	@$(BIN)/python -m tests.suite long

check: $(VENV)/.dev
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/mypy tests benchmarks
	@$(BIN)/lint-imports
	@$(BIN)/cog --check README.md docs/*.md docs/policies/*.md
	@$(BIN)/python -m tests.docs.seeds
	@$(BIN)/python -m tests.docs.codeblocks
	@$(BIN)/python -m tests.docs.site

testbed: $(VENV)/.run
	@$(BIN)/python -m ringleaf_testbed.build

soak: $(VENV)/.dev testbed
	@$(BIN)/python -m tests.soak.run --tenant --out build/soak
	@$(BIN)/python -m tests.soak.run --tenant --replicas 2 --kills 40 --restarts 2 --pods 4000 --waves 4 --out build/soak-leaders

bench: $(VENV)/.dev testbed
	@$(BIN)/python benchmarks/decide.py
	@$(BIN)/python benchmarks/gangs.py
	@$(BIN)/python benchmarks/cycle.py
	@$(BIN)/python benchmarks/evict.py
	@$(BIN)/python -m benchmarks.rearrange
	@$(BIN)/python benchmarks/simulate.py
	@$(BIN)/python benchmarks/metrics.py
	@$(BIN)/python benchmarks/optimum.py
	@$(BIN)/python -m benchmarks.memory
	@$(BIN)/python -m benchmarks.latency
	@$(BIN)/python -m benchmarks.race --only ringleaf --case start-100000

results: $(VENV)/.dev
	@$(BIN)/python -m benchmarks.results
	@$(BIN)/cog -r docs/results.md

pictures: $(VENV)/.dev
	@$(BIN)/python -m benchmarks.pictures

race: $(VENV)/.dev testbed
	@$(BIN)/python -m benchmarks.race

mutate: $(VENV)/.dev
	@$(BIN)/python -m tests.mutate

accept: $(VENV)/.dev
	@$(BIN)/python -m tests.scenarios.accept

manifests: $(VENV)/.dev testbed
	@$(BIN)/python -m tests.deploy.manifests

sbom: $(VENV)/.run
	@$(BIN)/python deploy/sbom.py build/sbom.cdx.json

docs: $(VENV)/.dev
	@$(BIN)/cog -r README.md docs/*.md docs/policies/*.md

site: $(VENV)/.dev
	@$(BIN)/python -m tests.docs.site

lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-annotate --no-header -o requirements/run.lock pyproject.toml requirements/build.in
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-annotate --no-header -c requirements/run.lock -o requirements/dev.lock \
		--group dev pyproject.toml requirements/build.in

clean:
	rm -rf .venv .venv-* build/demo build/docs build/tests .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

# The shims of pyenv are slow: the Python that is active is taken from its folder, and one
# that is named (PYTHON=python3.13) even if it is not active. Shims come last.
$(BIN)/python:
	@echo "looking for Python 3.11 or later ..."
	@pyenv="$${PYENV_ROOT:-$$HOME/.pyenv}"; \
	active=$(if $(PYTHON),'*',"$${PYENV_VERSION:-$$(cat .python-version "$$pyenv/version" 2>/dev/null | head -1)}"); \
	found=; for name in $(or $(PYTHON),$(PYTHONS)) $(or $(PYTHON),$(PYTHONS)); do \
		path=$$(command -v "$$name"); \
		case "$$tried$$path" in ""|/*/shims/*) \
			path=$$(ls -d "$$pyenv"/versions/$$active/bin/"$${name##*/}" 2>/dev/null | tail -1) ;; \
		esac; \
		test "$$name" = "$(lastword $(or $(PYTHON),$(PYTHONS)))" && tried=1; \
		test -n "$$path" \
			&& "$$path" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
			&& { found=$$path; break; }; \
	done; \
	test -n "$$found" \
		|| { echo "make: $(if $(PYTHON),$(PYTHON) is not,found no) Python 3.11 or later; hint: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 2; }; \
	echo "setting up $(VENV) with $$("$$found" --version) ..."; \
	"$$found" -m venv $(VENV)

$(VENV)/.run: requirements/run.lock pyproject.toml | $(BIN)/python
	@echo "installing what ringleaf needs ..."
	@$(PIP) --no-compile --require-hashes -r requirements/run.lock
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: requirements/dev.lock $(VENV)/.run | $(BIN)/python
	@echo "installing what the tests and the site need ..."
	@$(PIP) --require-hashes -r requirements/dev.lock
	@touch $@
