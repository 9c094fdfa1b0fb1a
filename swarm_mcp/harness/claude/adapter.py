"""Claude Code (``claude -p --output-format stream-json``), as of 2.1.330."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from swarm_mcp.harness.adapter import Capabilities, Check, HarnessAdapter, Launch, Price
from swarm_mcp.harness.events import Event
from swarm_mcp.harness.outcome import Ending
from swarm_mcp.harness.query import HarnessQuery

DATED = "2026-10-10"


class Claude(HarnessAdapter):
    """The harness ``claude``."""

    name = "claude"
    label = "Claude Code"
    program = "claude"
    instructions = (
        "npm install -g @anthropic-ai/claude-code, then run `claude` once and sign in with /login;"
        " without a terminal: CLAUDE_CODE_OAUTH_TOKEN (from `claude setup-token`) or ANTHROPIC_API_KEY"
    )
    # The client's own aliases stay as they are: it knows which name each has at this user's provider.
    models = {
        "opus": "opus", "sonnet": "sonnet", "haiku": "haiku", "fable": "fable",
        "fable-5.1": "claude-fable-5-1", "opus-5.5": "claude-opus-5-5", "opus-5": "claude-opus-5",
        "sonnet-5.5": "claude-sonnet-5-5", "haiku-5.5": "claude-haiku-5-5", "haiku-4.5": "claude-haiku-4-5",
    }  # fmt: skip
    # Published list prices; used only where a result tells no cost. Haiku 5.5 is missing: its price depends on the
    # length of the prompt, which a sum of tokens does not tell.
    prices = {
        "claude-fable-5-1": Price(10.0, 0.25, 50.0, DATED, 12.5),
        "claude-opus-5-5": Price(4.0, 0.2, 20.0, DATED, 5.0),
        "claude-opus-5": Price(5.0, 0.5, 25.0, DATED, 6.25),
        "claude-opus-4-8": Price(5.0, 0.5, 25.0, DATED, 6.25),
        "claude-sonnet-5-5": Price(2.0, 0.1, 10.0, DATED, 2.5),
        "claude-sonnet-5": Price(2.0, 0.2, 10.0, DATED, 2.5),
        "claude-haiku-4-5": Price(1.0, 0.1, 5.0, DATED, 1.25),
    }
    capabilities = Capabilities(
        resume=True, fork=True, read_only=True, system_prompt=True, append_system_prompt=True, mcp=True,
        client_tools=True, native_skills=True, output_schema=True, cost=True, locks=True, model=True, effort=True,
        directories=True, max_cost=True, max_turns=True,
    )  # fmt: skip
    # total_cost_usd goes on counting when a session is resumed or forked; tokens are taken from what is per run.
    cumulative = frozenset({"cost"})
    doc = """\
Runs Claude Code without a terminal, with the swarm's hooks and tools, whatever the user's own settings have.
Use when the work is programming in a checkout, or anything that Claude Code does well by itself.
Do not use when somebody must be asked in the middle: whatever would need a permission is refused, and the agent
goes on without it. Do not use when commands must run confined: it has no sandbox of its own here.
Modes: edit (default) writes files of its folder and uses the swarm's tools and the servers of the query; commands
run as far as the user's own permission rules and the client's list of harmless commands allow. read-only has no tool
that writes or runs commands, and no servers but the swarm's. yolo (dangerous) asks for nothing; locks still hold.
Settings: model (the client's default; CLAUDE_DEFAULT_MODEL), effort (the model's), mode (edit), timeout_seconds
(0: none), grace_seconds (15), max_cost_usd (0: none), max_turns (0: none), env, additional_args,
additional_directories, output_schema, resume_session_id, fork_session (false), system_prompt (the client's own),
append_system_prompt, mcp_servers, skills, command (claude).
SWARM_HARNESS_CLAUDE_ALLOW: more tools that mode edit may use, as the client writes them: "Bash(make *),WebFetch".
SWARM_HARNESS_PROJECT_SERVERS=0: no servers but the swarm's and those of the query."""

    def launch(self, query: HarnessQuery, folder: Path) -> Launch:
        from swarm_mcp.harness.claude.launch import launch

        return launch(query, folder, self.model(query))

    def parse(self, line: str, state: dict) -> list[Event]:
        from swarm_mcp.harness.claude.stream import parse

        return parse(line, state)

    def error_of(self, ending: Ending) -> tuple[str, str] | None:
        from swarm_mcp.harness.claude.errors import error_of

        return error_of(ending)

    def can_resume(self, session_id: str, cwd: str) -> bool | None:
        """Return whether the session's transcript is there. `cwd` does not matter: it resumes from any folder."""
        if not re.fullmatch(self.session_pattern, session_id):
            return False
        from swarm_mcp.harness.claude.checks import configuration_folder

        try:
            # The folders are named by cwd, in a way that is the client's own.
            with os.scandir(configuration_folder() / "projects") as folders:
                return any(os.path.isfile(os.path.join(entry.path, f"{session_id}.jsonl")) for entry in folders)
        except OSError:
            return False

    def checks(self, config: Mapping[str, object]) -> list[Check]:
        from swarm_mcp.harness.claude.checks import checks

        return checks(config, self.instructions)

    def listed_models(self) -> list[dict]:
        from swarm_mcp.harness.claude.stream import WINDOWS

        return [{**model, "context_tokens": WINDOWS.get(model["name"])} for model in super().listed_models()]
