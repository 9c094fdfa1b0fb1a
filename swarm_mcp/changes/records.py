"""The undos that were made, so that each can be undone, and those that are being made.

<state>/undos/<id>.json       an undo that is over
<state>/undos/<id>.<number>.before, .after     its contents of files without versions
<state>/undos/<id>/           one that is being made: `PLAN`, and each file's contents before and after it
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import time
from collections.abc import Iterator
from typing import Any

from swarm_hook_core.process import start_time
from swarm_hook_core.state import make_private, write_private
from swarm_hook_core.traces.keeping import FILE, RECORD, checked, file_of, record_of, undos_dir
from swarm_mcp.changes.dirty import present

PLAN = "plan.json"
LINK = stat.S_IFLNK  # in place of permissions: a symbolic link is without
PARTS = ("before", "after")
AGE_SECONDS = 7 * 86400  # as long as contents are kept


def mode_of(found: os.stat_result) -> int:
    """Return a file's permissions, `LINK` for a symbolic link, -1 for a folder or a device."""
    if stat.S_ISLNK(found.st_mode):
        return LINK
    if stat.S_ISREG(found.st_mode):
        return stat.S_IMODE(found.st_mode)
    return -1


def mode_of_new_file() -> int:
    """Return the permissions that a new file of this process gets."""
    mask = os.umask(0o077)  # the strictest: another thread may make a file just now
    os.umask(mask)
    return 0o666 & ~mask


def with_run_right(mode: int, is_program: bool) -> int:
    """Return the permissions `mode`, with the right to run the file for all who may read it, or for nobody."""
    if is_program:
        return mode & ~0o111 | (mode & 0o444) >> 2
    return mode & ~0o111


class FileUndo:
    """The undo of one file.

    before, after            contents, None for a missing file; of a symbolic link its target
    mode_before, mode_after  permissions; `LINK` for a symbolic link, 0 for a missing file
    is_whole                 True for a file without versions: the record keeps its contents
    state                    the file's state before (``state_of``)
    at_ns                    time of the version that was kept before it, 0 until then
    taken                    times of the versions before the steps that it takes back
    """

    __slots__ = tuple(FILE)

    def __init__(self, path: str):
        self.path = path
        self.before: bytes | None = None
        self.after: bytes | None = None
        self.mode_before = self.mode_after = 0
        self.is_whole = False
        self.state = ""
        self.at_ns = 0
        self.taken: list[int] = []

    def is_now(self, content: bytes | None, mode: int) -> bool:
        """Return True if the file has this content and these permissions now. Raises OSError."""
        found, data = present(self.path)
        if found is None or content is None:
            return found is None and content is None
        return mode_of(found) == mode and data == content

    def described(self) -> dict[str, Any]:
        """Return all but the contents."""
        found = {name: getattr(self, name) for name in FILE if name not in PARTS}
        return file_of(**found, **{name: getattr(self, name) is not None for name in PARTS})


class Record:
    """One undo.

    whose   ``(runtime, session id)`` of the session with the work that was taken back
    by      the same of the session that asked for it, empty for a person
    undoes  the id of the undo that this one undoes, or ""
    """

    def __init__(self, undo_id: str, whose: tuple[str, str], by: tuple[str, str], undoes: str = ""):
        self.id = undo_id
        self.whose = whose
        self.by = by
        self.undoes = undoes
        self.at = time.time()
        self.pid, self.started = 0, ""
        self.files: list[FileUndo] = []

    @property
    def folder(self) -> str:
        return os.path.join(undos_dir(), self.id)

    def described(self) -> dict[str, Any]:
        """Return the record as it is stored."""
        facts = {name: getattr(self, name) for name in RECORD}
        facts.update(whose=list(self.whose), by=list(self.by))
        return record_of([one.described() for one in self.files], **facts)

    def begin(self) -> None:
        """Write down the plan with all contents. Nothing counts before the plan itself is there. Raises OSError."""
        self.pid, self.started = os.getpid(), start_time(os.getpid())
        make_private(self.folder)
        for number in range(len(self.files)):
            self._write_contents(os.path.join(self.folder, ""), number)
        self.save()

    def with_contents(self, file: FileUndo) -> FileUndo:
        """Return a file without versions of an undo that is over, with its contents read. Raises OSError."""
        _read_contents(file, self.folder + ".", self.files.index(file))
        return file

    def _write_contents(self, start: str, number: int) -> None:
        for part in PARTS:
            data = getattr(self.files[number], part)
            if data is not None:
                _write(f"{start}{number}.{part}", data)

    def save(self) -> None:
        write_private(os.path.join(self.folder, PLAN), json.dumps(self.described()))

    def finish(self) -> None:
        """Note that the undo is over. Raises OSError."""
        for number, one in enumerate(self.files):
            if one.is_whole:
                self._write_contents(self.folder + ".", number)
        write_private(self.folder + ".json", json.dumps(self.described()))
        self.forget()

    def forget(self) -> None:
        """Remove the plan: nothing of it was done, or all of it."""
        if os.path.lexists(os.path.join(self.folder, PLAN)):
            os.remove(os.path.join(self.folder, PLAN))
        shutil.rmtree(self.folder, ignore_errors=True)  # without its plan it means nothing


