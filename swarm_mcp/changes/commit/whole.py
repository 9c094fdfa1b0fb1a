"""The authors of changes that no line shows: a file's mode, a binary file, a link, a file behind a filter.

Of a link no version is kept, and a new target takes nothing from the old one: its last writer is its author.
"""

from __future__ import annotations

import os
import stat

from swarm_hook_core.no_links import FolderOf
from swarm_hook_core.traces.versions import LIMIT_BYTES
from swarm_hook_core.traces.versions.acts import PERSON
from swarm_hook_core.traces.versions.steps import History
from swarm_hook_core.watching.snapshot import read
from swarm_mcp.changes.dirty import LINK, NONE, PROGRAM, object_id
from swarm_mcp.changes.pieces import joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm_hook_core.traces.versions.acts import Author
    from swarm_hook_core.traces.versions.notes import Notes
    from swarm_hook_core.traces.versions.steps import Moment
    from swarm_mcp.changes.commit.git import Git
    from swarm_mcp.changes.dirty import DirtyFile

IS_PROGRAM = 0o100


def mode_writers(file: DirtyFile, notes: Notes) -> Sequence[Author]:
    """Return all that may have given the file its present mode."""
    history = _history(file, notes)
    if history is None:
        return ()
    for step in reversed(history.steps()):
        if step.before.exists and step.after.exists and (step.before.mode ^ step.after.mode) & IS_PROGRAM:
            return step.authors
    return history.earlier()


def writers_of(file: DirtyFile, git: Git, notes: Notes) -> Sequence[Author]:
    """Return all that may have changed the file since it was as committed."""
    history = _history(file, notes)
    if history is None:
        return ()
    if history.acts and LINK in (file.old_mode, file.new_mode):
        return _last_writers(history)
    steps = history.steps()
    for at in reversed(range(len(steps))):
        if _is_committed(history.moments[at], file, git):
            return joined(author for step in steps[at:] for author in step.authors)
    return joined([*history.earlier(), *(author for step in steps for author in step.authors)])


def _history(file: DirtyFile, notes: Notes) -> History | None:
    """Return the history of the file, a link itself included, or None if it cannot be read."""
    data, present = b"", None
    try:
        with FolderOf(file.path) as (name, folder):
            present = os.lstat(name, dir_fd=folder)
            if stat.S_ISREG(present.st_mode):
                data = read(name, LIMIT_BYTES, folder)[1]
    except (FileNotFoundError, NotADirectoryError):
        pass  # removed
    except OSError:
        return None  # unreadable
    return History(file.path, data, present, notes=notes)


def _last_writers(history: History) -> Sequence[Author]:
    """Return all that may have made, changed or removed a link last."""
    present = history.moments[-1]
    if not present.exists:
        return [history.acts[-1].author]  # a removal leaves no time
    acts = [act for act in history.acts if act.has_certainly_written_at(present.changed_ns or 0)]
    return joined(act.author for act in acts) or (PERSON,)


def _is_committed(moment: Moment, file: DirtyFile, git: Git) -> bool:
    """Return True if the moment's content is that of the last commit."""
    if not moment.exists or file.old_mode == NONE:
        return not moment.exists and file.old_mode == NONE
    if file.old_mode == LINK or bool(moment.mode & IS_PROGRAM) != (file.old_mode == PROGRAM):
        return False
    data = moment.content()
    if object_id(data, file.old_id) == file.old_id:
        return True
    made = git.run(["hash-object", "--stdin", f"--path={file.name}"], data)  # with its filter and line ends
    return made.returncode == 0 and os.fsdecode(made.stdout).strip() == file.old_id
