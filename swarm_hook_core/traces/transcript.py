"""Looks at files that no hook sees, found in the transcript that the client writes.

The clients' own reading tools have no hook here, and clients refuse to overwrite unread files only in some releases and
cases. The transcript has the text that each read has shown. A file counts as shown if each of its present lines is in
the transcript at its line number.

The transcript is read only when a call meets another session's change, from its end, up to the sizes in `TAILS`. Claude
Code writes it a tenth of a second late.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple

from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.json_text import dumps, loads_object
from swarm_hook_core.state import open_private, read_all

Look = tuple[str, object, object, int]

TAILS = (256 * 1024, 4 * 1024 * 1024)  # bytes at the transcript's end; the second if the first has no answer
LARGEST = 1024 * 1024  # bytes of a file that is compared
MOST_SECONDS = 1.0  # for all files of one call; later ones count as not shown
PATIENCE = 0.6  # seconds to wait until the transcript tells of the call itself, and of the result of each read
PAUSE = 0.05
OF_AGENTS = "subagents"  # the folder of their transcripts, in both clients


class Form(NamedTuple):
    """The transcript format of one family of clients.

    is_late   True if the client writes its calls a moment late, with the ids that its hooks are told. A transcript that
              tells of a call tells of all reads before it
    looks     ``entry -> [(call, path, text, first)]``: a call of the reading tool has a `path` and None for `text`;
              its result has the shown text, beginning in line `first`, or "" if the read failed. An item with both path
              and text needs no call id. May raise ValueError, TypeError, AttributeError, KeyError for other entries
    of_agent  ``(path of the session's transcript, agent) -> path`` of the sub-agent's transcript
    """

    is_late: bool
    looks: Callable[[dict[str, Any]], Iterable[Look]]
    of_agent: Callable[[str, str], str]


class Transcript:
    """The transcript of the session, or of the sub-agent, that makes `call`."""

    def __init__(self, config: RuntimeConfig, call: ToolCall):
        self._form = FORMS[config.transcript]
        self._folder = call.folder
        self._is_agent = bool(call.agent)
        self._call = call.id.encode("utf-8", "replace") * self._form.is_late
        if call.agent:
            self._path = self._form.of_agent(call.transcript, call.agent)
        else:
            self._path = call.transcript
        self._spent = 0.0

    def has_shown(self, path: str, resolved: str, waits: bool = True) -> bool:
        """Return True if the model was shown the file at `path` as it is now. `resolved`: the path without links.

        False in doubt: a missing transcript, an unknown format, a read further back than `TAILS`. `waits`: wait for
        entries that the client may not have written yet.
        """
        if self._spent > MOST_SECONDS:
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
        lines = _lines(data)
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


def _of_blocks(entry: dict[str, Any]) -> Iterator[Look]:
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


def _of_parts(entry: dict[str, Any]) -> Iterator[Look]:
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


def _agent_of_blocks(path: str, agent: str) -> str:
    return os.path.join(path.removesuffix(".jsonl"), OF_AGENTS, f"agent-{agent}.jsonl")


def _agent_of_parts(path: str, agent: str) -> str:
    project = os.path.dirname(os.path.dirname(path))
    session = os.path.basename(path).removesuffix(".jsonl")
    return os.path.join(project, OF_AGENTS, session, f"agent-{agent}.jsonl")


FORMS = {"blocks": Form(True, _of_blocks, _agent_of_blocks), "parts": Form(False, _of_parts, _agent_of_parts)}


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


def _lines(data: bytes) -> list[str]:
    """Return the lines of a file, as clients show them. Raises ValueError for a file that is not text."""
    return _without_returns(data.decode("utf-8-sig")).split("\n")


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
