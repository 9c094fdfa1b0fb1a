"""OpenCode as a harness."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from swarm_mcp.agents.harness import events, outcome
from swarm_mcp.agents.harness.adapter import INFO, WARN, Capabilities, Check, CommandPlace, HarnessAdapter, Launch
from swarm_mcp.agents.harness.environment import plugin_folder, written
from swarm_mcp.agents.harness.events import CONTEXT_USAGE, Event
from swarm_mcp.agents.harness.outcome import PROCESS_CRASHED, TOKENS, Cost, Ending, count_of, error_of
from swarm_mcp.agents.harness.query import READ_ONLY, YOLO, Query, parse_object
from swarm_mcp.agents.harness.registry import environment_of
from swarm_mcp.agents.harness.servers import NOT_FOR_READERS, OURS, HiddenValues, names_in_mode, words_of
from swarm_mcp.runtimes.base import leads_to
from swarm_mcp.runtimes.json_editor import text_of
from swarm_mcp.runtimes.opencode import PLUGIN_FILE
from swarm_mcp.runtimes.opencode import OpenCode as Client

# The output of OpenCode with ``run --format json`` (1.18): one JSON object a line, each with its ``sessionID``.
#
# ``step_start`` and ``step_finish`` (one answer of the model, with its tokens and dollars), ``text``, ``reasoning``,
# ``tool_use`` (once, after the call) and ``error``. The end is the end of the stream. Sub-agents have sessions of their
# own, and only the result of the tool that started them is in the stream.

OUR_DENIAL = "swarm lock blocked"


def parse(line: str, state: dict[str, Any]) -> list[Event]:
    """Implement ``HarnessAdapter.parse``."""
    told = parse_object(line)
    kind = told.get("type")
    if not isinstance(kind, str):
        return []
    found = []
    session = told.get("sessionID")
    if isinstance(session, str) and session and "session" not in state:
        state["session"] = session
        found.append(events.session_init(session))
    if kind == "error":
        return [*found, _complaint(told.get("error"), state)]
    read = _READERS.get(kind)
    part = told.get("part")
    if read is None or not isinstance(part, dict):
        return [*found, events.custom(f"opencode.{kind}", told)]
    return [*found, *read(part, state)]


def left_over(state: dict[str, Any]) -> list[Event]:
    """Implement ``HarnessAdapter.finish``: the result, missing in the stream itself."""
    cost = cost_of(state).to_dict()
    complaint = state.get("complaint")
    if complaint:
        text, code = complaint
        return [events.result(state.get("words"), True, code, error_message=text, cost=cost)]
    if state.get("over"):
        return [events.result(state.get("words"), cost=cost)]
    return []


def cost_of(state: dict[str, Any]) -> Cost:
    """Return the cost of this run's answers. A model without a price makes the sum unknown."""
    used = state.get("used")
    if not used:
        return Cost()
    if state.get("unpriced"):
        dollars = None
    else:
        dollars = round(state["dollars"], 10)
    return Cost(dollars, **used, num_turns=state["turns"])


