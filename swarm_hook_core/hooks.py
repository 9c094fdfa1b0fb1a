"""The edge of a hook process: a client's payload is read and parsed once, and the answer is printed.

Everything below works on the values made here. After any fault the call passes, unless a person has asked for the
opposite (``fail_closed``). Faults are recorded for `swarm-mcp doctor`, never shown. Standard output stays empty but for
the one object that clients honour.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import IO, Any

from swarm_hook_core import state
from swarm_hook_core.json_text import dumps, loads_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.config import RuntimeConfig
    from swarm_hook_core.denial import Denial, Notice
    from swarm_hook_core.kernel.plans import Plan
    from swarm_hook_core.lookup import Held
    from swarm_hook_core.tenants import Eviction
    from swarm_hook_core.traces.trail import Owner


class SessionEvent:
    """An event of a session: it begins, takes a turn or ends, or one of its subagents does.

    name        the client's word for it: ``SessionStart``, ``UserPromptSubmit``, ``SubagentStop``
    session_id  the client's id of the session; may be empty
    cwd         the folder that the session works in; may be empty
    agent       the id of the subagent concerned; empty for the session itself
    source      the cause of a session's start: ``startup``, ``resume``, ``compact``; of a notification its type
    turn        the client's id of the turn, if its beginning may be told more than once; else empty
    prompt      the prompt that begins a turn; may be empty
    transcript  path of the client's log of its model's input; may be empty
    """

    __slots__ = ("name", "session_id", "cwd", "agent", "source", "turn", "prompt", "transcript")

    def __init__(
        self, session_id: str = "", cwd: str = "", name: str = "", agent: str = "", source: str = "", turn: str = "",
        prompt: str = "", transcript: str = "",
    ):  # fmt: skip
        self.name = name
        self.session_id = session_id
        self.cwd = cwd
        self.agent = agent
        self.source = source
        self.turn = turn
        self.prompt = prompt
        self.transcript = transcript


class ToolCall(SessionEvent):
    """One call of a tool, before or after it is made.

    tool         the tool's name in the core's words; `input` the tool's input, as JSON has it
    client_tool  the client's name of the tool, for its model
    id           the client's own id of the call; may be empty
    goes_on      True if the call goes on in the background although its end is told
    is_cut       True if the client has cut the input short: the given part is true, and there is more
    mode         the client's word for its handling of permissions (``default``, ``bypassPermissions``); may be empty
    takes_input  True if the client can be given another input for the call, by its hook or by a plugin of ours
    is_edit_watched  True once locked files around the call are noted (``watching.edits``)
    """

    __slots__ = ("tool", "client_tool", "input", "id", "goes_on", "is_cut", "response", "mode",
                 "takes_input", "is_edit_watched")  # fmt: skip

    def __init__(
        self, tool: str, input: object, session_id: str = "", cwd: str = "", name: str = "PreToolUse",
        agent: str = "", id: str = "", goes_on: bool = False, is_cut: bool = False, client_tool: str = "",
        response: object = None, transcript: str = "", mode: str = "", takes_input: bool = False,
    ):  # fmt: skip
        SessionEvent.__init__(self, session_id, cwd, name, agent, transcript=transcript)
        self.tool = tool
        self.client_tool = client_tool or tool
        self.input = input
        self.id = id
        self.goes_on = goes_on
        self.is_cut = is_cut
        self.response = response
        self.mode = mode
        self.takes_input = takes_input
        self.is_edit_watched = False

    @property
    def folder(self) -> str:
        """The folder that relative paths of the call count from."""
        return self.cwd or os.environ.get("PWD", "/")

    @property
    def reader_folder(self) -> str:
        """The folder in which the reader of a refusal types the commands that it names: for a model, `folder`."""
        return self.folder


def text_of(response: object, levels: int = 4) -> str:
    """Return all text in a client's report about a call's end."""
    if isinstance(response, str):
        return response
    if levels and isinstance(response, dict):
        response = list(response.values())
    if levels and isinstance(response, list):
        return "\n".join(text_of(one, levels - 1) for one in response)
    return ""


class Verdict:
    """The answer to a call.

    denial   the Denial, or None if the call may go ahead
    notice   words for the model; may be empty
    watched  locks whose files are compared after the call
    failed   True if the call could not be checked
    plan     the kernel's plan while the call runs (``kernel.plans``), or None
    entry    file that the client is to source before the command, for that plan (``kernel.planning``); may be empty
    owners   messages to the owners of overwritten changes (``Trail.owners``)
    evictions  work trees with live sessions that the call takes away (``tenants``)
    noted    the Notices to record, if the call goes ahead
    input    the input that the client is to take for the call, with others' changes merged into it, or None
    """

    __slots__ = ("denial", "notice", "watched", "failed", "plan", "entry", "owners", "noted", "input", "evictions")

    def __init__(
        self, denial: Denial | None = None, notice: str = "", watched: Sequence[Held] = (),
        failed: bool = False,
    ):  # fmt: skip
        self.denial = denial
        self.notice = notice
        self.watched = watched
        self.failed = failed
        self.plan: Plan | None = None
        self.entry = ""
        self.owners: list[Owner] = []
        self.evictions: list[Eviction] = []
        self.noted: list[Notice] = []
        self.input: object = None

    def add(self, found: Verdict) -> None:
        """Take over the findings of one more rule."""
        self.denial = found.denial or self.denial
        self.notice = joined(self.notice, found.notice)
        self.watched = found.watched or self.watched
        self.plan = found.plan or self.plan
        self.owners = found.owners or self.owners
        self.evictions = found.evictions or self.evictions
        self.noted += found.noted


def joined(*lines: str) -> str:
    """Return the lines that are not empty, one below the other."""
    return "\n".join(filter(None, lines))


def session_event(payload: dict[str, Any]) -> SessionEvent:
    """The event that a hook's payload tells of; a field that is missing or of another type is empty."""
    if payload.get("hook_event_name") == "Notification":
        why = "notification_type"
    else:
        why = "source"
    keys = ("session_id", "cwd", "hook_event_name", "agent_id", why, "turn", "prompt", "transcript_path")
    return SessionEvent(*[_text(payload.get(key)) for key in keys])


