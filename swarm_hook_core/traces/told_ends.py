"""Ends of calls as their client tells them: by its hook after a call, and by its log of the conversation.

    <state folder>/ended/<pid>                  its mtime is the end of the last call of the client with this process;
                                                a plugin notes the session and its agent in it
    <state folder>/ended/<runtime>.<session>    the session's client process, the form and the path of its log: noted as
                                                the session starts, and at each prompt (``registration``)

The next check of a session notes the first kind of end in the journal (``Trail.leave``). Until then each reader of the
journal adds it (`with_mark`). No hook runs after an edit in Claude Code and Codex, or after a call that the client or
its user has refused. The log has a result of each call, written after all hooks of the client, also its formatters.
The pause in which a model thinks lies between that result and the next call.

The log is read only where a change may fall into such a pause, or where another session's write is still to come.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from swarm_hook_core.json_text import dumps, loads_object
from swarm_hook_core.state import client_note, end_by_mark, read_private
from swarm_hook_core.traces import append, first_line, journal, names_in, plain_word, seen
from swarm_hook_core.traces import entry as new_entry
from swarm_hook_core.traces.journal import Entry
from swarm_hook_core.traces.transcript import FORMS as FORMS_OF_LOOKS
from swarm_hook_core.traces.transcript import TAILS, tail

# what happens, to which call, and more: the group of a call that begins, the beginning of a command that has run
Event = tuple[str, str, Any]

LONGEST_NOTE = 8192  # bytes
# Kinds of events. RUNS_ON: a result that says that the command goes on. LOOKS: a call that only looks at such a
# command. RAN: the end of a command, with the time of its beginning; others may have begun and ended in it.
BEGINS, LOOKS_ON, OVER, RUNS_ON, RAN = "begins", "looks on", "over", "runs on", "ran"
# Of Claude Code: the notice that a command in the background has ended, and a call that stops one, by its task. The
# result at the launch of such a command is `OVER`, with the id of its task.
NOTICED, STOPS = "noticed", "stops"
STILL = 1 << 62  # the end (ns) of a command that runs in the background
RUNNING = ("running with session ID", "running with cell ID")  # in the result of such a command, in its first words
FIRST_WORDS = 400  # characters
PATIENCE_NS = 400_000_000  # Claude Code writes a result up to 0.2 s after its time, Codex at once
PAUSE = 0.03  # seconds between two looks at a log
SHORT_NS = 150_000_000  # Codex tells durations of commands that are too short by so much
_DAYS_BEFORE = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)


def forget_client(name: str) -> None:
    """Remove the note of a session that has ended, by the `name` of its journal."""
    try:
        os.remove(client_note(name))
    except OSError:
        return  # it was never noted


def _client_of(name: str) -> tuple[int, str, str]:
    """Return ``(process, form of its log, its path)`` of the client with the journal `name`; 0, "" if unknown."""
    try:
        words = read_private(client_note(name), LONGEST_NOTE).decode("utf-8", "surrogateescape").split(" ", 2)
        return int(words[0]), words[1], words[2]
    except (OSError, ValueError, IndexError):
        return 0, "", ""  # its client has told nothing


def marked_ns(session_id: str, agent: str, client_pid: int) -> int:
    """Return the end of the agent's last call by the client's mark; 0 if that goes on, or if its end is noted.

    A mark without names counts for each agent.
    """
    at_ns, whose, by = end_by_mark(client_pid)
    if not whose or (whose == session_id and plain_word(by) == plain_word(agent)):
        return at_ns
    return 0


def with_mark(name: str, data: bytes) -> bytes:
    """Return the entries `data` of the journal `name`, with the end of its last call if only a mark tells it yet."""
    pid = _client_of(name)[0]
    if not pid:
        return data
    ended_ns, whose, agent = end_by_mark(pid)
    if not ended_ns or whose not in ("", journal.owner_of(data)[1]):
        return data
    last = _last_call(data, plain_word(agent) if whose else "")
    if last is None or last.at_ns >= ended_ns:
        return data
    return data + b"\n" + new_entry(ended_ns, "over", last.agent, last.tool, "/")


def note_last_end(path: str, name: str) -> None:
    """Note the end of the session's last call in its journal at `path`, before the note goes. Never raises."""
    try:
        data = journal.read(path)
        last = _last_call(data)
        if last is None:
            return
        ended_ns = end_of(name, data, last)
        if ended_ns > last.at_ns:
            end = new_entry(ended_ns, "over", last.agent, last.tool, "/")
            append(path, [end], lambda: first_line(*journal.owner_of(data), "/"))
    except OSError:
        return  # a missing journal, or a full disk


