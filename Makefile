# Everything a person or CI does here, each from a bare clone: what a target needs, it installs first.
#   make plan ENV=dev     what environments/dev.yaml is made of
#   make synth ENV=dev    its templates (no AWS credentials needed), then the plan
#   make test             every test
# Needs Python >= 3.11 and make; Node 24 comes as a wheel where the machine has no Node 22 or 24.
ENV ?= dev
NODES ?= 64
DEPTH ?= test
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3 python; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
PARALLELCLUSTER := .venv-parallelcluster
JUDGES := .venv-judges
EVALUATOR := tests/iam_evaluator
EMULATED := tests/emulated_account
GRAFANA := tests/grafana_schema
PROSE := tools/prose
BIN := $(VENV)/bin
# What targets need beyond the plan's packages: templates, and a part of what tests need.
SYNTH := $(VENV)/.run $(VENV)/.node
DEV := $(VENV)/.dev node_modules/.dev
export PATH := $(CURDIR)/$(BIN):$(CURDIR)/node_modules/.bin:$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Where somebody watches, pip shows its own progress. Python is compiled when it is used first: all of the CDK at
# once takes 14 CPU seconds and 190 MB.
unexport PYTHONDONTWRITEBYTECODE
PIP_INSTALL = -m pip $(if $(MAKE_TERMOUT),,--quiet) --no-input install --no-compile
PIP := $(BIN)/python $(PIP_INSTALL)
NPM_CI = npm ci --loglevel=error --no-audit --no-fund $(if $(MAKE_TERMOUT),,>/dev/null)
FILE := environments/$(ENV).yaml
CDK_LOWEST = $(shell sed -n 's/.*"aws-cdk-lib>=\([0-9.]*\),.*/\1/p' pyproject.toml)

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev synth app diff deploy preflight release-lock stacks wait destroy validate plan rehearse test twin iam-tables cdk-range quick quick-pythons test-python lint format bench facts lock wheel dist site audit generate clean
.DELETE_ON_ERROR:

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

setup: $(SYNTH) node_modules/.stamp ## what synth and deploy need (other targets call it)
setup-dev: $(DEV) $(VENV)/.docs $(PARALLELCLUSTER)/.stamp $(JUDGES)/.stamp $(EVALUATOR)/node_modules/.stamp $(EMULATED)/node_modules/.stamp $(GRAFANA)/node_modules/.stamp $(PROSE)/node_modules/.stamp ## what tests need (other targets call it)

$(VENV)/.created:
	@test -n "$(PYTHON)" || { echo "no Python >= 3.11 found: install one, or name it: make PYTHON=/path/to/python3"; exit 2; }
	@echo "creating a virtual environment in $(VENV) (about 25 MB) ..."
	@$(PYTHON) -m venv $(VENV) || { echo "$(PYTHON) cannot create virtual environments: install its venv module (Debian, Ubuntu: python3-venv)"; exit 2; }
	@touch $@

# The package itself, and what its commands import that need neither an account nor templates.
$(VENV)/.plan: requirements-plan.lock requirements-build.lock pyproject.toml | $(VENV)/.created
	@echo "installing Python packages for the plan (about 20 MB) ..."
	@$(PIP) --require-hashes -r requirements-plan.lock -r requirements-build.lock
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.run: requirements.lock $(VENV)/.plan
	@echo "installing the CDK and the AWS SDK for Python (about 310 MB) ..."
	@$(PIP) --require-hashes -r requirements.lock
	@touch $@

$(VENV)/.dev: requirements-dev.lock $(VENV)/.run
	@echo "installing Python packages of tests and linters (about 440 MB) ..."
	@$(PIP) --require-hashes -r requirements-dev.lock
	@touch $@

$(VENV)/.docs: requirements-docs.lock $(VENV)/.run
	@echo "installing Python packages of the documentation site (about 70 MB) ..."
	@$(PIP) --require-hashes -r requirements-docs.lock
	@touch $@

