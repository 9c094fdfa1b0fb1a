"""Journals: each session's notes of its writes and looks. A ``Trail`` writes them, this module reads them.

    <state folder>/traces/<place>/<runtime>.<session>      and its older part, ``.1`` appended

A *place* is a repository with all its work trees, or a folder outside of any. One line per entry, in bytes:

    <ns> <kind> <agent> <tool>\0<key>[\0<text>]\n

`ns` is the time in nanoseconds, `key` the resolved path of the file unless said otherwise. Kinds, with their `text`:

    session  first line: `key` is the client's session id, `tool` its runtime, `text` a folder of the place
    wrote    a write that was let pass: a *trace*; `text`: the file's state before it (``state_of``)
    saw      a command showed the file, or its whole diff; `text`: the file's state
    part     a command showed some lines; `text`: the file's state, first and last line
    met      a call was denied, or told, for another's change of the file; `text`: the call's id
    told     the session was told of the change, in a list; `text`: the file's state
    merged   the session's whole write went ahead merged with changes that it has not seen. See ``whole_writes``
    is       the file after the session's own write, which is over: see ``seen``
    over     all earlier calls of this agent are over; `key` is a folder
    will     a write that is being checked beside others; `text`: the file's state. ``wrote`` follows, or
    wont     it was denied. With `text` ``wrote``: the write, command or ``takes`` noted at the same time is withdrawn,
             `read` skips it
    takes    a write at level `turn`, before it is checked: the file is the session's until its turn ends, unless
             ``wont`` withdraws the entry; `text`: the file's path if that is not its key. See ``turn_files``
    gives    the file is the session's no longer
    clears   a call that removes or changes everything at and in `key`, checked beside others; `text`: its verb.
             See ``elsewhere``
    spares   it was denied
    aside    a commit that was let pass, during which a hook puts changes aside; `key` is the top of the work tree,
             `text` the hook manager's name. See ``endings``
    back     it is over
    before   an unparsed command, ``ran`` with the same time, may redirect into the file; or the write noted at the same
             time is withdrawn. `text`: the file's state
    kept     the content of each file with a version of this session is known as it was before the command of this time;
             `key` is its folder. See ``keeping``
    ran      an unparsed shell command of a session that was alone; `key` is its folder, `text` the command
    moved    a command that moves HEAD was let pass; `key` is the top of the work tree, `text` its deed. See ``head``
    runs     a parsed command that may write files that it does not name; `key` is its folder
    commits  a git command that makes commits was let pass; `key` is its folder
    stash    changes were put aside with ``git stash``; `key` is the work tree
    far      an unpushed write on another machine. Such entries are in journals of the runtime ``naming.REMOTE``, with
             no other kinds
    fence    the session, or its agent, was told that a call writes into another work tree; `key` is the top of that,
             `text` the call's id. See ``fence``
    red      the session, or its agent, was told whose uncommitted lines a failing test is beside: see ``failures``
    kills    the session, or its agent, was told that a command would end processes of others: see ``kills``
    lives    the session, or its agent, was told that a call takes away a work tree with live sessions; `key` is its
             folder, `text` the commit there and the call's id. See ``tenants``
    along    the session was told that its git command stages or commits another's change of the file
    heard    the session was told of a ``far`` write; `text`: the id of the session that made it

Entries are searched for by their key in the raw bytes. Entries about other files are never parsed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, TypeVar

from swarm_hook_core.state import NotOrdinary, open_private, read_all
from swarm_hook_core.traces import NO_FILE, escaped, state_of

DAY_SECONDS = 86400  # traces older than that are ignored
ASIDE_SECONDS = 120  # longest commit with hooks (``endings``); after that it keeps other sessions out no longer
SLACK_NS = 20_000_000  # the kernel's file times lag behind the clock by up to a tick
HEAD = 16 * 1024  # bytes at the beginning that hold the first line
LARGEST = 16 << 20  # bytes read of one file, its newest; sessions' own journals are much smaller
LONG = 64 * 1024  # bytes of a journal that is searched once for all rare kinds
_RARE = rb" (?:aside|clears|far|ran) "
TAIL = 64 * 1024  # bytes at the end of a journal that `newest_below` searches
WITHDRAWN = b"\0wrote\n"  # the end of an entry ``wont`` that withdraws a write or command
_ABOUT_WRITES = (b"will", b"wrote", b"wont")
MOST_KEPT, MOST_PATHS = 32, 1000  # results of `newest_lines` that a checker remembers; paths in one of them
_BEGUN = (b" wrote ", b" ran ", b" runs ", b" commits ", b" takes ")  # what may be withdrawn

is_kept = False  # a checker sets it: it remembers what it has read in journals, which mostly grow
# (first line, kinds) -> size and hash of the data that were read, and the result of `newest_lines`
_newest: dict[tuple[bytes, tuple[str, ...]], tuple[int, int, dict[bytes, bytes]]] = {}


class Entry:
    """One line of a journal; `at_ns` is its time."""

    __slots__ = ("at_ns", "kind", "agent", "tool", "key", "text")

    def __init__(self, line: bytes):
        """Parse `line`. Raises ValueError if it is torn, as after a full disk."""
        head, key, *rest = line.split(b"\0", 2)
        at_ns, kind, agent, tool = head.decode("ascii", "replace").split(" ")
        self.at_ns = int(at_ns)
        self.kind = kind
        self.agent = agent if agent != "-" else ""
        self.tool = tool
        self.key = unescaped(key)
        self.text = unescaped(rest[0]) if rest else ""


def read(path: str) -> bytes:
    """Return all entries of the journal at `path`, the older part first. A checker keeps short ones, and reads on.

    Raises NotOrdinary for a folder, a link or a pipe.
    """
    if not is_kept:
        return joined(*parts(path))
    data = _known(_short, path, _Whole, MOST_SHORT).data
    if len(data) > SHORT:
        del _short[path]
    return data


def read_own(path: str) -> bytes:
    """Return the same of the journal of the session that makes the call. A checker keeps it, however long."""
    return _known(_own, path, _Whole, MOST_OWN).data if is_kept else read(path)


def parts(path: str) -> tuple[bytes, bytes]:
    """Return the newer and the older part of the journal at `path`; a missing part is empty. Raises as `read`.

    The newer part is read first: entries that are rotated meanwhile appear twice rather than not at all.
    """
    newer, older = (_read_if_there(file) for file in (path, path + ".1"))
    return newer, older


def changed_at(path: str) -> float:
    """Return the time of the last change of the journal at `path` in Unix seconds, 0 for a missing one.

    If that cannot be found, it may be now: infinity.
    """
    found = 0.0
    for file in (path, path + ".1"):
        try:
            found = max(found, os.lstat(file).st_mtime)
        except FileNotFoundError:
            continue  # never rotated, or removed just now
        except OSError:  # it is there, and its time cannot be read
            return float("inf")
    return found


def joined(newer: bytes, older: bytes) -> bytes:
    """Return the entries of both parts, without those that were withdrawn."""
    data = older + newer if older else newer  # joining a single part would copy it
    return _without_withdrawn(data) if WITHDRAWN in data else data


def _read_if_there(file: str) -> bytes:
    try:
        return _read(file, LARGEST)
    except FileNotFoundError:
        return b""  # never rotated, or removed just now


def _without_withdrawn(data: bytes) -> bytes:
    """Return `data` with blanks in place of withdrawn entries. Other entries keep their places."""
    lines = data.split(b"\n")
    ends = {place for place, line in enumerate(lines) if line.endswith(WITHDRAWN[:-1])}
    withdrawn = {_withdrawn_mark(lines[place]) for place in ends if b" wont " in lines[place].partition(b"\0")[0]}
    for place, line in enumerate(lines):
        is_begun = any(kind in line.partition(b"\0")[0] for kind in _BEGUN)
        if (is_begun or place in ends) and _withdrawn_mark(line) in withdrawn:
            lines[place] = b" " * len(line)
    return b"\n".join(lines)


def _withdrawn_mark(line: bytes) -> tuple[bytes, bytes, bytes]:
    """Return what an entry has in common with the one that withdraws it: its time, agent and path."""
    head, _, rest = line.partition(b"\0")
    words = head.split(b" ")
    return words[0], b"".join(words[2:3]), rest.partition(b"\0")[0]


def after_a_try(data: bytes, lines: list[bytes], since_ns: int, end_ns: int) -> list[bytes]:
    """Return the entries to append for a call, in place of `lines`, if a checker had it from `since_ns` to `end_ns`.

    `data`: the journal. Entries that the checker has left already are not left again. Its writes of the same files are
    taken back where the file has another state now, or the call will not write it.
    """
    left = [raw for words, raw in heads(data) if since_ns <= int(words[0]) < end_ns]
    known = {_of_any_time(line) for line in left}
    taken_back = []
    for old in left:
        head, _, rest = old.partition(b"\0")
        about = [line for line in lines if _kind(line) in _ABOUT_WRITES and _file_of(line) == _file_of(old)]
        is_same = any(_kind(line) != b"wont" and line.partition(b"\0")[2].rstrip(b"\n") == rest for line in about)
        if _kind(old) == b"wrote" and about and not is_same:
            taken_back.append(head.replace(b" wrote ", b" wont ", 1) + b"\0" + rest.partition(b"\0")[0] + WITHDRAWN)
            taken_back.append(head.replace(b" wrote ", b" before ", 1) + b"\0" + rest + b"\n")
    return taken_back + [line for line in lines if _of_any_time(line.rstrip(b"\n")) not in known]


def without_a_try(data: bytes, since_ns: int, end_ns: int) -> bytes:
    """Return the journal `data` without the entries that a checker has left from `since_ns` to `end_ns` for a call.

    To that call, its own notes would be those of an earlier one: of a write that is over, of a word that was heard.
    """
    left = {raw for words, raw in heads(data) if since_ns <= int(words[0]) < end_ns and words[1] != b"session"}
    return b"\n".join(raw for raw in data.split(b"\n") if raw not in left)


def _kind(line: bytes) -> bytes:
    return line.partition(b"\0")[0].split(b" ")[1]


def _of_any_time(line: bytes) -> bytes:
    return line.partition(b" ")[2]


def _file_of(line: bytes) -> tuple[bytes, ...]:
    """Return agent, tool and key of an entry."""
    head, _, rest = line.partition(b"\0")
    return (*head.split(b" ")[2:], rest.partition(b"\0")[0].rstrip(b"\n"))


def owner_of(data: bytes) -> tuple[str, str]:
    """Return ``(runtime, session id)`` of the journal's session, empty strings if the first line is missing."""
    first = _first(data)
    if first is not None:
        return (first.tool, first.key)
    return ("", "")


