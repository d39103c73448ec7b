# Everything runs in .venv, which is created from the hashed locks in requirements/ when a target needs it.
# You need: make, Python 3.11 or later, and a package registry that pip can reach.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check --no-input

# The locks of the program, and of the tools of its developers.
RUN_LOCK := requirements/run.txt
DEV_LOCK := requirements/dev.txt

# The first of these that is new enough; PYTHON=... selects another.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$python; break; fi; done)

# No notices about pip's own version.
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Compiled modules are kept: tests start many interpreters, which would compile the package each time.
unexport PYTHONDONTWRITEBYTECODE

DURATION ?=
SEEDS ?=
FIRST ?=
ARGS ?=
TARGET ?= own

.DEFAULT_GOAL := help
.PHONY: help demo test test-server test-newest test-lowest test-versions e2e e2e-versions e2e-oldest-newest upgrade-check compare record-oracle soak simulate lint format types layers docs bench bench-peers bench-real bench-controllers generate lock release-check clean

help: ## Show this help
	@sed -nE 's/^([a-z0-9-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24
	@echo
	@echo '  make test ARGS="tests/unit/cache -x" runs those tests only, with all values: ARGS is passed to pytest.'
	@echo '  DURATION=8 ends the demo after 8 seconds; PYTHON=python3.13 creates .venv with it.'
	@echo '  With AIOINFORMER_TEST_CLUSTER, tests also use a real API server (docs/contributing.md).'

demo: $(VENV)/.package ## Run a changing cluster and show an informer's view of it (DURATION=8)
	@$(BIN)/aioinformer demo $(if $(DURATION),--duration $(DURATION))

# tests/conftest.py has the number of workers; one that has finished takes tests from the others.
PYTEST := $(BIN)/python -m pytest --numprocesses=auto --dist=worksteal

# What these tests cover depends on little but aioinformer/testing and aioinformer/cel.
SERVER_TESTS := $(addprefix tests/,real/contract real/kubectl unit/testing)

test: $(VENV)/.package $(VENV)/.dev ## Run all tests but those of test-server, each with up to 3 of its values
	@command -v chromium >/dev/null || echo "chromium is missing, so the debug page is not tested in a browser; Debian's package chromium has it."
	@$(PYTEST) $(or $(ARGS),--values=3 $(addprefix --ignore=,$(SERVER_TESTS)))

test-server: $(VENV)/.package $(VENV)/.dev ## Run the tests of the server for tests, with all values
	@$(PYTEST) $(SERVER_TESTS) $(ARGS)

# Not in these runs: what needs a real API server, what is about the server for tests, and what depends on the checkout or
# on other programs only.
OTHER_VERSIONS := --values=1 $(addprefix --ignore=tests/,real project unit/testing \
	$(addprefix system/,budget examples faults oracle simulation soak cli/test_alerts.py \
	controller/test_debug_page_in_a_browser.py ring/test_two_versions.py))

test-newest: $(VENV)/.run ## Run a part of the tests with the newest Python of this machine, in .venv-newest
	@python=$${NEWEST:-$$($(BIN)/python scripts/newest_python.py)}; test -n "$$python" || exit 0; \
	test .venv-newest/bin/python -ef "$$python" || rm -rf .venv-newest; \
	$(MAKE) --no-print-directory test-versions VENV=.venv-newest PYTHON="$$python"

test-lowest: ## Run a part of the tests with the lowest version of each dependency, in .venv-lowest
	@$(MAKE) --no-print-directory test-versions VENV=.venv-lowest RUN_LOCK=requirements/lowest.txt DEV_LOCK=requirements/lowest.txt

test-versions: $(VENV)/.package $(VENV)/.dev
	@$(PYTEST) $(or $(ARGS),$(OTHER_VERSIONS))

e2e: $(VENV)/.package $(VENV)/.dev ## Run only the end-to-end tests, which need a real API server
	@test -n "$$AIOINFORMER_TEST_CLUSTER" || { echo 'Set AIOINFORMER_TEST_CLUSTER to the folder of a test cluster (see docs/contributing.md)'; exit 2; }
	@$(BIN)/python -m pytest tests/real/e2e $(ARGS)

