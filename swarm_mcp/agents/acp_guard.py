"""The sessions of one agent behind the relay: registered while they are open, their calls checked before they are made.

Hooks of ours in the agent register a session under the same id. Then that one is the session here, too: some agents run
hooks at a session's start, and none before their calls. Each fault of ours is recorded, and the call goes ahead.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

from swarm_hook_core import EDIT, REMOVE, REPLACE, session_events, state
from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.coordinator import chosen_command
from swarm_hook_core.core import HookCore
from swarm_hook_core.denial import Denial
from swarm_hook_core.hooks import SessionEvent, ToolCall, Verdict
from swarm_hook_core.mcp_writers import (
    FOLDERS,
    PATHS,
    SOURCES,
    TARGETS,
    first,
    is_own,
    is_writer,
    local,
    patched,
    values,
)
from swarm_hook_core.process import start_time
from swarm_hook_core.registration import CommandRegistrar
from swarm_hook_core.traces import state_of
from swarm_hook_core.traces.trail import trail_of
from swarm_mcp.agents.harness.bridge import OF_A_SERVER
from swarm_mcp.errors import SwarmError
from swarm_mcp.hooks.session_hooks import StoreRegistrar
from swarm_mcp.installation import coordinator_command
from swarm_mcp.runtimes import NAMES, hook_config
from swarm_mcp.runtimes.json_editor import list_of, object_of, text_of
from swarm_mcp.store import Store, driver

# The agent's requests that write, or ask for leave to write, as calls that the hook core can check.
#
# The protocol is JSON-RPC with a message a line. An agent has the editor write files (``fs/write_text_file``) and run
# commands (``terminal/create``), or asks for permission and does both by itself (``session/request_permission``).

READ, WRITE, TERMINAL = "fs/read_text_file", "fs/write_text_file", "terminal/create"
PERMISSION = "session/request_permission"
SESSION_VARIABLE = "SWARM_ACP_SESSION_ID"
WATCHED = (WRITE, TERMINAL, PERMISSION)
LARGEST_COMPARED = 4 * 1024 * 1024  # bytes of a file that a diff's old text is looked for in

# Names of our own for the calls that the relay hands to the hook core. `write` has a path and the whole new content.
_WHOLE, _FILES, _SHELL = "write", "files", "Bash"
_SERVER = "mcp__agent__"  # before the name of a tool: no tool of an agent is taken for one of these three
_COMMANDS = ("command", "cmd", "script")
_FOLDERS = (*FOLDERS, "dir_path")
_HOWS = {"edit": EDIT, "delete": REMOVE, "move": REMOVE}  # kind of a call -> the fate of its files
_PATCHES = ("patch", "patch_text", "patchText", "diff", "input")
_WHOLES = ("content", "contents", "text")  # of a tool that tells neither kind nor name: it writes a whole file
_PARTS = ("old_string", "oldString", "old_text", "oldText", "new_string", "newString", "edits[].path", "changes[].path")
_HARMLESS = ("read", "search", "think", "fetch", "switch_mode")  # kinds of calls that write no file


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


class Permit(NamedTuple):
    """An option that always allows calls like one: its id and label, the call's name, and its command or files."""

    option: str
    label: str
    name: str
    about: str


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
    return text_of(object_of(request.get("params")).get("sessionId"))


def call_of(request: dict[str, Any]) -> Made | None:
    """Return the call that a request of the agent has the editor make, None if it writes nothing."""
    params = object_of(request.get("params"))
    method = request.get("method")
    if method == WRITE:
        return _whole(WRITE, text_of(params.get("path")), params.get("content"))
    if method == TERMINAL:
        words = [text_of(params.get("command")), *_texts(params.get("args"))]
        return _command(TERMINAL, words, text_of(params.get("cwd")))
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
    kinds = {text_of(one.get("kind")): text_of(one.get("optionId")) for one in _options(request)}
    return kinds.get("reject_once") or kinds.get("reject_always") or ""


