"""Looks of a session at a file that no hook sees: by the transcript that its client writes.

The client's own reading tool has no hook, and a client refuses to overwrite what its model has not seen in some
releases, with some models, after some events only. The transcript holds the text that each read has shown. A file has
been shown if each of its lines, as it is now, stands there at its place: neither clocks nor the client's word count.

It is read only where a call meets another session's change, from its end, and no further than `TAILS` say.
"""

import os
import time

from swarm_hook_core.state import open_private, read_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Look = tuple[str, object, object, int]

TAILS = (256 * 1024, 4 * 1024 * 1024)  # bytes at a transcript's end: the second where the first does not say
LARGEST = 1024 * 1024  # bytes of a file that is compared
MOST_SECONDS = 1.0  # for all files of one call; those behind that count as not shown
PATIENCE = 0.3  # seconds for which the result of a read may be missing in the transcript
PAUSE = 0.05
OF_AGENTS = "subagents"  # the folder of their transcripts, in both clients


class Form:
    """How one family of clients writes its transcripts.

    looks     ``entry -> [(call, path, text, first)]``: calls of the reading tool have a `path` and None for `text`;
              results have the text that was shown, which begins in line `first`, empty where the read has failed. Those
              that name both need no id of a call. It may raise what it likes for an entry of another shape
    of_agent  ``(path of the session's, agent) -> path`` of a sub-agent's transcript
    """

    def __init__(self, looks: "Callable[[dict], Iterable[Look]]", of_agent: "Callable[[str, str], str]"):
        self.looks = looks
        self.of_agent = of_agent


class Transcript:
    """The transcript of the session, or of the sub-agent, that makes `call`."""

    def __init__(self, config, call):
        self._form = FORMS[config.transcript]
        self._folder = call.folder
        self._is_agent = bool(call.agent)
        self._path = self._form.of_agent(call.transcript, call.agent) if call.agent else call.transcript
        self._spent = 0.0

    def has_shown(self, path: str, resolved: str) -> bool:
        """Return True if the model was shown the file at `path`, `resolved` without links, as it is now.

        In doubt it was not: the transcript is missing, of another form, or goes back further than is read.
        """
        if self._spent > MOST_SECONDS:
            return False
        begun = time.monotonic()
        try:
            return self._is_shown({os.path.basename(path), os.path.basename(resolved)}, resolved, begun + PATIENCE)
        except (OSError, ValueError):
            return False
        finally:
            self._spent += time.monotonic() - begun

    def _is_shown(self, names, resolved: str, end: float) -> bool:
        """As `has_shown`; a result that is missing is waited for until `end`. Raises OSError, ValueError."""
        lines = _lines(_regular(resolved, LARGEST))
        while True:
            is_shown, is_awaited = self._search(names, resolved, lines)
            if is_shown or not is_awaited or time.monotonic() > end:
                return is_shown
            time.sleep(PAUSE)

    def _search(self, names, resolved: str, lines: list) -> tuple:
        """``(it was shown, a read of it has no result yet)``. Raises OSError, ValueError."""
        is_awaited = False
        for size in TAILS:
            data, is_all = _tail(self._path, size)
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
                left.discard(len(lines) - 1)  # behind the end of the last line
            if not left:
                return True, False
            is_awaited = is_awaited or bool(awaited)
            if is_all:
                break
        return False, is_awaited

    def _looks(self, data: bytes, names, resolved: str) -> "Iterator[tuple[str, str | None, int]]":
        """``(call, text, first line)`` of the reads of the file in `data`; None for the text of a call."""
        found: dict = {}
        for mark in {mark for name in names for mark in _spellings(name)}:
            found.update(_lines_with(mark, data))
        of_file: dict = {}
        for place in sorted(found):
            for call, path, text, first in self._parsed(found[place]):
                if not (isinstance(path, str) and isinstance(call, str) and self._leads_to(path, resolved)):
                    continue
                if text is None and call:
                    of_file[call] = None
                    yield call, None, 0
                elif isinstance(text, str) and isinstance(first, int):
                    yield call, text, first
        for made in of_file:  # their results need not name the file
            for _place, raw in _lines_with(made.encode("utf-8", "replace"), data):
                for call, path, text, first in self._parsed(raw):
                    if path is None and call == made and isinstance(text, str):
                        yield call, text, first

    def _parsed(self, raw: bytes) -> list:
        from swarm_hook_core.json_text import loads_object

        try:
            entry = loads_object(raw.decode("utf-8", "surrogateescape"))
            if not self._is_agent and entry.get("isSidechain") is True:
                return []  # older clients: of a sub-agent
            return list(self._form.looks(entry))
        except (ValueError, TypeError, AttributeError, KeyError):
            return []  # cut off, or of another shape

    def _leads_to(self, path: str, resolved: str) -> bool:
        try:
            return os.path.realpath(os.path.join(self._folder, path)) == resolved
        except ValueError:
            return False