def end_of(name: str, data: bytes, call: Entry) -> int:
    """Return the end of a call with an entry in the journal `name`, as the client tells it; 0 if it is not known."""
    session_id = journal.owner_of(data)[1]
    logs = logs_of(name, session_id)
    if logs.path:
        return logs.end_of(call.agent, call.at_ns)
    pid = _client_of(name)[0]
    if not pid:
        return 0
    ended_ns = marked_ns(session_id, call.agent, pid)
    if ended_ns > call.at_ns:
        return ended_ns
    return 0


def logs_of(name: str, session_id: str) -> Logs:
    """Return the logs of the session with the journal `name`."""
    _pid, form, path = _client_of(name)
    return Logs(form, path, session_id)


def _last_call(data: bytes, agent: str = "") -> Entry | None:
    """Return the entry of the last call in a journal. `agent`: only of this one, as entries name it."""
    heads = journal.heads(data[-seen.OWN_TAIL :], newest_first=True)
    calls = (raw for words, raw in heads if words[1] in seen.CALLS and agent.encode() in (b"", words[2]))
    return next(journal.entries(calls), None)


# ------------------------------------------------------------------------------------------------ logs


class Form(NamedTuple):
    """The format of one family of clients.

    marks     bytes of the lines with events
    apart     bytes of a result that says that its command goes on in the background
    events    ``entry -> [(kind, call, more)]``. May raise ValueError, TypeError, AttributeError, KeyError
    path_of   ``(path of a log of the session, session id, agent) -> path`` of the log of the agent, or of the session
    """

    marks: tuple[bytes, ...]
    apart: bytes
    events: Callable[[dict[str, Any]], Iterable[Event]]
    path_of: Callable[[str, str, str], str]


def ends_in(form: Form, data: bytes) -> tuple[int, list[int]]:
    """Return ``(time of the first event, times at which no call was open any more)`` in a part of a log.

    A call without a result is over when its model makes one in another message: it was killed, or its result is lost.
    """
    first_ns, begun_ns = 1 << 63, 0
    ends: list[int] = []
    is_open: dict[str, object] = {}  # call -> its group
    for at_ns, (kind, call, more) in _events(form, data):
        first_ns = min(first_ns, at_ns)
        if kind in (BEGINS, LOOKS_ON):
            is_open = {one: group for one, group in is_open.items() if group == more}
            is_open[call] = more
            if kind == BEGINS:
                begun_ns = at_ns
            continue
        if kind in (NOTICED, STOPS):
            continue
        if kind == RAN and begun_ns > more:
            continue  # another call has begun since: this one went on in the background
        if kind == RAN:
            ends = [one for one in ends if one < more]
        else:
            is_open.pop(call, None)
        if kind != RUNS_ON and not is_open:
            ends.append(at_ns)
    return first_ns, ends


def apart_in(form: Form, data: bytes) -> list[tuple[int, int, int]]:
    """Return ``[(begin, launch, end)]`` of the commands that went on in the background after their launch."""
    begun: dict[str, int] = {}
    launched: dict[str, int] = {}
    ended: dict[str, int] = {}
    tasks: dict[str, str] = {}
    for at_ns, (kind, call, more) in _events(form, data):
        if kind == BEGINS:
            begun[call] = at_ns
        elif kind == RUNS_ON or (kind == OVER and more):
            launched.setdefault(call, at_ns)
            tasks[str(more)] = call
        elif kind in (RAN, NOTICED):
            ended[call] = at_ns
        elif kind == STOPS and call in tasks:
            ended[tasks[call]] = at_ns
    return [(begun[call], at_ns, ended.get(call, STILL)) for call, at_ns in launched.items() if call in begun]


