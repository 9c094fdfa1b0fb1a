"""Writing the files of an undo: all or none.

The plan lies in the state folder before the first file is written (``records``). A file that has changed since it was
planned is not written, and those before it are put back. If the process is killed, `recover` finishes an undo whose
files are all written, and puts the others back. A file that has been changed by others since is left alone.

Each file is replaced in one step. Its content right before and right after is kept as a version, with an entry of the
tool ``UNDO``: so the undo is a step with an author (``versions.steps``).
"""

from __future__ import annotations

import contextlib
import os
import stat
import time

from swarm_hook_core.state import make_private, open_in_private, open_private, write_all
from swarm_hook_core.traces import (
    AFTER,
    LOOK,
    entry,
    first_line,
    journal_name,
    kept_dir,
    keys_of,
    place_of,
    state_of,
    version_path,
)
from swarm_hook_core.traces.versions import keep
from swarm_hook_core.traces.versions.steps import PERSONS, UNDO
from swarm_hook_core.traces.versions.stored import ENDED
from swarm_hook_core.watching.snapshot import full
from swarm_mcp.changes.records import FileUndo, Record, unfinished
from swarm_mcp.errors import SwarmError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class ChangedMeanwhile(SwarmError):
    """A file has changed since it was planned."""


def write(record: Record, reached: Callable[[str], object] = str) -> None:
    """Make the undo. Raises ChangedMeanwhile, OSError: then all files are as before.

    `reached`: called with a word before each step that can be seen from outside.
    """
    reached("begin")
    record.begin()
    written: list[FileUndo] = []
    try:
        for one in record.files:
            reached("keep")
            one.at_ns = time.time_ns()
            _note(record, one, LOOK, one.at_ns)
        reached("save")
        record.save()
        for one in record.files:
            reached("write")
            if state_of(one.path) != one.state:
                raise ChangedMeanwhile(f"{one.path} has changed meanwhile: nothing was undone; type it again")
            written.append(one)
            _put(one, one.after, one.mode_after, reached)
    except BaseException:
        _put_back(written)
        record.forget()
        raise
    reached("finish")
    _finish(record)
    reached("over")


def recover() -> list[str]:
    """Finish the undos of killed processes, or put their files back. Return a line about each. Raises OSError."""
    told = []
    for record in unfinished():
        for one in record.files:
            _remove_scratch(one)
        if all(_is(one, one.after, one.mode_after) for one in record.files):
            _finish(record)
            told.append(f"undo {record.id} was interrupted, and is complete now")
            continue
        left = _put_back(record.files)
        record.forget()
        told.append(f"undo {record.id} was interrupted: its files are as before it")
        if left:
            told[-1] += f", but {', '.join(left)} changed since and {'is' if len(left) == 1 else 'are'} left alone"
    return told


def _finish(record: Record) -> None:
    for one in record.files:
        _note(record, one, AFTER, max(time.time_ns(), one.at_ns + 1))
    record.finish()


def _put_back(files: list[FileUndo]) -> list[str]:
    """Give the files their contents from before, the last one first. Return those that were changed by others since."""
    left = []
    for one in reversed(files):
        if _is(one, one.before, one.mode_before):
            continue
        if _is(one, one.after, one.mode_after):
            _put(one, one.before, one.mode_before, str)
        else:
            left.append(one.path)
    return left


def _is(one: FileUndo, content: bytes | None, mode: int) -> bool:
    """Return True if the file has this content and these permissions now."""
    try:
        found = os.lstat(one.path)
        if content is None:
            return False
        if stat.S_ISLNK(found.st_mode):
            return one.is_link and os.fsencode(os.readlink(one.path)) == content
        if not stat.S_ISREG(found.st_mode) or stat.S_IMODE(found.st_mode) != mode:
            return False
        with open(one.path, "rb") as file:
            return file.read() == content
    except (FileNotFoundError, NotADirectoryError):
        return content is None  # a missing file


def _put(one: FileUndo, content: bytes | None, mode: int, reached: Callable[[str], object]) -> None:
    """Give the file this content and these permissions, in one step. Raises OSError."""
    if content is None:
        os.unlink(one.path)
        return
    if one.is_link:
        os.symlink(os.fsdecode(content), one.path)
        return
    os.makedirs(os.path.dirname(one.path), exist_ok=True)
    scratch = _scratch(one)
    handle = open_private(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        try:
            write_all(handle, content)
            os.fchmod(handle, mode)
            os.fsync(handle)
        finally:
            os.close(handle)
        reached("replace")
        os.replace(scratch, one.path)
    except OSError:
        _remove_scratch(one)
        raise


def _scratch(one: FileUndo) -> str:
    """Return the path of the file's new content while it is being written. One undo of a file runs at a time."""
    folder, name = os.path.split(one.path)
    return os.path.join(folder, f".{name[:100]}.{one.at_ns:x}.swarm")


def _remove_scratch(one: FileUndo) -> None:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        os.remove(_scratch(one))


def _note(record: Record, one: FileUndo, mark: str, at_ns: int) -> None:
    """Keep the present content as a version, and add its entry to the journal of the undo's author. Raises OSError."""
    place = place_of(os.path.dirname(one.path))
    name, path = PERSONS, ""
    if record.by[1]:
        name = journal_name(*record.by)
        path = os.path.join(place, name)
    else:
        path = os.path.join(kept_dir(place), PERSONS, ENDED)
    keep(one.path, f"{version_path(place, name, one.path)}{mark}{at_ns}", at_ns)
    lines = []
    if record.by[1] and mark == LOOK:  # others learn of the session's write by this entry
        lines += [entry(at_ns, "wrote", "", UNDO, key, state_of(one.path)) for key in keys_of(one.path)]
    lines += [entry(at_ns, "is", "", UNDO, key, str(full(one.path))) for key in keys_of(one.path)]
    make_private(os.path.dirname(path))
    handle = open_in_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        if not os.fstat(handle).st_size:
            lines.insert(0, first_line(*(record.by if record.by[1] else ("person", "")), os.path.dirname(one.path)))
        write_all(handle, b"\n" + b"".join(lines))
    finally:
        os.close(handle)