def folder_of(path: str) -> str:
    """Return a folder of the place of the journal at `path`, as of the journal's beginning, or "".

    It is the top of a work tree; outside of any, the folder itself.
    """
    for file in (path, path + ".1"):
        try:
            first = _first(_read(file, HEAD))
        except (FileNotFoundError, NotOrdinary):
            continue  # missing, or not a file
        if first is not None:
            return first.text
    return ""


def _read(file: str, limit: int) -> bytes:
    """Return the bytes of a file. Of a file over `limit` bytes: its first line and its newest `limit` bytes."""
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
    """Return the entries `data` with paths below `top`, where the journal names that same folder by another path.

    A folder may be mounted twice. Equal device and inode identify it, and the files in it.
    """
    first = _first(data)
    if first is None or not top or first.text in ("", top):
        return data
    try:
        if not os.path.samestat(os.stat(first.text), os.stat(top)):
            return data
    except (OSError, ValueError):
        return data  # one of the folders is gone
    theirs, ours = b"\0" + escaped(first.text), b"\0" + escaped(top)
    for end in (b"/", b"\0", b"\n"):
        data = data.replace(theirs + end, ours + end)
    return data


def _first(data: bytes) -> Entry | None:
    """Return the Entry of the first line, or None."""
    start = data.find(b" session ")
    if start >= 0:
        return _entry_around(data, start)
    return None


