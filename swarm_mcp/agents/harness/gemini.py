"""Gemini CLI as a harness."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from swarm_mcp.agents.harness import events, outcome
from swarm_mcp.agents.harness.adapter import INFO, WARN, Capabilities, Check, CommandPlace, HarnessAdapter, Launch
from swarm_mcp.agents.harness.environment import plugin_folder, written
from swarm_mcp.agents.harness.events import Event
from swarm_mcp.agents.harness.outcome import UNSUPPORTED, Cost, Ending, count_of, one_line
from swarm_mcp.agents.harness.query import READ_ONLY, YOLO, Query, parse_json, parse_object
from swarm_mcp.agents.harness.registry import environment_of
from swarm_mcp.agents.harness.servers import NOT_FOR_READERS, OURS, HiddenValues, names_in_mode
from swarm_mcp.runtimes.client_settings import read_layer, with_comments
from swarm_mcp.runtimes.gemini import HOOKS, home
from swarm_mcp.runtimes.gemini import NAME as EXTENSION
from swarm_mcp.runtimes.json_editor import text_of
from swarm_mcp.runtimes.users_file import object_in

# The output of Gemini CLI with ``-o stream-json`` (0.61): one JSON object a line.
#
# ``init``, ``domain`` (the user's whole, the model's in pieces), ``tool_use``, ``tool_result``, ``error`` (a warning,
# or the run's fatal error) and ``result``, with the tokens and neither words nor dollars.

OUR_DENIAL = "swarm lock blocked"
_TURNS = "max session turns"
_NOISE = ("Warning:", "YOLO mode", "Ripgrep is not", "[STARTUP]")  # on standard error, no complaints


def parse(line: str, state: dict[str, Any]) -> list[Event]:
    """Implement ``HarnessAdapter.parse``."""
    told = parse_object(line)
    kind = told.get("type")
    if not isinstance(kind, str):
        return []
    if kind == "message" and told.get("role") == "assistant":
        piece = text_of(told.get("content"))
        state["pieces"] = state.get("pieces", "") + piece
        if told.get("delta"):
            return [events.custom("gemini.text_delta", {"delta": piece})]
        return _said(state)
    read = _READERS.get(kind)
    return [*_said(state), *(read(told, state) if read else [events.custom(f"gemini.{kind}", told)])]


def left_over(state: dict[str, Any]) -> list[Event]:
    """Implement ``HarnessAdapter.finish``: words that nothing followed."""
    return _said(state)


def error_of(ending: Ending) -> tuple[str, str] | None:
    """Implement ``HarnessAdapter.error_of``. Without a result line a run has failed, even with exit code 0."""
    stderr = "\n".join(line for line in ending.stderr.splitlines() if not line.startswith(_NOISE))
    ending = ending._replace(stderr=stderr)
    said = [str(error.get("message") or "") for error in ending.errors]
    turns = next((text for text in (*said, *ending.stderr.splitlines()) if _TURNS in text.lower()), "")
    if turns:
        return outcome.BUDGET, one_line(turns)
    found = outcome.error_of(ending)
    if found is None and ending.result is None:
        return outcome.PROCESS_CRASHED, outcome.line_of(ending.stderr) or "gemini ended without a result"
    return found


def _said(state: dict[str, Any]) -> list[Event]:
    """Return the model's words since its last turn, as one message."""
    text = state.pop("pieces", "")
    if not text.strip():
        return []
    state["words"] = text
    return [events.message("assistant", text)]


