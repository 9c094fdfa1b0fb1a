# Everything that is built or downloaded goes into SWARM_DEV, outside the checkout.
PYTHON    ?= python3
SWARM_DEV ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/swarm-mcp/dev/$(shell printf %s "$(CURDIR)" | cksum | cut -d' ' -f1)
CLIENTS   ?= @openai/codex@0.169.0 @anthropic-ai/claude-code@2.1.330 @earendil-works/pi-coding-agent@0.74.2
WORKERS   ?= 3

BIN       := $(SWARM_DEV)/venv/bin
INSTALLED := $(SWARM_DEV)/installed
FETCHED   := $(SWARM_DEV)/clients/$(shell printf %s "$(CLIENTS)" | cksum | cut -d' ' -f1)
SOURCES   := $(shell find pyproject.toml LICENSE README.md swarm_hook_core swarm_mcp integrations skills .claude-plugin .codex-plugin .agents -type f -not -name '*.pyc')
# Processes and clocks are real in these tests, so a busy machine can fail one: it is run once more, and the
# summary says so (`N rerun`).
PYTEST    := PYTHONDONTWRITEBYTECODE=1 HYPOTHESIS_STORAGE_DIRECTORY="$(SWARM_DEV)/hypothesis" SWARM_E2E_CLIENTS="$(FETCHED)/node_modules" "$(BIN)/pytest"

.PHONY: demo test e2e bench clean
.DEFAULT_GOAL := demo

# One session's lock denies another's write: through the real hook processes, then in the real clients found here.
demo: $(INSTALLED)
	@"$(BIN)/swarm-mcp" demo
	@PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests SWARM_E2E_CLIENTS="$(FETCHED)/node_modules" "$(BIN)/python" -m e2e.demo

test: $(INSTALLED)
	$(PYTEST) tests/unit -q -n $(WORKERS) --reruns 1

# The real clients, in private homes, against scripted models on loopback. Needs npm, git and tmux. SWARM_THOROUGH=1:
# also the scenarios of which others are a sample.
e2e: $(INSTALLED) $(FETCHED)
	$(PYTEST) tests/e2e -q -n $(WORKERS) --dist loadgroup --reruns 1

bench: $(INSTALLED)
	PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests "$(BIN)/python" -m bench $(BENCH)

# What is installed is the wheel, so that the tests see what users get.
$(INSTALLED): $(SOURCES)
	@mkdir -p "$(SWARM_DEV)"
	@test -x "$(BIN)/python" || "$(PYTHON)" -m venv "$(SWARM_DEV)/venv"
	@"$(BIN)/python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps .
	@"$(BIN)/python" -m pip install --quiet --disable-pip-version-check ".[test]"
	@touch "$@"

$(FETCHED):
	@mkdir -p "$@.part"
	@npm install --loglevel=error --no-audit --no-fund --prefix "$@.part" $(CLIENTS)
	@mv "$@.part" "$@"

clean:
	rm -rf "$(SWARM_DEV)"
