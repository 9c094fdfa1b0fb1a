"""A relay between an editor and an agent: their messages pass unchanged, but for writes that must not be made.

Two threads read the lines, one in each direction, and two write them: a side that does not read never keeps the relay
waiting. A request of the agent that writes is checked first; a denied one never reaches the editor, and the agent gets
the reason in its place. A line that is not understood is passed on.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, BinaryIO, NamedTuple

from swarm_hook_core import state
from swarm_hook_core.json_text import loads_outer
from swarm_hook_core.process import start_time
from swarm_mcp.agents import acp_guard
from swarm_mcp.agents.acp_guard import CONFIG, PERMISSION, Guard, Made, Permit
from swarm_mcp.checker import Keeper
from swarm_mcp.cli.arguments import MORE_SETUP, Arguments, Option, Usage, Word, verb
from swarm_mcp.cli.output import complain
from swarm_mcp.processes import Reaper

DENIED = -32010  # a number of our own among those that are free for servers
INITIALIZE, PROMPT, UPDATE = "initialize", "session/prompt", "session/update"
OPENING = ("session/new", "session/load", "session/resume", "session/fork")
CLOSING = ("session/close", "session/delete")
WAIT, RELEASE = "terminal/wait_for_exit", "terminal/release"
RENEW_SECONDS = 600.0
UNTOLD_SECONDS = 2.0  # a question waits so long for an update with the call's input; OpenCode's comes in milliseconds
LAST_WORDS_SECONDS = 5.0  # a process that the agent has left behind may keep its output open
LARGEST_BACKLOG = 8 * 1024 * 1024  # bytes of the agent's lines that wait for the editor
PASSED_ON = ("SIGTERM", "SIGHUP", "SIGINT")
# How an agent's model reads a reason during its turn, by the agent's own name: from an error, or from an
# option that was not offered. Measured; other agents end the turn over either.
READERS = {"@agentclientprotocol/claude-agent-acp": "error", "qwen-code": "error", "gemini-cli": "option"}

Message = dict[str, Any]
Place = tuple[str, str]  # session, id of a tool call: each session counts its own


class Call(NamedTuple):
    """A call of a session: its id, and the call as the guard takes it."""

    session: str
    id: str
    made: Made


class Outlet:
    """Lines on their way to one side, in order. `run` writes them, in a thread of its own, and closes the file."""

    def __init__(self, file: Any):
        self._file = file
        self._lines: deque[bytes] = deque()
        self._size = 0
        self._is_closed = False
        self._changed = threading.Condition()

    def put(self, line: bytes, most: float = float("inf")) -> bool:
        """Add a line, if it is not empty; wait while over `most` bytes are unwritten. Return False if none are read."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._size <= most)
            if line and not self._is_closed:
                self._lines.append(line)
                self._size += len(line)
                self._changed.notify_all()
            return not self._is_closed

    def close(self) -> None:
        """Take no more lines: the file is closed behind the last one."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def run(self) -> None:
        """Write the lines until `close`, or until the other side has gone; its process tells how."""
        with contextlib.suppress(OSError), self._file:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._lines or self._is_closed)
                    left = memoryview(b"".join(self._lines))
                    self._lines.clear()
                if not left:
                    break
                size = len(left)
                while left:
                    left = left[os.write(self._file.fileno(), left) :]
                with self._changed:
                    self._size -= size
                    self._changed.notify_all()
        self.close()


class Relay:
    """One agent behind the relay, and its sessions.

    grace  seconds for the agent to end once the editor has closed its input, and again once it was told to
    """

    def __init__(self, guard: Guard, editor_in: BinaryIO, editor_out: BinaryIO, grace: float):
        self._grace = grace
        self._guard, self._editor_in = guard, editor_in
        self._agent: subprocess.Popen[bytes]
        self._to_agent: Outlet
        self._to_editor = Outlet(editor_out)
        self._reader = ""  # see READERS
        self._unread: dict[str, list[str]] = {}  # session -> reasons that its model has not read
        self._asked_by_editor: dict[str, Message] = {}  # id of a request -> the request, until its answer
        self._asked_by_agent: dict[str, tuple[Message, Call]] = {}
        self._untold: dict[Place, list[tuple[bytes, Message, str]]] = {}  # questions about calls without an input yet
        self._waits: dict[str, str] = {}  # id of a request for a terminal's end -> the terminal
        self._in_terminals: dict[str, Call] = {}
        self._tool_calls: dict[Place, Message] = {}  # a tool call that has not ended -> all that was told of it
        self._begun: dict[Place, Call] = {}  # as above -> the call
        self._reads: dict[str, tuple[str, str]] = {}  # id of a request for a whole file -> session, path
        self._permits: set[tuple[str, Permit]] = set()  # session, the calls that the person always allows

    def run(self, argv: list[str]) -> int:
        """Run the agent to its end. Return its exit code, 128 + N for signal N. Raises OSError if it cannot begin."""
        with Reaper() as reaper:
            # A group of its own: agents are often started by a launcher, and all of it has to end with us.
            self._agent = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
                preexec_fn=lambda: reaper.watch(os.getpid()),
            )  # fmt: skip
            for number in (getattr(signal, name) for name in PASSED_ON if hasattr(signal, name)):
                if signal.getsignal(number) is not signal.SIG_IGN:  # `nohup` means it
                    signal.signal(number, lambda number, _frame: self._signal(number))
            over = threading.Event()
            self._to_agent = Outlet(self._agent.stdin)
            back = threading.Thread(target=self._pass_to_editor, daemon=True)
            out = threading.Thread(target=self._to_editor.run, daemon=True)
            back.start()
            out.start()
            keeper = Keeper((os.getpid(), start_time(os.getpid())))  # for hooks that the agent has itself
            for body in (self._to_agent.run, self._pass_to_agent, lambda: self._renew(over), keeper.run):
                threading.Thread(target=body, daemon=True).start()
            try:
                code = self._agent.wait()
                back.join(LAST_WORDS_SECONDS)
                self._to_editor.close()
                out.join(LAST_WORDS_SECONDS)
            finally:
                over.set()
                self._guard.end_all()
        return 128 - code if code < 0 else code

    def _signal(self, number: int) -> None:
        """Send a signal to the agent, with all that it has started."""
        with contextlib.suppress(OSError):  # it has just ended
            os.killpg(self._agent.pid, number)

    def _renew(self, over: threading.Event) -> None:
        while not over.wait(RENEW_SECONDS):
            self._guard.renew()

    # ------------------------------------------------------------------------------------------- to the agent

    def _pass_to_agent(self) -> None:
        """Pass the editor's lines on to the agent; after the last one have the agent end."""
        for line in self._editor_in:
            if not self._to_agent.put(_looked_at(self._from_editor, line)):
                break
        self._to_agent.close()
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                self._agent.wait(self._grace)
                return
            except subprocess.TimeoutExpired:
                self._signal(number)

    def _from_editor(self, line: bytes, message: Message) -> bytes:
        """Look at a line of the editor: a request about a session, or an answer. Return the line for the agent."""
        method, key = message.get("method"), _key(message)
        session_id = acp_guard.session_of(message)
        if method in (INITIALIZE, *OPENING, PROMPT) and key:
            self._asked_by_editor[key] = message
            if method == PROMPT:
                # Begin a turn. The prompt, with the reasons before it that the model could not read in its turn.
                reasons = self._unread.pop(session_id, ())
                parts = message["params"].get("prompt")
                texts = (
                    [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
                )
                self._guard.begin_turn(session_id, "\n".join(text for text in texts if isinstance(text, str)))
                if not reasons:
                    return line
                parts = [*map(_text, reasons), *message["params"]["prompt"]]
                return _line({**message, "params": {**message["params"], "prompt": parts}})
        elif method in CLOSING:
            self._guard.end(session_id)
        elif method is None and key in self._asked_by_agent:
            return self._answered(line, message, *self._asked_by_agent.pop(key))
        elif method is None and key in self._reads:
            self._guard.saw(*self._reads.pop(key), acp_guard.text_in(message))
        elif method is None and key in self._waits:
            self._terminal_ended(self._waits.pop(key))
        return line

    def _answered(self, line: bytes, answer: Message, request: Message, call: Call) -> bytes:
        """Look at the editor's answer to a request of the agent. Return the answer for the agent."""
        result = answer.get("result")
        known = result if isinstance(result, dict) else {}
        if request["method"] == PERMISSION:
            if acp_guard.is_allowed(request, known):  # perhaps minutes later: the file may have been locked since
                reason = self._guard.denial(*call)
                if reason:
                    return self._refusal(request, call.session, reason)
                permit = acp_guard.permits(request, call.made).get(acp_guard.chosen(known))
                if permit is not None:  # told "always", the agent would not ask again
                    self._permits.add((call.session, permit))
                    return _selected(request, acp_guard.allow_option(request))
            else:
                self._guard.after(*call)
        elif isinstance(known.get("terminalId"), str):
            self._in_terminals[known["terminalId"]] = call  # the command goes on there
        else:
            self._guard.after(*call)
        return line

    def _terminal_ended(self, terminal: str) -> None:
        call = self._in_terminals.pop(terminal, None)
        if call is not None:
            self._guard.after(*call)

    # ------------------------------------------------------------------------------------------- to the editor

    def _pass_to_editor(self) -> None:
        """Pass the agent's lines on to the editor; answer denied requests here."""
        assert self._agent.stdout
        for line in self._agent.stdout:
            if not self._to_editor.put(_looked_at(self._from_agent, line), LARGEST_BACKLOG):
                break  # the editor has gone, and with it the agent's input

    def _from_agent(self, line: bytes, message: Message) -> bytes:
        """Look at a line of the agent. Return the line for the editor: empty for a denied request, answered here."""
        method, key = message.get("method"), _key(message)
        if method in acp_guard.WATCHED and key:
            return self._checked(line, message, key)
        if method == WAIT and key:
            self._waits[key] = str(message["params"].get("terminalId"))
        elif method == acp_guard.READ and key:
            path = acp_guard.whole_file(message)
            if path:
                self._reads[key] = acp_guard.session_of(message), path
        elif method == RELEASE:
            self._terminal_ended(str(message["params"].get("terminalId")))
        elif method == UPDATE:
            self._follow(acp_guard.session_of(message), message["params"]["update"])
        elif method is None and key in self._asked_by_editor:
            self._opened(self._asked_by_editor.pop(key), message)
        return line

    def _checked(self, line: bytes, request: Message, key: str, waits: bool = True) -> bytes:
        """Check a request of the agent that writes, or asks to. Return the line for the editor.

        `waits`: a question about a call without an input goes on once the agent has told that, in an update.
        """
        session_id, call_id = acp_guard.session_of(request), f"request {key}"
        if request["method"] == PERMISSION:
            asked = request["params"]["toolCall"]
            call_id = str(asked["toolCallId"])
            told = _told(self._tool_calls.get((session_id, call_id), {}), asked)
            if waits and acp_guard.is_untold(told):
                # Keep a question back for an update about its call, for `UNTOLD_SECONDS` at most
                place = (session_id, call_id)
                question = (line, request, key)
                self._untold.setdefault(place, []).append(question)
                timer = threading.Timer(UNTOLD_SECONDS, self._pass_questions, (place,))
                timer.daemon = True
                timer.start()
                return b""
            made = acp_guard.asked(told, self._guard.folder_of(session_id))
        else:
            made = acp_guard.call_of(request)
        if made is None:
            return line
        call = Call(session_id, call_id, made)
        reason = self._guard.denial(*call)
        if reason:
            self._to_agent.put(self._refusal(request, session_id, reason))
            return b""
        if any((session_id, permit) in self._permits for permit in acp_guard.permits(request, made).values()):
            self._to_agent.put(_selected(request, acp_guard.allow_option(request)))
            return b""
        self._asked_by_agent[key] = request, call
        return _line(acp_guard.marked(request)) if request["method"] == acp_guard.TERMINAL else line

    def _pass_questions(self, place: Place) -> None:
        """Check the questions that were kept back about a call, and pass them on."""
        for line, request, key in self._untold.pop(place, ()):
            look = functools.partial(self._checked, key=key, waits=False)
            self._to_editor.put(_looked_at_one(look, line, request))

    def _refusal(self, request: Message, session_id: str, reason: str) -> bytes:
        """Return the answer to a request of the agent that is denied.

        Where its model cannot read the reason, the person is shown it now, and the model with the next prompt.
        """
        option = acp_guard.reject_option(request)
        if not option or self._reader == "error":
            return _answer(request, error={"code": DENIED, "message": reason})
        if self._reader == "option":
            option = reason
        else:
            self._unread.setdefault(session_id, []).append(reason)
            # Show the person some words in the conversation
            update = {"sessionUpdate": "agent_message_chunk", "content": _text(f"\n\n{reason}\n\n")}
            self._to_editor.put(
                _line({"jsonrpc": "2.0", "method": UPDATE, "params": {"sessionId": session_id, "update": update}})
            )
        return _selected(request, option)

    def _follow(self, session_id: str, update: Message) -> None:
        """Follow a tool call that the agent makes by itself, perhaps unasked: note its writes, and its end."""
        call_id = update.get("toolCallId")
        opening = [one for one in list(self._asked_by_editor.values()) if one["method"] in OPENING]
        if not isinstance(call_id, str) or session_id in map(acp_guard.session_of, opening):
            return  # or a call of long ago: an agent that loads a session tells all of it again
        place = session_id, call_id
        told = self._tool_calls[place] = _told(self._tool_calls.get(place, {}), update)
        if told.get("status") in ("completed", "failed"):
            del self._tool_calls[place]
            call = self._begun.pop(place, None)
            if call is not None:
                self._guard.after(*call)
            return
        made = acp_guard.asked(told, self._guard.folder_of(session_id))
        if made is not None and (place not in self._begun or self._begun[place].made != made):
            self._begun[place] = Call(session_id, call_id, made)
            self._guard.expect(*self._begun[place])
        if not acp_guard.is_untold(told):
            self._pass_questions(place)

    def _opened(self, request: Message, answer: Message) -> None:
        """Register a session that the agent has opened, note the end of its turn, or the agent's name."""
        session_id, result = acp_guard.session_of(request), answer.get("result")
        if request["method"] == PROMPT:
            self._guard.end_turn(session_id)
        elif not isinstance(result, dict):
            return
        elif request["method"] == INITIALIZE:
            self._reader = READERS.get(str((result.get("agentInfo") or {}).get("name")), "")
        else:
            self._guard.begin(str(result.get("sessionId") or session_id), str(request["params"]["cwd"]))


def _looked_at(look: Callable[[bytes, Message], bytes], line: bytes) -> bytes:
    """Return the answer of `look` to a line and its message; of a batch, to each one. A fault of ours is recorded."""
    try:
        found = _parsed(line)
        if not isinstance(found, list):
            return _looked_at_one(look, line, found)
        lines = [_line(one) for one in found]
        kept = [_looked_at_one(look, *pair) for pair in zip(lines, found, strict=True)]
    except Exception as error:
        state.record(CONFIG.runtime_name, "relay", state.describe(error))
        return line
    if kept == lines:
        return line
    rest = b",".join(one.strip() for one in kept if one)
    return b"[" + rest + b"]\n" if rest else b""


def _looked_at_one(look: Callable[[bytes, Message], bytes], line: bytes, message: object) -> bytes:
    """Return the answer of `look` to one message; its line as it is after a fault of ours."""
    try:
        return look(line, message) if isinstance(message, dict) else line
    except Exception as error:
        state.record(CONFIG.runtime_name, "relay", state.describe(error))
        return line


def _parsed(line: bytes) -> object:
    """Return the JSON value in a line; None for anything else.

    Other programs take bytes that are not UTF-8, deep nesting and long numbers, which Python's parser refuses.
    """
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        text = line.decode("utf-8", "replace")
    try:
        return loads_outer(text) if "{" in text else None
    except (ValueError, RecursionError):
        return None  # not of the protocol


def _key(message: Message) -> str:
    """Return the id of a request or an answer as a key: `1` and `"1"` are two ids. Empty for a notification."""
    return json.dumps(message["id"]) if message.get("id") is not None else ""


def _told(before: Message, update: Message) -> Message:
    """Return all that was told of a tool call: an update has the fields that have changed."""
    return {**before, **{name: value for name, value in update.items() if value}}


def _answer(request: Message, **said: object) -> bytes:
    """Return the answer to a request of the agent, with a ``result`` or an ``error``."""
    return _line({"jsonrpc": "2.0", "id": request["id"], **said})


def _selected(request: Message, option: str) -> bytes:
    """Return the answer to a permission request that chooses an option."""
    return _answer(request, result={"outcome": {"outcome": "selected", "optionId": option}})


def _line(message: object) -> bytes:
    return json.dumps(message, allow_nan=False).encode() + b"\n"


def _text(words: str) -> Message:
    """Return a block of content with a text."""
    return {"type": "text", "text": words}


CANNOT_RUN, NOT_FOUND = 126, 127


@verb(
    Usage(
        Word("AGENT", "the agent's command", repeated=True, behind=True),
        Option("--grace SECONDS", "time for the agent to end with the editor, and again after TERM (default: 10)"),
    ),
    group=MORE_SETUP,
)
def acp(args: Arguments) -> int:
    """acp: stand between an editor and an agent without hooks, and check its writes

    For agents that speak the Agent Client Protocol on their standard streams. An editor is given this command in place
    of the agent's (docs/clients.md). All messages pass unchanged, but a write of a file, a terminal's command, or a
    request for permission to do either that meets another session's lock or uncommitted work: the agent is refused it,
    with the reason. A model that cannot read the reason at once gets it before the next prompt. A terminal's
    command gets a variable, by which `swarm-mcp` knows its session there. Each of the agent's sessions is registered
    while it is open; hooks of swarm in the agent share it. A write that the agent makes without asking is not refused.

    Exit: the agent's own code, or 128 and the number of the signal that ended it; 126 the agent cannot be run; 127
    there is no such command.

    example: swarm-mcp acp -- gemini --acp
    """
    # Standard output belongs to the protocol: nothing that prints may get between its lines.
    editor_in, editor_out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        return Relay(Guard(), editor_in, editor_out, args.seconds("--grace", 10.0)).run(list(args.words))
    except OSError as error:
        complain(f"{args.words[0]}: {error.strerror}")
        return NOT_FOUND if isinstance(error, FileNotFoundError) else CANNOT_RUN
