"""The edge of a hook process: what a client tells is read and parsed once; what it is told is printed.

Everything below works on the values made here. Whatever goes wrong, the call passes, unless somebody has asked for the
opposite (``fail_closed``): faults are recorded for `swarm-mcp doctor`, never shown. Standard output stays empty but for
the one object that clients honour.
"""

import os
import sys

from swarm_hook_core.json_text import dumps, loads_object


class SessionEvent:
    """Something that happens to a session: it begins, takes a turn, ends, or one of its subagents does.

    name        the client's word for it: ``SessionStart``, ``UserPromptSubmit``, ``SubagentStop``
    session_id  the client's id of the session, empty where none was told
    cwd         the folder that the session works in, empty where none was told
    agent       the id of the subagent that it is about, empty for the session itself
    source      why a session begins: ``startup``, ``resume``, ``compact``; of a notification what it tells
    turn        the client's id of the turn, where its beginning may be told more than once; else empty
    """

    __slots__ = ("name", "session_id", "cwd", "agent", "source", "turn")

    def __init__(
        self, session_id: str = "", cwd: str = "", name: str = "", agent: str = "", source: str = "", turn: str = ""
    ):
        self.name = name
        self.session_id = session_id
        self.cwd = cwd
        self.agent = agent
        self.source = source
        self.turn = turn


class ToolCall(SessionEvent):
    """One call of a tool, before or after it is made.

    tool         the tool's name in the core's words; `input` what it was given, as JSON has it
    client_tool  what the client calls it, for what its model is told
    id           the client's own id of the call, empty where it has none
    goes_on      whether the call goes on in the background although its end is told
    is_cut       whether the client has cut the input short: what is there is true, and more was asked
    transcript   path of the file in which the client notes what its model was shown, empty where none was told
    """

    __slots__ = ("tool", "client_tool", "input", "id", "goes_on", "is_cut", "response", "transcript")

    def __init__(
        self, tool: str, input: object, session_id: str = "", cwd: str = "", name: str = "PreToolUse",
        agent: str = "", id: str = "", goes_on: bool = False, is_cut: bool = False, client_tool: str = "",
        response: object = None, transcript: str = "",
    ):  # fmt: skip
        SessionEvent.__init__(self, session_id, cwd, name, agent)
        self.tool = tool
        self.client_tool = client_tool or tool
        self.input = input
        self.id = id
        self.goes_on = goes_on
        self.is_cut = is_cut
        self.response = response
        self.transcript = transcript

    @property
    def folder(self) -> str:
        """The folder that relative paths of the call count from."""
        return self.cwd or os.environ.get("PWD", "/")


def session_event(payload: dict) -> SessionEvent:
    """The event that a hook's payload tells of; a field that is missing or of another type is empty."""
    why = "notification_type" if payload.get("hook_event_name") == "Notification" else "source"
    words = [_text(payload.get(key)) for key in ("session_id", "cwd", "hook_event_name", "agent_id", why, "turn")]
    return SessionEvent(*words)


def tool_call(payload: dict) -> ToolCall:
    """The call that a hook's payload tells of; a text that is missing or of another type is empty."""
    tool, client_tool, session_id, cwd, name, agent, call_id, transcript = [
        _text(payload.get(key))
        for key in (
            "tool_name", "client_tool", "session_id", "cwd", "hook_event_name", "agent_id", "tool_use_id",
            "transcript_path",
        )
    ]  # fmt: skip
    # Clients tell the end of a command in the background as soon as it has been started.
    given, response = payload.get("tool_input"), payload.get("tool_response")
    goes_on = tool == "Monitor" or (isinstance(response, dict) and bool(response.get("backgroundTaskId")))
    goes_on = goes_on or (isinstance(given, dict) and given.get("is_background") is True)
    is_cut = payload.get("input_is_cut") is True  # so a dialect says it
    said = response or payload.get("error")
    return ToolCall(tool, given, session_id, cwd, name, agent, call_id, goes_on, is_cut, client_tool, said, transcript)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def run(config, hook: str, stdin, parsed, body, unread=None) -> int:
    """Call `body` with what `parsed` makes of the payload on `stdin`; the exit status, which is 0 where that fails.

    `body` returns the status of its answer, or None for 0; `unread`, called with the error where the payload cannot
    be read, does likewise.
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


def _record(config, hook: str, error: BaseException) -> None:
    from swarm_hook_core import faults

    faults.record(config.runtime_name, hook, faults.describe(error))


def read(stdin) -> str:
    """All of `stdin` (text or binary) as text; bytes that are not UTF-8 survive as surrogates."""
    data = getattr(stdin, "buffer", stdin).read()
    return data if isinstance(data, str) else data.decode("utf-8", "surrogateescape")


def answer(told: dict) -> None:
    """Print the one object that the client takes. Nothing else may reach stdout."""
    try:
        sys.stdout.write(dumps(told) + "\n")
        sys.stdout.flush()
    except OSError:
        # The client has left. Python would complain once more, and loudly, when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise
