"""The output of ``codex exec --json`` as events, and the errors of a run.

Item types: codex-rs/exec/src/exec_events.rs of openai/codex. Every line is ``{"type": ...}``: ``thread.started``,
``turn.started|completed|failed``, ``error``, and ``item.started|updated|completed`` with an ``item`` that has an ``id``
and a ``type``. A new type becomes ``custom`` under its own name. The stream lacks calls that a hook has denied
(standard error has them), the model, and the use of its context (the session's own record has these).
"""

from __future__ import annotations

import glob
import json
import os
import re
import time
from typing import Any, NamedTuple

from swarm_mcp.agents.harness import bridge, events, outcome
from swarm_mcp.agents.harness.adapter import refusal_in
from swarm_mcp.agents.harness.events import Event
from swarm_mcp.agents.harness.outcome import RATE_LIMITED, UNREACHABLE, Cost, Ending, count_of, one_line, reason_in
from swarm_mcp.agents.harness.query import parse_object
from swarm_mcp.runtimes.json_editor import list_of, object_of

# The first one found in a message decides. Texts of Codex 0.169 and of the API behind it.
_SIGNS = (
    (outcome.SESSION_NOT_FOUND, r"no rollout found for thread id|thread not found|no saved session found"),
    (outcome.SESSION_IN_USE, r"already has an active writer|thread-store conflict"),
    (outcome.CONTEXT_OVERFLOW, r"context window|context_length_exceeded|maximum context length"),
    (outcome.MODEL_NOT_FOUND, r"model_not_found|\bmodel\b.{0,80}(?:does not exist|not found|is not supported)"),
    (
        outcome.RATE_LIMITED,
        r"\b429\b|too many requests|usage limit|rate limit|quota|high demand|overloaded|\b503\b|at capacity",
    ),
    (
        outcome.AUTH_FAILED,
        r"\b401\b|\b403\b|unauthorized|incorrect api key|invalid api key|missing environment variable"
        r"|not logged in|log in again|refresh token|sign in again",
    ),
    (
        outcome.UNREACHABLE,
        r"connection failed|connection refused|error sending request|waiting for network|stream disconnected"
        r"|dns error|timed out|network is unreachable|\b50[24]\b",
    ),
)  # fmt: skip
_SIGNS_READ = tuple((code, re.compile(pattern, re.IGNORECASE)) for code, pattern in _SIGNS)
_NOISE = re.compile(r"^(?:Reading .*stdin\.\.\.|Stack backtrace:|\s*\d+: .*|WARNING: .*|\s*)$")
_STAMP = re.compile(r"^\S+\s+(?:ERROR|WARN)\s+\S+:\s+(?:error=)?")
_AT = re.compile(r"try again at (?:([A-Z][a-z]{2}) (\d{1,2})(?:st|nd|rd|th)?, (\d{4}) )?(\d{1,2}):(\d{2}) ([AP])M")
_IN = re.compile(r"try again in ((?:\d+(?:\.\d+)?\s*(?:ms|s|m|h|days?|hours?|minutes?|seconds?)\b[\s,]*)+)")
_AGAIN_IN = re.compile(r"retrying sampling request \(\d+/\d+ in (\d+(?:\.\d+)?)(ms|s)\)")
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


def category_of(text: str) -> str:
    """Return the error code for one of Codex's messages."""
    return next((code for code, sign in _SIGNS_READ if sign.search(text)), outcome.UNKNOWN)


def error_of(ending: Ending) -> tuple[str, str] | None:
    """Implement ``HarnessAdapter.error_of``. Only a completed turn and exit code 0 together are a success."""
    given = ending.result
    if given is not None and not given.get("is_error") and ending.exit_code == 0:
        return None
    if given is not None and given.get("is_error"):
        text = str(given.get("error_message") or "the turn failed")
        return str(given.get("error_category") or category_of(text)), one_line(text)
    said = [str(error.get("message") or "") for error in ending.errors]
    if said:
        text = said[-1]
    else:
        text = complaint_in(ending.stderr)
    if text:
        code = category_of(text)
    else:
        code = outcome.UNKNOWN
    if code == outcome.UNREACHABLE and not said:
        code = outcome.UNKNOWN  # of a server that it was given, not of its model
    if code != outcome.UNKNOWN:
        return code, one_line(text)
    if ending.signal:
        return outcome.PROCESS_CRASHED, f"codex was ended by signal {ending.signal}"
    if ending.exit_code == 0:
        return outcome.UNKNOWN, "codex exited without completing its turn"
    how = f"codex exited {ending.exit_code}"
    return outcome.PROCESS_CRASHED, one_line(f"{how}: {text}" if text else how)


