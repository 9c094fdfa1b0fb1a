"""Codex: ``codex exec --json``, everything else by ``-c`` for one run alone."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from swarm_mcp.errors import Refused
from swarm_mcp.harness import events
from swarm_mcp.harness.adapter import Capabilities, Check, HarnessAdapter, Launch
from swarm_mcp.harness.codex import errors, rollout, stream
from swarm_mcp.harness.codex import hooks as codex_hooks
from swarm_mcp.harness.codex import models as codex_models
from swarm_mcp.harness.codex import skills as codex_skills
from swarm_mcp.harness.codex.overrides import configured_servers, override, server_overrides, settings_files
from swarm_mcp.harness.events import Event
from swarm_mcp.harness.outcome import Ending
from swarm_mcp.harness.query import READ_ONLY, YOLO, HarnessQuery

_SANDBOX = {READ_ONLY: "read-only", YOLO: "danger-full-access"}
ANSWER = "answer.json"
# A user who silences Codex's log would silence denials too. The second says how long it waits before it asks again.
LOG = "error,codex_core::responses_retry=warn"


class Codex(HarnessAdapter):
    """The harness ``codex``."""

    name = "codex"
    label = "Codex"
    program = "codex"
    instructions = "npm install -g @openai/codex, then codex login (or set CODEX_API_KEY)"
    models = codex_models.SHORT
    prices = codex_models.PRICES
    cumulative = frozenset({"tokens"})
    capabilities = Capabilities(
        resume=True, fork=True, read_only=True, system_prompt=True, append_system_prompt=True, mcp=True,
        client_tools=True, output_schema=True, locks=True, model=True, effort=True, directories=True,
        read_only_servers=True,
    )  # fmt: skip
    doc = """\