# Versions of Kubernetes for the end-to-end tests, from the oldest to the newest; "default" is the one that `make test` uses.
KUBERNETES_VERSIONS ?= 1.34.4 1.35.4 default 1.37.2

e2e-versions: $(VENV)/.package $(VENV)/.dev ## Run the end-to-end tests with each of KUBERNETES_VERSIONS
	@$(BIN)/python scripts/e2e_versions.py $(KUBERNETES_VERSIONS) -- tests/real/e2e $(ARGS)

# Informers, applies, elections, definitions and webhooks: what depends most on the version, and takes minutes only.
E2E_CORE := $(addprefix tests/real/,$(addprefix e2e/test_,informer.py election.py definitions.py conversion.py \
	random_applies.py) $(addprefix rows/test_,client.py sets.py webhooks.py))

e2e-oldest-newest: $(VENV)/.package $(VENV)/.dev ## Run a part of the end-to-end tests with the oldest and the newest version
	@$(BIN)/python scripts/e2e_versions.py --go-on-without-build \
		$(sort $(firstword $(KUBERNETES_VERSIONS)) $(lastword $(KUBERNETES_VERSIONS))) -- -n2 --dist=worksteal --values=8 $(E2E_CORE) -k 'not ours' $(ARGS)

upgrade-check: $(VENV)/.package $(VENV)/.dev ## Replace replicas of an earlier version by this one and back, on a real API server
	@test -n "$$AIOINFORMER_TEST_CLUSTER" || { echo 'Set AIOINFORMER_TEST_CLUSTER to the folder of a test cluster (see docs/contributing.md)'; exit 2; }
	@$(BIN)/python -m tests.real.e2e.upgrade $(ARGS)

compare: $(VENV)/.package $(VENV)/.dev ## Compare the server for tests with the cluster of KUBECONFIG (ARGS="FOLDER" of manifests)
	@$(BIN)/python -m tests.real.contract.compare $(ARGS)

record-oracle: $(VENV)/.package $(VENV)/.dev ## Record client-go with the scripted servers again (needs go; ARGS="gone" for one group)
	@$(BIN)/python -m tests.system.oracle.record $(ARGS)

simulate: $(VENV)/.package $(VENV)/.dev ## Simulate informers in virtual time, with every fault (SEEDS=10000 FIRST=1)
	@$(BIN)/python -m tests.system.simulation $(if $(SEEDS),--seeds $(SEEDS)) $(if $(FIRST),--first $(FIRST)) $(ARGS)

soak: $(VENV)/.package $(VENV)/.dev ## Churn and inject faults for DURATION=1h, and measure growth (TARGET=real: a real API server)
	@$(BIN)/python -m tests.system.soak --target $(TARGET) --duration $(or $(DURATION),1h) --output benchmarks/results/soak-$(TARGET).json

lint: $(VENV)/.dev ## Check style and formatting
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: $(VENV)/.dev ## Fix what lint can fix by itself
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

types: $(VENV)/.package $(VENV)/.dev ## Check types with mypy --strict, tests and examples included
	@$(BIN)/mypy

layers: $(VENV)/.package $(VENV)/.dev ## Check that imports between rooms go downward only
	@$(BIN)/lint-imports

docs: $(VENV)/.package $(VENV)/.dev ## Build the documentation into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo 'Open site/index.html.'