def allow_option(request: dict[str, Any]) -> str:
    """Return the id of the option of a permission request that allows the call this time, or an empty text."""
    return next((text_of(one.get("optionId")) for one in _options(request) if one.get("kind") == "allow_once"), "")


def permits(request: dict[str, Any], made: Made) -> dict[str, Permit]:
    """Return the options of a permission request that allow such calls for good, by their ids.

    Empty if it has no option for once. A call is like another with the same command or files: how much more the agent
    would have in mind is unknown, unless the label says "all".
    """
    found = {}
    for one in _options(request):
        option, label = text_of(one.get("optionId")), text_of(one.get("name"))
        if one.get("kind") == "allow_always" and allow_option(request):
            about = values(made.input, ("command", *PATHS, *SOURCES, *TARGETS))
            if made.tool != _SHELL and "all" in label.lower().split():
                about = []
            found[option] = Permit(option, label, made.name, "\n".join(about))
    return found


def chosen(result: dict[str, Any]) -> str:
    """Return the id of the option that the editor's answer to a permission request chooses, or an empty text."""
    return text_of(object_of(result.get("outcome")).get("optionId"))


def whole_file(request: dict[str, Any]) -> str:
    """Return the path of a request for the text of a whole file; empty if it is for some lines."""
    params = object_of(request.get("params"))
    return "" if params.get("limit") or params.get("line") not in (None, 0, 1) else text_of(params.get("path"))


def text_in(answer: dict[str, Any]) -> str:
    """Return the text in the editor's answer to a request for a file, or an empty text."""
    return text_of(object_of(answer.get("result")).get("content"))


def is_allowed(request: dict[str, Any], result: dict[str, Any]) -> bool:
    """Return True if the editor's answer to a permission request allows the call."""
    option = chosen(result)
    kinds = [text_of(one.get("kind")) for one in _options(request) if one.get("optionId") == option]
    return any(kind.startswith("allow") for kind in kinds)


def asked(tool_call: dict[str, Any], folder: str) -> Made | None:
    """Return the call that the agent makes by itself, None if it names no write. `folder`: of relative paths.

    Its diffs say more than its input, the places that it touches least. A tool of another server, and any other
    without a kind, is read by the table that the hooks use (``mcp_writers``).
    """
    kind, given, tool = text_of(tool_call.get("kind")), _input_of(tool_call), tool_name(tool_call)
    name = text_of(tool_call.get("name")) or kind
    diffs = [
        one for one in _objects(tool_call.get("content")) if one.get("type") == "diff" and text_of(one.get("path"))
    ]
    if diffs:
        # The call that makes these changes
        hows = {text_of(one["path"]): _how(one, folder) for one in diffs}
        if len(diffs) == 1 and REPLACE in hows.values():
            return _whole(name, diffs[0]["path"], diffs[0].get("newText"))
        return Made(name, _FILES, {"files": [[path, how] for path, how in hows.items()]})
    if kind == "execute":
        words = next((given[key] for key in _COMMANDS if given.get(key)), tool_call.get("title"))
        return _command(name, [words] if isinstance(words, str) else _texts(words), local(first(given, _FOLDERS)))
    if kind == "move" and values(given, SOURCES) and values(given, TARGETS):
        return Made(name, f"{_SERVER}move_file", given)
    if kind in _HOWS:
        paths = [text_of(one.get("path")) for one in _objects(tool_call.get("locations"))]
        paths += [local(path) for path in values(given, (*PATHS, *(SOURCES + TARGETS if kind == "move" else ())))]
        paths += [*object_of(given.get("changes"))]
        paths += [path for text in values(given, _PATCHES) for path, _how in patched(text)]
        files = [[path, _HOWS[kind]] for path in dict.fromkeys(filter(None, paths))]
        if files:
            return Made(name, _FILES, {"files": files})
    if kind in _HARMLESS or is_own(tool):
        return None
    known = tool if tool.startswith("mcp__") else f"{_SERVER}{tool}"
    if is_writer(known, given):
        return Made(tool or name, known, given)
    return None if tool else _unnamed(given)