def complaint_in(stderr: str) -> str:
    """Return the line of standard error that says why: the last ``Error:``, else the first that says anything."""
    lines = [line for line in stderr.splitlines() if not _NOISE.match(line)]
    wrong = [line for line in lines if line.startswith(("Error", "error"))]
    if lines:
        return _STAMP.sub("", wrong[-1] if wrong else lines[0])
    return ""


def not_before(text: str, now: float | None = None) -> float | None:
    """Return the time for another attempt in a message, in Unix seconds; None without one."""
    if now is None:
        now = time.time()
    later = _IN.search(text)
    if later:
        return now + sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(later.group(1)))
    named = _AT.search(text)
    if not named:
        return None
    month, day, year, hour, minute, half = named.groups()
    today = time.localtime(now)
    year, month_number, day = (
        (int(year), _MONTHS.index(month) + 1, int(day))
        if month in _MONTHS
        else (today.tm_year, today.tm_mon, today.tm_mday)
    )
    hours = int(hour) % 12 + (12 if half == "P" else 0)
    try:
        then = time.mktime((year, month_number, day, hours, int(minute), 0, 0, 0, -1))
    except (OverflowError, ValueError):  # no date
        return None
    if month or then >= now:
        return then
    return then + 86400


def seconds_told(line: str) -> float | None:
    """Return the seconds that Codex waits before a retry, from a line of its log; None without any."""
    found = _AGAIN_IN.search(line)
    if found:
        return float(found.group(1)) * _SECONDS[found.group(2)]
    return None


_RETRY = re.compile(r"Reconnecting\.\.\. (?:\d+/\d+|(waiting for network))\s*")
# Codex waits for a network for ever, and asks about every ten seconds, then less often.
MOST_WAITS = 4
_DENIED = re.compile(r"(?:Command|Tool call) blocked by PreToolUse hook: (.*)")
_NO_SERVER = re.compile(r'MCP server startup failed server_name="?([^"\s]+)"? error=(.*)')
_CALL = re.compile(r"\. (Command|Tool): ")
_OWN_LINE = re.compile(r"\S+\s+[A-Z]+\s+[\w:]+: |(?:Error|error|WARNING)\b")  # no part of a denied call
LARGEST_TEXT = 100_000  # characters of one tool's result; the whole is in Codex's own record


def parse(line: str, state: dict[str, Any]) -> list[Event]:
    """Implement ``HarnessAdapter.parse``."""
    native = parse_object(line)
    if not isinstance(native.get("type"), str):
        return []
    kind = native["type"]
    if kind == "thread.started":
        session = native.get("thread_id")
        if not isinstance(session, str) or not session or state.get("session_id"):
            return []
        state["session_id"] = session
        return [events.session_init(session)]
    if kind == "turn.started":
        return []
    if kind == "turn.completed":
        usage = native.get("usage")
        state.update(usage=usage, completed=True)
        return [events.result(state.get("words"), cost=cost_of(usage).to_dict())]
    if kind == "turn.failed":
        return _failed(native.get("error"), state)
    if kind == "error":
        return _complaint(_text(native.get("message")), state)
    if kind == bridge.REFUSED:
        return [refusal_in(native)]
    item = native.get("item")
    if kind == "item.delta" and isinstance(item, dict):
        return [events.custom("codex.text_delta", {"delta": _text(item.get("delta"))})]
    if kind in ("item.started", "item.updated", "item.completed") and isinstance(item, dict):
        return _item(item, kind, state)
    return [events.custom(f"codex.{kind}", native)]


