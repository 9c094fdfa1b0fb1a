"""What a client tells of its calls: files that it has shown to its model, and the ends of calls.

Both are in its *transcript*, the log of the conversation. A hook tells ends, too:

    <state folder>/ended/<pid>                  its mtime is the end of the last call of the client with this process;
                                                a plugin notes the session and its agent in it
    <state folder>/ended/<runtime>.<session>    the session's client process, the form and the path of its transcript:
                                                noted as the session starts, and at each prompt (``registration``)

**Looks.** The clients' own reading tools have no hook here, and clients refuse to overwrite unread files only in some
releases and cases. The transcript has the text that each read has shown. A file counts as shown if each of its present
lines is in the transcript at its line number.

**Ends.** The next check of a session notes an end that a hook has told in the journal (``Trail.leave``). Until then
each reader of the journal adds it (`with_mark`). No hook runs after an edit in Claude Code and Codex, or after a call
that the client or its user has refused. The transcript has a result of each call, written after all hooks of the
client, also its formatters. The pause in which a model thinks lies between that result and the next call.

The transcript is read only when a call meets another session's change, where a change may fall into such a pause, or
where another session's write is still to come: from its end, up to the sizes in `TAILS`. Claude Code writes it a tenth
of a second late.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple

from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.json_text import dumps, loads_object
from swarm_hook_core.state import client_note, end_by_mark, open_private, read_all, read_private
from swarm_hook_core.traces import append, first_line, journal, names_in, plain_word, seen
from swarm_hook_core.traces import entry as new_entry
from swarm_hook_core.traces.journal import Entry

Look = tuple[str, object, object, int]
# what happens, to which call, and more: the group of a call that begins, the beginning of a command that has run
Event = tuple[str, str, Any]

TAILS = (256 * 1024, 4 * 1024 * 1024)  # bytes at the transcript's end; the second if the first has no answer
LARGEST = 1024 * 1024  # bytes of a file that is compared
MOST_SECONDS = 1.0  # for all files of one call; later ones count as not shown
PATIENCE = 0.6  # seconds to wait until the transcript tells of the call itself, and of the result of each read
PAUSE = 0.05
OF_AGENTS = "subagents"  # the folder of their transcripts, in both clients

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
END_PAUSE = 0.03  # seconds between two looks for an end
SHORT_NS = 150_000_000  # Codex tells durations of commands that are too short by so much
_DAYS_BEFORE = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)


def nothing(_entry: dict[str, Any]) -> tuple[Any, ...]:
    """Return no looks, and no events: of a form that tells none."""
    return ()


class Form(NamedTuple):
    """The format of the transcripts of one family of clients.

    path_of   ``(path of one, session id, agent) -> path`` of that of the agent, or of the session
    is_late   True if the client writes its calls a moment late, with the ids that its hooks are told. A transcript that
              tells of a call tells of all reads before it
    looks     ``entry -> [(call, path, text, first)]``: a call of the reading tool has a `path` and None for `text`;
              its result has the shown text, beginning in line `first`, or "" if the read failed. An item with both path
              and text needs no call id
    events    ``entry -> [(kind, call, more)]``, of the beginnings and ends of calls
    marks     bytes of the lines with events
    apart     bytes of a result that says that its command goes on in the background

    `looks` and `events` may raise ValueError, TypeError, AttributeError, KeyError for other entries.
    """

    path_of: Callable[[str, str, str], str]
    is_late: bool = False
    looks: Callable[[dict[str, Any]], Iterable[Look]] = nothing
    events: Callable[[dict[str, Any]], Iterable[Event]] = nothing
    marks: tuple[bytes, ...] = ()
    apart: bytes = b"-"


class Transcript:
    """The transcript of the session, or of the sub-agent, that makes `call`."""

    def __init__(self, config: RuntimeConfig, call: ToolCall):
        self._form = FORMS[config.transcript]
        self._folder = call.folder
        self._is_agent = bool(call.agent)
        self._call = call.id.encode("utf-8", "replace") * self._form.is_late
        self._path = self._form.path_of(call.transcript, call.session_id, call.agent)
        self._spent = 0.0

    def has_shown(self, path: str, resolved: str, waits: bool = True) -> bool:
        """Return True if the model was shown the file at `path` as it is now. `resolved`: the path without links.

        False in doubt: a missing transcript, an unknown format, a read further back than `TAILS`. `waits`: wait for
        entries that the client may not have written yet.
        """
        if self._form.looks is nothing or self._spent > MOST_SECONDS:
            return False
        begun = time.monotonic()
        names = {os.path.basename(path), os.path.basename(resolved)}
        try:
            return self._is_shown(names, resolved, begun + PATIENCE * waits)
        except (OSError, ValueError):
            return False  # in doubt it was not shown
        finally:
            self._spent += time.monotonic() - begun

    def _is_shown(self, names: Collection[str], resolved: str, end: float) -> bool:
        """Do the work of `has_shown`; wait until `end` for missing entries. Raises OSError, ValueError."""
        # The bytes of the ordinary file at `resolved`
        data, is_all = tail(resolved, LARGEST)
        if not is_all:
            raise ValueError("too long")
        lines = _without_returns(data.decode("utf-8-sig")).split("\n")  # as clients show them
        while True:
            is_shown, is_awaited = self._search(names, resolved, lines)
            if is_shown or not is_awaited or time.monotonic() > end:
                return is_shown
            time.sleep(PAUSE)

    def _search(self, names: Collection[str], resolved: str, lines: list[str]) -> tuple[bool, bool]:
        """Return ``(file was shown, the transcript may tell more of its reads)``. Raises OSError, ValueError."""
        is_awaited = False
        for size in TAILS:
            try:
                data, is_all = tail(self._path, size)
            except FileNotFoundError:
                data, is_all = b"", True  # a new session's
            left, awaited = set(range(len(lines))), set()
            for call, text, first in self._looks(data, names, resolved):
                if text is None:
                    awaited.add(call)
                    continue
                awaited.discard(call)
                shown = _without_returns(text).split("\n")
                if first > 0 and lines[first - 1 : first - 1 + len(shown)] == shown:
                    left.difference_update(range(first - 1, first - 1 + len(shown)))
            if len(lines) > 1 and not lines[-1]:
                left.discard(len(lines) - 1)  # the empty line after the last line's end
            if not left:
                return True, False
            is_awaited = bool(awaited) or self._call not in data
            if is_all:
                break
        return False, is_awaited

    def _looks(self, data: bytes, names: Collection[str], resolved: str) -> Iterator[tuple[str, str | None, int]]:
        """Yield ``(call, text, first line)`` of the reads of the file in `data`; the text of a call is None."""
        found: dict[int, bytes] = {}
        for mark in {mark for name in names for mark in _spellings(name)}:
            found.update(_lines_with(mark, data))
        of_file: dict[str, None] = {}
        for place in sorted(found):
            for call, path, text, first in self._parsed(found[place]):
                if not (isinstance(path, str) and isinstance(call, str) and self._leads_to(path, resolved)):
                    continue
                if text is None and call:
                    of_file[call] = None
                    yield call, None, 0
                elif isinstance(text, str) and isinstance(first, int):
                    yield call, text, first
        for made in of_file:  # results need not name the file
            for _place, raw in _lines_with(made.encode("utf-8", "replace"), data):
                for call, path, text, first in self._parsed(raw):
                    if path is None and call == made and isinstance(text, str):
                        yield call, text, first

    def _parsed(self, raw: bytes) -> list[Look]:
        try:
            entry = loads_object(raw.decode("utf-8", "surrogateescape"))
            if not self._is_agent and entry.get("isSidechain") is True:
                return []  # older clients: an entry of a sub-agent
            return list(self._form.looks(entry))
        except (ValueError, TypeError, AttributeError, KeyError):
            return []  # torn, or of another format

    def _leads_to(self, path: str, resolved: str) -> bool:
        try:
            return os.path.realpath(os.path.join(self._folder, path)) == resolved
        except ValueError:
            return False  # the text cannot be a path


def _looks_of_blocks(entry: dict[str, Any]) -> Iterator[Look]:
    """Yield the looks in one entry of a transcript with content blocks (Anthropic's API)."""
    attached = entry.get("attachment")
    if isinstance(attached, dict):
        attached = attached.get("content")
    for holder in (entry.get("toolUseResult"), attached):
        if isinstance(holder, dict):
            file = holder.get("file", holder)  # results of writes have the text at the top
            if "filePath" in file and isinstance(file.get("content"), str):
                yield "", file["filePath"], file["content"], file.get("startLine", 1)
    message = entry.get("message")
    blocks = message["content"] if isinstance(message, dict) else ()
    for block in blocks if isinstance(blocks, list) else ():
        if block.get("type") == "tool_use" and block.get("name") == "Read":
            yield block["id"], block["input"].get("file_path"), None, 0
        elif block.get("type") == "tool_result":
            yield block["tool_use_id"], None, *_numbered("" if block.get("is_error") else block.get("content"))


def _numbered(content: object) -> tuple[str, int]:
    """Return ``(text, first line)`` of a result with numbered lines; ("", 0) without numbers."""
    if isinstance(content, list):
        content = "\n".join(block["text"] for block in content if block.get("type") == "text")
    first = 0
    lines: list[str] = []
    for line in str(content).split("\n"):
        number, tab, rest = line.partition("\t" if "\t" in line else "→")
        if not tab or not number.strip().isdecimal() or (first and int(number) != first + len(lines)):
            break  # a note of the client after the text
        first = first or int(number)
        lines.append(rest)
    return "\n".join(lines), first


def _looks_of_parts(entry: dict[str, Any]) -> Iterator[Look]:
    """Yield the looks in one entry of a transcript with parts (Google's API)."""
    for part in entry["message"]["parts"] if isinstance(entry.get("message"), dict) else ():
        made, answered = part.get("functionCall"), part.get("functionResponse")
        if isinstance(made, dict) and made.get("name") == "read_file":
            yield made["id"], made["args"].get("file_path"), None, 0
        elif isinstance(answered, dict):
            yield answered["id"], None, *_paged(answered["response"].get("output"))


def _paged(output: object) -> tuple[str, int]:
    """Return ``(text, first line)`` of a shown file: whole, or one page under a heading."""
    if not isinstance(output, str):
        return "", 0
    heading, rule, text = output.partition("\n\n---\n\n")
    if rule and heading.startswith("Showing lines "):
        return text, int(heading[len("Showing lines ") :].partition("-")[0])
    return output, 1


def _lines_with(mark: bytes, data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield ``(index, line)`` of each line that contains `mark`."""
    place = data.find(mark)
    while place >= 0:
        begin, end = data.rfind(b"\n", 0, place) + 1, data.find(b"\n", place)
        yield begin, data[begin : end if end >= 0 else len(data)]
        place = -1
        if end >= 0:
            place = data.find(mark, end)


def _spellings(name: str) -> list[bytes]:
    """Return the spellings of `name` in JSON."""
    plain = name.replace("\\", "\\\\").replace('"', '\\"')
    return [plain.encode("utf-8", "surrogatepass"), dumps(name)[1:-1].encode()]


def _without_returns(text: str) -> str:
    return text.replace("\r\n", "\n")


def tail(path: str, size: int) -> tuple[bytes, bool]:
    """Return ``(last size bytes of the ordinary file at path, True if that is all)``. Raises OSError."""
    handle = open_private(path, os.O_RDONLY, follows=True)
    try:
        begin = max(os.fstat(handle).st_size - size, 0)
        os.lseek(handle, begin, os.SEEK_SET)
        return read_all(handle, size), not begin
    finally:
        os.close(handle)


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
        return logs.of(call.agent).end_of(call.at_ns)
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


def _events_of_blocks(entry: dict[str, Any]) -> Iterator[Event]:
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


def _events_of_rollout(entry: dict[str, Any]) -> Iterator[Event]:
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
    if not agent:
        return path
    return os.path.join(path.removesuffix(".jsonl"), OF_AGENTS, f"agent-{agent}.jsonl")


def _path_of_parts(path: str, session_id: str, agent: str) -> str:
    if not agent:
        return path
    project, session = os.path.dirname(os.path.dirname(path)), os.path.basename(path).removesuffix(".jsonl")
    return os.path.join(project, OF_AGENTS, session, f"agent-{agent}.jsonl")


def _path_of_rollout(path: str, session_id: str, agent: str) -> str:
    """Return the rollout with the thread's id at the end of its name. An agent's lies beside its session's."""
    folder, name = os.path.split(path)
    end = f"-{agent or session_id}.jsonl"
    if name.endswith(end):
        return path
    return next((os.path.join(folder, one) for one in names_in(folder) if one.endswith(end)), "")


FORMS = {
    "blocks": Form(
        _path_of_blocks, True, _looks_of_blocks, _events_of_blocks,
        (b'"tool_use"', b'"tool_result"', b"<tool-use-id>"), b'"backgroundTaskId"',
    ),
    "parts": Form(_path_of_parts, looks=_looks_of_parts),
    "rollout": Form(
        _path_of_rollout, events=_events_of_rollout, marks=(b'"call_id"', b'"CommandExecution"'),
        apart=RUNNING[0].encode(),
    ),
}  # fmt: skip
_NO_FORM = Form(lambda *_words: "")


def exit_code(path: str, session_id: str, agent: str, call: str) -> int | None:
    """Return the exit code of a command that Codex has run, by its rollout; None if that does not tell it.

    `path`: a rollout, as of ``Form.path_of``. Codex writes it before it starts the hook after the call.
    """
    name = dumps(call).encode("utf-8", "surrogateescape")
    try:
        path = _path_of_rollout(path, session_id, agent)
    except OSError:
        return None  # its folder cannot be listed
    for size in TAILS:
        data, is_all = _tail_if_there(path, size)
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
    """The ends of calls in the transcript of one session, or of one of its agents.

    form  its format
    path  the file; it may be missing
    """

    def __init__(self, form: Form, path: str):
        self._form = form
        self._path = path
        self._read: dict[int, tuple[int, list[int]]] = {}  # size of a tail -> time from which on it is known, ends
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
            time.sleep(END_PAUSE)
            self._read.clear()

    def end_apart(self, at_ns: int) -> int:
        """Return the end in the background of the command that was let pass at `at_ns`; `STILL` if it goes on.

        0 if it did not go on there.
        """
        if self._apart is None:
            data = _tail_if_there(self._path, TAILS[-1])[0]
            self._apart = []
            if self._form.apart in data:
                self._apart = apart_in(self._form, data)
        return next((end for begun, launched, end in self._apart if begun <= at_ns <= launched), 0)

    def _known_end(self, at_ns: int) -> int:
        for size in TAILS:
            if size not in self._read:
                data, is_all = _tail_if_there(self._path, size)
                first_ns, ends = ends_in(self._form, data)
                self._read[size] = first_ns * (not is_all), ends
            first_ns, ends = self._read[size]
            if first_ns <= at_ns:
                return next(iter(ends[bisect_right(ends, at_ns) :]), 0)
        return 0


def _tail_if_there(path: str, size: int) -> tuple[bytes, bool]:
    """Return the same as `tail`, nothing of a missing file."""
    try:
        return tail(path, size)
    except (OSError, ValueError):
        return b"", True  # missing, or no file


class Logs:
    """The logs of a session and its agents.

    form  name of their format
    path  one of them, as a hook of the client was told it; empty for logs without ends
    """

    def __init__(self, form: str, path: str, session_id: str):
        self._form = FORMS.get(form, _NO_FORM)
        self.path = path * (self._form.events is not nothing)
        self._session_id = session_id
        self._logs: dict[str, Log] = {}  # by agent

    def of(self, agent: str) -> Log:
        """Return the log of an agent; with an empty name, of the session itself."""
        if agent not in self._logs:
            path = self.path and self._form.path_of(self.path, self._session_id, agent)
            self._logs[agent] = Log(self._form, path)
        return self._logs[agent]