def _unnamed(given: dict[str, Any]) -> Made | None:
    """Return the call of a tool that tells neither kind nor name, by its arguments; None if it writes nothing."""
    command = next((given[key] for key in _COMMANDS if given.get(key)), None)
    if command:
        words = [command] if isinstance(command, str) else _texts(command)
        return _command("command", words, local(first(given, _FOLDERS)))
    if values(given, SOURCES) and values(given, TARGETS):
        name = "move_file"
    elif any(patched(text) for text in values(given, _PATCHES)):
        name = "apply_patch"
    elif values(given, PATHS) and any(isinstance(given.get(key), str) for key in _WHOLES):
        name = "write_file"
    elif values(given, PATHS) and values(given, _PARTS):
        name = "edit_file"
    else:
        return None
    return Made(name, f"{_SERVER}{name}", given)


def is_untold(tool_call: dict[str, Any]) -> bool:
    """Return True if the agent has not told the input of a call yet. OpenCode asks first, and tells a moment later."""
    if text_of(tool_call.get("kind")) in (*_HARMLESS, "execute") or tool_call.get("status") not in (None, "pending"):
        return False  # the title of a command has its text
    return not (_input_of(tool_call) or tool_call.get("content") or tool_call.get("locations"))


def tool_name(tool_call: dict[str, Any]) -> str:
    """Return the name of a call's tool: the agent's own word, else the one in its title; empty if that is prose."""
    more, title = object_of(tool_call.get("_meta")), text_of(tool_call.get("title"))
    own = text_of(tool_call.get("name")) or text_of(more.get("toolName"))
    served = OF_A_SERVER.fullmatch(title)
    if served and not own:
        return f"mcp__{served[2]}__{served[1]}"
    return own or (title if re.fullmatch(r"[\w.:-]+", title) else "")


def _input_of(tool_call: dict[str, Any]) -> dict[str, Any]:
    """Return the input of a call. Gemini tells that of a server's tool as JSON, in a text for the person."""
    given = object_of(tool_call.get("rawInput"))
    if given:
        return given
    for one in _objects(tool_call.get("content")):
        text = text_of(object_of(one.get("content")).get("text"))
        if text.startswith("{"):
            try:
                return object_of(json.loads(text))
            except (ValueError, RecursionError):
                continue  # prose that begins with a brace
    return {}


def _how(diff: dict[str, Any], folder: str) -> str:
    """Return EDIT for a diff with a part of the file as its old text, REPLACE for one with a whole text."""
    old = diff.get("oldText")
    if not isinstance(old, str) or not old:
        return REPLACE
    present = _start_of(os.path.join(folder, diff["path"]))
    return EDIT if present is None or (old in present and old != present) else REPLACE


def _start_of(path: str) -> str | None:
    """Return the first `LARGEST_COMPARED` characters of an ordinary file; None if it has no text that can be read."""
    try:
        if not os.path.isfile(path):
            return None
        with open(path, encoding="utf-8", newline="") as file:
            return file.read(LARGEST_COMPARED)
    except (OSError, ValueError):  # unreadable, or of another encoding
        return None


def _whole(name: str, path: str, content: object) -> Made | None:
    return Made(name, _WHOLE, {"path": path, "content": text_of(content)}) if path else None


def _command(name: str, words: list[str], folder: str) -> Made | None:
    """Return the call of a shell command: one text, or the words of one command."""
    text = words[0] if len(words) == 1 else shlex.join(words)
    return Made(name, _SHELL, {"command": text}, folder) if text.strip() else None


def _options(request: dict[str, Any]) -> list[dict[str, Any]]:
    return _objects(object_of(request.get("params")).get("options"))


def _texts(value: object) -> list[str]:
    return [one for one in list_of(value) if isinstance(one, str)]


def _objects(value: object) -> list[dict[str, Any]]:
    return [one for one in list_of(value) if isinstance(one, dict)]


BUSY_SECONDS = 1.0


