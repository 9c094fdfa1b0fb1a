"""Writing the files of an undo: all or none.

The plan lies in the state folder before the first file is written (``records``). A file that has changed since it was
planned is not written, and those before it are put back. If the process is killed, `recover` finishes an undo whose
files are all written, and puts the others back: within the next swarm command, or the next hook of any session at the
beginning or end of a turn. A file that has been changed by others since is left alone.

Each file is replaced in one step. Its content right before and right after is kept as a version, with an entry of the
tool ``UNDO``: so the undo is a step with an author (``versions.steps``).
"""

from __future__ import annotations

import contextlib
import os
import time

from swarm_hook_core.no_links import BeyondLink, FolderOf
from swarm_hook_core.state import open_private, write_all
from swarm_hook_core.traces import (
    AFTER,
    LOOK,
    UNDO,
    append,
    entry,
    first_line,
    journal_name,
    keys_of,
    place_of,
    state_of,
    version_path,
)
from swarm_hook_core.traces.versions import by_persons, keep
from swarm_hook_core.watching.snapshot import full_resolved
from swarm_mcp.changes.present import state_now
from swarm_mcp.changes.records import LINK, FileUndo, Record, any_unfinished, one_at_a_time, unfinished
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
            written.append(one)
            _put(one, one.after, one.mode_after, one.state, reached)
    except BaseException as error:
        if isinstance(error, ChangedMeanwhile):
            written.pop()  # another's by now
        _put_back(written)
        record.forget()
        raise
    reached("finish")
    _finish(record)
    reached("over")


def recover() -> list[str]:
    """Finish the undos of killed processes, or put their files back. Return a line about each. Raises OSError.

    Without an interrupted undo it costs the listing of one folder. Of several processes one does it.
    """
    if not any_unfinished():
        return []
    with one_at_a_time() as is_free:
        return [_recovered(record) for record in unfinished()] if is_free else []


def _recovered(record: Record) -> str:
    for one in record.files:
        _remove_scratch(one)
    if all(one.is_now(one.after, one.mode_after) for one in record.files):
        _finish(record)
        return f"undo {record.id} was interrupted, and is complete now"
    left = _put_back(record.files)
    record.forget()
    said = f"undo {record.id} was interrupted: its files are as before it"
    if left:
        said += f", but {', '.join(left)} changed since and {'is' if len(left) == 1 else 'are'} left alone"
    return said


def _finish(record: Record) -> None:
    for one in record.files:
        _note(record, one, AFTER, max(time.time_ns(), one.at_ns + 1))
    record.finish()


def _put_back(files: list[FileUndo]) -> list[str]:
    """Give the files their contents from before, the last one first. Return those that were changed by others since."""
    left = []
    for one in reversed(files):
        state = state_now(one.path)
        if one.is_now(one.before, one.mode_before):
            continue
        try:
            if not one.is_now(one.after, one.mode_after):
                raise ChangedMeanwhile(one.path)
            _put(one, one.before, one.mode_before, state, str)
        except (ChangedMeanwhile, BeyondLink):
            left.append(one.path)
    return left


def _put(one: FileUndo, content: bytes | None, mode: int, state: str, reached: Callable[[str], object]) -> None:
    """Give the file this content and these permissions, in one step. Raises OSError.

    Raises ChangedMeanwhile, and leaves the file alone, if it is in another `state` right before that step.
    """
    with FolderOf(one.path, makes=content is not None) as (name, folder):
        scratch = _scratch(name, one.at_ns)
        try:
            if content is not None:
                if mode == LINK:
                    os.symlink(os.fsdecode(content), scratch, dir_fd=folder)
                else:
                    _write_file(scratch, folder, content, mode)
            reached("replace")
            if state_of(name, folder) != state:
                raise ChangedMeanwhile(f"{one.path} has changed meanwhile: nothing was undone; type it again")
            if content is None:
                os.unlink(name, dir_fd=folder)
            else:
                os.replace(scratch, name, src_dir_fd=folder, dst_dir_fd=folder)
        except (OSError, ChangedMeanwhile):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(scratch, dir_fd=folder)
            raise


def _write_file(name: str, folder: int | None, content: bytes, mode: int) -> None:
    handle = open_private(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, folder=folder)
    try:
        write_all(handle, content)
        os.fchmod(handle, mode)
        os.fsync(handle)
    finally:
        os.close(handle)


def _scratch(name: str, at_ns: int) -> str:
    """Return the name of the file's new content while it is being written. One undo of a file runs at a time."""
    folder, last = os.path.split(name)
    return os.path.join(folder, f".{last[:100]}.{at_ns:x}.swarm")


def _remove_scratch(one: FileUndo) -> None:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), FolderOf(one.path) as (name, folder):
        os.unlink(_scratch(name, one.at_ns), dir_fd=folder)


def _note(record: Record, one: FileUndo, mark: str, at_ns: int) -> None:
    """Keep the present content as a version, and add its entry to the journal of the undo's author. Raises OSError."""
    place = place_of(os.path.dirname(one.path))
    name, owner, path = by_persons.PERSONS, by_persons.OWNER, by_persons.journal_path(place)
    if record.by[1]:
        name, owner = journal_name(*record.by), record.by
        path = os.path.join(place, name)
    keep(one.path, f"{version_path(place, name, one.path)}{mark}{at_ns}", at_ns)
    lines = []
    if record.by[1] and mark == LOOK:  # others learn of the session's write by this entry
        lines += [entry(at_ns, "wrote", "", UNDO, key, state_now(one.path)) for key in keys_of(one.path)]
    lines += [entry(at_ns, "is", "", UNDO, key, str(full_resolved(one.path))) for key in keys_of(one.path)]
    append(path, lines, lambda: first_line(*owner, os.path.dirname(one.path)))
