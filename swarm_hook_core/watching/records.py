"""Records of watched calls with the state of each file, and marks of the holders' own calls meanwhile.

    <state>/watched/<session>/<call>.<when>-<id>-<random>   one call that has begun and not ended
    <state>/acting/<instance>           calls begun by this session: lines "<ns> <file's digest or *> <call>",
                                        and, for one of its agents, " <agent's digest>"
    <state>/acting/_ended               calls that have ended: lines "<ns> <call> -"

`call` is the same at a call's beginning and end (``call_key``); `id` is a digest of the client's own call id, which
some clients do not give.

The folder `watched` exists only while a call is watched; without it a hook has nothing to do. A hook takes a record by
renaming it to ``<name>.<when taken>.taken``, so two hooks never take the same one.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection
from typing import Any

from swarm_hook_core import process
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.json_text import LEVELS, dumps, loads, loads_outer
from swarm_hook_core.paths import FolderOf, real_path
from swarm_hook_core.state import (
    acting_dir,
    edited_dir,
    name_of,
    open_in_private,
    read_private,
    watched_dir,
    write_private,
)

# The state of a file at one moment, to tell later if it has changed, without keeping it open.
#
# Links at the end of a path are not followed; pipes and devices are not opened. `folder`: the open folder of the file,
# as in ``os.lstat``. `read_resolved` and `full_resolved` follow no link at all.

HASHED_BYTES = 1024 * 1024  # larger files are compared by size, times and inode only

_PLAIN, _LINK = 0o100000, 0o120000
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def digest_of(data: bytes, size: int = 8) -> str:
    """Return a digest in hex, two digits for each of `size` bytes."""
    try:
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b
    return blake2b(data, digest_size=size).hexdigest()


class Snapshot:
    """One file at one moment. `mode` 0: a missing file; `digest` "": unknown content.

    Times are in nanoseconds. The digest of a link is that of its target's path.
    """

    __slots__ = ("mode", "size", "mtime_ns", "ctime_ns", "inode", "digest")

    def __init__(
        self, mode: int = 0, size: int = 0, mtime_ns: int = 0, ctime_ns: int = 0, inode: int = 0, digest: str = ""
    ):
        self.mode = mode
        self.size = size
        self.mtime_ns = mtime_ns
        self.ctime_ns = ctime_ns
        self.inode = inode
        self.digest = digest

    @property
    def exists(self) -> bool:
        return self.mode != 0

    @property
    def is_plain(self) -> bool:
        """Return True for an ordinary file, not a folder, link, pipe or device."""
        return self.mode & 0o170000 == _PLAIN

    @property
    def is_link(self) -> bool:
        return self.mode & 0o170000 == _LINK

    def __str__(self) -> str:
        """Return all fields separated by blanks, for `parse`."""
        return f"{self.mode} {self.size} {self.mtime_ns} {self.ctime_ns} {self.inode} {self.digest}"

    def is_untouched(self, other: Snapshot) -> bool:
        """Return True if the file was not changed in any way between the two."""
        mine = (self.ctime_ns, self.mtime_ns, self.size, self.inode, self.mode)
        return mine == (other.ctime_ns, other.mtime_ns, other.size, other.inode, other.mode)


def parse(text: str) -> Snapshot:
    """Return the Snapshot with this ``str``. Raises ValueError."""
    *numbers, digest = text.split(" ")
    mode, size, mtime_ns, ctime_ns, inode = map(int, numbers)
    return Snapshot(mode, size, mtime_ns, ctime_ns, inode, digest)


def is_as_noted(path: str, text: str) -> bool:
    """Return True if the file at `path` has not been changed in any way since `text`, the ``str`` of its Snapshot.

    A missing or unreachable file has mode 0.
    """
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return text.startswith("0 ")  # missing, or a path that cannot exist
    state = f"{found.st_mode} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino} "
    return text.startswith(state)


def glance(path: str, folder: int | None = None) -> Snapshot:
    """Return the state without digest. A missing or unreachable file gives mode 0."""
    try:
        return _of(os.lstat(path, dir_fd=folder))
    except (OSError, ValueError):
        return Snapshot()  # missing, or a path that cannot exist


def read(path: str, limit: int = HASHED_BYTES, folder: int | None = None) -> tuple[Snapshot, bytes]:
    """Return ``(Snapshot, content)`` of a plain file of at most `limit` bytes.

    Raises OSError for any other file, and for one that is being written.
    """
    handle = os.open(path, _READ, dir_fd=folder)
    try:
        for _ in range(2):
            before = _of(os.fstat(handle))
            if not before.is_plain:
                raise OSError("not a plain file")
            if before.size > limit:
                raise OSError(f"larger than {limit} bytes")
            data = _all_of(handle, before.size, limit)
            if len(data) == before.size and before.is_untouched(_of(os.fstat(handle))):
                before.digest = digest_of(data)
                return before, data
        raise OSError("being written")
    finally:
        os.close(handle)


def read_resolved(path: str, limit: int = HASHED_BYTES) -> tuple[Snapshot, bytes]:
    """As `read`, of a path without links. Raises BeyondLink if a link has taken the place of a folder."""

    with FolderOf(path) as (name, folder):
        return read(name, limit, folder)


def full(path: str, folder: int | None = None) -> Snapshot:
    """Return the state with the digest, if the file is small and readable."""
    seen = glance(path, folder)
    try:
        if seen.is_plain and seen.size <= HASHED_BYTES:
            return read(path, folder=folder)[0]
        if seen.is_link:
            seen.digest = digest_of(os.fsencode(os.readlink(path, dir_fd=folder)))
    except OSError:
        pass  # unreadable, or being written: without digest
    return seen


def full_resolved(path: str) -> Snapshot:
    """As `full`, of a path without links. A file behind a link that took a folder's place gives mode 0."""

    try:
        with FolderOf(path) as (name, folder):
            return full(name, folder)
    except OSError:
        return Snapshot()  # missing, or beyond a link