def _init(told: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    state["model"] = text_of(told.get("model")) or None
    return [events.session_init(text_of(told.get("session_id")) or None, model=state["model"])]


def _user(told: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    return [events.message("user", text_of(told.get("content")))]


def _start(told: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    call, name = text_of(told.get("tool_id")), text_of(told.get("tool_name"))
    state.setdefault("calls", {})[call] = name
    return [events.tool_start(call, name, told.get("parameters"))]


def _end(told: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    call = text_of(told.get("tool_id"))
    name = state.get("calls", {}).get(call, "")
    failed = told.get("status") != "success"
    text = text_of(told.get("output")) or _message(told.get("error"))
    found = [events.tool_end(call, name, text, failed)]
    at = text.find(OUR_DENIAL)
    if failed and at >= 0:
        found.append(events.custom("lock_denied", {"message": text[at:], "call": name, "harness": "gemini"}))
    return found


def _error(told: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    text = text_of(told.get("message"))
    if told.get("severity") == "warning":
        return [events.custom("gemini.warning", told)]
    return [events.error(text, outcome.code_of(text) or outcome.UNKNOWN)]


def _result(told: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    cost = cost_of(told.get("stats"), state.get("model")).to_dict()
    if told.get("status") == "success":
        return [events.result(state.get("words"), cost=cost)]
    text = _message(told.get("error")) or "it failed, and did not say why"
    code = outcome.code_of(text) or outcome.UNKNOWN
    return [events.error(text, code), events.result(None, True, code, error_message=text, cost=cost)]


def cost_of(stats: object, model: str | None = None) -> Cost:
    """Return the tokens of a run; of its models' tokens the sum, without dollars."""
    if not isinstance(stats, dict):
        stats = {}
    models = stats.get("models")
    if isinstance(models, dict) and len(models) == 1:
        model = str(next(iter(models)))
    plain, out, read = (count_of(stats.get(name)) for name in ("input", "output_tokens", "cached"))
    if stats.get("total_tokens"):
        return Cost(None, plain, out, read, None, None, model)
    return Cost(model=model)


_READERS = {"init": _init, "message": _user, "tool_use": _start, "tool_result": _end, "error": _error,
            "result": _result}  # fmt: skip


def _message(error: object) -> str:
    """Return an error's message; the API's own one is JSON inside of it."""
    if isinstance(error, dict):
        text = text_of(error.get("message"))
    else:
        text = text_of(error)
    begin = text.find("{")
    if text.startswith("[API Error") and begin >= 0:
        inner = parse_json(text[begin:].rstrip("]"))
    else:
        inner = None
    if isinstance(inner, dict):
        told = inner.get("error")
    else:
        told = None
    if isinstance(told, dict):
        return text_of(told.get("message")) or text
    return text


# The harness ``gemini``: Gemini CLI (``gemini -o stream-json``), as of 0.61.
#
# It takes no settings for one run alone (those of an administrator have to be root's). A run is given a home of links
# (``GEMINI_CLI_HOME``): all that the user's has, and instead of two things its own, the settings (the user's, with our
# hooks, servers and limits) and the folder of skills. Sessions and credentials stay the user's. Hooks of settings and
# extensions all run, so those of an installed extension of ours are switched off by their name.

HOME = "GEMINI_CLI_HOME"
SETTINGS, SKILLS = "settings.json", "skills"
SYSTEM_PROMPT = "GEMINI_SYSTEM_MD"
RUN_HOOK = f"{EXTENSION}-run"  # the name of our hooks in a run, beside those of the user's extension
IGNORED = "Ignoring --admin-policy"
READING = (
    "read_file", "read_many_files", "list_directory", "glob", "grep_search", "search_file_content", "google_web_search",
    "web_fetch", "get_internal_docs", "write_todos", "activate_skill", "complete_task",
)  # fmt: skip
_APPROVAL = {READ_ONLY: "default", YOLO: "yolo"}
KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA")


class Gemini(HarnessAdapter):
    """The harness ``gemini``."""

    name = "gemini"
    label = "Gemini CLI"
    program = "gemini"
    home_variables = ("GEMINI_CLI_HOME",)
    instructions = "npm install -g @google/gemini-cli, then run `gemini` once and sign in, or set GEMINI_API_KEY"
    models = {"pro": "gemini-2.5-pro", "flash": "gemini-2.5-flash", "flash-lite": "gemini-2.5-flash-lite"}
    capabilities = Capabilities(
        resume=True, read_only=True, system_prompt=True, append_system_prompt=True, mcp=True, client_tools=True,
        native_skills=True, streaming_tokens=True, locks=True, model=True, directories=True, max_turns=True,
    )  # fmt: skip
    doc = """\
Runs Google's Gemini CLI without a terminal, with the swarm's hooks and tools for that run alone: nothing is written to
its settings, nor to the folder it works in.
Use when a task is to be done by one of Google's models.
Do not use when the cost must be known (it tells tokens alone), when the answer has to follow a schema, when a session
is to be copied (it cannot), or when a worker has to end at once: where its model does not answer it is deaf to TERM,
and is killed after grace_seconds.
Modes: edit (default) writes files of its folder; shell commands run only as far as the user's own policies allow.
read-only has no tool that writes or runs commands, and no servers but the swarm's and client tools. yolo (dangerous)
asks for nothing; locks still hold.
Settings: model (GEMINI_DEFAULT_MODEL; default: the client's), mode (edit), system_prompt, append_system_prompt,
additional_directories, skills, mcp_servers, max_turns (0: none),
resume_session_id, additional_args, command (gemini), env, timeout_seconds (0: none), grace_seconds (15). The folder
counts as trusted (--skip-trust), as whoever starts a run there trusts it."""

    def launch(self, query: Query, folder: Path) -> Launch:
        hidden = HiddenValues()
        env = {HOME: str(_private_home(query, folder, hidden)), **hidden.env}
        argv = [*(query.command or (self.program,)), "-o", "stream-json", "--skip-trust"]
        argv += ["--approval-mode", _APPROVAL.get(query.mode, "auto_edit")]
        if query.mode == READ_ONLY:
            # Policies that allow reading, and the tools of `servers`, only
            ours = "".join(
                f'[[rule]]\nmcpName = "{name}"\ntoolName = "*"\ndecision = "allow"\npriority = 500\n'
                for name in names_in_mode(query)
            )
            tools = json.dumps(list(NOT_FOR_READERS))
            never = f'[[rule]]\nmcpName = "{OURS}"\ntoolName = {tools}\ndecision = "deny"\npriority = 900\n'
            reading = f'[[rule]]\ntoolName = {json.dumps(list(READING))}\ndecision = "allow"\npriority = 500\n'
            rules = written(
                folder / "reading.toml",
                f'{never}{reading}{ours}[[rule]]\ntoolName = "*"\ndecision = "deny"\npriority = 1\n',
            )
            argv += ["--admin-policy", rules, "--policy", rules]
        model = self.model(query)
        argv += ["-m", model] if model else []
        argv += ["--resume", query.resume_session_id] if query.resume_session_id else []
        argv += [word for extra in query.additional_directories for word in ("--include-directories", extra)]
        if query.system_prompt:
            env[SYSTEM_PROMPT] = written(folder / "system.md", query.system_prompt)
        return Launch((*argv, *query.additional_args), env, query.prompt)

    def parse(self, line: str, state: dict[str, Any]) -> list[Event]:
        return parse(line, state)

    def parse_stderr(self, line: str, state: dict[str, Any]) -> list[Event]:
        query: Query | None = state.get("query")
        if IGNORED not in line or query is None or query.mode != READ_ONLY:
            return []
        refusal = events.error(
            "an administrator's policies come before ours: it cannot be kept from writing", UNSUPPORTED
        )
        refusal.data["final"] = True
        return [refusal]

    def finish(self, state: dict[str, Any]) -> list[Event]:
        return left_over(state)

    def error_of(self, ending: Ending) -> tuple[str, str] | None:
        return error_of(ending)

    def format_command(self, name: str) -> str:
        return f"Use the skill {name}."

    def command_places(self, cwd: str) -> list[CommandPlace]:
        folders = (os.path.join(cwd, ".gemini"), str(home()))
        return [
            *(CommandPlace(os.path.join(base, ".agents", "skills")) for base in (cwd, str(home().parent))),
            *(CommandPlace(os.path.join(folder, "skills")) for folder in folders),
            *(CommandPlace(os.path.join(folder, "commands"), ".toml") for folder in folders),
        ]

    def checks(self, config: Mapping[str, object]) -> list[Check]:
        env = environment_of(config)
        named = next((key for key in KEYS if env.get(key, "").strip()), "")
        if named:
            return [Check("gemini_signed_in", INFO, f"signed in by {named}")]
        if (home() / "oauth_creds.json").is_file():
            return [Check("gemini_signed_in", INFO, f"signed in, as {home()} has it")]
        hint = "run `gemini` once and sign in, or set GEMINI_API_KEY"
        return [Check("gemini_not_signed_in", WARN, "no sign-in was found", hint)]


def _private_home(query: Query, folder: Path, hidden: HiddenValues) -> Path:
    """Make a home like the user's, with the run's own settings."""
    base = query.env.get(HOME, "").strip()
    if base:
        users = Path(base) / ".gemini"
    else:
        users = home()
    (users / "tmp").mkdir(parents=True, exist_ok=True)  # as the client would: sessions are to outlive the run
    place = folder / "home"
    own = place / ".gemini"
    own.mkdir(parents=True, mode=0o700)
    for entry in os.scandir(users):
        if entry.name not in (SETTINGS, SKILLS):
            (own / entry.name).symlink_to(entry.path)
    for name in (".agents", ".env"):
        if (users.parent / name).exists():
            (place / name).symlink_to(users.parent / name)
    (own / SKILLS).mkdir()
    if (users / SKILLS).is_dir():
        kept = [entry.path for entry in os.scandir(users / SKILLS)]
    else:
        kept = []
    for path in {os.path.basename(skill.rstrip("/")): skill for skill in (*kept, *query.skills)}.values():
        (own / SKILLS / os.path.basename(path.rstrip("/"))).symlink_to(path)
    written(own / SETTINGS, json.dumps(_settings(query, users, folder, hidden)))
    return place


def _settings(query: Query, users: Path, folder: Path, hidden: HiddenValues) -> dict[str, Any]:
    """Return the user's settings with the run's additions."""
    tree = read_layer(users / "settings.json", parse=with_comments).settings
    servers = {name: _server(name, query, hidden) for name in names_in_mode(query)}
    tree["mcpServers"] = {**parse_object(tree.get("mcpServers")), **servers}
    _put(tree, "general", enableAutoUpdate=False, enableAutoUpdateNotification=False)
    off = parse_object(tree.get("hooksConfig")).get("disabled") or []
    _put(tree, "hooksConfig", enabled=True, disabled=[*off, EXTENSION])
    if query.max_turns:
        _put(tree, "model", maxSessionTurns=query.max_turns)
    hooks = parse_object(tree.get("hooks"))
    for event, groups in _hooks(query, folder).items():
        hooks[event] = [*(hooks.get(event) or []), *groups]
    tree["hooks"] = hooks
    return tree


def _put(tree: dict[str, Any], group: str, **values: object) -> None:
    tree[group] = {**parse_object(tree.get(group)), **values}


def _hooks(query: Query, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the extension's hooks, and one more for the addition to the system prompt."""
    wired: dict[str, list[dict[str, Any]]] = object_in(plugin_folder() / HOOKS)["hooks"]
    found = {
        event: [{**group, "hooks": [{**hook, "name": RUN_HOOK} for hook in group["hooks"]]} for group in groups]
        for event, groups in wired.items()
    }
    if query.append_system_prompt:
        told = {"hookEventName": "SessionStart", "additionalContext": query.append_system_prompt}
        words = written(folder / "words.json", json.dumps({"hookSpecificOutput": told}))
        say = {"type": "command", "name": RUN_HOOK, "command": f"cat {shlex.quote(words)}", "timeout": 5000}
        found["SessionStart"] = [*found.get("SessionStart", []), {"hooks": [say]}]
    return found


def _server(name: str, query: Query, hidden: HiddenValues) -> dict[str, Any]:
    server = query.mcp_servers[name]
    # There is no person to ask, and a project's servers are as trusted as its checkout.
    table: dict[str, Any] = {"trust": True}
    values = hidden.names_in(name, server)
    references = {key: f"${{{variable}}}" for key, variable in values.items()}
    if server.url:
        return {**table, "httpUrl": server.url, "headers": references}
    table.update(command=server.command, args=list(server.args), env=references)
    if server.cwd:
        table["cwd"] = server.cwd
    return table
