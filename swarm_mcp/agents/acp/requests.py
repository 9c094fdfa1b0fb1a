"""The agent's requests that write, or ask for leave to write, as calls that the hook core can check.

The protocol is JSON-RPC with a message a line. An agent has the editor write files (``fs/write_text_file``) and run
commands (``terminal/create``), or asks for permission and does both by itself (``session/request_permission``).
"""

from __future__ import annotations

import json
import os
import re
import shlex
from typing import Any, NamedTuple

from swarm_hook_core import EDIT, REMOVE, REPLACE
from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.mcp_writers import is_writer
from swarm_hook_core.mcp_writers.arguments import FOLDERS, PATHS, SOURCES, TARGETS, first, local, values
from swarm_hook_core.mcp_writers.table import is_own

WRITE, TERMINAL, PERMISSION = "fs/write_text_file", "terminal/create", "session/request_permission"
SESSION_VARIABLE = "SWARM_ACP_SESSION_ID"
WATCHED = (WRITE, TERMINAL, PERMISSION)
LARGEST_COMPARED = 4 * 1024 * 1024  # bytes of a file that a diff's old text is looked for in

# Names of our own for the calls that the relay hands to the hook core. `write` has a path and the whole new content.
_WHOLE, _FILES, _SHELL = "write", "files", "Bash"
_SERVER = "mcp__agent__"  # before the name of a tool: no tool of an agent is taken for one of these three
_COMMANDS = ("command", "cmd", "script")
_FOLDERS = (*FOLDERS, "dir_path")
_HOWS = {"edit": EDIT, "delete": REMOVE, "move": REMOVE}  # kind of a call -> the fate of its files
_HARMLESS = ("read", "search", "think", "fetch", "switch_mode")  # kinds of calls that write no file
OF_A_SERVER = re.compile(r"(\S+) \((\S+) MCP Server\)(?:: .*)?", re.S)  # a title: Gemini, Qwen Code


class Made(NamedTuple):
    """A call as the hook core takes it.

    name    the agent's own word for it, for its model
    tool    the tool, and its `input`
    folder  the folder of relative paths; empty for the session's
    """

    name: str
    tool: str
    input: dict[str, Any]
    folder: str = ""


def changes_in(tool_input: object) -> list[tuple[str, str]]:
    """Return ``(path, how)`` of each file that a call made here writes."""
    if not isinstance(tool_input, dict):
        raise ValueError("tool input is not an object")
    if "path" in tool_input:
        return [(tool_input["path"], REPLACE)]
    return [(path, how) for path, how in tool_input["files"]]


def config(name: str, prefix: str) -> RuntimeConfig:
    """Return the runtime of calls made here by a session of the runtime `name`."""
    return RuntimeConfig(
        runtime_name=name,
        env_prefix=prefix,
        scratch_dir_name=f"swarm-{name}",
        write_tools={_WHOLE, _FILES},
        replaces={_WHOLE},
        extract_changes=changes_in,
    )


CONFIG = config("acp", "ACP")


def session_of(request: dict[str, Any]) -> str:
    """Return the id of the session that a request is about, or an empty text."""
    return _text(_object(request.get("params")).get("sessionId"))


def call_of(request: dict[str, Any]) -> Made | None:
    """Return the call that a request of the agent has the editor make, None if it writes nothing."""
    params = _object(request.get("params"))
    method = request.get("method")
    if method == WRITE:
        return _whole(WRITE, _text(params.get("path")), params.get("content"))
    if method == TERMINAL:
        words = [_text(params.get("command")), *_texts(params.get("args"))]
        return _command(TERMINAL, words, _text(params.get("cwd")))
    return None


def marked(request: dict[str, Any]) -> dict[str, Any]:
    """Return a terminal's request with a variable that names the session.

    The editor starts the command: nothing else tells `swarm-mcp` there that it is an agent's.
    """
    params = request["params"]
    env = [*(params.get("env") or []), {"name": SESSION_VARIABLE, "value": params["sessionId"]}]
    return {**request, "params": {**params, "env": env}}


def reject_option(request: dict[str, Any]) -> str:
    """Return the id of the option of a permission request that rejects the call this time, or an empty text."""
    options = _objects(_object(request.get("params")).get("options"))
    kinds = {_text(one.get("kind")): _text(one.get("optionId")) for one in options}
    return kinds.get("reject_once") or kinds.get("reject_always") or ""


