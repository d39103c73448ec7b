# Everything runs in .venv, which is made from the hashed locks in requirements/ when something needs it.
# Presumed: make, Python 3.11 or later, and a package registry that pip can reach.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check --no-input

# The first of these that is new enough; PYTHON=... names another.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$python; break; fi; done)

# pip's own notices about its age, and a cache in a home that may not be writable, are not our output.
export PIP_DISABLE_PIP_VERSION_CHECK := 1

DURATION ?=
SEEDS ?=
FIRST ?=
ARGS ?=
TARGET ?= own

.DEFAULT_GOAL := help
.PHONY: help demo test e2e record-oracle soak simulate lint format types layers docs bench bench-peers generate lock clean

help: ## Say what can be made
	@sed -nE 's/^([a-z0-9-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20
	@echo
	@echo '  DURATION=8 ends the demo after 8 seconds; ARGS="-k lister" goes to pytest; PYTHON=python3.13 makes .venv with it.'

demo: $(VENV)/.package ## A living cluster and an informer's view of it (DURATION=8 ends it after 8 s)
	@$(BIN)/aioinformer demo $(if $(DURATION),--duration $(DURATION))

test: $(VENV)/.package $(VENV)/.dev ## The tests; those on a real API server where AIOINFORMER_TEST_CLUSTER names one
	@$(BIN)/python -m pytest $(ARGS)

e2e: $(VENV)/.package $(VENV)/.dev ## Only the tests on a real API server
	@test -n "$$AIOINFORMER_TEST_CLUSTER" || { echo 'AIOINFORMER_TEST_CLUSTER must name the folder of a test cluster (see docs/testing.md)'; exit 2; }
	@$(BIN)/python -m pytest tests/e2e $(ARGS)

record-oracle: $(VENV)/.package $(VENV)/.dev ## Play the scripted servers to client-go anew (needs go; ARGS="gone" for one group)
	@$(BIN)/python -m tests.oracle.record $(ARGS)

simulate: $(VENV)/.package $(VENV)/.dev ## Informers on virtual time, against every fault (SEEDS=10000 FIRST=1)
	@$(BIN)/python -m tests.simulation $(if $(SEEDS),--seeds $(SEEDS)) $(if $(FIRST),--first $(FIRST)) $(ARGS)

soak: $(VENV)/.package $(VENV)/.dev ## Churn and faults for DURATION=1h, and what grows; TARGET=real for a real API server
	@$(BIN)/python -m tests.soak --target $(TARGET) --duration $(or $(DURATION),1h) --output benchmarks/results/soak-$(TARGET).json

lint: $(VENV)/.dev ## Style, and the layout of every file
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: $(VENV)/.dev ## Mend what lint can mend by itself
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

types: $(VENV)/.package $(VENV)/.dev ## mypy --strict, the tests and examples included
	@$(BIN)/mypy

layers: $(VENV)/.package $(VENV)/.dev ## Imports go downward only, and the core knows neither clock nor socket
	@$(BIN)/lint-imports

docs: $(VENV)/.package $(VENV)/.dev ## The documentation, into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo 'Open site/index.html.'

bench: $(VENV)/.package $(VENV)/.dev ## Every question in benchmarks/, and docs/benchmarks.md from the answers
	@failed=; for question in $$(grep -l '^QUESTION' benchmarks/*.py); do \
		$(BIN)/python $$question $(ARGS) || failed="$$failed $$question"; done; \
	$(BIN)/python benchmarks/report.py; test -z "$$failed" || { echo "Failed:$$failed"; exit 1; }

bench-peers: $(VENV)/.package $(VENV)/.dev ## The same of others: client-go (needs go), kube-rs (cargo), Python libraries
	@failed=; for question in benchmarks/beside_others*.py benchmarks/protobuf.py; do \
		$(BIN)/python $$question $(ARGS) || failed="$$failed $$question"; done; \
	$(BIN)/python benchmarks/report.py; test -z "$$failed" || { echo "Failed:$$failed"; exit 1; }

generate: $(VENV)/.package $(VENV)/.dev ## Write anew what is made from other files: code, and the pages of behaviours and contracts
	@$(BIN)/python scripts/generate.py
	@$(BIN)/python scripts/conformance.py
	@$(BIN)/python scripts/contract.py
	@$(BIN)/python scripts/kubectl_page.py

UV ?= uv
LOCKED := --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
	--no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock'
LOCK := $(UV) pip compile pyproject.toml $(LOCKED) --extra cli

lock: ## Bring requirements/ up to date (needs uv; nothing else does)
	@$(LOCK) --upgrade --group build --output-file requirements/run.txt
	@$(LOCK) --upgrade --group dev --extra compression --constraints requirements/run.txt --output-file requirements/dev.txt
	@$(UV) pip compile benchmarks/peers/requirements.in --upgrade $(LOCKED) --output-file benchmarks/peers/requirements.txt

clean: ## Remove everything that was made here
	@rm -rf $(VENV) build dist site .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find aioinformer tests examples scripts benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# Three stamps: what the program needs, the package itself, and what its developers need on top.
# A changed lock makes a new environment, so that nothing of an old one is left in it.

$(VENV)/.run: requirements/run.txt
	@test -n '$(PYTHON)' || { echo 'Python 3.11 or later was not found; name one: make PYTHON=/path/to/python3'; exit 2; }
	@echo 'Making $(VENV) with $(PYTHON) from requirements/run.txt ...'
	@$(PYTHON) -m venv --clear $(VENV)
	@$(PIP) install --require-hashes --requirement requirements/run.txt
	@touch $@

$(VENV)/.package: pyproject.toml $(VENV)/.run
	@$(PIP) install --no-index --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.run
	@echo 'Adding the tools of requirements/dev.txt to $(VENV) ...'
	@$(PIP) install --require-hashes --requirement requirements/dev.txt
	@touch $@