def _entry_around(data: bytes, place: int) -> Entry | None:
    """Return the Entry of the line around index `place`, or None for a torn line."""
    begin, close = data.rfind(b"\n", 0, place) + 1, data.find(b"\n", place)
    return next(entries([data[begin : close if close >= 0 else len(data)]]), None)


def heads(data: bytes, newest_first: bool = False) -> Iterator[tuple[list[bytes], bytes]]:
    """Yield ``(four words of the head, line)`` of the entries in `data` that are not torn."""
    lines = data.split(b"\n")
    for raw in reversed(lines) if newest_first else lines:
        words = raw.partition(b"\0")[0].split(b" ")
        if len(words) == 4 and words[0].isdigit():
            yield words, raw


def entries(lines: Iterable[bytes]) -> Iterator[Entry]:
    """Yield the entries in these lines, without torn ones."""
    for line in lines:
        try:
            yield Entry(line)
        except ValueError:
            continue  # torn, or cut off


def newest_lines(data: bytes, kinds: Collection[str]) -> dict[bytes, bytes]:
    """Return ``{key: line}`` with the newest entry of `kinds` for each path in `data`, both as raw bytes.

    A checker remembers the result, and reads on in a journal that has grown.
    """
    if not is_kept:
        return _newest_lines(data, kinds, {})
    name = (data[: data.find(b"\n", 1)], tuple(kinds))  # the first line names session and place
    size, digest, found = _newest.pop(name, (0, 0, {}))
    whole = data.rfind(b"\n") + 1  # the last line may be torn
    if whole < size or hash(data[:size]) != digest:
        size, found = 0, {}
    if whole > size:
        found, digest = _newest_lines(data[size:whole], kinds, dict(found)), hash(data[:whole])
    if len(found) <= MOST_PATHS:
        _newest[name] = (whole, digest, found)
    if len(_newest) > MOST_KEPT:
        del _newest[next(iter(_newest))]
    return _newest_lines(data[whole:], kinds, dict(found))


