"""The content of a file after a call of a write tool, computed from the content before and the tool's input.

Inputs are kept beside the session's versions, in ``<state>/kept/<place>/<journal>/%inputs``, and its older part with
``.1``. ``Trail`` writes the file, at the check of each call. One line per call, in bytes:

    <time> <time> <tool>\\0<folder>\\0<input as JSON>\\n

The times are those of the call's first and last entry ``wrote`` in the journal. `folder` is that of relative paths. An
input over 256 KiB is not kept.

Clients differ in small things: line ends, the end of a removed line, blanks in the context of a patch. So there may be
several answers; ``layout`` takes the one that fits the content that was found. None of them is a guess: an input
that does not fit the content before gives no answer.

    a whole text         Write, create, write_file: ``content`` and its other names
    old and new text     Edit, MultiEdit, replace: one pair or a list of pairs, once or for all places
    lines put in         ``insert_line`` with a text
    a patch              apply_patch: Add, Update, Delete, and a move at its source and at its target
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from swarm_hook_core.json_text import loads
from swarm_hook_core.patch import patches_in
from swarm_hook_core.state import NotOrdinary, read_private
from swarm_hook_core.traces import INPUTS, LIMIT_INPUTS, LONGEST_INPUT, kept_dir
from swarm_hook_core.traces.journal import unescaped

MOST_BYTES = LIMIT_INPUTS + 2 * LONGEST_INPUT  # of one part of the inputs
WHOLE = ("content", "contents", "file_text", "new_content", "text")
PAIRS = (
    ("old_string", "new_string"), ("oldString", "newString"), ("old_str", "new_str"), ("old_text", "new_text"),
    ("oldText", "newText"), ("search", "replace"),
)  # fmt: skip
ALL = ("replace_all", "replaceAll", "allow_multiple")
INSERTED = ("insert_text", "new_str", "new_text", "text")
LISTS = 3  # lists of edits in lists of files, and the like
MOST = 1 << 20  # characters of a result; no version is larger

ADD, UPDATE, DELETE, MOVE = "*** Add File:", "*** Update File:", "*** Delete File:", "*** Move to:"
_BEGIN, _END, _LAST = "*** Begin Patch", "*** End Patch", "*** End of File"
_SAME = str.maketrans("\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u2010\u2011\u2012\u2013\u2014\u2015\u2212\xa0",
                      "''''\"\"\"\"------- ")  # fmt: skip  # Codex takes these for the same sign


class Input(NamedTuple):
    """The input of one call: the `tool`, the `folder` of relative paths, and the value that the tool was `given`.

    first_ns, last_ns  times of the call's entries
    """

    tool: str
    folder: str
    given: object
    first_ns: int = 0
    last_ns: int = 0


class Inputs:
    """The inputs that the session with the journal `name` in `place` has kept. Each is parsed when it is asked for."""

    def __init__(self, place: str, name: str):
        self._path = os.path.join(kept_dir(place), name, INPUTS)
        self._is_read = False  # most files have no entries of most sessions
        self._lines: list[tuple[int, int, bytes]] = []  # first and last time, the line; sorted
        self._longest_ns = 0

    def _read(self) -> None:
        lines = []
        for part in (self._path + ".1", self._path):
            try:
                data = read_private(part, MOST_BYTES)
            except (FileNotFoundError, PermissionError, NotOrdinary):
                continue  # nothing kept, or pruned. A disk that fails makes no person's lines a call's
            for line in data.split(b"\n"):
                words = line.partition(b"\0")[0].split(b" ")
                if len(words) == 3 and words[0].isdigit() and words[1].isdigit():
                    lines.append((int(words[0]), int(words[1]), line))
        self._lines, self._is_read = sorted(lines), True
        self._longest_ns = max((last_ns - first_ns for first_ns, last_ns, _line in self._lines), default=0)

    def at(self, at_ns: int) -> Input | None:
        """Return the Input of the call with an entry at this time; None if it was not kept, or is torn."""
        if not self._is_read:
            self._read()
        start = bisect_right(self._lines, (at_ns - self._longest_ns - 1,))
        for first_ns, last_ns, line in self._lines[start:]:
            if first_ns > at_ns:
                break
            if at_ns <= last_ns:
                try:
                    head, folder, text = line.split(b"\0", 2)
                    given = loads(text.decode("ascii"))
                except (ValueError, RecursionError):
                    return None  # torn, as after a full disk; or nested too deeply
                return Input(
                    head.split(b" ")[2].decode("ascii", "replace"), unescaped(folder), given, first_ns, last_ns
                )
        return None


def contents_after(
    one: Input, path: str, before: bytes | None, at: Callable[[str], bytes | None]
) -> list[bytes | None]:
    """Return the possible contents of the file at `path` after the call, the likeliest first; None: no file.

    before  its content before the call, None if it was missing
    at      ``at(path)``: content of another file before the call, for one that is moved here; None if unknown
    """
    text = _decoded(before)
    found: list[bytes | None] = []
    for made in _texts_after(one, path, text, at):
        try:
            data = made.encode("utf-8", "surrogateescape") if made is not None else None
        except UnicodeEncodeError:
            continue  # half a letter: no tool can have written it
        if data not in found and (made is None or len(made) <= MOST):
            found.append(data)
    return found


def _decoded(data: bytes | None) -> str | None:
    if data is None:
        return None
    return data.decode("utf-8", "surrogateescape")


def source_of(one: Input, path: str) -> str:
    """Return the path of the file that the call has moved to `path`, or ""."""
    for section in _sections(one):
        if section.target and _is_same(one, section.target, path):
            return os.path.realpath(os.path.join(section.folder, section.path))
    return ""


def is_whole(one: Input) -> bool:
    """Return True if the input is a whole text, that need not keep anything of the content before."""
    given = one.given
    if not isinstance(given, dict) or any(True for _section in _sections(one)):
        return not isinstance(given, dict) or any(section.header == ADD for section in _sections(one))
    return not _pairs_in(given) and "insert_line" not in given


def _texts_after(
    one: Input, path: str, text: str | None, at: Callable[[str], bytes | None]
) -> Iterator[str | None]:  # fmt: skip
    sections = list(_sections(one))
    if sections:
        yield from _after_patch(one, sections, path, text, at)
    elif isinstance(one.given, dict):
        yield from _after_edits(one.given, text)


# ------------------------------------------------------------------------------------------------ edits


def _after_edits(given: dict[str, Any], text: str | None) -> Iterator[str | None]:
    pairs = _pairs_in(given)
    if pairs:
        yield from _replaced_by_all(pairs, text)
        return
    place = given.get("insert_line")
    if isinstance(place, int):
        new = _one_text(given, INSERTED)
        lines = (text or "").splitlines(keepends=True)
        if new is not None and 0 <= place <= len(lines):
            end = "" if new.endswith("\n") else "\n"
            yield "".join([*lines[:place], new + end, *lines[place:]])
        return
    whole = _one_text(given, WHOLE)
    if whole is not None:
        yield whole
        if text is not None and "\r\n" in text and "\r\n" not in whole:
            yield whole.replace("\n", "\r\n")


def _one_text(given: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    texts = [value for key in keys if isinstance(value := given.get(key), str)]
    if len(texts) != 1:
        return None
    return texts[0]


def _pairs_in(given: dict[str, Any], levels: int = LISTS) -> list[tuple[str, str, bool]]:
    """Return ``[(old, new, in all places)]`` of the edits in an input, in order. `levels`: of lists in lists."""
    for old_key, new_key in PAIRS:
        old, new = given.get(old_key), given.get(new_key)
        if isinstance(old, str) and (isinstance(new, str) or new is None):
            several = given.get("expected_replacements")
            is_all = any(given.get(key) is True for key in ALL) or (isinstance(several, int) and several > 1)
            return [(old, new or "", is_all)]
    lists = [value for value in given.values() if isinstance(value, list) and value]
    if not levels or len(lists) != 1 or not all(isinstance(item, dict) for item in lists[0]):
        return []
    parts = [_pairs_in(item, levels - 1) for item in lists[0]]
    return [pair for part in parts for pair in part] * all(parts)


def _replaced_by_all(pairs: list[tuple[str, str, bool]], text: str | None) -> Iterator[str]:
    """Yield the text after all `pairs`: as they stand, with the removed lines' ends, and with the file's line ends."""
    is_crlf = text is not None and "\r\n" in text
    plain = [(old.replace("\r\n", "\n"), new.replace("\r\n", "\n"), is_all) for old, new, is_all in pairs]
    for removes_end in (False, True):
        made = text
        for pair in pairs:
            made = _replaced(made, *pair, removes_end)
        if made is not None:
            yield made
        if is_crlf and text is not None:
            made = text.replace("\r\n", "\n")
            for pair in plain:
                made = _replaced(made, *pair, removes_end)
            if made is not None:
                yield made.replace("\n", "\r\n")


def _replaced(text: str | None, old: str, new: str, is_all: bool, removes_end: bool) -> str | None:
    """Return the text after one edit, or None if it does not fit.

    removes_end  the line end behind text that is removed goes, too, as in Claude Code
    """
    if not old:
        return None if text else new  # it makes the file
    if text is None:
        return None
    if removes_end and not new and not old.endswith("\n") and old + "\n" in text:
        old += "\n"
    if old not in text:
        return None
    return text.replace(old, new, -1 if is_all else 1)


# ------------------------------------------------------------------------------------------------ patches


class _Section:
    """One file of a patch: its header, its `path` as spelled, the `target` of a move, and the lines below."""

    __slots__ = ("header", "folder", "path", "target", "lines")

    def __init__(self, header: str, folder: str, path: str):
        self.header = header
        self.folder = folder
        self.path = path
        self.target = ""
        self.lines: list[str] = []


class _Hunk:
    """One change of a section: lines to search for, in order, and those that take their place."""

    __slots__ = ("context", "old", "new", "is_last")

    def __init__(self, context: str):
        self.context = context
        self.old: list[str] = []
        self.new: list[str] = []
        self.is_last = False


def _sections(one: Input) -> Iterator[_Section]:
    for folder, text in patches_in(one.given):
        section: _Section | None = None
        for line in text.partition(_BEGIN)[2].split("\n")[1:]:
            bare = line.rstrip("\r")
            header = next((head for head in (ADD, UPDATE, DELETE) if bare.startswith(head)), "")
            if header or bare.rstrip() == _END:
                if section is not None:
                    yield section
                section = None
            if header:
                section = _Section(header, os.path.join(one.folder, folder or ""), bare[len(header) :].strip())
            elif section is not None and bare.startswith(MOVE) and not section.lines:
                section.target = bare[len(MOVE) :].strip()
            elif section is not None:
                section.lines.append(line)
        if section is not None:
            yield section


def _is_same(one: Input, spelled: str, path: str) -> bool:
    whole = os.path.join(one.folder, spelled)
    return os.path.normpath(whole) == path or os.path.realpath(whole) == path


def _after_patch(
    one: Input, sections: list[_Section], path: str, text: str | None, at: Callable[[str], bytes | None]
) -> Iterator[str | None]:  # fmt: skip
    """Yield the text of the file after all `sections` that concern it."""
    for is_exact in (True, False):  # a file with CRLF: as it stands, and with its line ends
        made, is_met = text, False
        for section in sections:
            is_source = _is_same(one, os.path.join(section.folder, section.path), path)
            is_target = bool(section.target) and _is_same(one, os.path.join(section.folder, section.target), path)
            if not (is_source or is_target):
                continue
            is_met = True
            if is_target and not is_source:
                data = at(os.path.realpath(os.path.join(section.folder, section.path)))
                made = _decoded(data)
            if section.header == ADD:
                made = "".join(f"{line[1:]}\n" for line in section.lines if line[:1] == "+")
            elif section.header == DELETE or (section.target and not is_target):
                made = None
            else:
                made = _patched(made, section.lines, is_exact)
                if made is None:
                    return  # it does not fit: the client has refused it
        if is_met:
            yield made
        if text is None or "\r\n" not in text:
            return


def _patched(text: str | None, lines: list[str], is_exact: bool) -> str | None:
    """Return the text after the hunks in these lines, or None if one of them does not fit."""
    if text is None:
        return None
    if not is_exact:
        made = _patched(text.replace("\r\n", "\n"), [line.rstrip("\r") for line in lines], True)
        return made.replace("\n", "\r\n") if made is not None else None
    present = text.split("\n")
    if present[-1] == "":
        present.pop()
    done, at = [], 0
    for hunk in _hunks(lines):
        if hunk.context:
            found = _place(present, [hunk.context], at, False)
            if found is None:
                return None
            done += present[at : found + 1]
            at = found + 1
        old, new = hunk.old, hunk.new
        found = _place(present, old, at, hunk.is_last) if old else len(present)
        if found is None and old[-1:] == [""]:
            old, new = old[:-1], new[:-1] if new[-1:] == [""] else new
            found = _place(present, old, at, hunk.is_last) if old else len(present)
        if found is None:
            return None
        done += [*present[at:found], *new]
        at = found + len(old)
    return "".join(f"{line}\n" for line in [*done, *present[at:]])


def _hunks(lines: list[str]) -> list[_Hunk]:
    found: list[_Hunk] = []
    for line in lines:
        if line.startswith("@@"):
            found.append(_Hunk(line[2:].removeprefix(" ").rstrip("\r")))
            continue
        if not found:
            found.append(_Hunk(""))
        if line.rstrip() == _LAST:
            found[-1].is_last = True
        elif line[:1] == "+":
            found[-1].new.append(line[1:])
        elif line[:1] == "-":
            found[-1].old.append(line[1:])
        elif line[:1] in (" ", ""):
            found[-1].old.append(line[1:])
            found[-1].new.append(line[1:])
    for hunk in found[-1:]:  # the last line's end, in front of the next header
        while hunk.old[-1:] == hunk.new[-1:] == [""]:
            del hunk.old[-1], hunk.new[-1]
    return [hunk for hunk in found if hunk.old or hunk.new]


def _place(lines: list[str], wanted: list[str], begin: int, is_last: bool) -> int | None:
    """Return the index at or after `begin` where the `wanted` lines are, first exactly, then as Codex allows."""
    last = len(lines) - len(wanted)
    starts: list[int] = [*([last] if is_last and last >= begin else []), *range(begin, last + 1)]
    ways: tuple[Callable[[str], str], ...] = (str, str.rstrip, str.strip, _plain)
    for same in ways:
        goal = [same(line) for line in wanted]
        for start in starts:
            if same(lines[start]) == goal[0] and [same(line) for line in lines[start : start + len(wanted)]] == goal:
                return start
    return None


def _plain(line: str) -> str:
    return line.strip().translate(_SAME)
