"""pi as a harness."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from swarm_mcp.agents.harness import outcome
from swarm_mcp.agents.harness.adapter import INFO, WARN, Capabilities, Check, CommandPlace, HarnessAdapter, Launch
from swarm_mcp.agents.harness.environment import plugin_folder, written
from swarm_mcp.agents.harness.events import (
    COMPACTION,
    CONTEXT_USAGE,
    Event,
    custom,
    error,
    message,
    result,
    retry,
    session_init,
)
from swarm_mcp.agents.harness.events import tool_end as tool_ended
from swarm_mcp.agents.harness.events import tool_start as tool_started
from swarm_mcp.agents.harness.outcome import Cost, Ending, code_of
from swarm_mcp.agents.harness.query import READ_ONLY, Query, parse_object
from swarm_mcp.agents.harness.registry import environment_of
from swarm_mcp.agents.harness.servers import tool_of
from swarm_mcp.folders import names_in
from swarm_mcp.runtimes.pi import home
from swarm_mcp.runtimes.users_file import object_in

# The output of pi with ``--mode json``: a header, then one event a line (``docs/json.md`` of its package, 0.74).
#
# Only ends are used: ``message_end`` has the whole message, ``message_update`` repeats its beginning with one delta.

_UPDATE = '{"type":"message_update"'
_SILENT = frozenset({"agent_start", "turn_start", "turn_end", "message_start", "message_update", "queue_update"})
# Texts of pi itself and of its providers, beside those in errors_of.
_AUTH = re.compile(r"no models available|no credentials|permission.?denied|re-authenticate", re.IGNORECASE)
_OVERFLOW = re.compile(
    r"request_too_large|prompt too long|too many tokens|token limit|reduce the length of the messages"
    r"|maximum prompt length|available context size|greater than the context length|exceeds the limit of \d+",
    re.IGNORECASE,
)


def events_of(line: str, state: dict[str, Any]) -> list[Event]:
    """Return the events of one line; `state` collects the run's numbers (`cost_of`). Never raises."""
    told = parse_object(line)
    if not told:
        return []
    kind = told.get("type")
    try:
        if isinstance(kind, str):
            read = _READERS.get(kind)
        else:
            read = None
        if read:
            return read(told, state)
        if kind in _SILENT:
            return []
        return [custom(f"pi.{kind}", told)]
    except (AttributeError, KeyError, TypeError, ValueError):  # a form that is new to us
        return [custom(f"pi.{kind}", told)]


def without_repetition(line: str) -> str:
    """Return an update's line without the repeated beginning of the message; other lines unchanged.

    An answer of 20 kB would make a record of hundreds of megabytes. Raises decoding errors.
    """
    if not line.startswith(_UPDATE):
        return line
    told = json.loads(line)
    told.pop("message", None)
    told["assistantMessageEvent"].pop("partial", None)
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))


def cost_of(state: dict[str, Any]) -> Cost:
    """Return the cost of this run's answers. A model without a price makes the sum unknown."""
    used = state.get("used")
    if not used:
        return Cost(num_turns=state.get("turns"), model=state.get("model"))
    return Cost(
        None if state.get("unpriced") else round(used["cost"], 10),
        used["input"], used["output"], used["cacheRead"], used["cacheWrite"], state["turns"], state.get("model"),
    )  # fmt: skip


def category_of(text: str) -> str:
    """Return the error code of a complaint of pi, or of a model's API."""
    found = code_of(text)
    if not found and _OVERFLOW.search(text):
        return outcome.CONTEXT_OVERFLOW
    return found or (outcome.AUTH_FAILED if _AUTH.search(text) else outcome.UNKNOWN)