def _newest_lines(data: bytes, kinds: Collection[str], found: dict[bytes, bytes]) -> dict[bytes, bytes]:
    starts = tuple(f"{kind} ".encode() for kind in kinds)
    for raw in data.split(b"\n"):
        head, _, rest = raw.partition(b"\0")
        if rest and head.partition(b" ")[2].startswith(starts):
            found[rest.partition(b"\0")[0]] = raw
    return found


def newest(data: bytes, key: str, kinds: Collection[str]) -> Entry | None:
    """Return the newest Entry of `kinds` about the path with this key, or None."""
    return next(newest_first(data, key, kinds), None)


def newest_first(data: bytes, key: str, kinds: Collection[str]) -> Iterator[Entry]:
    """Yield the entries of `kinds` about the path with this key, the newest first."""
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


def newest_of(data: bytes, kind: str) -> Iterator[Entry]:
    """Yield all entries of this kind, the newest first."""
    mark, end = f" {kind} ".encode(), len(data)
    while (found := data.rfind(mark, 0, end)) >= 0:
        entry = _entry_around(data, found)
        if entry is not None and entry.kind == kind:
            yield entry
        end = data.rfind(b"\n", 0, found) + 1


def entries_below(data: bytes, folder: str, kinds: Collection[str], with_folder: bool = False) -> list[Entry]:
    """Return the newest entry of `kinds` for each path below the folder with this key, sorted newest first.

    `with_folder`: also for the folder itself.
    """
    begin, newest = escaped(folder.rstrip("/")) + b"/", newest_lines(data, kinds)
    found = [newest[key] for key in newest if key.startswith(begin) or (with_folder and key == escaped(folder))]
    return sorted(entries(found), key=lambda entry: -entry.at_ns)


def newest_below(data: bytes, folder: str, kinds: Collection[str], most: int) -> list[Entry]:
    """Return the newest entry of `kinds` for each path at or below a folder, at most `most`, newest first.

    `folder`: its key. Only the journal's end (`TAIL`) is searched.
    """
    begin, found = b"\0" + escaped(folder.rstrip("/")), {}
    marks = [f" {kind} ".encode() for kind in kinds]
    for raw in reversed(data[-TAIL:].split(b"\n")):
        place = raw.find(b"\0")
        if not raw.startswith(begin, place) or not any(mark in raw[:place] for mark in marks):
            continue
        for entry in entries([raw]):
            same = (entry.key, entry.text if entry.kind == "ran" else "")
            if same not in found and (entry.key + "/").startswith(folder.rstrip("/") + "/"):
                found[same] = entry
        if len(found) == most:
            break
    return list(found.values())


def unescaped(data: bytes) -> str:
    if b"\\" in data:
        parts = [part.replace(b"\\n", b"\n").replace(b"\\0", b"\0") for part in data.split(b"\\\\")]
        data = b"\\".join(parts)
    return data.decode("utf-8", "surrogatepass")


# The files that a journal names: an index of its entries.
#
# A checker keeps the indexes from call to call (`journal.is_kept`). A journal mostly grows: its index is read on from
# the last whole entry, if that is still in its place and the older part is unchanged. Else the index is made anew.
# A hook that is a process of its own searches the entries themselves.

# Kinds of entries that may concern a file without naming it: commands, folders, commits with hooks; other machines.
OF_MANY = (b" ran ", b" clears ", b" aside ", b" far ")
MOST_INDEXES = 1000  # indexes
MOST_OWN = 2  # journals of one session that are kept whole
MOST_SHORT, SHORT = 100, 32 * 1024  # journals of others that are kept whole, and their bytes

_indexes: dict[str, _Index] = {}  # path of a journal -> its index
_own: dict[str, _Whole] = {}  # path of a journal -> its entries
_short: dict[str, _Whole] = {}  # likewise


def may_concern(path: str, names: Collection[bytes]) -> bool:
    """Return True if the journal at `path` has an entry about a file with one of these names, or about many files.

    names   escaped names of files, without folders

    Raises NotOrdinary, and OSError.
    """
    if not is_kept:
        data = read(path)
        return any(mark in data for mark in (*OF_MANY, *names))
    index = _known(_indexes, path, _Index, MOST_INDEXES)
    return index.is_about_many or not index.names.isdisjoint(names)