class Guard:
    """The open sessions of one agent. Its methods may be called from several threads, and raise nothing."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}  # session id -> its folder
        self._hooked: dict[str, RuntimeConfig] = {}  # session id -> the runtime that its hooks have registered it for
        self._expected: dict[tuple[str, str], tuple[Made, Denial]] = {}  # session, id of a call -> call, denial
        self._lock = threading.Lock()
        self._driver = driver.load()

    def begin(self, session_id: str, folder: str) -> None:
        """Register a session that the agent has begun, loaded or forked."""
        with self._lock, _recorded("session_start"):
            self._folders[session_id] = folder
            self._at("SessionStart", session_id, "startup")

    def begin_turn(self, session_id: str, prompt: str) -> None:
        """Note that the session works on a prompt."""
        with self._lock, _recorded("turn"):
            self._at("UserPromptSubmit", session_id, prompt=prompt)

    def end_turn(self, session_id: str) -> None:
        """Note that the session waits for a prompt; the locks that it took by writing end."""
        with self._lock, _recorded("turn"):
            self._at("Stop", session_id)

    def end(self, session_id: str) -> None:
        """End a session, and its locks."""
        with self._lock, _recorded("session_end"):
            if session_id in self._folders:
                self._at("SessionEnd", session_id)
                del self._folders[session_id]
                self._hooked.pop(session_id, None)

    def end_all(self) -> None:
        """End all sessions."""
        for session_id in list(self._folders):
            self.end(session_id)

    def renew(self) -> None:
        """Give a sign of life for each session."""
        with self._lock:
            for session_id in list(self._folders):
                with _recorded("turn"):
                    self._at("SessionStart", session_id)

    def folder_of(self, session_id: str) -> str:
        """Return the session's folder, or this process's for an unknown session."""
        return self._folders.get(session_id) or os.getcwd()

    def denial(self, session_id: str, call_id: str, made: Made) -> str:
        """Return the reason why a call must not be made; an empty text if it may."""
        with self._lock, _recorded("pre_tool_use"):
            known, denial = self._expected.pop((session_id, call_id), (None, None))
            call, core = self._call(session_id, call_id, made, "PreToolUse"), self._core(session_id)
            if denial is None or known != made:
                verdict = self._verdict(core, call)
                denial = verdict.denial if verdict is not None else None
                core.report(verdict, call)
            if denial is not None:
                core.note_denial(call, denial)
                return str(denial.reason)
        return ""

    def expect(self, session_id: str, call_id: str, made: Made) -> None:
        """Check a call that the agent has begun, and may or may not ask for: its writes are noted if it may be made."""
        with self._lock, _recorded("pre_tool_use"):
            core, call = self._core(session_id), self._call(session_id, call_id, made, "PreToolUse")
            verdict = self._verdict(core, call)
            if verdict is None or verdict.denial is None:
                core.report(verdict, call)
            else:
                self._expected[session_id, call_id] = made, verdict.denial  # a denial counts once

    def saw(self, session_id: str, path: str, text: str) -> None:
        """Note that the agent has read the whole `text` of a file, if the file has it: the editor may show another."""
        with self._lock, _recorded("post_tool_use"):
            trail = trail_of(self._config(session_id), self._call(session_id, "", Made(READ, READ, {}), "PostToolUse"))
            if trail is None:
                return
            file = trail.resolved(self.folder_of(session_id), path)
            state_before = state_of(file)
            if text and _start_of(file) == text and state_of(file) == state_before:
                trail.note("saw", file, state_before)
                trail.leave()

    def _verdict(self, core: HookCore, call: ToolCall) -> Verdict | None:
        if call.session_id not in self._folders:
            self._folders[call.session_id] = call.cwd
            self._at("SessionStart", call.session_id, "resume")
        return core.check(call)

    def after(self, session_id: str, call_id: str, made: Made) -> None:
        """Note that a call is over, and compare the files that were watched during it."""
        with self._lock, _recorded("post_tool_use"):
            self._expected.pop((session_id, call_id), None)
            self._core(session_id).words_after(self._call(session_id, call_id, made, "PostToolUse"))

    def _call(self, session_id: str, call_id: str, made: Made, event: str) -> ToolCall:
        folder = os.path.join(self.folder_of(session_id), made.folder)
        return ToolCall(made.tool, made.input, session_id, folder, event, id=call_id, client_tool=made.name)

    def _at(self, name: str, session_id: str, source: str = "", prompt: str = "") -> None:
        """Run the hook of an event of the session. Hooks of its own run those that may have words for its model."""
        runtime = self._config(session_id)
        if runtime is not CONFIG and name != "Stop":
            return
        event = SessionEvent(session_id, self.folder_of(session_id), name, source=source, prompt=prompt)
        registrar = _ByCommand(runtime, chosen_command()) if chosen_command() else _InStore(runtime.runtime_name)
        body = {"SessionStart": session_events.begins, "SessionEnd": session_events.ends}
        try:
            body.get(name, session_events.takes_turn)(self._core(session_id, registrar), event)
        finally:
            if isinstance(registrar, _InStore):
                registrar.close()

    def _core(self, session_id: str, registrar: Any = None) -> HookCore:
        command = chosen_command() or coordinator_command()
        return _Silent(self._config(session_id), command, self._driver, registrar)

    def _config(self, session_id: str) -> RuntimeConfig:
        """Return the runtime of the session: that of its own hooks, once these have registered it."""
        if session_id in self._hooked:
            return self._hooked[session_id]
        runtime = ""
        with contextlib.suppress(SwarmError), Store(read_only=True, busy_seconds=BUSY_SECONDS) as store:
            rows = store.instances.of_session_id(session_id)  # without a store the check itself tells the fault
            runtime = next((row.runtime for row in rows if row.runtime in NAMES), "")
        if not runtime:
            return CONFIG
        if session_id in self._folders:
            # End the session's registration by this process: its hooks have registered it, too
            with contextlib.closing(_InStore(CONFIG.runtime_name)) as registrar:
                registrar.end(session_id, (0, ""), 0, BUSY_SECONDS)
        self._hooked[session_id] = config(runtime, hook_config(runtime).env_prefix)
        return self._hooked[session_id]


class _Silent(HookCore):
    """The hook core without words for the model: the protocol has no place for them but a refusal."""

    def tell(self, name: str, event: SessionEvent, text: str, for_user: str = "") -> None:
        """Print nothing: standard output belongs to the protocol."""


class _InStore(StoreRegistrar):
    """Registers sessions of the runtime `name`. Those of CONFIG are open in this process, and end with it."""

    def __init__(self, name: str):
        super().__init__(name)
        self._client = _client_of(name)

    def register(self, session: dict[str, Any], seconds: float, patience: float, tell: bool = False) -> dict[str, Any]:
        """Register or renew `session`. Its model is told nothing here."""
        return super().register({**session, "client": self._client}, seconds, patience)

    def end(self, session_id: str, _client: tuple[int, str], seconds: float, patience: float) -> None:
        """End a session."""
        super().end(session_id, self._client, seconds, patience)


class _ByCommand(CommandRegistrar):
    """The same by the command that a user has named as the coordinator (``SWARM_MCP_BIN``)."""

    def register(
        self, session: dict[str, Any], seconds: float, patience: float, tell: bool = False, leave_running: bool = False
    ) -> dict[str, Any]:
        """Register or renew `session`. Its model is told nothing here."""
        mine = {**session, "client": _client_of(self.config.runtime_name)}
        found: dict[str, Any] = super().register(mine, seconds, patience, False, leave_running)
        return found

    def end(self, session_id: str, _client: tuple[int, str], seconds: float, patience: float) -> None:
        """End a session."""
        super().end(session_id, _client_of(self.config.runtime_name), seconds, patience)


def _client_of(runtime: str) -> tuple[int, str]:
    """Return this process, for sessions of CONFIG. Those of hooks have their own client."""
    if runtime != CONFIG.runtime_name:
        return 0, ""
    return os.getpid(), start_time(os.getpid())


@contextlib.contextmanager
def _recorded(event: str) -> Iterator[None]:
    """Record a fault in the block, and go on behind it."""
    try:
        yield
    except Exception as error:
        state.record(CONFIG.runtime_name, event, state.describe(error))