def is_allowed(request: dict[str, Any], result: dict[str, Any]) -> bool:
    """Return True if the editor's answer to a permission request allows the call."""
    chosen = _object(result.get("outcome")).get("optionId")
    options = _objects(_object(request.get("params")).get("options"))
    return any(one.get("optionId") == chosen and _text(one.get("kind")).startswith("allow") for one in options)


def asked(tool_call: dict[str, Any], folder: str) -> Made | None:
    """Return the call that the agent makes by itself, None if it names no write. `folder`: of relative paths.

    Its diffs say more than its input, the places that it touches least. A tool of another server, and any other
    without a kind, is read by the table that the hooks use (``mcp_writers``).
    """
    kind, given, tool = _text(tool_call.get("kind")), _input_of(tool_call), tool_name(tool_call)
    name = _text(tool_call.get("name")) or kind
    diffs = [one for one in _objects(tool_call.get("content")) if one.get("type") == "diff" and _text(one.get("path"))]
    if diffs:
        # The call that makes these changes
        hows = {_text(one["path"]): _how(one, folder) for one in diffs}
        if len(diffs) == 1 and REPLACE in hows.values():
            return _whole(name, diffs[0]["path"], diffs[0].get("newText"))
        return Made(name, _FILES, {"files": [[path, how] for path, how in hows.items()]})
    if kind == "execute":
        words = next((given[key] for key in _COMMANDS if given.get(key)), tool_call.get("title"))
        return _command(name, [words] if isinstance(words, str) else _texts(words), local(first(given, _FOLDERS)))
    if kind == "move" and values(given, SOURCES) and values(given, TARGETS):
        return Made(name, f"{_SERVER}move_file", given)
    if kind in _HOWS:
        paths = [_text(one.get("path")) for one in _objects(tool_call.get("locations"))]
        paths += [local(path) for path in values(given, (*PATHS, *(SOURCES + TARGETS if kind == "move" else ())))]
        files = [[path, _HOWS[kind]] for path in dict.fromkeys(filter(None, paths))]
        if files:
            return Made(name, _FILES, {"files": files})
    if kind in _HARMLESS or is_own(tool):
        return None
    known = tool if tool.startswith("mcp__") else f"{_SERVER}{tool}"
    return Made(tool or name, known, given) if is_writer(known, given) else None


def is_untold(tool_call: dict[str, Any]) -> bool:
    """Return True if the agent has not told the input of a call yet. OpenCode asks first, and tells a moment later."""
    if _text(tool_call.get("kind")) in (*_HARMLESS, "execute") or tool_call.get("status") not in (None, "pending"):
        return False  # the title of a command has its text
    return not (_input_of(tool_call) or tool_call.get("content") or tool_call.get("locations"))


def tool_name(tool_call: dict[str, Any]) -> str:
    """Return the name of a call's tool: the agent's own word, else the one in its title; empty if that is prose."""
    more, title = _object(tool_call.get("_meta")), _text(tool_call.get("title"))
    own = _text(tool_call.get("name")) or _text(more.get("toolName"))
    served = OF_A_SERVER.fullmatch(title)
    if served and not own:
        return f"mcp__{served[2]}__{served[1]}"
    return own or (title if re.fullmatch(r"[\w.:-]+", title) else "")


def _input_of(tool_call: dict[str, Any]) -> dict[str, Any]:
    """Return the input of a call. Gemini tells that of a server's tool as JSON, in a text for the person."""
    given = _object(tool_call.get("rawInput"))
    if given:
        return given
    for one in _objects(tool_call.get("content")):
        text = _text(_object(one.get("content")).get("text"))
        if text.startswith("{"):
            try:
                return _object(json.loads(text))
            except (ValueError, RecursionError):
                continue  # prose that begins with a brace
    return {}


def _how(diff: dict[str, Any], folder: str) -> str:
    """Return EDIT for a diff with a part of the file as its old text, REPLACE for one with a whole text."""
    old = diff.get("oldText")
    if not isinstance(old, str) or not old:
        return REPLACE
    try:
        with open(os.path.join(folder, diff["path"]), encoding="utf-8", newline="") as file:
            present = file.read(LARGEST_COMPARED)
    except (OSError, ValueError):
        return EDIT  # no file, or an empty one
    return EDIT if old in present and old != present else REPLACE


def _whole(name: str, path: str, content: object) -> Made | None:
    return Made(name, _WHOLE, {"path": path, "content": _text(content)}) if path else None


def _command(name: str, words: list[str], folder: str) -> Made | None:
    """Return the call of a shell command: one text, or the words of one command."""
    text = words[0] if len(words) == 1 else shlex.join(words)
    return Made(name, _SHELL, {"command": text}, folder) if text.strip() else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