# ParallelCluster's schema and validators judge what we render, in an environment of their own: the package
# asks for the CDK v1 and cannot be installed beside ours. The lock names all that is needed, so no dependency
# is followed.
$(PARALLELCLUSTER)/.stamp: requirements-parallelcluster.lock | $(VENV)/.created
	@echo "installing ParallelCluster's validators (about 65 MB) ..."
	@$(BIN)/python -m venv --clear $(PARALLELCLUSTER)
	@$(PARALLELCLUSTER)/bin/python $(PIP_INSTALL) --no-deps --require-hashes -r $<
	@touch $@

# Checkov and an evaluator of CEL judge objects of Kubernetes, and bring a hundred packages.
$(JUDGES)/.stamp: requirements-judges.lock | $(VENV)/.created
	@echo "installing Checkov and a CEL evaluator (about 225 MB) ..."
	@$(BIN)/python -m venv --clear $(JUDGES)
	@$(JUDGES)/bin/python $(PIP_INSTALL) --require-hashes -r $<
	@touch $@

# A machine's own Node is used when it is one that jsii supports; otherwise the wheel's.
$(VENV)/.node: requirements-node.lock | $(VENV)/.created
	@case "$$(node --version 2>/dev/null)" in v22.*|v24.*) ;; *) \
	  echo "installing Node 24 from its wheel (about 210 MB) ..."; $(PIP) --require-hashes -r requirements-node.lock;; esac
	@touch $@

node_modules/.stamp: package.json package-lock.json $(VENV)/.node
	@echo "installing the CDK CLI (about 30 MB) ..."
	@$(NPM_CI) --omit=dev
	@touch $@

# npm empties the folder first, so this is never installed on top of the rule above, but instead of it.
node_modules/.dev: package.json package-lock.json $(VENV)/.node
	@echo "installing the CDK CLI, pyright and bats (about 75 MB) ..."
	@$(NPM_CI)
	@touch node_modules/.stamp $@

# An IAM evaluator of another project, for tests alone: AGPL-3.0, so it is run as a process and travels with nothing.
$(EVALUATOR)/node_modules/.stamp: $(EVALUATOR)/package.json $(EVALUATOR)/package-lock.json $(VENV)/.node
	@echo "installing the IAM evaluator (about 20 MB) ..."
	@$(NPM_CI) --prefix $(EVALUATOR)
	@touch $@

# Clients that Lambda's Node has, for functions of custom resources that run against the emulated account.
$(EMULATED)/node_modules/.stamp: $(EMULATED)/package.json $(EMULATED)/package-lock.json $(VENV)/.node
	@echo "installing clients of AWS's SDK for JavaScript (about 45 MB) ..."
	@$(NPM_CI) --prefix $(EMULATED)
	@touch $@

# Grafana's types of boards, of each version that Amazon Managed Grafana offers; no Grafana itself.
$(GRAFANA)/node_modules/.stamp: $(GRAFANA)/package.json $(GRAFANA)/package-lock.json $(VENV)/.node
	@echo "installing Grafana's types (about 30 MB) ..."
	@$(NPM_CI) --prefix $(GRAFANA)
	@touch $@

# The prose linter; it reads tools/prose/words.yml.
$(PROSE)/node_modules/.stamp: $(PROSE)/package.json $(PROSE)/package-lock.json $(VENV)/.node
	@echo "installing the prose linter (about 60 MB) ..."
	@$(NPM_CI) --prefix $(PROSE)
	@touch $@

validate: $(VENV)/.plan ## check the environment file only (under a second)
	@ultracluster validate $(FILE)

plan: $(VENV)/.plan ## what the environment is made of
	@ultracluster plan $(FILE)

synth: $(SYNTH) ## templates into cdk.out, then the plan
	@ultracluster synth $(ENV)

app: $(SYNTH) # what cdk.json runs, so that a plain `npx cdk ...` sets itself up, too
	@python app.py