def _events(form: Form, data: bytes) -> Iterator[tuple[int, Event]]:
    """Yield ``(time, event)`` of the lines in `data`."""
    for raw in data.split(b"\n"):
        if not any(mark in raw for mark in form.marks):
            continue
        try:
            entry = loads_object(raw.decode("utf-8", "surrogateescape"))
            at_ns = _nanoseconds(entry["timestamp"])
            found = list(form.events(entry))
        except (ValueError, TypeError, AttributeError, KeyError):
            continue  # torn, or of another format
        for event in found:
            yield at_ns, event


def _nanoseconds(text: str) -> int:
    """Return the time of ``2026-11-28T21:49:27.643Z``. Raises ValueError. ``datetime`` would cost a check too much."""
    day, _, clock = text.rstrip("Z").partition("T")
    year, month, date = (int(part) for part in day.split("-"))
    hours, minutes, seconds = clock.split(":")
    past = year - (month < 3)  # the last year with its leap day behind it
    days = (year - 1970) * 365 + past // 4 - past // 100 + past // 400 - 477 + _DAYS_BEFORE[month - 1] + date - 1
    whole, _, part = seconds.partition(".")
    since = ((days * 24 + int(hours)) * 60 + int(minutes)) * 60 + int(whole)
    return since * 10**9 + int(part[:9].ljust(9, "0"))


def _of_blocks(entry: dict[str, Any]) -> Iterator[Event]:
    """Yield the events of one entry of a transcript with content blocks (Anthropic's API)."""
    if entry.get("type") == "queue-operation":
        if entry["operation"] == "enqueue" and "<task-notification>" in entry["content"]:
            yield NOTICED, entry["content"].partition("<tool-use-id>")[2].partition("<")[0], None
        return
    message, told = entry["message"], entry.get("toolUseResult")
    if not isinstance(message["content"], list):
        return
    for block in message["content"]:
        if block.get("type") == "tool_use":
            yield BEGINS, block["id"], message.get("id")
            if block.get("name") in ("TaskStop", "KillShell"):
                yield STOPS, block["input"].get("task_id") or block["input"].get("shell_id"), None
        elif block.get("type") == "tool_result":
            yield OVER, block["tool_use_id"], isinstance(told, dict) and told.get("backgroundTaskId")


def _of_rollout(entry: dict[str, Any]) -> Iterator[Event]:
    """Yield the events of one entry of Codex's rollout."""
    told = entry["payload"]
    kind = told["type"]
    if kind in ("function_call", "custom_tool_call", "local_shell_call"):
        turn = told.get("internal_chat_message_metadata_passthrough") or {}
        given = f"{told.get('name')} {told.get('arguments')} {told.get('input')}"
        looks_on = "write_stdin" in given or told.get("name") == "wait"
        yield LOOKS_ON if looks_on else BEGINS, told["call_id"], turn.get("turn_id")
    elif kind.endswith("_call_output"):
        first = str(told.get("output"))[:FIRST_WORDS]
        runs_on = any(words in first for words in RUNNING)
        yield RUNS_ON if runs_on else OVER, told["call_id"], None
    elif kind == "item_completed" and told["item"].get("type") == "CommandExecution":
        lasted = told["item"]["duration"]
        lasted_ns = lasted["secs"] * 10**9 + lasted["nanos"] + SHORT_NS
        yield RAN, told["item"]["id"], _nanoseconds(entry["timestamp"]) - lasted_ns


def _path_of_blocks(path: str, session_id: str, agent: str) -> str:
    if agent:
        return FORMS_OF_LOOKS["blocks"].of_agent(path, agent)
    return path


def _path_of_rollout(path: str, session_id: str, agent: str) -> str:
    """Return the rollout with the thread's id at the end of its name. An agent's lies beside its session's."""
    folder, name = os.path.split(path)
    end = f"-{agent or session_id}.jsonl"
    if name.endswith(end):
        return path
    return next((os.path.join(folder, one) for one in names_in(folder) if one.endswith(end)), "")


FORMS = {
    "blocks": Form(
        (b'"tool_use"', b'"tool_result"', b"<tool-use-id>"), b'"backgroundTaskId"', _of_blocks, _path_of_blocks
    ),
    "rollout": Form((b'"call_id"', b'"CommandExecution"'), RUNNING[0].encode(), _of_rollout, _path_of_rollout),
}
_NO_FORM = Form((), b"-", lambda _entry: (), lambda *_words: "")