def finished() -> list[Record]:
    """Return the undos that are over, the newest first."""
    found = [_read(os.path.join(undos_dir(), name)) for name in _names() if name.endswith(".json")]
    return sorted(filter(None, found), key=lambda one: -one.at)


def undone_files() -> dict[str, list[FileUndo]]:
    """Return ``{path: the undos of the file that are over}``, the newest first."""
    found: dict[str, list[FileUndo]] = {}
    for record in finished():
        for one in record.files:
            found.setdefault(one.path, []).append(one)
    return found


def any_unfinished() -> bool:
    """Return True if an undo is being made, or was interrupted."""
    return any("." not in name for name in _names())


@contextlib.contextmanager
def one_at_a_time() -> Iterator[bool]:
    """Give True to one process at a time, and False to others meanwhile. Raises OSError."""
    try:
        import fcntl
    except ImportError:
        yield True  # Windows
        return
    handle = os.open(undos_dir(), os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False  # another process is at it
            return
        yield True
    finally:
        os.close(handle)


def unfinished() -> list[Record]:
    """Return the undos whose process has ended in the middle of them, with all contents."""
    return [record for _folder, record in _interrupted() if record is not None]


def unreadable() -> list[str]:
    """Return the folders of interrupted undos that no program of this release can put right."""
    return [folder for folder, record in _interrupted() if record is None]


def _interrupted() -> Iterator[tuple[str, Record | None]]:
    """Yield ``(folder, undo)`` of the undos whose process has ended; no undo if its plan or contents cannot be read."""
    place = undos_dir()
    for name in _names():
        folder = os.path.join(place, name)
        if "." in name or not os.path.lexists(os.path.join(folder, PLAN)):
            continue  # it is over, or has not begun
        record = _read(os.path.join(folder, PLAN))
        if record is not None and record.pid != os.getpid() and start_time(record.pid) == record.started:
            continue  # it is being made
        try:
            for number, one in enumerate(record.files if record is not None else ()):
                _read_contents(one, os.path.join(folder, ""), number)
        except OSError:
            record = None  # of another release, whose contents lie elsewhere; or damaged
        if os.path.lexists(os.path.join(folder, PLAN)):  # else another process has put it right
            yield folder, record


def prune(now: float) -> None:
    """Forget undos that are too old to be undone, and plans that no release has put right since. Raises OSError."""
    for name in _names():
        path = os.path.join(undos_dir(), name)
        with contextlib.suppress(FileNotFoundError):  # another process has pruned it
            if os.lstat(path).st_mtime >= now - AGE_SECONDS:
                continue
            if "." in name:
                os.remove(path)
            else:
                shutil.rmtree(path)


def _names() -> list[str]:
    try:
        return sorted(os.listdir(undos_dir()))
    except FileNotFoundError:
        return []  # nothing was ever undone


def _read(path: str) -> Record | None:
    """Return the undo in this file, None if the file is missing, unreadable, or not of a form known here."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return _record_of(json.load(file))
    except (OSError, ValueError, RecursionError):
        return None  # no plan yet, or another program's file
    except (KeyError, TypeError, AttributeError):
        return None  # of another release, with other facts


def _record_of(value: dict[str, Any]) -> Record:
    """Return the undo with these facts. Those of other releases are passed over, missing ones have their defaults.

    Raises KeyError, TypeError, ValueError, AttributeError for a form that is not known.
    """
    facts = {name: checked(value[name], default) for name, default in RECORD.items() if name != "at"}
    record = Record(facts["id"], _pair(facts["whose"]), _pair(facts["by"]), facts["undoes"])
    record.at, record.pid, record.started = value["at"] + 0.0, facts["pid"], facts["started"]
    for given in value["files"]:
        one = FileUndo(checked(given["path"], ""))
        for name, default in FILE.items():
            if name in PARTS:
                setattr(one, name, b"" if given[name] else None)
            else:
                setattr(one, name, checked(given.get(name, default), default))
        one.taken = [checked(at_ns, 0) for at_ns in one.taken]
        record.files.append(one)
    return record


def _pair(value: list[str]) -> tuple[str, str]:
    runtime, session_id = value
    return checked(runtime, ""), checked(session_id, "")


def _read_contents(file: FileUndo, start: str, number: int) -> None:
    for part in PARTS:
        if getattr(file, part) is not None:
            with open(f"{start}{number}.{part}", "rb") as source:
                setattr(file, part, source.read())


def _write(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        os.chmod(path, 0o600)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