diff: $(SYNTH) ## what a deploy would change
	@ultracluster validate --quiet $(FILE)
	@ultracluster diff $(ENV) --deployed $(DIFF_FLAGS) || test $$? -eq 1

# Stops at the first part that fails; each is a target of its own. What restarts or is replaced does not stop it, lost
# data does: make deploy ENV=prod DIFF_FLAGS="--accept prod-storage/<logical id>"
# Without a terminal nobody can be asked: YES=1 deploys without a question, in the file's account or ACCOUNT=.
deploy: setup ## create or update the environment: preflight, release-lock, diff, stacks, wait
	@ultracluster deploy $(ENV) $(if $(YES),--yes) $(if $(ACCOUNT),--account $(ACCOUNT)) $(DIFF_FLAGS) $(WAIT_FLAGS)

preflight: setup ## can it be had, in this account, now? Offers `cdk bootstrap` (PREFLIGHT_FLAGS=...)
	@ultracluster preflight $(FILE) --bootstrap $(PREFLIGHT_FLAGS)

release-lock: $(VENV)/.run ## complete environments/ENV.lock, to be committed: what its nodes may need beyond their image
	@ultracluster software lock --for $(ENV)

stacks: setup ## deploy the stacks, up to eight at once, without looking at anything else (YES=1: no question)
	@ultracluster deploy $(ENV) --stacks-only $(if $(YES),--yes) $(if $(ACCOUNT),--account $(ACCOUNT))

wait: $(VENV)/.run ## until every node is ready, then a collective over two of them (WAIT_FLAGS=--no-smoke)
	@ultracluster wait $(FILE) $(WAIT_FLAGS)

destroy: setup ## delete the environment's stacks (what holds data is retained; YES=1: no question)
	@ultracluster destroy $(ENV) $(if $(YES),--yes) $(if $(ACCOUNT),--account $(ACCOUNT))

rehearse: $(VENV)/.plan ## run each group's first boot in a folder (ALL=1: what init drafts for every type)
	@PYTHONPATH=tests/support python -m first_boot $(if $(ALL),--all,$(ENV))

test: setup-dev ## every test (DEPTH=deep: all pairs, scale, many random examples and newer Pythons, too)
	@mkdir -p build
	@pytest -n $(if $(filter deep,$(DEPTH)),3,4) --depth=$(DEPTH) $(if $(ARGS)$(filter deep,$(DEPTH)),,--cpu-times=build/suite-files.csv) $(ARGS)
	@$(if $(ARGS),,$(if $(filter deep,$(DEPTH)),$(MAKE) --no-print-directory quick-pythons test-python))

twin: $(VENV)/.dev ## a real Slurm with NODES=64 on this machine: a gang, two lost GPUs, what follows (above 128: the scheduler's speed)
	@PYTHONPATH=tests/support python -m slurm_twin $(NODES)

iam-tables: $(VENV)/.dev $(VENV)/.node $(EVALUATOR)/node_modules/.stamp ## who may do what in ENV (a name or a file), and what not, as Markdown: asked of the IAM evaluator (ALL=1: of all)
	@PYTHONPATH=tests/support python -m iam_proof $(if $(ALL),,$(ENV))