def has_kind(data: bytes, kind: bytes) -> bool:
    """Return False if the journal `data` has no entry of this kind."""
    if _whole_of(data) is None:
        return b" " + kind + b" " in data
    return kind in made_of(data, "kinds", set, _add_kinds)


def rare(data: bytes) -> bytes:
    """Return the journal `data` if it may have entries of kind ``aside``, ``clears``, ``far`` or ``ran``; else b"".

    Few journals have any. One search for all takes less time than two; a checker remembers the kinds (`has_kind`).
    """
    if is_kept or len(data) < LONG or re.search(_RARE, data):
        return data
    return b""


def _add_kinds(kinds: set[bytes], data: bytes) -> None:
    kinds.update(line.split(b" ", 2)[1] for line in data.split(b"\n") if b" " in line)


def made_of(data: bytes, name: object, begin: Callable[[], Made], add: Callable[[Made, bytes], None]) -> Made:
    """Return the result of ``add(begin(), data)`` of a journal. It is not to be changed.

    Of the session's own journal a checker keeps it under `name`, and adds the entries that have come since.
    """
    whole = _whole_of(data)
    size, made = (whole.made.pop(name, None) if whole is not None else None) or (0, begin())
    add(made, data[size:])
    if whole is not None:
        whole.made[name] = len(data), made
    return made


def _whole_of(data: bytes) -> _Whole | None:
    return next((one for one in _own.values() if one.data is data), None)


def _known(kept: dict[str, Known], path: str, kind: type[Known], most: int) -> Known:
    """Return the one `kept` for the journal at `path`, as that is now; make it, or have it read on."""
    found = kept.get(path)
    states = (state_of(path), NO_FILE)
    if found is None or found.states != states or states[0] == NO_FILE:
        # A journal without an older part has none as long as it grows itself; one that was changed may have got one.
        states = (states[0], state_of(path + ".1"))
    if found is None or (found.states != states and not found.has_read_on(path, states)):
        if len(kept) >= most:
            kept.clear()
        found = kept[path] = kind(path, states)
    return found


class _Grown:
    """A journal that a checker knows, at `path`. Its parts had these `states` before it was read."""

    def __init__(self, path: str, states: tuple[str, str]):
        self.states = states
        newer, older = parts(path)
        self._at, self._last = 0, b""  # place of the last whole entry in the newer part, and that entry
        self._end_with(newer)
        self.add(joined(newer, older))

    def has_read_on(self, path: str, states: tuple[str, str]) -> bool:
        """Add the entries since the last look, and return True; False if the journal is not the same one, grown."""
        if states[1] != self.states[1] or not self._last:
            return False
        try:
            handle = open_private(path, os.O_RDONLY)
        except OSError:
            return False  # removed just now, or no file: read anew, it is told
        try:
            os.lseek(handle, self._at, os.SEEK_SET)
            data = read_all(handle, LARGEST)
        finally:
            os.close(handle)
        added = data[len(self._last) :]
        if not data.startswith(self._last) or WITHDRAWN in added:
            return False
        self.add(added)
        self._end_with(data)
        self.states = states
        return True

    def _end_with(self, data: bytes) -> None:
        """Note the last entry of `data`, which begin at the place noted last. No other entry has its time.

        Where it is torn the journal is read anew the next time.
        """
        whole = data.rstrip(b"\n")
        begin = whole.rfind(b"\n") + 1
        self._at, self._last = self._at + begin, b""
        if whole and data.endswith(b"\n"):
            self._last = data[begin:]

    def add(self, data: bytes) -> None:
        """Add entries that have come."""
        raise NotImplementedError


class _Index(_Grown):
    """The names of the files in a journal."""

    def __init__(self, path: str, states: tuple[str, str]):
        self.names: set[bytes] = set()
        self.is_about_many = False
        super().__init__(path, states)

    def add(self, data: bytes) -> None:
        """Add the names in entries."""
        self.is_about_many = self.is_about_many or any(mark in data for mark in OF_MANY)
        for line in data.split(b"\n"):
            key = line.partition(b"\0")[2].partition(b"\0")[0]
            self.names.add(key.rpartition(b"/")[2])


class _Whole(_Grown):
    """All entries of a journal; and `made`, the results of `made_of` with the size that they are made of."""

    def __init__(self, path: str, states: tuple[str, str]):
        self.data = b""
        self.made: dict[object, tuple[int, Any]] = {}
        super().__init__(path, states)

    def add(self, data: bytes) -> None:
        """Add entries."""
        self.data = self.data + data if self.data else data


Known = TypeVar("Known", bound=_Grown)
Made = TypeVar("Made")