def _step_begins(part: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    return []


def _step_ends(part: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    tokens, cache = parse_object(part.get("tokens")), parse_object(parse_object(part.get("tokens")).get("cache"))
    out = (count_of(tokens.get("output")) or 0) + (count_of(tokens.get("reasoning")) or 0)
    found = (
        count_of(tokens.get("input")) or 0,
        out,
        count_of(cache.get("read")) or 0,
        count_of(cache.get("write")) or 0,
    )
    used = state.setdefault("used", dict.fromkeys(TOKENS, 0))
    for name, count in zip(TOKENS, found):
        used[name] += count
    state["turns"] = state.get("turns", 0) + 1
    cost = part.get("cost")
    priced = isinstance(cost, (int, float)) and not isinstance(cost, bool) and cost > 0
    state["unpriced"] = state.get("unpriced", False) or (not priced and any(found))
    state["dollars"] = state.get("dollars", 0.0) + (cost if priced else 0.0)
    goes_on = part.get("reason") == "tool-calls"
    state["over"] = not goes_on
    facts: dict[str, Any] = {"context_used_tokens": sum(found), "context_total_tokens": None, "context_percent": None}
    facts["spent"] = cost_of(state).to_dict()
    facts.update(cost_usd=cost_of(state).total_cost_usd, num_turns=state["turns"], goes_on=goes_on)
    return [Event(CONTEXT_USAGE, {**facts, "output_tokens": out})]


def _words(part: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    text = text_of(part.get("text"))
    state["words"] = text or state.get("words")
    if text:
        return [events.message("assistant", text)]
    return []


def _thoughts(part: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    text = text_of(part.get("text"))
    if text:
        return [events.message("assistant", text, thinking=True)]
    return []


def _call(part: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    call, name, how = text_of(part.get("callID")), text_of(part.get("tool")), parse_object(part.get("state"))
    failed = how.get("status") == "error"
    text = text_of(how.get("error" if failed else "output"))
    found = [events.tool_start(call, name, how.get("input")), events.tool_end(call, name, text, failed)]
    if failed and text.startswith(OUR_DENIAL):
        found.append(events.custom("lock_denied", {"message": text, "call": name, "harness": "opencode"}))
    return found


def _complaint(error: object, state: dict[str, Any]) -> Event:
    told = parse_object(error)
    text = text_of(parse_object(told.get("data")).get("message")) or text_of(told.get("name")) or "it did not say why"
    status = parse_object(told.get("data")).get("statusCode")
    code = outcome.code_of(f"{status} {text}" if isinstance(status, int) else text)
    if told.get("name") == "ProviderAuthError":
        code = outcome.AUTH_FAILED
    else:
        code = code or outcome.UNKNOWN
    state["complaint"] = (outcome.one_line(text), code)
    return events.error(outcome.one_line(text), code)


_READERS = {
    "step_start": _step_begins, "step_finish": _step_ends, "text": _words, "reasoning": _thoughts, "tool_use": _call,
}  # fmt: skip


# The harness ``opencode``: OpenCode (``opencode run --format json``), as of 1.18.
#
# A run is configured through its environment (``OPENCODE_CONFIG_CONTENT``), with precedence over the user's and the
# project's configuration: our plugin if the user has not installed it, MCP servers, skills, and an agent of the run's
# own if the mode or the system prompt needs one. OpenCode expands ``{env:NAME}`` and ``{file:PATH}`` in it.

CONFIG = "OPENCODE_CONFIG_CONTENT"
AGENT = "swarm-run"
READING = ("read", "grep", "glob", "list", "webfetch", "websearch", "codesearch", "skill", "todowrite", "todoread")
_SHARED = (".claude", ".agents")  # where it looks for other clients' skills
CALM = {"OPENCODE_DISABLE_AUTOUPDATE": "1"}  # no update in the middle of a run


class OpenCode(HarnessAdapter):
    """The harness ``opencode``."""

    name = "opencode"
    label = "OpenCode"
    program = "opencode"
    home_variables = ("XDG_CONFIG_HOME", "XDG_DATA_HOME")
    instructions = "npm install -g opencode-ai, then opencode auth login, or an API key in the environment"
    session_pattern = r"ses_[0-9A-Za-z]{8,60}"
    capabilities = Capabilities(
        resume=True, fork=True, read_only=True, system_prompt=True, append_system_prompt=True, mcp=True,
        client_tools=True, native_skills=True, cost=True, locks=True, model=True, directories=True,
        max_cost=True, max_turns=True,
    )  # fmt: skip
    doc = """\
Runs OpenCode without its screen, with the swarm's plugin, tools and skills for that run alone.
Use when the model is one that OpenCode has an account for (many providers, local ones too).
Do not use when the answer has to follow a schema, or when the work needs a sandbox: it has none. Do not use when costs
of sub-agents count: its stream has none of them.
Modes: edit (default) does what the user's own permissions allow; whatever would be asked for is refused, and the agent
goes on without it. read-only has no tool that writes or runs commands, no sub-agents, and no servers but the swarm's
and client tools. yolo (dangerous, --auto) allows all that is not forbidden; locks still hold.
Settings: model (provider/model; OPENCODE_DEFAULT_MODEL; default: OpenCode's own), mode (edit), system_prompt (takes the
place of its own), append_system_prompt, additional_directories, skills, mcp_servers, max_cost_usd and max_turns (0:
none; the runner ends it at them, and where the model has no price at its first answer), resume_session_id,
fork_session, additional_args, command (opencode), env, timeout_seconds (0: none), grace_seconds (15)."""

    def launch(self, query: Query, folder: Path) -> Launch:
        hidden = HiddenValues()
        config, agent = _config(query, folder, hidden)
        argv = [*(query.command or (self.program,)), "run", "--format", "json"]
        argv += ["--agent", agent] if agent else []
        argv += ["--auto"] if query.mode == YOLO else []
        model = self.model(query)
        argv += ["-m", model] if model else []
        if query.resume_session_id:
            argv += ["--session", query.resume_session_id, *(["--fork"] if query.fork_session else [])]
        calm = {name: value for name, value in CALM.items() if not (query.env.get(name) or os.environ.get(name))}
        env = {**calm, **hidden.env, CONFIG: json.dumps(config)}
        return Launch((*argv, *query.additional_args), env, query.prompt)

    def parse(self, line: str, state: dict[str, Any]) -> list[Event]:
        return parse(line, state)

    def finish(self, state: dict[str, Any]) -> list[Event]:
        return left_over(state)

    def error_of(self, ending: Ending) -> tuple[str, str] | None:
        found = error_of(ending)
        if not (found or ending.result):
            return (PROCESS_CRASHED, "opencode ended without an answer")
        return found

    def format_command(self, name: str) -> str:
        return f"Use the skill {name}."

    def command_places(self, cwd: str) -> list[CommandPlace]:
        base = str(Client().link().parent.parent)  # its own commands are started by --command, not by a prompt
        mine = os.path.expanduser("~")
        folders = (os.path.join(cwd, ".opencode"), base, *(os.path.join(f, n) for f in (cwd, mine) for n in _SHARED))
        return [CommandPlace(os.path.join(folder, name)) for folder in folders for name in ("skills", "skill")]

    def checks(self, config: Mapping[str, object]) -> list[Check]:
        env = environment_of(config)
        base = env.get("XDG_DATA_HOME", "").strip() or os.path.join(env.get("HOME") or "", ".local", "share")
        if os.path.isfile(os.path.join(base, "opencode", "auth.json")):
            return [Check("opencode_accounts", INFO, f"accounts for models in {base}/opencode/auth.json")]
        named = sorted(name for name in env if name.endswith("_API_KEY") and env[name].strip())
        if named:
            return [Check("opencode_accounts", INFO, f"keys for models in {', '.join(named)}")]
        text = "no account for a model is in sight; its settings may name a provider that needs none"
        return [Check("opencode_no_accounts", WARN, text, "opencode auth login, or an API key in the environment")]


def _config(query: Query, folder: Path, hidden: HiddenValues) -> tuple[dict[str, Any], str]:
    """The configuration of one run, and the agent to work as, empty for the user's choice."""
    read_only = query.mode == READ_ONLY
    names = names_in_mode(query)
    config: dict[str, Any] = {
        "mcp": {name: _server(name, query, hidden) for name in names},
        "skills": {"paths": [*query.skills]},
    }
    if leads_to(Client().link(), PLUGIN_FILE) is None:  # loaded twice, each call would be checked twice
        config["plugin"] = [(plugin_folder() / PLUGIN_FILE).as_uri()]
    if query.append_system_prompt:
        config["instructions"] = [written(folder / "append.md", query.append_system_prompt)]
    allowed: dict[str, Any] = {f"{name}_*": "allow" for name in names}
    if query.additional_directories:
        places = {os.path.join(path, "**"): "allow" for path in query.additional_directories}
        allowed["external_directory"] = places
    if read_only:
        never = dict.fromkeys([f"{OURS}_{tool}" for tool in NOT_FOR_READERS], "deny")
        allowed = {"*": "deny", **dict.fromkeys(READING, "allow"), **allowed, **never}
    if not (read_only or query.system_prompt):
        return {**config, "permission": allowed}, ""
    agent = {"mode": "primary", "description": "a run of the swarm's", "permission": allowed}
    if query.system_prompt:
        agent["prompt"] = f"{{file:{written(folder / 'system.md', query.system_prompt)}}}"
    return {**config, "agent": {AGENT: agent}}, AGENT


def _server(name: str, query: Query, hidden: HiddenValues) -> dict[str, Any]:
    server = query.mcp_servers[name]
    values = hidden.names_in(name, server)
    references = {key: f"{{env:{variable}}}" for key, variable in values.items()}
    if server.url:
        return {"type": "remote", "url": server.url, "headers": references, "enabled": True}
    return {"type": "local", "command": words_of(server), "environment": references, "enabled": True}