bench: $(VENV)/.package $(VENV)/.dev ## Run the benchmarks and write docs/benchmarks.md
	@failed=; for question in $$(grep -l '^QUESTION' benchmarks/*.py); do \
		$(BIN)/python $$question $(ARGS) || failed="$$failed $$question"; done; \
	$(BIN)/python benchmarks/report.py; test -z "$$failed" || { echo "Failed:$$failed"; exit 1; }

bench-peers: $(VENV)/.package $(VENV)/.dev ## Run the benchmarks of client-go (needs go), kube-rs (cargo) and Python libraries
	@failed=; for question in benchmarks/beside_others.py benchmarks/protobuf.py benchmarks/lone_events.py; do \
		$(BIN)/python $$question $(ARGS) || failed="$$failed $$question"; done; \
	$(BIN)/python benchmarks/report.py; test -z "$$failed" || { echo "Failed:$$failed"; exit 1; }

bench-real: $(VENV)/.package $(VENV)/.dev ## Run benchmarks against AIOINFORMER_TEST_CLUSTER or KUBECONFIG, beside client-go (needs go)
	@$(BIN)/python benchmarks/real_server.py $(ARGS)
	@$(BIN)/python benchmarks/report.py

bench-controllers: $(VENV)/.package $(VENV)/.dev ## Run the benchmarks of controllers beside controller-runtime (needs go) and kopf
	@$(BIN)/python benchmarks/controllers.py $(ARGS)
	@$(BIN)/python benchmarks/unchanged_runs.py $(ARGS)
	@$(BIN)/python benchmarks/controllers_real.py $(ARGS)
	@$(BIN)/python benchmarks/report.py

generate: $(VENV)/.package $(VENV)/.dev ## Write generated code and generated pages of the documentation again
	@$(BIN)/python scripts/generate.py
	@$(BIN)/python scripts/conformance.py
	@$(BIN)/python scripts/behaviours.py
	@$(BIN)/python scripts/contract.py
	@$(BIN)/python scripts/kubectl_page.py
	@$(BIN)/python scripts/programs.py
	@$(BIN)/python scripts/dependencies.py

# Its tools have an environment of their own: what they need could change the versions that tests use.
release-check: $(VENV)/.package $(VENV)/.dev ## Build the files of a release into dist/, and check them (TAG=v0.2.0)
	@$(MAKE) --no-print-directory .venv-release/.run VENV=.venv-release RUN_LOCK=requirements/release.txt
	@$(BIN)/python scripts/release_check.py --tools .venv-release/bin $(if $(TAG),--tag $(TAG))

UV ?= uv
LOCKED := --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
	--no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock'
LOCK := $(UV) pip compile pyproject.toml $(LOCKED) --extra cli

lock: ## Update the locks in requirements/ (needs uv)
	@$(LOCK) --upgrade --group build --output-file requirements/run.txt
	@$(LOCK) --upgrade --group dev --extra compression --constraints requirements/run.txt --output-file requirements/dev.txt
	@$(LOCK) --upgrade --resolution lowest-direct --extra compression --group test --group build --output-file requirements/lowest.txt
	@$(UV) pip compile --group release --upgrade $(LOCKED) --output-file requirements/release.txt
	@$(UV) pip compile benchmarks/peers/requirements.in --upgrade $(LOCKED) --output-file benchmarks/peers/requirements.txt

clean: ## Remove everything that make has created
	@rm -rf $(VENV) .venv-newest .venv-lowest .venv-release build dist site .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find aioinformer tests examples scripts benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# Three stamps: the dependencies of the program, the package itself, and the tools of its developers.
# A changed lock of the program creates a new environment, so that nothing of the old one remains.

$(VENV)/.run: $(RUN_LOCK)
	@test -n '$(PYTHON)' || { echo 'Python 3.11 or later was not found: set make PYTHON=/path/to/python3'; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo '$(PYTHON) is not Python 3.11 or later: set make PYTHON=/path/to/python3'; exit 2; }
	@echo 'Creating $(VENV) with $(PYTHON) from $(RUN_LOCK) ...'
	@$(PYTHON) -m venv --clear $(VENV)
	@$(PIP) install --require-hashes --requirement $(RUN_LOCK)
	@touch $@

$(VENV)/.package: pyproject.toml $(VENV)/.run
	@$(PIP) install --no-index --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: $(DEV_LOCK) $(VENV)/.run
	@echo 'Installing $(DEV_LOCK) into $(VENV) ...'
	@$(PIP) install --require-hashes --requirement $(DEV_LOCK)
	@touch $@