def _session(told: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    name = told.get("id")
    if state.get("session") or not isinstance(name, str):
        return [custom("pi.session", told)]
    state["session"] = name
    return [session_init(name, cwd=told.get("cwd"))]


def _update(told: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    piece = told["assistantMessageEvent"]
    if piece.get("type") in ("text_delta", "thinking_delta"):
        return [custom(f"pi.{piece['type']}", {"delta": str(piece.get("delta", ""))})]
    return []


def _message(told: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    said = told["message"]
    role = said.get("role")
    if role == "user":
        return [message("user", _text(said.get("content")))]
    if role == "toolResult":
        return []  # tool_execution_end has told it
    if role != "assistant":
        return [custom(f"pi.message.{role}", said)]
    content = said.get("content")
    found = []
    for block in content if isinstance(content, list) else ():
        if block.get("type") == "thinking" and block.get("thinking"):
            found.append(message("assistant", str(block["thinking"]), thinking=True))
    text = _text(content)
    if text:
        found.append(message("assistant", text))
    state["last"] = {"text": text, "reason": said.get("stopReason"), "complaint": said.get("errorMessage")}
    return found + _count(said, state)


def _count(said: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    """Add one answer to the run's numbers; how full the context is now."""
    model = "/".join(str(said[part]) for part in ("provider", "model") if said.get(part))
    state["model"] = model or state.get("model")
    usage = said.get("usage") or {}
    tokens = {name: _number(usage.get(name)) for name in ("input", "output", "cacheRead", "cacheWrite")}
    if not any(tokens.values()):
        return []  # it failed before it was counted
    state["turns"] = state.get("turns", 0) + 1
    price = _number((usage.get("cost") or {}).get("total"))
    state["unpriced"] = state.get("unpriced", False) or not price
    used = state.setdefault("used", dict.fromkeys((*tokens, "cost"), 0))
    for name, value in (*tokens.items(), ("cost", price)):
        used[name] += value
    full = _number(usage.get("totalTokens")) or sum(tokens.values())
    facts: dict[str, Any] = {"context_used_tokens": full, "context_total_tokens": None, "context_percent": None}
    facts["cost_usd"], facts["num_turns"] = cost_of(state).total_cost_usd, state["turns"]
    facts["spent"] = cost_of(state).to_dict()
    facts["goes_on"] = said.get("stopReason") == "toolUse"
    return [Event(CONTEXT_USAGE, {**facts, "output_tokens": tokens["output"]})]


def _start(told: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    return [tool_started(str(told["toolCallId"]), str(told["toolName"]), told.get("args"))]


def _end(told: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    gave = told.get("result")
    if isinstance(gave, dict):
        text = _text(gave.get("content"))
    elif gave is None:
        text = ""
    else:
        text = str(gave)
    failed = told.get("isError") is True
    found = [tool_ended(str(told["toolCallId"]), str(told["toolName"]), text, failed)]
    if failed and text.startswith(outcome.BEGINS):
        found.append(custom("lock_denied", {"message": text, "call": str(told["toolName"]), "harness": "pi"}))
    return found


def _progress(told: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    return []  # a tool's output so far, repeated


def _agent_end(told: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    last = state.get("last") or {}
    failed = last.get("reason") in ("error", "aborted")
    if not failed:
        state["failed"] = []
        return [result(last.get("text"), cost=cost_of(state).to_dict())]
    complaint = " ".join(str(last.get("complaint") or f"the model's answer ended with {last['reason']}").split())
    if last["reason"] == "aborted":
        category = outcome.ABORTED
    else:
        category = category_of(complaint)
    ended = result(last.get("text") or None, True, category, cost=cost_of(state).to_dict(), error_message=complaint)
    state["failed"] = [error(complaint, category), ended]
    return []


def _retry(told: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    state["failed"] = []
    said = str(told.get("errorMessage") or "")
    return [retry("pi.auto_retry_start", told, said, category_of(said))]


def left_over(state: dict[str, Any]) -> list[Event]:
    """Return the events of a run with a failed last answer: only the end shows that pi did not try again."""
    return state.get("failed") or []


def _compacted(told: dict[str, Any], state: dict[str, Any]) -> list[Event]:
    done = told.get("result")
    if not isinstance(done, dict):
        return [custom("pi.compaction_end", told)]
    if told.get("reason") == "manual":
        trigger = "manual"
    else:
        trigger = "auto"
    before = done.get("tokensBefore")
    facts = {"pre_compact_tokens": before, "compact_trigger": trigger, "context_total_tokens": None}
    return [Event(COMPACTION, facts)]


_READERS = {
    "session": _session, "message_update": _update, "message_end": _message, "tool_execution_start": _start,
    "tool_execution_update": _progress, "tool_execution_end": _end, "agent_end": _agent_end,
    "auto_retry_start": _retry, "compaction_end": _compacted,
}  # fmt: skip


def _text(content: object) -> str:
    """Return the text of a message or a result; parts that are no text are named."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        blocks = [block for block in content if isinstance(block, dict)]
    else:
        blocks = []
    shown = [str(block.get("text", "")) if block.get("type") == "text" else "" for block in blocks]
    shown += ["[image]" for block in blocks if block.get("type") == "image"]
    return "\n".join(text for text in shown if text)


def _number(value: object) -> float | int:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return value
    return 0


# The harness ``pi`` (npm ``@earendil-works/pi-coding-agent``), run with ``--mode json -p``.
#
# Measured on 0.74.2: it exits with 0 even where the model's API refused (the last message says so), asks on standard
# input before it takes a session of another folder (and exits with 0 when the answer is no), and knows no MCP: its
# servers reach it through our extension.

EXTENSION = "integrations/pi/index.ts"
SERVERS = "SWARM_PI_SERVERS"  # names a private file with MCP servers for the extension
_THINKING = {"low": "low", "medium": "medium", "high": "high", "max": "xhigh"}
_READING = ("read", "grep", "find", "ls")
# The tools of swarm's own MCP server that a read-only run has: the listed ones but NOT_FOR_READERS. A test compares
# them with the server's, since a harness does not import it.
SWARM_TOOLS = (
    "register", "whoami", "bootstrap", "lock_file", "unlock_file", "transfer_lock", "request_lock", "explain_lock",
    "send_message", "prompt_peer", "broadcast", "poll_messages", "request_task", "request_task_batch", "claim_task",
    "claim_next_task", "complete_task", "report_progress", "request_human_input", "approve_task", "get_task",
    "list_tasks", "kv_get", "kv_set", "swarm_status", "wait_for_activity",
)  # fmt: skip
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_NO_SESSION = (
    "No session found matching", "Session found in different project", "Stored session working directory does not",
    "Cannot fork: source session",
)  # fmt: skip


class Pi(HarnessAdapter):
    """The harness ``pi``."""

    name = "pi"
    label = "pi"
    program = "pi"
    home_variables = ("PI_CODING_AGENT_DIR",)
    instructions = (
        "npm install -g @earendil-works/pi-coding-agent (0.74.2 is the newest for Node 20), then pi and /login, or an"
        " API key in the environment"
    )
    capabilities = Capabilities(
        resume=True, fork=True, read_only=True, system_prompt=True, append_system_prompt=True, mcp=True,
        client_tools=True, native_skills=True, streaming_tokens=True, cost=True, locks=True, model=True, effort=True,
        max_cost=True, max_turns=True,
    )  # fmt: skip
    doc = """\
Runs the pi coding agent without its screen. Locks, the swarm's tools and other MCP servers come to it through the
swarm's extension, which is named on its command line.
Use when the model is one that pi has an account for (many providers, local ones too), or when start-up and tool set
are to be small.
Do not use when the work needs a sandbox or permissions: pi has none, so the modes edit and yolo are the same. Nor when
read-only work needs MCP servers of one's own: only pi's reading tools, the swarm's and client tools are on then. Nor
when the answer has to follow a schema, which is refused.
Settings: model (provider/id or any pattern pi takes; PI_DEFAULT_MODEL; default: pi's own), effort (low, medium, high,
max, which is pi's xhigh; default: pi's own), mode (edit), skills, mcp_servers, system_prompt, append_system_prompt,
resume_session_id, fork_session, max_cost_usd and max_turns (0: none; the runner ends it at them, and where the model
has no price at its first answer), additional_args, command (default: pi), env, timeout_seconds (0: none),
grace_seconds (15). pi's own: PI_CODING_AGENT_DIR (~/.pi/agent), PI_CODING_AGENT_SESSION_DIR."""

    def launch(self, query: Query, folder: Path) -> Launch:
        argv = [*(query.command or (self.program,)), "-p", "--mode", "json", "-e", str(plugin_folder() / EXTENSION)]
        model = self.model(query)
        argv += ["--model", model] if model else []
        argv += ["--thinking", _THINKING[query.effort]] if query.effort else []
        if query.resume_session_id:
            argv += ["--fork" if query.fork_session else "--session", query.resume_session_id]
        if query.system_prompt:
            argv += ["--system-prompt", written(folder / "system.md", query.system_prompt)]
        if query.append_system_prompt:
            # Given one, pi leaves out the file that the user has for this.
            own = _first_file(Path(query.cwd) / ".pi" / "APPEND_SYSTEM.md", home() / "APPEND_SYSTEM.md")
            argv += ["--append-system-prompt", own] if own else []
            argv += ["--append-system-prompt", written(folder / "append.md", query.append_system_prompt)]
        for skill in query.skills:
            argv += ["--skill", skill]
        if query.mode == READ_ONLY:
            # The tools of a read-only run beside pi's own: the swarm's, and the caller's
            names = [f"mcp__swarm__{name}" for name in SWARM_TOOLS]
            argv += [
                "--tools",
                ",".join(
                    (*_READING, *(names + [f"mcp__client_tools__{tool_of(one).name}" for one in query.client_tools]))
                ),
            ]
        listed = {"mcpServers": {name: server.to_dict() for name, server in query.mcp_servers.items()}}
        env = {SERVERS: written(folder / "servers.json", json.dumps(listed))}
        # pi trims away an empty first line, but takes it as no to its question about copying another folder's session.
        return Launch((*argv, *query.additional_args), env, f"\n{query.prompt}")

    def parse(self, line: str, state: dict[str, Any]) -> list[Event]:
        return events_of(line, state)

    def recorded(self, line: str) -> str:
        return without_repetition(line)

    def finish(self, state: dict[str, Any]) -> list[Event]:
        return left_over(state)

    def error_of(self, ending: Ending) -> tuple[str, str] | None:
        stderr = [line.strip() for line in _COLOUR.sub("", ending.stderr).splitlines() if line.strip()]
        if ending.result is not None and ending.exit_code == 0:
            if not ending.result.get("is_error"):
                return None
            said = str(ending.result.get("error_message") or "")
            return str(ending.result.get("error_category") or outcome.UNKNOWN), said or "pi reports a failure"
        for line in stderr:
            if line.startswith(_NO_SESSION):
                return outcome.SESSION_NOT_FOUND, line
        last = next((line for line in stderr if line.startswith("Error")), stderr[-1] if stderr else "")
        if ending.exit_code and not ending.signal and last:
            return category_of(" ".join(stderr)), last
        if ending.signal:
            how = f"signal {ending.signal}"
        else:
            how = f"exit code {ending.exit_code}"
        return outcome.PROCESS_CRASHED, f"pi ended without an answer ({how}){': ' + last if last else ''}"

    def can_resume(self, session_id: str, cwd: str) -> bool | None:
        """Return True if pi keeps a session with this id for this folder."""
        for path in _session_files(session_id, cwd):
            try:
                with open(path, encoding="utf-8", errors="replace") as file:
                    head = json.loads(file.readline(65536))
            except (OSError, ValueError, RecursionError):  # no session file
                continue
            if isinstance(head, dict) and head.get("type") == "session" and head.get("id") == session_id:
                return os.path.realpath(str(head.get("cwd") or "")) == os.path.realpath(cwd)
        return False

    def format_command(self, name: str) -> str:
        return f"/skill:{name}"

    def command_places(self, cwd: str) -> list[CommandPlace]:
        folders = (os.path.join(cwd, ".pi"), str(home()))
        return [
            *(CommandPlace(os.path.join(folder, "skills")) for folder in folders),
            *(CommandPlace(os.path.join(folder, "prompts"), ".md") for folder in folders),
        ]

    def checks(self, config: Mapping[str, object]) -> list[Check]:
        found, places = [], []
        for name in ("settings.json", "auth.json", "models.json"):
            path = home() / name
            tree, fault = _read(path)
            if fault:
                found.append(Check("pi_settings_unreadable", WARN, f"{path}: {fault}", "mend the file"))
            if name == "auth.json" and tree:
                places.append(f"{name} ({', '.join(sorted(tree))})")
            if name == "models.json" and isinstance(tree.get("providers"), dict) and tree["providers"]:
                places.append(f"{name} ({', '.join(sorted(tree['providers']))})")
        env = environment_of(config)
        places += [key for key in KEYS if env.get(key, "").strip()]
        if places:
            found.append(Check("pi_credentials", INFO, f"accounts for models: {'; '.join(places)}"))
        else:
            found.append(Check("pi_credentials_missing", WARN, "no account for a model is in sight", self.instructions))
        return found

    def listed_models(self) -> list[dict[str, Any]]:
        path = shutil.which(self.program)
        if not path:
            return []
        argv = [path, "--offline", "--no-extensions", "--list-models"]
        try:
            done = subprocess.run(
                argv, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace",
                timeout=LIST_SECONDS,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):  # pi cannot tell
            return []
        rows = [line.split() for line in (done.stdout or done.stderr).splitlines()]
        at = next((number for number, row in enumerate(rows) if row[:3] == ["provider", "model", "context"]), None)
        if at is not None:
            listed = rows[at + 1 :]
        else:
            listed = []
        return [
            {"name": f"{row[0]}/{row[1]}", "short": row[1], "context_tokens": _size(row[2])}
            for row in listed
            if len(row) >= 3
        ]


def _session_files(session_id: str, cwd: str) -> list[Path]:
    """The files that may be of this session, where pi started in `cwd` looks for it."""
    chosen = os.environ.get("PI_CODING_AGENT_SESSION_DIR", "").strip() or _setting("sessionDir", cwd)
    if chosen:
        folder = Path(os.path.join(cwd, os.path.expanduser(chosen)))
    else:
        plain = os.path.realpath(cwd).lstrip("/\\")
        folder = home() / "sessions" / f"--{plain.replace('/', '-').replace(':', '-').replace(chr(92), '-')}--"
    # Ids come from outside: compared, never put into a pattern.
    return [folder / name for name in names_in(str(folder)) if name.endswith(f"_{session_id}.jsonl")]


def _setting(name: str, cwd: str) -> str:
    """Return a text in pi's settings, the project's before the user's; empty without one."""
    for path in (Path(cwd) / ".pi" / "settings.json", home() / "settings.json"):
        value = object_in(path).get(name)
        if isinstance(value, str) and value.strip():
            return value
    return ""


def _first_file(*paths: Path) -> str:
    return next((str(path) for path in paths if path.is_file()), "")


# Variables that pi takes a key from, by its own help (0.74.2).
KEYS = tuple(
    f"{name}_API_KEY"
    for name in (
        "ANTHROPIC", "OPENAI", "AZURE_OPENAI", "DEEPSEEK", "GEMINI", "GROQ", "CEREBRAS", "XAI", "FIREWORKS", "TOGETHER",
        "OPENROUTER", "AI_GATEWAY", "ZAI", "MISTRAL", "MINIMAX", "MOONSHOT", "OPENCODE", "KIMI", "CLOUDFLARE", "XIAOMI",
    )
) + ("ANTHROPIC_OAUTH_TOKEN", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_BEARER_TOKEN_BEDROCK")  # fmt: skip
LIST_SECONDS = 15.0
_SIZES = {"K": 1_000, "M": 1_000_000}


def _size(text: str) -> int | None:
    """``200K`` as a number."""
    try:
        return int(float(text.rstrip("KM")) * _SIZES.get(text[-1:], 1))
    except ValueError:  # no number
        return None


def _read(path: Path) -> tuple[dict[str, Any], str]:
    """Return the object in a file, and its fault; a missing file has neither."""
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:  # no settings yet
        return {}, ""
    except (OSError, ValueError, RecursionError) as error:
        return {}, " ".join(str(error).split())
    if isinstance(tree, dict):
        return (tree, "")
    return ({}, "is not a JSON object")