cdk-range: $(VENV)/.dev $(VENV)/.node ## look-ups in the CDK's own trees, at the lowest and the newest release that is allowed
	@rm -rf build/cdk
	@$(PIP) --no-deps --target build/cdk/lowest "aws-cdk-lib==$(CDK_LOWEST).*"
	@$(PIP) --no-deps --target build/cdk/newest "aws-cdk-lib>=$(CDK_LOWEST),<3"
	@for site in lowest newest; do ls -d build/cdk/$$site/*.dist-info; \
	  PYTHONPATH=$(CURDIR)/build/cdk/$$site pytest -q -n 0 tests/security/test_cdk_tree.py || exit 1; done

quick: $(DEV) ## after each edit: ruff, and the tests that need no CDK, process or socket, those of what changed first
	@start=$$(date +%s); ruff check --quiet . && ruff format --check --quiet . && pytest -n 2 --quick -q $(ARGS) && \
	  echo "make quick: $$(($$(date +%s) - start)) s"

quick-pythons: $(DEV) ## the same tests under the Pythons of Debian 13 and the next Debian (NEWEST=1: that alone; needs root, debootstrap)
	@PYTHONPATH=tests/support python -m pythons $(if $(NEWEST),--newest) $(ARGS)

test-python: $(DEV) ## make test, of what is committed, under the newest Python that Debian has, in a root of it (needs root, debootstrap)
	@PYTHONPATH=tests/support python -m pythons --whole $(ARGS)

lint: $(DEV) $(PROSE)/node_modules/.stamp ## style, types, layers, shell, words of added lines
	@ruff check . && ruff format --check .
	@python -m tools.prose
	@lint-imports --no-cache
	@pyright --warnings
	@shellcheck -x $$(git ls-files 'lifecycle_scripts/**.sh' .ci/run)
	@shfmt -d -i 2 -ci $$(git ls-files 'lifecycle_scripts/**.sh' .ci/run)

format: $(VENV)/.dev ## rewrite Python and shell in the house style
	@ruff check --fix --quiet . ; ruff format .
	@shfmt -w -i 2 -ci $$(git ls-files 'lifecycle_scripts/**.sh' .ci/run)

# The same commit gives the same bytes: times come from it, and the SBOM has neither a time nor a serial number.
wheel: $(VENV)/.plan ## the wheel, in dist/
	@rm -rf dist && mkdir dist
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) python -m hatchling build --target wheel --directory dist 2>&1

dist: wheel $(VENV)/.dev ## what a release is, in dist/: the wheel, its SBOM (CycloneDX) and their SHA-256 sums
	@python tools/sbom.py dist
	@cd dist && sha256sum -- * > SHA256SUMS && cat SHA256SUMS

# Every warning is an error; nothing in it is loaded from elsewhere, and it needs no server.
site: $(VENV)/.docs node_modules/.dev ## the documentation as a site, in site/: open site/index.html
	@python -m tools.docs_site

audit: $(VENV)/.dev $(VENV)/.node ## known weaknesses of what the locks name (asks public databases: needs the internet)
	@status=0; for lock in requirements*.lock; do echo "$$lock"; \
	  pip-audit --require-hashes --disable-pip --progress-spinner off --requirement $$lock $(AUDIT_FLAGS) || status=1; done; \
	  npm audit || status=1; npm audit --prefix $(EVALUATOR) || status=1; npm audit --prefix $(EMULATED) || status=1; npm audit --prefix $(GRAFANA) || status=1; npm audit --prefix $(PROSE) || status=1; exit $$status

generate: $(VENV)/.dev $(VENV)/.node ## JSON Schemas and reference pages from the code
	@ultracluster schema > constructs/ultracluster/config/environment.schema.json.new && mv constructs/ultracluster/config/environment.schema.json.new constructs/ultracluster/config/environment.schema.json
	@ultracluster schema release-lock > lifecycle_scripts/releases/lock.schema.json.new && mv lifecycle_scripts/releases/lock.schema.json.new lifecycle_scripts/releases/lock.schema.json
	@python tools/releases.py
	@python tools/metrics_keep.py
	@python tools/rule_examples.py
	@ultracluster rules --markdown > docs/rules.md.new && mv docs/rules.md.new docs/rules.md
	@python tools/permissions_from_calls.py
	@python tools/json_schemas.py
	@python tools/constructs_page.py > docs/constructs-reference.md.new && mv docs/constructs-reference.md.new docs/constructs-reference.md
	@python -m tools.boards
	@python tools/backends_page.py > docs/backends.md.new && mv docs/backends.md.new docs/backends.md
	@python -m tools.known_failures_page > docs/known-failures.md.new && mv docs/known-failures.md.new docs/known-failures.md
	@python -m tools.troubleshooting_page > docs/troubleshooting.md.new && mv docs/troubleshooting.md.new docs/troubleshooting.md
	@python -m tools.pictures docs/pictures
	@python tools/commands_page.py > docs/commands-reference.md.new && mv docs/commands-reference.md.new docs/commands-reference.md
	@python tools/environment_page.py > docs/environment-reference.md.new && mv docs/environment-reference.md.new docs/environment-reference.md
	@python tools/runbooks_page.py > docs/runbooks/README.md.new && mv docs/runbooks/README.md.new docs/runbooks/README.md
	@python tools/faults_page.py docs/health.md > docs/faults.md.new && mv docs/faults.md.new docs/faults.md

bench: $(DEV) ## the last `make test` by folder beside benchmarks/suite.csv; performance as ratios beside their budgets
	@python benchmarks/suite.py build/suite-files.csv
	@python benchmarks/run.py

UV_COMPILE = uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --custom-compile-command "make lock" $(LOCK_FLAGS)
# FRESH=1: with the newest releases of the three, which nothing else here uses
facts: $(VENV)/.dev ## what of the catalogue is new, gone, too old or about to end (FRESH=1, DOCS=folder, FACTS_FLAGS=--today ...)
	@PYTHONPATH=constructs:. $(if $(FRESH),uv run --quiet --isolated --no-project --with botocore --with cfn-lint --with moto --with pydantic --with ruamel.yaml )python tools/facts.py $(if $(DOCS),--docs $(DOCS)) $(FACTS_FLAGS)

lock: $(VENV)/.dev $(VENV)/.node ## renew the lock files (LOCK_FLAGS=--upgrade for newer versions)
	@$(UV_COMPILE) --group dev --extra cli --extra mirror --extra picture --extra workdir pyproject.toml -o requirements-dev.lock
	@$(UV_COMPILE) -c requirements-dev.lock --extra mirror pyproject.toml -o requirements.lock
	@$(UV_COMPILE) -c requirements-dev.lock --group plan -o requirements-plan.lock
	@$(UV_COMPILE) -c requirements-dev.lock --group build -o requirements-build.lock
	@$(UV_COMPILE) -c requirements-dev.lock --group docs -o requirements-docs.lock
	@$(UV_COMPILE) -c requirements-dev.lock --group quick -o requirements-quick.lock
	@$(UV_COMPILE) --no-annotate -c requirements-dev.lock --extra cli pyproject.toml -o constructs/ultracluster/project/template/dependencies.lock.txt
	@$(UV_COMPILE) --no-annotate -c requirements-dev.lock --group team -o constructs/ultracluster/project/template/test.lock.txt
	@$(UV_COMPILE) --group node -o requirements-node.lock
	@$(UV_COMPILE) --config-file tests/support/parallelcluster/uv.toml tests/support/parallelcluster/requirements.in -o requirements-parallelcluster.lock
	@$(UV_COMPILE) tests/support/judges/requirements.in -o requirements-judges.lock
	@npm install --silent --package-lock-only --omit-lockfile-registry-resolved
	@npm install --silent --package-lock-only --omit-lockfile-registry-resolved --prefix $(EVALUATOR)
	@npm install --silent --package-lock-only --omit-lockfile-registry-resolved --prefix $(EMULATED)
	@npm install --silent --package-lock-only --omit-lockfile-registry-resolved --prefix $(GRAFANA)
	@npm install --silent --package-lock-only --omit-lockfile-registry-resolved --prefix $(PROSE)
	@python -c 'import json, pathlib; file = pathlib.Path("package-lock.json"); lock = json.loads(file.read_text()); [one.pop("funding", None) for one in lock["packages"].values()]; file.write_text(json.dumps(lock, indent=2) + "\n")' # addresses of authors

clean: ## everything that make made
	@rm -rf $(VENV) $(PARALLELCLUSTER) $(JUDGES) node_modules $(EVALUATOR)/node_modules $(EMULATED)/node_modules $(GRAFANA)/node_modules $(PROSE)/node_modules cdk.out dist build site .pytest_cache .ruff_cache .hypothesis