def _of_blocks(entry: dict) -> "Iterator[Look]":
    """The looks of one entry in which messages consist of blocks, as Anthropic's API has them."""
    told = entry.get("toolUseResult")
    attached = entry["attachment"].get("content") if isinstance(entry.get("attachment"), dict) else None
    for holder in (told, attached):
        if isinstance(holder, dict):
            file = holder.get("file", holder)  # what was written stands in the result itself
            if "filePath" in file and isinstance(file.get("content"), str):
                yield "", file["filePath"], file["content"], file.get("startLine", 1)
    blocks = entry["message"]["content"] if isinstance(entry.get("message"), dict) else ()
    for block in blocks if isinstance(blocks, list) else ():
        if block.get("type") == "tool_use" and block.get("name") == "Read":
            yield block["id"], block["input"].get("file_path"), None, 0
        elif block.get("type") == "tool_result":
            yield block["tool_use_id"], None, *_numbered("" if block.get("is_error") else block.get("content"))


def _numbered(content: object) -> tuple:
    """``(text, first line)`` of a result whose lines begin with their numbers; empty where they do not."""
    if isinstance(content, list):
        content = "\n".join(block["text"] for block in content if block.get("type") == "text")
    first = 0
    lines: list[str] = []
    for line in str(content).split("\n"):
        number, tab, rest = line.partition("\t" if "\t" in line else "→")
        if not tab or not number.strip().isdecimal() or (first and int(number) != first + len(lines)):
            break  # a word of the client's own behind the text
        first = first or int(number)
        lines.append(rest)
    return "\n".join(lines), first


def _of_parts(entry: dict) -> "Iterator[Look]":
    """The looks of one entry in which messages consist of parts, as Google's API has them."""
    for part in entry["message"]["parts"] if isinstance(entry.get("message"), dict) else ():
        made, answered = part.get("functionCall"), part.get("functionResponse")
        if isinstance(made, dict) and made.get("name") == "read_file":
            yield made["id"], made["args"].get("file_path"), None, 0
        elif isinstance(answered, dict):
            yield answered["id"], None, *_paged(answered["response"].get("output"))


def _paged(output: object) -> tuple:
    """``(text, first line)`` of what a read has shown: the file as it is, or a page of it under a heading."""
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


FORMS = {"blocks": Form(_of_blocks, _agent_of_blocks), "parts": Form(_of_parts, _agent_of_parts)}


def _lines_with(mark: bytes, data: bytes) -> "Iterator[tuple[int, bytes]]":
    """``(place, line)`` of each line in which `mark` stands."""
    place = data.find(mark)
    while place >= 0:
        begin, end = data.rfind(b"\n", 0, place) + 1, data.find(b"\n", place)
        yield begin, data[begin : end if end >= 0 else len(data)]
        place = data.find(mark, end) if end >= 0 else -1


def _spellings(name: str) -> list:
    """How a JSON text may spell `name`."""
    from swarm_hook_core.json_text import quote

    plain = name.replace("\\", "\\\\").replace('"', '\\"')
    return [plain.encode("utf-8", "surrogatepass"), quote(name)[1:-1].encode()]


def _lines(data: bytes) -> list:
    """The lines of a file, as clients show them. Raises ValueError where it is no text."""
    return _without_returns(data.decode("utf-8-sig")).split("\n")


def _without_returns(text: str) -> str:
    return text.replace("\r\n", "\n")


def _regular(path: str, most: int) -> bytes:
    """What is in the ordinary file at `path`. Raises OSError; ValueError where it is longer than `most` bytes."""
    data, is_all = _tail(path, most)
    if not is_all:
        raise ValueError("too long")
    return data


def _tail(path: str, size: int) -> tuple:
    """``(at most size bytes at the end of the ordinary file at path, they are all of it)``. Raises OSError."""
    handle = open_private(path, os.O_RDONLY, follows=True)
    try:
        begin = max(os.fstat(handle).st_size - size, 0)
        os.lseek(handle, begin, os.SEEK_SET)
        return read_all(handle, size), not begin
    finally:
        os.close(handle)
