"""The harness ``loop``: ``swarm-mcp worker loop``, a part of this package that writes our own events."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from swarm_hook_core.state import write_private
from swarm_mcp.agents.harness import hs as hs_session
from swarm_mcp.agents.harness import outcome, registry
from swarm_mcp.agents.harness.adapter import (
    ERROR,
    INFO,
    WARN,
    Capabilities,
    Check,
    CommandPlace,
    HarnessAdapter,
    Launch,
)
from swarm_mcp.agents.harness.events import KINDS, RAW_LOG, RAW_STDERR, Event, custom
from swarm_mcp.agents.harness.hs import harness_skills
from swarm_mcp.agents.harness.outcome import Ending
from swarm_mcp.agents.harness.query import Query, as_string, parse_object
from swarm_mcp.agents.harness.registry import environment_of
from swarm_mcp.agents.loop.providers import built_in, missing
from swarm_mcp.agents.loop.session import PATTERN
from swarm_mcp.agents.loop.settings import CONFIG_VARIABLE
from swarm_mcp.agents.loop.tools import BUILT_IN_PROVIDERS
from swarm_mcp.installation import coordinator_command
from swarm_mcp.runtimes.hs import home as hs_home


class Loop(HarnessAdapter):
    """The harness ``loop``."""

    name = "loop"
    label = "The embedded loop"
    instructions = "Set ANTHROPIC_API_KEY or OPENAI_API_KEY, or OPENAI_API_URL for a server of your own"
    session_pattern = PATTERN.pattern.removesuffix(r"\Z")
    capabilities = Capabilities(
        resume=True, fork=True, read_only=True, system_prompt=True, append_system_prompt=True, mcp=True,
        client_tools=True, native_skills=True, output_schema=True, cost=True, locks=True, model=True, effort=True,
        max_cost=True, max_turns=True, read_only_servers=True,
    )  # fmt: skip
    doc = """\
