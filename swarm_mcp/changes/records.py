"""The undos that were made, so that each can be undone, and those that are being made.

<state>/undos/<id>.json       an undo that is over
<state>/undos/<id>/           one that is being made: `PLAN`, and each file's contents before and after it
"""

from __future__ import annotations

import json
import os
import shutil
import time

from swarm_hook_core.state import make_private, state_dir, write_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PLAN = "plan.json"
AGE_SECONDS = 7 * 86400  # as long as contents are kept


class FileUndo:
    """The undo of one file.

    before, after            contents, None for a missing file; of a symbolic link its target
    mode_before, mode_after  permissions
    is_link                  True if there was a symbolic link before, or is one after
    state                    the file's state before (``state_of``)
    at_ns                    time of the version that was kept before it, 0 until then
    taken                    times of the versions before the steps that it takes back
    target                   of the symbolic link
    """

    __slots__ = ("path", "before", "after", "mode_before", "mode_after", "is_link", "state", "at_ns", "taken", "target")

    def __init__(self, path: str):
        self.path = path
        self.before: bytes | None = None
        self.after: bytes | None = None
        self.mode_before = self.mode_after = 0
        self.is_link = False
        self.state = ""
        self.at_ns = 0
        self.taken: list[int] = []
        self.target = ""

    def described(self) -> dict[str, Any]:
        """Return all but the contents."""
        contents = ("before", "after")
        found = {name: getattr(self, name) for name in self.__slots__ if name not in contents}
        return {**found, **{name: getattr(self, name) is not None for name in contents}}


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
        facts = {name: value for name, value in vars(self).items() if name != "files"}
        return {**facts, "files": [one.described() for one in self.files]}

    def begin(self) -> None:
        """Write down the plan with all contents. Nothing counts before the plan itself is there. Raises OSError."""
        from swarm_hook_core.process import start_time

        self.pid, self.started = os.getpid(), start_time(os.getpid())
        make_private(self.folder)
        for number, one in enumerate(self.files):
            for name in ("before", "after"):
                data = getattr(one, name)
                if data is not None:
                    _write(os.path.join(self.folder, f"{number}.{name}"), data)
        self.save()

    def save(self) -> None:
        write_private(os.path.join(self.folder, PLAN), json.dumps(self.described()))

    def finish(self) -> None:
        """Note that the undo is over. Raises OSError."""
        write_private(self.folder + ".json", json.dumps(self.described()))
        self.forget()

    def forget(self) -> None:
        """Remove the plan: nothing of it was done, or all of it."""
        if os.path.lexists(os.path.join(self.folder, PLAN)):
            os.remove(os.path.join(self.folder, PLAN))
        shutil.rmtree(self.folder, ignore_errors=True)  # without its plan it means nothing


def undos_dir() -> str:
    """Return the folder of all undos. It need not exist."""
    return os.path.join(state_dir(), "undos")


def finished() -> list[Record]:
    """Return the undos that are over, the newest first."""
    found = [_read(os.path.join(undos_dir(), name)) for name in _names() if name.endswith(".json")]
    return sorted(filter(None, found), key=lambda one: -one.at)


def unfinished() -> list[Record]:
    """Return the undos whose process has ended in the middle of them, with all contents."""
    from swarm_hook_core.process import start_time

    found = []
    for name in _names():
        folder = os.path.join(undos_dir(), name)
        record = _read(os.path.join(folder, PLAN))
        if record is None:
            continue
        if record.pid != os.getpid() and start_time(record.pid) == record.started:
            continue  # it is being made
        for number, one in enumerate(record.files):
            for part in ("before", "after"):
                if getattr(one, part) is not None:
                    setattr(one, part, _content(os.path.join(folder, f"{number}.{part}")))
        found.append(record)
    return found


def prune(now: float) -> None:
    """Forget undos that are too old to be undone. Raises OSError."""
    for name in _names():
        path = os.path.join(undos_dir(), name)
        if name.endswith(".json") and os.lstat(path).st_mtime < now - AGE_SECONDS:
            os.remove(path)


def _names() -> list[str]:
    try:
        return sorted(os.listdir(undos_dir()))
    except FileNotFoundError:
        return []  # nothing was ever undone


def _read(path: str) -> Record | None:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            value = json.load(file)
    except (OSError, ValueError, RecursionError):
        return None  # no plan yet, or another program's file
    record = Record(value["id"], tuple(value["whose"]), tuple(value["by"]), value["undoes"])
    record.at, record.pid, record.started = value["at"], value["pid"], value["started"]
    for facts in value["files"]:
        one = FileUndo(facts["path"])
        for name, fact in facts.items():
            setattr(one, name, fact)
        for name in ("before", "after"):
            setattr(one, name, b"" if facts[name] else None)
        record.files.append(one)
    return record


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _write(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        os.chmod(path, 0o600)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