def parse_stderr(line: str, state: dict[str, Any]) -> list[Event]:
    """Return denied calls, MCP servers that do not start, and waits for the API: Codex logs them, and tells nothing."""
    found = _DENIED.search(line)
    if not found:
        if state.get("denied") and not _OWN_LINE.match(line):
            return [events.custom("codex.denied_call", {"line": line})]  # it is printed whole, a patch in many lines
        state["denied"] = False
        dead = _NO_SERVER.search(line)
        if dead:
            return [_server_failed(*dead.groups())]
        seconds = seconds_told(line)
        if seconds is None:
            return []
        state["told_to_wait"] = seconds if seconds >= 1 else 0  # less is its own rule
        text = line.partition("sampling_error=")[2] or line
        later = state["not_before"] = time.time() + seconds if seconds >= 1 else None
        return [events.retry("codex.retry", {}, text[:400], category_of(text), later)]
    state["denied"] = True
    reason, call, name = found.group(1), "", "codex.hook_denied"
    # A reason may itself have words that look like the end, so the last ones count.
    ends = list(_CALL.finditer(reason))
    if ends:
        reason, call = reason[: ends[-1].start()], reason[ends[-1].end() :]
    if reason_in(reason):
        name = "lock_denied"
    return [events.custom(name, {"message": reason, "call": call[:400], "harness": "codex"})]


def cost_of(usage: object, model: str | None = None) -> Cost:
    """Return the cost from Codex's count; its input includes the tokens read from and written to the cache."""
    if not isinstance(usage, dict):
        usage = {}
    whole, read, written, out = (
        count_of(usage.get(name))
        for name in ("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens")
    )
    if whole is None:
        plain = None
    else:
        plain = max(0, whole - (read or 0) - (written or 0))
    return Cost(None, plain, out, read, written, None, model)


def _server_failed(name: str, why: str) -> Event:
    """The event of an MCP server that did not start, in the form that other harnesses give it."""
    return events.custom("codex.mcp_failed", [{"name": name, "status": "failed", "error": one_line(why)}])


def _failed(error: object, state: dict[str, Any]) -> list[Event]:
    text = _text(error.get("message") if isinstance(error, dict) else error) or "the turn failed"
    if text != state.get("complaint"):
        told = _complaint(text, state)
    else:
        told = []
    more = {}
    code = category_of(text)
    later = not_before(text)
    if not later and code == RATE_LIMITED and state.get("told_to_wait"):
        later = time.time() + state["told_to_wait"]
    if later:
        more["retry_not_before"] = later
    return [*told, events.result(None, True, code, error_message=text, cost=Cost().to_dict(), **more)]


def _complaint(text: str, state: dict[str, Any]) -> list[Event]:
    again = _RETRY.match(text)
    if again:
        code, later = category_of(text[again.end() :] or text), state.get("not_before") or 0.0
        if code != RATE_LIMITED or later <= time.time():
            later = None
        told = [events.retry("codex.retry", {}, text, code, later)]
        state["waits"] = state.get("waits", 0) + 1 if again.group(1) else 0
        if state["waits"] == MOST_WAITS:
            told.append(events.error(text, UNREACHABLE))
            told[-1].data["final"] = True
        return told
    state["complaint"] = text
    return [events.error(text, category_of(text))]


# ------------------------------------------------------------------------------------------------ items


def _item(item: dict[str, Any], when: str, state: dict[str, Any]) -> list[Event]:
    kind, over = item.get("type"), when == "item.completed"
    if kind == "agent_message":
        if not over:
            return []
        state["words"] = _text(item.get("text"))
        return [events.message("assistant", state["words"])]
    if isinstance(kind, str):
        tool = _TOOLS.get(kind)
    else:
        tool = None
    if tool is None:
        # Thoughts, plans, warnings ("error" items are no failures), and new types.
        if over or kind == "todo_list":
            return [events.custom(f"codex.{_text(kind) or when}", item)]
        return []
    call = _text(item.get("id"))
    begun: set[Any] = state.setdefault("begun", set())
    found: list[Event] = []
    name, arguments = tool(item)
    if call not in begun:
        begun.add(call)
        found.append(events.tool_start(call, name, arguments))
    if over:
        text, failed = _outcome(item)
        found.append(events.tool_end(call, name, text[:LARGEST_TEXT], failed))
    return found