Runs OpenAI's Codex without a terminal (codex exec), with our hooks, our MCP server and our skills for that run alone:
nothing is written to its settings, nor to the folder it works in.
Use when a task is to be done by one of OpenAI's models, or under a sandbox of the operating system.
Do not use when the agent must ask somebody (nobody is there, so what needs approval fails), or when the cost has to
be exact: it is worked out from a table of list prices, and is not known for a model that is not in it.
Settings: model (CODEX_DEFAULT_MODEL; default: its own), effort (low, medium, high, max; default: its own), mode
(read-only, edit, yolo; default edit: it writes below its folder, below additional_directories, and in the folder for
temporary files), system_prompt (takes the place of its own instructions), append_system_prompt (takes the place of
developer_instructions in its settings), additional_directories, resume_session_id, fork_session, output_schema (it
must say "additionalProperties": false), mcp_servers, skills (named to the model; /name or $name at the beginning of a
prompt puts one in; CODEX_SKILLS_DIR is one more folder of them), additional_args, command (what to start instead of
codex; SWARM_HARNESS_CODEX), env, timeout_seconds (0: none), grace_seconds (15). It says only at the end
what it took, and counts no turns: max_cost_usd and max_turns are refused.
In mode read-only tools of MCP servers run where they call themselves read-only; swarm's always do. In the sandbox the
agent's own commands cannot write swarm's store: it speaks to the others through MCP tools."""

    def launch(self, query: HarnessQuery, folder: Path) -> Launch:
        if query.resume_session_id and not self._fits(query.resume_session_id):
            # Codex would begin a new session under such a name, and say nothing.
            raise Refused(f"{query.resume_session_id[:60]!r} is no session id of codex")
        words = list(query.command or (self.program,))
        model, codex_home = self.model(query), rollout.home(query.env)
        skills = codex_skills.user_folders(query.env.get("HOME") or os.path.expanduser("~"), codex_home, query.cwd)
        prompt = codex_skills.with_skill(query.prompt, query.skills, skills)
        servers = server_overrides(
            query.mcp_servers,
            approved=query.mode != READ_ONLY,
            taken=configured_servers(*settings_files(codex_home, query.cwd)),
        )
        settings = [override("approval_policy", "never"), override("features.hooks", True)]
        if query.effort:
            settings.append(override("model_reasoning_effort", codex_models.effort(query.effort, model)))
        if query.system_prompt:
            path = folder / "instructions.md"
            path.write_text(query.system_prompt, encoding="utf-8")
            settings.append(override("model_instructions_file", str(path)))
        added = [
            text for text in (query.append_system_prompt, codex_skills.listed_in_prompt(query.skills, skills)) if text
        ]
        if added:
            settings.append(override("developer_instructions", "\n\n".join(added)))
        settings += [*servers.overrides, *self._hooks(words, query.env)]
        argv = [*words, "exec", "--json", "--skip-git-repo-check", "-s", _SANDBOX.get(query.mode, "workspace-write")]
        argv += ["-C", query.cwd, *(part for extra in query.additional_directories for part in ("--add-dir", extra))]
        argv += ["-m", model] if model else []
        argv += [part for setting in settings for part in ("-c", setting)]
        if query.output_schema is not None:
            schema = folder / "schema.json"
            schema.write_text(json.dumps(query.output_schema), encoding="utf-8")
            argv += ["--output-schema", str(schema), "-o", str(folder / ANSWER)]
        argv += query.additional_args
        # What is said of folders and of the sandbox counts for a resumed session only before this word.
        if query.resume_session_id:
            argv += ["fork" if query.fork_session else "resume", query.resume_session_id]
        return Launch((*argv, "-"), {**servers.env, "RUST_LOG": LOG}, prompt.text, (), prompt.notes)

    def parse(self, line: str, state: dict) -> list[Event]:
        return stream.parse(line, state)

    def parse_stderr(self, line: str, state: dict) -> list[Event]:
        return stream.parse_stderr(line, state)

    def finish(self, state: dict) -> list[Event]:
        """Return what the stream left out: the model, how full its context is, and the answer by schema."""
        query: HarnessQuery | None = state.get("query")
        if query is None:
            return []
        session, codex_home = state.get("session_id"), rollout.home(query.env)
        path = rollout.path_of(session, codex_home) if session and self._fits(session) else None
        told = rollout.last_turn(path) if path else rollout.Turn()
        model = told.model or self.model(query) or None
        found = [_context(told, model, state.get("usage"))] if told.used_tokens is not None else []
        if state.get("completed"):
            more: dict[str, Any] = {} if query.output_schema is None else {"structured": _answer(state)}
            cost = stream.cost_of(state.get("usage"), model).to_dict()
            found.append(events.result(state.get("words"), cost=cost, model=model, **more))
        return found

    def error_of(self, ending: Ending) -> tuple[str, str] | None:
        return errors.error_of(ending)

    def can_resume(self, session_id: str, cwd: str) -> bool | None:
        path = rollout.path_of(session_id, rollout.home()) if self._fits(session_id) else None
        if path is None:
            return False
        began = rollout.folder_of(path)
        # Codex would go on from anywhere; what it remembers of files is true of one folder.
        return not (cwd and began) or os.path.realpath(began) == os.path.realpath(cwd)

    def checks(self, config: Mapping[str, object]) -> list[Check]:
        from swarm_mcp.harness.checks import command_of
        from swarm_mcp.harness.codex.checks import checks
        from swarm_mcp.harness.configuration import as_string, parse_object

        words = command_of(self, config)
        env = {str(name): str(value) for name, value in parse_object(config.get("env")).items()}
        program = shutil.which(words[0], path=env.get("PATH") or None) if words else None
        return checks(program or "", env, as_string(config.get("cwd")) or os.getcwd())

    def listed_models(self) -> list[dict]:
        return codex_models.listed_models((self.program,))

    def _fits(self, session_id: str) -> bool:
        return re.fullmatch(self.session_pattern, session_id) is not None

    def _hooks(self, words: Sequence[str], env: Mapping[str, str]) -> tuple[str, ...]:
        """Our hooks and the trust in them, and the user's copy of the plugin off: no hook runs twice."""
        from swarm_mcp.harness.plugin import plugin_folder

        hooks = codex_hooks.plugin_hooks(plugin_folder())
        # Words of somebody's own (a wrapper, npx) are not started twice.
        program = shutil.which(words[0], path=env.get("PATH") or None) if len(words) == 1 else None
        trust = codex_hooks.trust_for(program or "", hooks)
        return (codex_hooks.WITHOUT_THE_USERS_COPY, *codex_hooks.hook_overrides(hooks, trust))


def _context(told: rollout.Turn, model: str | None, usage: object) -> Event:
    used, window = told.used_tokens, told.window_tokens or codex_models.WINDOWS.get(model or "")
    data = {
        "context_used_tokens": used,
        "context_total_tokens": window,
        "context_percent": round(100 * used / window, 1) if used is not None and window else None,
        "output_tokens": stream.cost_of(usage).output_tokens,
    }
    return Event(events.CONTEXT_USAGE, data)


def _answer(state: dict) -> object:
    """The answer by schema, from the file that Codex was told to write, else from its last words; None for none."""
    try:
        text = Path(str(state.get("folder") or ""), ANSWER).read_text(encoding="utf-8")
    except (OSError, ValueError):
        text = str(state.get("words") or "")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