def exit_code(path: str, session_id: str, agent: str, call: str) -> int | None:
    """Return the exit code of a command that Codex has run, by its rollout; None if that does not tell it.

    `path`: a rollout, as of ``Form.path_of``. Codex writes it before it starts the hook after the call.
    """
    name = dumps(call).encode("utf-8", "surrogateescape")
    for size in TAILS:
        try:
            data, is_all = tail(_path_of_rollout(path, session_id, agent), size)
        except (OSError, ValueError):
            return None  # missing, or no file
        for raw in reversed(data.split(b"\n")):
            if name in raw and b'"exit_code"' in raw:
                try:
                    item = loads_object(raw.decode("utf-8", "surrogateescape"))["payload"]["item"]
                    return int(item["exit_code"])
                except (ValueError, TypeError, KeyError):
                    continue  # torn, or another line about the call
        if is_all:
            break
    return None


class Log:
    """A client's log of one session, or of one of its agents.

    form  its format
    path  the file; it may be missing
    """

    def __init__(self, form: Form, path: str):
        self._form = form
        self._path = path
        self._read: list[tuple[int, list[int]]] = []  # results of `_ends_in`, one for each tail that was read
        self._apart: list[tuple[int, int, int]] | None = None  # the result of `apart_in`

    def end_of(self, at_ns: int, changed_ns: int = 0) -> int:
        """Return the first time after `at_ns` at which no call was open; 0 if it is not known.

        `changed_ns`: the question is if the end was before that time. If that is a moment ago, wait for a result that
        the client may not have written yet.
        """
        while True:
            found = self._known_end(at_ns)
            if found or not 0 <= time.time_ns() - changed_ns < PATIENCE_NS:
                return found
            time.sleep(PAUSE)
            self._read.clear()

    def end_apart(self, at_ns: int) -> int:
        """Return the end in the background of the command that was let pass at `at_ns`; `STILL` if it goes on.

        0 if it did not go on there.
        """
        if self._apart is None:
            try:
                data = tail(self._path, TAILS[-1])[0]
            except (OSError, ValueError):
                data = b""  # missing, or no file
            self._apart = []
            if self._form.apart in data:
                self._apart = apart_in(self._form, data)
        return next((end for begun, launched, end in self._apart if begun <= at_ns <= launched), 0)

    def _known_end(self, at_ns: int) -> int:
        for number in range(len(TAILS)):
            first_ns, ends = self._ends_in(number)
            if first_ns <= at_ns:
                return next(iter(ends[bisect_right(ends, at_ns) :]), 0)
        return 0

    def _ends_in(self, number: int) -> tuple[int, list[int]]:
        """Return ``(time from which on it is known, ends)`` by one of the `TAILS` of the log."""
        while len(self._read) <= number:
            try:
                data, is_all = tail(self._path, TAILS[len(self._read)])
            except (OSError, ValueError):
                data, is_all = b"", True  # missing, or no file
            first_ns, ends = ends_in(self._form, data)
            self._read.append((first_ns * (not is_all), ends))
        return self._read[number]


class Logs:
    """The logs of a session and its agents.

    form  name of their format; logs of a format that is not in `FORMS` have no ends
    path  one of them, as a hook of the client was told it; empty for logs without ends
    """

    def __init__(self, form: str, path: str, session_id: str):
        self._form = FORMS.get(form, _NO_FORM)
        self.path = path * (form in FORMS)
        self._session_id = session_id
        self._logs: dict[str, Log] = {}  # by agent

    def end_of(self, agent: str, at_ns: int, changed_ns: int = 0) -> int:
        """Return the end of the agent's call that was let pass at `at_ns`; 0 if it is not known. See ``Log.end_of``."""
        return self._of(agent).end_of(at_ns, changed_ns)

    def end_apart(self, agent: str, at_ns: int) -> int:
        """Return the end in the background of the agent's command that was let pass then. See ``Log.end_apart``."""
        return self._of(agent).end_apart(at_ns)

    def _of(self, agent: str) -> Log:
        if agent not in self._logs:
            path = self.path and self._form.path_of(self.path, self._session_id, agent)
            self._logs[agent] = Log(self._form, path)
        return self._logs[agent]