def tool_call(payload: dict[str, Any]) -> ToolCall:
    """The call that a hook's payload tells of; a text that is missing or of another type is empty."""
    tool, client_tool, session_id, cwd, name, agent, call_id, transcript, mode = [
        _text(payload.get(key))
        for key in (
            "tool_name", "client_tool", "session_id", "cwd", "hook_event_name", "agent_id", "tool_use_id",
            "transcript_path", "permission_mode",
        )
    ]  # fmt: skip
    # Clients tell the end of a command in the background as soon as it has been started.
    given, response = payload.get("tool_input"), payload.get("tool_response")
    goes_on = tool == "Monitor" or (isinstance(response, dict) and bool(response.get("backgroundTaskId")))
    goes_on = goes_on or (isinstance(given, dict) and given.get("is_background") is True)
    is_cut = payload.get("input_is_cut") is True  # so a dialect says it
    said = response or payload.get("error")
    whole = (session_id, cwd, name, agent, call_id, goes_on, is_cut, client_tool, said, transcript, mode)
    return ToolCall(tool, given, *whole, payload.get("takes_input") is True)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return ""


def run(config: RuntimeConfig, hook: str, stdin: IO[Any], parsed: Any, body: Any, unread: Any = None) -> int:
    """Parse the payload on `stdin` with `parsed` and call `body` with it; return the exit status, 0 after a fault.

    `body` returns the status of its answer, or None for 0. `unread` does likewise; it is called with the error if the
    payload cannot be read.
    """
    try:
        event = parsed(config.dialect.read(loads_object(read(stdin))))
    except Exception as error:
        _record(config, hook, error)
        if unread is None:
            return 0
        event, body = error, unread
    try:
        return body(event) or 0
    except Exception as error:
        _record(config, hook, error)
    return 0


def _record(config: RuntimeConfig, hook: str, error: BaseException) -> None:
    state.record(config.runtime_name, hook, error)


def read(stdin: IO[Any]) -> str:
    """All of `stdin` (text or binary) as text; bytes that are not UTF-8 survive as surrogates."""
    data = getattr(stdin, "buffer", stdin).read()
    if isinstance(data, str):
        return data
    return str(data.decode("utf-8", "surrogateescape"))


def answer(told: dict[str, Any]) -> None:
    """Print the one object that the client takes. Nothing else may reach stdout."""
    try:
        sys.stdout.write(dumps(told) + "\n")
        sys.stdout.flush()
    except OSError:
        # The client has left. Python would complain once more, and loudly, when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise
