"""Reading what sessions have done in a repository: their *journals*, which a ``Trail`` writes.

    <state folder>/traces/<place>/<runtime>.<session>      and the part before it, ``.1`` appended

A *place* is a repository with all its work trees, or a folder that is in none. One line an entry, in bytes:

    <ns> <kind> <agent> <tool>\\0<key>[\\0<text>]\\n

`ns` is the time in nanoseconds, `key` the resolved path. Kinds, with what `text` holds:

    session  the first line: `key` is the client's id of the session, `tool` its runtime, `text` a folder of the place
    wrote    a write that was let pass: a *trace*; `text`: the state of the file before it (``state_of``)
    saw      a command has shown the file to the session, or what has changed in it; `text`: its state
    part     a command has shown some of its lines; `text`: its state, then the first and the last of them
    met      the session was denied a call for another's change of the file, or told of it; `text`: the client's id of
             the call
    told     it was told that the file was changed, among others; `text`: its state
    is       the file as it was after the session's own write, which is over: see ``seen``
    over     all calls of this agent of the session before it are over; `key` is a folder
    will     a write beside others that is being checked; `text`: the state of the file. ``wrote`` follows, or
    wont     it was denied
    clears   a call beside others that takes away all that is at and in `key`, or changes there: it is being checked, or
             was let pass; `text`: the verb for it. See ``clearing``
    spares   it was denied
    aside    a call was let pass during which a hook puts changes aside in the work tree with the top `key`; `text`: the
             name of what does so. See ``asides``
    back     it is over
    ran      a shell command that nobody has read, since the session was alone; `key` is its folder, `text` the command
    stash    it put changes aside with ``git stash``; `key` is the work tree
    far      a session on another machine of a team wrote the file that is called `key` here, and that is not pushed; a
             journal of such, of the runtime ``team``, is made by the team agent, and has nothing else
    heard    the session was told of the ``far`` of another, whose id is in `text`

Entries are looked up by their key in the bytes, so that what does not concern a call is never parsed.
"""

import os

from swarm_hook_core.state import NotOrdinary, open_private, read_all
from swarm_hook_core.traces import escaped

DAY_SECONDS = 86400  # a trace means nothing after that
SLACK_NS = 20_000_000  # the kernel's file times lag behind the clock by up to a tick
HEAD = 16 * 1024  # bytes at the beginning, in which the first line is
LARGEST = 16 << 20  # bytes of one file that are read, its newest; one that a session has written has much less
TAIL = 64 * 1024  # bytes at the end of a journal in which the newest are looked for


class Entry:
    """One line of a journal, see above; `at_ns` is its time."""

    __slots__ = ("at_ns", "kind", "agent", "tool", "key", "text")

    def __init__(self, line: bytes):
        """Raises ValueError where `line` is none, as a full disk may leave it."""
        head, key, *rest = line.split(b"\0", 2)
        at_ns, kind, agent, tool = head.decode("ascii", "replace").split(" ")
        self.at_ns = int(at_ns)
        self.kind = kind
        self.agent = "" if agent == "-" else agent
        self.tool = tool
        self.key = _unescaped(key)
        self.text = _unescaped(rest[0]) if rest else ""


def read(path: str) -> bytes:
    """All entries of the journal at `path`, what was rotated away first.

    It is read the other way round, so that what is rotated meanwhile is met twice rather than not at all. Raises
    NotOrdinary for a folder, a link or a pipe in its place.
    """
    parts = []
    for file in (path, path + ".1"):
        try:
            parts.append(_read(file, LARGEST))
        except FileNotFoundError:
            continue
    return parts[0] if len(parts) == 1 else b"".join(reversed(parts))  # joining one would copy it


def owner_of(data: bytes) -> tuple:
    """``(runtime, session id)`` of the session whose journal holds `data`; empty ones where it does not say."""
    first = _first(data)
    return (first.tool, first.key) if first is not None else ("", "")


def folder_of(path: str) -> str:
    """The folder in the place of the journal at `path`, as it stood when that began; empty where it does not say.

    It is the top of a work tree, or of a place that is in none the folder itself.
    """
    for file in (path, path + ".1"):
        try:
            first = _first(_read(file, HEAD))
        except (FileNotFoundError, NotOrdinary):
            continue
        if first is not None:
            return first.text
    return ""


def _read(file: str, limit: int) -> bytes:
    """Return what is in a file; of one that is too large its first line, and the newest that `limit` bytes hold."""
    handle = open_private(file, os.O_RDONLY)
    try:
        size = os.fstat(handle).st_size
        if size <= limit or limit <= HEAD:
            return read_all(handle, limit)
        first = b"\n".join(read_all(handle, HEAD).split(b"\n")[:2])
        os.lseek(handle, size - limit, os.SEEK_SET)
        return first + b"\n" + read_all(handle, limit)
    finally:
        os.close(handle)


def as_seen_in(top: str, data: bytes) -> bytes:
    """Return the entries `data` with paths as they are in the folder `top`, where they name that folder otherwise.

    A folder that is mounted twice has two paths. It is the same by its device and inode, and so are the files in it.
    """
    first = _first(data)
    if first is None or not top or first.text in ("", top):
        return data
    try:
        if not os.path.samestat(os.stat(first.text), os.stat(top)):
            return data
    except (OSError, ValueError):
        return data
    theirs, ours = b"\0" + escaped(first.text), b"\0" + escaped(top)
    for end in (b"/", b"\0", b"\n"):
        data = data.replace(theirs + end, ours + end)
    return data


def _first(data: bytes):
    """The Entry that says whose journal holds `data`, or None."""
    start = data.find(b" session ")
    return _entry_around(data, start) if start >= 0 else None


def _entry_around(data: bytes, place: int):
    """The Entry in whose line `place` is, None where that is none: torn, or cut off."""
    begin, close = data.rfind(b"\n", 0, place) + 1, data.find(b"\n", place)
    try:
        return Entry(data[begin : close if close >= 0 else len(data)])
    except ValueError:
        return None


def newest_lines(data: bytes, kinds) -> dict:
    """``{key: line}`` of the newest entry of one of `kinds` about each path in `data`, all as they stand there."""
    found, starts = {}, tuple(f"{kind} ".encode() for kind in kinds)
    for raw in data.split(b"\n"):
        head, _, rest = raw.partition(b"\0")
        if rest and head.partition(b" ")[2].startswith(starts):
            found[rest.partition(b"\0")[0]] = raw
    return found


def newest(data: bytes, key: str, kinds):
    """The newest Entry of one of `kinds` about the path with this key in `data`, or None."""
    return next(newest_first(data, key, kinds), None)


def newest_first(data: bytes, key: str, kinds):
    """All of them, one after the other."""
    wanted, end = b"\0" + escaped(key), len(data)
    while True:
        found = data.rfind(wanted, 0, end)
        if found < 0:
            return
        after = data[found + len(wanted) : found + len(wanted) + 1]
        if after in (b"\n", b"\0"):
            entry = _entry_around(data, found)
            if entry is not None and entry.kind in kinds and entry.key == key:
                yield entry
        end = found


def newest_of(data: bytes, kind: str):
    """All entries of this kind, the newest first."""
    mark, end = f" {kind} ".encode(), len(data)
    while (found := data.rfind(mark, 0, end)) >= 0:
        entry = _entry_around(data, found)
        if entry is not None and entry.kind == kind:
            yield entry
        end = data.rfind(b"\n", 0, found) + 1


def entries_below(data: bytes, folder: str, kinds) -> list:
    """The entries of `kinds` about paths below the folder with this key, the newest of each path, newest first."""
    wanted, found = b"\0" + escaped(folder.rstrip("/")) + b"/", {}
    place = data.find(wanted)
    while place >= 0:
        entry = _entry_around(data, place)
        if entry is not None and entry.kind in kinds:
            found[entry.key] = entry
        close = data.find(b"\n", place)
        place = data.find(wanted, close) if close >= 0 else -1
    return sorted(found.values(), key=lambda entry: -entry.at_ns)


def newest_below(data: bytes, folder: str, kinds, most: int) -> list:
    """The newest entries of `kinds`, one for each path at or below the folder with this key, at most so many.

    They are read from the end on, however many there are; the newest first.
    """
    begin, found = b"\0" + escaped(folder.rstrip("/")), {}
    marks = [f" {kind} ".encode() for kind in kinds]
    for raw in reversed(data[-TAIL:].split(b"\n")):
        place = raw.find(b"\0")
        if not raw.startswith(begin, place) or not any(mark in raw[:place] for mark in marks):
            continue
        try:
            entry = Entry(raw)
        except ValueError:
            continue  # torn, or cut off
        same = (entry.key, entry.text if entry.kind == "ran" else "")
        if same not in found and (entry.key + "/").startswith(folder.rstrip("/") + "/"):
            found[same] = entry
            if len(found) == most:
                break
    return list(found.values())


def _unescaped(data: bytes) -> str:
    if b"\\" in data:
        parts = [part.replace(b"\\n", b"\n").replace(b"\\0", b"\0") for part in data.split(b"\\\\")]
        data = b"\\".join(parts)
    return data.decode("utf-8", "surrogatepass")