Runs the small agent loop that is part of this package: no client to install, only a model's endpoint (the Messages
API, or chat completions of OpenAI and of the many servers that speak like it). It knows the plugins of the bash
harness: tools, hooks, providers and skills in ~/.harness and in every .harness down to the folder it works in.
Use when no agent client is installed, when the model is one's own server, or when a worker is to be small and to
start at once.
Do not use when the work needs a sandbox (its commands run as you do; the modes edit and yolo are the same), or in a
checkout you do not trust: plugins in its .harness are run. What it costs is known for models with a published price,
and for variants of providers whose file has one; agents that it starts in turn are not in it.
Settings: model (NAME or PROVIDER/NAME; LOOP_DEFAULT_MODEL; default: the provider's), effort (low, medium, high, max;
default: the model's own), mode (edit), skills, mcp_servers, system_prompt, append_system_prompt, resume_session_id,
fork_session, output_schema, max_cost_usd (0: none; refused by an answer without a price), max_turns (0: none of its
own), additional_args, command, env, timeout_seconds (0: none),
grace_seconds (15). Its own: HARNESS_PROVIDER (the first that is ready), HARNESS_HOME (~/.harness), HARNESS_SESSIONS,
HARNESS_MAX_TURNS (100), HARNESS_STREAM (on), HARNESS_PREDISPATCH (on), HARNESS_TOOL_TIMEOUT (120)."""

    def launch(self, query: Query, folder: Path) -> Launch:
        argv = [*(query.command or coordinator_command()), "loop", "agent", "--json"]
        argv += ["--resume", query.resume_session_id] if query.resume_session_id else []
        env = {CONFIG_VARIABLE: str(_written(folder / "loop.json", query))}
        provider, model = _provider_and_model(self.model(query))
        env.update({"HARNESS_MODEL": model} if model else {})
        env.update({"HARNESS_PROVIDER": provider} if provider else {})
        env.update({"HARNESS_THINKING": query.effort} if query.effort else {})
        drop: tuple[str, ...] = ()
        if _names_a_harness(os.environ):
            drop = ("HARNESS_PROVIDER",)
        return Launch((*argv, *query.additional_args), env, query.prompt, drop)

    def parse(self, line: str, state: dict[str, Any]) -> list[Event]:
        found = parse_object(line)
        if not isinstance(found.get("type"), str):
            return []
        kind, at = found["type"], found.get("timestamp")
        data = {name: value for name, value in found.items() if name not in ("type", "timestamp")}
        if kind not in KINDS or kind in (RAW_LOG, RAW_STDERR):
            return [custom(f"loop.{kind}", data)]
        return [Event(kind, data, at if isinstance(at, (int, float)) and not isinstance(at, bool) else 0.0)]

    def error_of(self, ending: Ending) -> tuple[str, str] | None:
        result = ending.result
        if result is None or ending.signal:
            return super().error_of(ending)
        if not result.get("is_error") and not ending.exit_code:
            return None
        told: dict[str, Any] = next((found for found in reversed(ending.errors) if found.get("message")), {})
        category = next((c for c in (result.get("error_category"), told.get("category")) if c in outcome.ERRORS), None)
        return category or outcome.UNKNOWN, str(told.get("message") or f"the loop ended with {ending.exit_code}")

    def can_resume(self, session_id: str, cwd: str) -> bool | None:
        """Return True if the session's own file says that it worked in `cwd`."""
        if not PATTERN.match(session_id):
            return False
        facts = hs_session.settings(hs_session.folder_of(session_id, cwd, os.environ))
        return bool(facts) and os.path.realpath(facts.get("cwd", "")) == os.path.realpath(cwd)

    def format_command(self, name: str) -> str:
        return f"Use the skill {name}."

    def command_places(self, cwd: str) -> list[CommandPlace]:
        return harness_skills(str(hs_home()), cwd)

    def checks(self, config: Mapping[str, object]) -> list[Check]:
        env = environment_of(config)
        if _names_a_harness(env):
            env.pop("HARNESS_PROVIDER", None)
        wanted, model = _provider_and_model(as_string(config.get("model")))
        wanted = wanted or env.get("HARNESS_PROVIDER", "").strip()
        ready = [name for name in BUILT_IN_PROVIDERS if not missing(name, env)]
        found = []
        if wanted in BUILT_IN_PROVIDERS:
            needs = missing(wanted, env)
            if needs:
                why = f"the provider {wanted} needs {needs}"
                found.append(Check("loop_key_missing", ERROR, why, f"set {needs}"))
        elif wanted:
            why = f"the provider {wanted} is a plugin's or a variant; it is not started to look"
            found.append(Check("loop_provider_unseen", INFO, why))
        elif not ready:
            needs = "; ".join(f"{name} needs {missing(name, env)}" for name in BUILT_IN_PROVIDERS)
            found.append(Check("loop_no_provider", WARN, f"no built-in provider is ready: {needs}", self.instructions))
        if (wanted in ready or not wanted) and ready:
            name = wanted or ready[0]
            chosen = model or env.get("LOOP_DEFAULT_MODEL", "").strip() or env.get("HARNESS_MODEL", "").strip()
            chosen = chosen or built_in(name).default_model
            found.append(Check("loop_provider", INFO, f"asks {name} for {chosen}"))
        return found

    def listed_models(self) -> list[dict[str, Any]]:
        return [
            {"name": built_in(name).default_model, "short": name, "context_tokens": None} for name in BUILT_IN_PROVIDERS
        ]


def _provider_and_model(model: str) -> tuple[str, str]:
    """``PROVIDER/NAME`` taken apart; other slashes belong to the name."""
    provider, slash, name = model.partition("/")
    if slash and provider in BUILT_IN_PROVIDERS and name:
        return (provider, name)
    return ("", model)


def _names_a_harness(env: Mapping[str, str]) -> bool:
    """Return True if ``HARNESS_PROVIDER`` names a harness. For the loop itself it names a model's provider."""
    named = env.get("HARNESS_PROVIDER", "").strip()
    return bool(named) and named not in BUILT_IN_PROVIDERS and registry.has(named)


def _written(path: Path, query: Query) -> Path:
    """Write the settings without a variable into a private file. The secrets of its servers are nowhere else."""
    config = {
        "mode": query.mode,
        "mcp_servers": {name: server.to_dict() for name, server in query.mcp_servers.items()} or None,
        "skills": list(query.skills),
        "system_prompt": query.system_prompt,
        "append_system_prompt": query.append_system_prompt,
        "output_schema": query.output_schema,
        "max_turns": query.max_turns,
        "fork": query.fork_session,
    }
    write_private(str(path), json.dumps({name: value for name, value in config.items() if value}))
    return path
