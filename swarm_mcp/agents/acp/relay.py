"""A relay between an editor and an agent: their messages pass unchanged, but for writes that must not be made.

Two threads pass the lines on, one in each direction. A request of the agent that writes is checked first; a denied one
never reaches the editor, and the agent gets the reason in its place. A line that is not understood is passed on.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from typing import Any, BinaryIO

from swarm_hook_core import faults
from swarm_mcp.agents.acp import requests
from swarm_mcp.agents.acp.guard import Guard
from swarm_mcp.agents.acp.requests import CONFIG, Made

DENIED = -32010  # of our own: the numbers around -32000 are free for servers, and the protocol has taken two
INITIALIZE = "initialize"
OPENING = ("session/new", "session/load", "session/resume", "session/fork")
CLOSING = ("session/close", "session/delete")
PROMPT, UPDATE, WAIT, RELEASE = "session/prompt", "session/update", "terminal/wait_for_exit", "terminal/release"
# A line without one of these says nothing that is looked at. Answers have no method: they are told by their ids.
_NAMES = tuple(name.encode() for name in (INITIALIZE, *requests.WATCHED, *OPENING, *CLOSING, PROMPT, WAIT, RELEASE))
RENEW_SECONDS = 600.0
END_SECONDS = 5.0  # for an agent to end once the editor has closed its input, and again once it was told to
# The way in which an agent's model reads a reason during its turn, by the name that the agent has for itself: from an
# error, or from an option that was not offered. Measured; another agent may end its turn over either.
READERS = {"@agentclientprotocol/claude-agent-acp": "error", "qwen-code": "error", "gemini-cli": "option"}
PASSED_ON = ("SIGTERM", "SIGHUP", "SIGINT")

Message = dict[str, Any]
Call = tuple[str, str, Made]  # the session, the call's id, and the call


class Relay:
    """One agent behind the relay, and its sessions."""

    def __init__(self, guard: Guard, editor_in: BinaryIO, editor_out: BinaryIO):
        self._guard, self._editor_in, self._editor_out = guard, editor_in, editor_out
        self._agent: subprocess.Popen[bytes]
        self._to_agent = threading.Lock()
        self._asked_by_editor: dict[str, Message] = {}  # id of a request -> the request, until its answer
        self._asked_by_agent: dict[str, Call | str] = {}  # as above -> the call it makes, or the terminal it asks about
        self._in_terminals: dict[str, Call] = {}
        self._permitted: dict[str, Call] = {}  # id of a tool call -> the call, until its end
        self._reader = ""  # the way of a reason to the model: see READERS
        self._unread: dict[str, list[str]] = {}  # session -> reasons that its model has not read

    def run(self, argv: list[str]) -> int:
        """Run the agent to its end, and return its exit code, 128 + N for signal N. Raises OSError if it cannot begin."""
        # A group of its own: agents are often started by a launcher, and all of it has to end.
        self._agent = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        for name in PASSED_ON:
            signal.signal(getattr(signal, name), lambda number, _frame: self._signal(number))
        over = threading.Event()
        back = threading.Thread(target=self._pass_to_editor, daemon=True)
        back.start()
        for body in (self._pass_to_agent, lambda: self._renew(over)):
            threading.Thread(target=body, daemon=True).start()
        try:
            code = self._agent.wait()
            back.join(END_SECONDS)  # its last words; a process that it has left behind may keep the pipe open
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
            if not self._tell_agent(self._looked_at(self._from_editor, line)):
                break
        with contextlib.suppress(OSError), self._to_agent:
            assert self._agent.stdin
            self._agent.stdin.close()
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                self._agent.wait(END_SECONDS)
                return
            except subprocess.TimeoutExpired:
                self._signal(number)

    def _tell_agent(self, line: bytes) -> bool:
        """Write a line to the agent. Return False if it does not read any more."""
        try:
            with self._to_agent:
                assert self._agent.stdin
                self._agent.stdin.write(line)
                self._agent.stdin.flush()
        except (OSError, ValueError):
            return False
        return True

    def _from_editor(self, line: bytes) -> bytes:
        """Look at a line of the editor: its requests about sessions, and its answers to requests of the agent."""
        if not self._asked_by_agent and not any(name in line for name in _NAMES):
            return line
        message = _message(line)
        method, key = message.get("method"), _key(message)
        session_id = requests.session_of(message)
        if method in (INITIALIZE, *OPENING, PROMPT) and key:
            self._asked_by_editor[key] = message
            if method == PROMPT and session_id:
                self._guard.begin_turn(session_id, _prompt(message))
                reasons = self._unread.pop(session_id, ())
                if reasons:
                    message["params"]["prompt"] = [*map(_text, reasons), *message["params"]["prompt"]]
                    return _line(message)
        elif method in CLOSING:
            self._guard.end(session_id)
        elif method is None and key in self._asked_by_agent:
            self._answered(self._asked_by_agent.pop(key), message)
        return line

    def _answered(self, asked: Call | str, answer: Message) -> None:
        """Note the end of a call that the editor has made. A command goes on in its terminal."""
        if isinstance(asked, str):
            call = self._in_terminals.pop(asked, None)
            if call is not None:
                self._guard.after(*call)
            return
        result = answer.get("result")
        terminal = result.get("terminalId") if isinstance(result, dict) else None
        if isinstance(terminal, str):
            self._in_terminals[terminal] = asked
        elif not (isinstance(result, dict) and "outcome" in result):  # a permission is only the beginning
            self._guard.after(*asked)

    # ------------------------------------------------------------------------------------------- to the editor

    def _pass_to_editor(self) -> None:
        """Pass the agent's lines on to the editor, but for denied requests, which are answered here."""
        assert self._agent.stdout
        for line in self._agent.stdout:
            if not self._tell_editor(self._looked_at(self._from_agent, line)):
                break  # the editor has gone, and with it the agent's input

    def _tell_editor(self, line: bytes) -> bool:
        """Write a line to the editor. Return False if it does not read any more."""
        try:
            self._editor_out.write(line)
            self._editor_out.flush()
        except (OSError, ValueError):
            return False
        return True

    def _from_agent(self, line: bytes) -> bytes:
        """Look at a line of the agent. Return the line for the editor: none for a denied request, which is answered."""
        is_near = self._asked_by_editor or self._permitted or any(name in line for name in _NAMES)
        message = _message(line) if is_near else {}
        method, key = message.get("method"), _key(message)
        if method in requests.WATCHED and key:
            return self._checked(line, message, key)
        if method in (WAIT, RELEASE):
            terminal = str(message.get("params", {}).get("terminalId"))
            if method == WAIT and key:
                self._asked_by_agent[key] = terminal
            elif method == RELEASE:
                self._answered(terminal, {})
        elif method == UPDATE:
            self._ended(message["params"]["update"])
        elif method is None and key in self._asked_by_editor:
            self._opened(self._asked_by_editor.pop(key), message)
        return line

    def _checked(self, line: bytes, message: Message, key: str) -> bytes:
        """Check a request of the agent that writes, or asks to. Return the line for the editor."""
        session_id = requests.session_of(message)
        made = requests.call_of(message, self._guard.folder_of(session_id))
        if made is None:
            return line
        is_permission = message["method"] == requests.PERMISSION
        call_id = str(message["params"]["toolCall"]["toolCallId"]) if is_permission else f"request {key}"
        reason = self._guard.denial(session_id, call_id, made)
        if reason:
            return self._refuse(message, session_id, reason)
        if is_permission:
            self._permitted[call_id] = session_id, call_id, made
        else:
            self._asked_by_agent[key] = session_id, call_id, made
        return line

    def _refuse(self, request: Message, session_id: str, reason: str) -> bytes:
        """Answer a request that is denied. Return a line that shows the reason in the editor, if no tool call does."""
        option = requests.reject_option(request)
        if self._reader == "option" and option:
            option = reason
        if not option or self._reader == "error":
            self._tell_agent(_answer(request, error={"code": DENIED, "message": reason}))
            return b""
        self._tell_agent(_answer(request, result={"outcome": {"outcome": "selected", "optionId": option}}))
        if option == reason:
            return b""
        self._unread.setdefault(session_id, []).append(reason)
        update = {"sessionUpdate": "agent_message_chunk", "content": _text(f"\n\n{reason}\n\n")}
        return _line({"jsonrpc": "2.0", "method": UPDATE, "params": {"sessionId": session_id, "update": update}})

    def _ended(self, update: Message) -> None:
        """Note the end of a call that the agent has made by itself, after a permission."""
        if update.get("status") in ("completed", "failed"):
            call = self._permitted.pop(str(update.get("toolCallId")), None)
            if call is not None:
                self._guard.after(*call)

    def _opened(self, request: Message, answer: Message) -> None:
        """Register the session that the agent has opened, or note the end of its turn."""
        session_id, result = requests.session_of(request), answer.get("result")
        if request["method"] == INITIALIZE:
            self._reader = READERS.get(answer["result"].get("agentInfo", {}).get("name"), "")
        elif request["method"] == PROMPT:
            self._guard.end_turn(session_id)
        elif isinstance(result, dict):
            opened = result.get("sessionId") or session_id
            self._guard.begin(str(opened), str(request["params"].get("cwd") or os.getcwd()))

    def _looked_at(self, look: Callable[[bytes], bytes], line: bytes) -> bytes:
        """Return the answer of `look` to a line; the line as it is after a fault of ours."""
        try:
            return look(line)
        except Exception as error:
            faults.record(CONFIG.runtime_name, "relay", faults.describe(error))
            return line


def _answer(request: Message, **said: object) -> bytes:
    """Return the answer to a request of the agent, with a ``result`` or an ``error``."""
    return _line({"jsonrpc": "2.0", "id": request["id"], **said})


def _line(message: Message) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _text(words: str) -> Message:
    """Return a block of content with a text."""
    return {"type": "text", "text": words}


def _message(line: bytes) -> Message:
    """Return the message in a line; an empty one for anything else."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _key(message: Message) -> str:
    """Return the id of a request or an answer as a key: `1` and `"1"` are two ids. Empty for a notification."""
    return json.dumps(message["id"]) if message.get("id") is not None else ""


def _prompt(message: Message) -> str:
    """Return the text of a prompt."""
    parts = message["params"].get("prompt")
    texts = [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return "\n".join(text for text in texts if isinstance(text, str))