def _command(item: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return "Bash", {"command": _text(item.get("command"))}


def _patch(item: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    changes = item.get("changes")
    return "apply_patch", {"changes": changes if isinstance(changes, list) else []}


def _mcp(item: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    given = item.get("arguments")
    if given is None:
        given = {}
    elif not isinstance(given, dict):
        given = {"arguments": given}
    return f"mcp__{_text(item.get('server'))}__{_text(item.get('tool'))}", given


def _search(item: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return "web_search", {"query": _text(item.get("query"))}


_TOOLS = {"command_execution": _command, "file_change": _patch, "mcp_tool_call": _mcp, "web_search": _search}


def _outcome(item: dict[str, Any]) -> tuple[str, bool]:
    """Return the output of a finished call as text, and True for a failure."""
    failed = item.get("status") in ("failed", "declined")
    kind = item.get("type")
    if kind == "command_execution":
        return _text(item.get("aggregated_output")), failed or item.get("exit_code") not in (0, None)
    if kind == "file_change":
        changes = [change for change in list_of(item.get("changes")) if isinstance(change, dict)]
        return "\n".join(f"{_text(c.get('kind'))} {_text(c.get('path'))}".strip() for c in changes), failed
    if kind == "mcp_tool_call":
        error, given = item.get("error"), item.get("result")
        if error:
            return _text(error.get("message") if isinstance(error, dict) else error), True
        if isinstance(given, dict):
            parts = list_of(given.get("content"))
        else:
            parts = []
        text = "\n".join(_text(part.get("text")) if isinstance(part, dict) else _text(part) for part in parts)
        return text or _text(given), failed or bool(isinstance(given, dict) and given.get("is_error"))
    return "", failed


def _text(value: object) -> str:
    """Return text unchanged, None as empty, any other value as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False)


# Codex's own record of a session: ``$CODEX_HOME/sessions/YYYY/MM/DD/rollout-<time>-<session>.jsonl``.
#
# Codex writes it line by line. It is only read here, for facts missing in the stream: the model, its provider, the use
# of its context, and the session's first folder (codex-rs/protocol: ``RolloutItem``; seen with 0.169).

LARGEST = 64 << 20  # bytes of the end of a record that are looked at


class Turn(NamedTuple):
    """The newest turn in a record; None: unknown."""

    model: str | None = None
    used_tokens: int | None = None
    window_tokens: int | None = None
    session_usage: dict[str, Any] | None = None  # tokens of the whole session so far


def path_of(session_id: str, codex_home: str) -> str | None:
    """Return the path of a session's record, or None. `session_id` fits the session pattern."""
    pattern = os.path.join(glob.escape(codex_home), "sessions", "*", "*", "*", f"rollout-*-{session_id}.jsonl*")
    return max(glob.glob(pattern), default=None)


def opening(path: str, name: str) -> str | None:
    """Return a fact of the session's beginning, such as ``cwd``, its first folder, or ``model_provider``."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            first = json.loads(file.readline(1 << 20))
        return str(first["payload"][name])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):  # no record, a torn or an older one
        return None


def last_turn(path: str) -> Turn:
    """Return the newest turn in the record at `path`."""
    model, usage, window, total = None, None, None, None
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LARGEST))
            for line in file:
                if b'"turn_context"' in line:
                    model = object_of(_payload(line, "turn_context")).get("model") or model
                elif b'"token_count"' in line:
                    info = object_of(object_of(_payload(line, "event_msg")).get("info"))
                    usage = object_of(info.get("last_token_usage")).get("total_tokens", usage)
                    window = info.get("model_context_window", window)
                    total = object_of(info.get("total_token_usage")) or total
    except OSError:  # no record
        return Turn()
    return Turn(model if isinstance(model, str) else None, count_of(usage), count_of(window), total)


def _payload(line: bytes, kind: str) -> object:
    found = parse_object(line)
    if found.get("type") == kind:
        return found.get("payload")
    return None