def difference(before: Snapshot, path: str) -> tuple[str, Snapshot]:
    """Return ``(kind, present Snapshot)``: the difference of the file at `path` from `before`; "" for no difference.

    changed    other contents or permissions
    replaced   the same with another inode or type
    created    the file was missing before
    removed    the file is missing now
    """
    now = glance(path)
    if before.exists != now.exists:
        return ("removed" if before.exists else "created"), now
    if not now.exists:
        return "", now
    if before.is_untouched(now):
        return "", now
    if before.is_link or (now.is_plain and before.digest):
        now = full(path)
    if before.mode == now.mode:
        if before.digest and before.digest == now.digest:
            return "", now  # touched, or rewritten with the same content
        if not before.digest and _same_by_eye(before, now):
            return "", now
    same_file = before.inode == now.inode and before.mode & 0o170000 == now.mode & 0o170000
    return ("changed" if same_file else "replaced"), now


def _same_by_eye(before: Snapshot, now: Snapshot) -> bool:
    """Return True if a file of unknown content has changed only in its links or names."""
    if not before.is_plain:
        return before.inode == now.inode  # the content of a pipe, device or folder does not matter
    return (before.size, before.mtime_ns, before.inode) == (now.size, now.mtime_ns, now.inode)


def _of(found: os.stat_result) -> Snapshot:
    return Snapshot(found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def _all_of(handle: int, size: int, limit: int) -> bytes:
    os.lseek(handle, 0, os.SEEK_SET)
    parts, left = [], min(size, limit) + 1
    while left > 0:
        part = os.read(handle, left)
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


DROPPED_SECONDS = 86400  # after this silence a session will not ask for its calls any more
RECORDS_AT_ONCE = 16  # of one session; further ones would only be calls without a reported end
MOST_MARKS = 100  # files of one call marked by name
MARKS_BYTES = 64 * 1024  # of one session, before old marks are dropped
MARKS_LEFT = 400
LARGEST_RECORD = 64 << 20  # bytes
UNENDED_NS = 600 * 10**9

# `name_of` makes no such names: plain ids have no underscore, other names end in digits
_ENDED, _TAKEN = "_ended", ".taken"


def folder_of(session_id: str) -> str:
    """Return the folder of this session's records."""
    return os.path.join(watched_dir(), name_of(session_id))


def call_key(runtime: str, call: ToolCall) -> str:
    """Return a key that is the same at the beginning and the end of one call."""
    tool_input = call.input
    if isinstance(tool_input, str) and tool_input.lstrip().startswith("{"):
        try:
            tool_input = loads_outer(tool_input)  # Claude Code gives an MCP server its input as JSON text
        except ValueError:
            pass  # not JSON: keep the text
    parts = [runtime, call.session_id, call.tool, _canonical(tool_input)]
    return digest_of(dumps(parts).encode("utf-8", "surrogatepass"))


class Record:
    """One watched call: the `path` of its record, and its `facts`: a checker's next calls may share them."""

    __slots__ = ("path", "facts")

    def __init__(self, path: str, facts: dict[str, Any]):
        self.path = path
        self.facts = facts


def write(session_id: str, key: str, call_id: str, facts: dict[str, Any], now_ns: int, locks: str = "") -> None:
    """Add a record, as `write_facts` does. Raises OSError."""
    path = os.path.join(folder_of(session_id), f"{key}.{now_ns:x}-{_id_of(call_id)}-{os.urandom(3).hex()}")
    write_facts(path, facts, locks)


def names_of(session_id: str) -> list[str]:
    """Return the names of this session's records, in order of their beginning."""
    try:
        names = os.listdir(folder_of(session_id))
    except OSError:
        return []  # the session has no records
    return sorted((name for name in names if "." in name and not name.endswith(".tmp")), key=_begun)


def ended(session_id: str, key: str, call_id: str) -> list[str]:
    """Return the names of the records that may belong to the end of this call, the likeliest first."""
    alike = [name for name in names_of(session_id) if name.startswith(key + ".") and not is_taken(name)]
    likely = {_id_of(call_id): 0, _id_of(""): 1}
    return sorted(alike, key=lambda name: likely.get(name.split("-")[1], 2))


def is_taken(name: str) -> bool:
    """Return True if a hook has taken this record, or was killed with it."""
    return name.endswith(_TAKEN)


def take(session_id: str, name: str) -> Record | None:
    """Take the record of that name. None if another hook has it, or it is unreadable."""
    folder = folder_of(session_id)
    path = os.path.join(folder, f"{_name_in(name)}.{time.time_ns():x}{_TAKEN}")
    try:
        os.rename(os.path.join(folder, name), path)
    except OSError:
        return None  # another hook was faster
    facts = facts_in(path)
    if facts is None:
        drop(path)
        return None
    return Record(path, facts)


def age_of(name: str, now: float) -> float:
    """Return the seconds since the beginning of the record's call."""
    return now - _begun(name) / 1e9


def is_stale(name: str, now: float) -> bool:
    """Return True if a taken record was left by a killed hook: it was taken more than a minute ago."""
    parts = name.split(".")
    if len(parts) != 4:
        return True  # of an earlier release, whose names do not tell
    try:
        return abs(now - int(parts[2], 16) / 1e9) > 60  # the clock may have been set back
    except ValueError:
        return True  # not a record's name


def put_back(record: Record, is_unchanged: bool = False) -> None:
    """Let the record, with its present facts, wait for the call's end again; `is_unchanged`: no fact is new.

    It is gone if another hook has dropped it meanwhile, or has taken it for left behind. Raises OSError.
    """
    folder, name = os.path.split(record.path)
    if is_unchanged:
        try:
            os.rename(record.path, os.path.join(folder, _name_in(name)))
        except FileNotFoundError:  # the other hook has it
            pass
        return
    ready = f"{record.path}.tmp"
    write_facts(ready, record.facts)
    try:
        os.remove(record.path)
    except FileNotFoundError:
        drop(ready)
        return
    os.rename(ready, os.path.join(folder, _name_in(name)))


def drop(path: str) -> None:
    """Remove a record, and folders that are empty then."""
    try:
        os.remove(path)
    except OSError:
        pass  # another hook was faster
    try:
        os.rmdir(os.path.dirname(path))
    except OSError:
        return  # the session has other records
    close()


def sweep(now: float) -> None:
    """Remove the records of sessions that have been silent for a day."""
    try:
        names = os.listdir(watched_dir())
    except OSError:
        names = []
    for name in names:
        folder = os.path.join(watched_dir(), name)
        try:
            if os.lstat(folder).st_mtime < now - DROPPED_SECONDS:
                for entry in os.listdir(folder):
                    os.remove(os.path.join(folder, entry))
                os.rmdir(folder)
        except OSError:
            continue  # gone already, or a new record came
    close()


# ------------------------------------------------------------------------------------------------- own marks


def mark_own(instance_id: str, files: Collection[str], call: str, now_ns: int, agent: str = "") -> None:
    """Note that this session, or its `agent`, begins `call`, which may write the absolute `files` (empty: any file).

    `call` is its ``call_key``, for `mark_end`. Very many files count as any file. Raises OSError.
    """
    if len(files) > MOST_MARKS:
        files = ()
    end = f" {call or '-'}{' ' + _id_of(agent) if agent else ''}\n"
    _append(name_of(instance_id), [f"{now_ns} {_mark_of(file)}{end}" for file in files] or [f"{now_ns} *{end}"])


def mark_end(call: str, now_ns: int) -> None:
    """Note that `call` has ended, if any session marks its calls. Raises OSError."""
    if os.path.isdir(acting_dir()):
        _append(_ENDED, [f"{now_ns} {call} -\n"])


def acted(
    instance_id: str, file: str, began_ns: int, first_ns: int, last_ns: int, agent: str = "", is_edit: bool = False
) -> bool:
    """Return True if this session itself may have changed absolute `file` between `first_ns` and `last_ns`.

    With `agent`, only calls of that sub-agent count; otherwise those of all.

    The session may have, if a call of its own that writes the file began after `began_ns`, or if one that may write any
    file was running. A call without a reported end counts as running unless it is much older. Beside an edit
    (`is_edit`), where ends are not reported, it counts until the same agent's next call.
    """
    wanted, ends, whose = _mark_of(file), None, _id_of(agent)
    marks = _lines(name_of(instance_id))
    for place, (when, what, call, *by) in enumerate(marks):
        if when > last_ns or (agent and by != [whose]):
            continue
        if what == wanted and when >= began_ns:
            return True
        if what == "*":
            if ends is None:
                ends = _lines(_ENDED)
            end = min((at for at, ended, _ in ends if ended == call and at >= when), default=0)
            if is_edit and not end:
                end = min((at for at, _what, _call, *other in marks[place + 1 :] if other == by), default=0)
            if end >= first_ns or (not end and when >= began_ns - UNENDED_NS):
                return True
    return False


def _append(name: str, lines: list[str]) -> None:
    path = os.path.join(acting_dir(), name)
    handle = open_in_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(handle, "".join(lines).encode())  # one write call, so that lines of two hooks do not mix
        size = os.fstat(handle).st_size
    finally:
        os.close(handle)
    if size > MARKS_BYTES:
        newest = _lines(name)[-MARKS_LEFT:]
        write_private(path, "".join(" ".join(map(str, line)) + "\n" for line in newest))


def _lines(name: str) -> list[Any]:
    try:
        marks = read_private(os.path.join(acting_dir(), name), 2 * MARKS_BYTES).decode("ascii", "replace")
        parts = [line.split() for line in marks.splitlines()]
    except OSError:
        return []  # no marks yet
    return [(int(part[0]), *part[1:]) for part in parts if len(part) in (3, 4) and part[0].isdigit()]


def _mark_of(file: str) -> str:
    return digest_of(os.fsencode(real_path(file)))


# --------------------------------------------------------------------------------------------------- innards


def close() -> None:
    """Remove the folders of records and marks, unless a call is watched."""
    try:
        os.rmdir(watched_dir())
    except FileNotFoundError:
        pass  # never made, or removed already
    except OSError:
        return  # another call is watched
    if os.path.isdir(edited_dir()) or not os.path.isdir(acting_dir()):
        return
    try:
        for name in os.listdir(acting_dir()):
            os.remove(os.path.join(acting_dir(), name))
        os.rmdir(acting_dir())
    except OSError:
        return  # another hook was faster, or marks came meanwhile


def _name_in(name: str) -> str:
    """Return the name of a record without the words that tell who has taken it."""
    return ".".join(name.split(".")[:2])


def _id_of(call_id: str) -> str:
    if call_id:
        return digest_of(call_id.encode("utf-8", "surrogatepass"))
    return "0"


def _begun(name: str) -> int:
    text = name.partition(".")[2].partition("-")[0]
    try:
        return int(text, 16)
    except ValueError:
        return 0  # not a record's name


def json_of(facts: object) -> str:
    """Return `facts` as JSON without blanks: a record may hold hundreds of files."""
    return json.dumps(facts, separators=(",", ":"))


# A record's file. A checker remembers the records that it has written last, and reads none of these again.

MOST_REMEMBERED = 4

_remembered: dict[tuple[int, ...], dict[str, Any]] = {}  # facts by the mark of their record


def write_facts(path: str, facts: dict[str, Any], locks: str = "") -> None:
    """Write a record's file. The `facts` may not be changed afterwards; `locks`: the JSON of their locks, if known.

    Raises OSError.
    """
    others = json_of({name: value for name, value in facts.items() if name != "locks"}).removesuffix("}")
    written = write_private(path, f'{others},"locks":{locks or json_of(facts["locks"])}}}')
    if process.is_answering():
        if len(_remembered) >= MOST_REMEMBERED:
            del _remembered[next(iter(_remembered))]
        _remembered[_mark(written)] = facts


def facts_in(path: str, for_good: bool = False) -> dict[str, Any] | None:
    """Return the facts in a taken record; None for an unreadable one. `for_good`: the caller may change the result."""
    try:
        known = _remembered.get(_mark(os.lstat(path)))
        if known is not None and not for_good and process.is_answering():
            return known
        facts = loads(os.fsdecode(read_private(path, LARGEST_RECORD)))
    except (OSError, ValueError, RecursionError):
        return None  # torn, or a planted file
    if isinstance(facts, dict):
        return facts
    return None


def _mark(found: os.stat_result) -> tuple[int, ...]:
    """Return a mark that a record keeps while it is renamed, and that no other record has."""
    return (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)


def _canonical(value: object, levels: int = LEVELS // 2) -> object:
    """Return `value` in a form that does not depend on the order of keys or the spelling of whole numbers.

    Only `levels` of it: the depth of a payload depends on the client's transport.
    """
    if isinstance(value, (dict, list)) and not levels:
        return None
    if isinstance(value, dict):
        return {key: _canonical(value[key], levels - 1) for key in sorted(value)}
    if isinstance(value, list):
        return [_canonical(item, levels - 1) for item in value]
    if isinstance(value, float) and value == value // 1:
        return int(value)
    return value
