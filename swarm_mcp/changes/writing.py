"""Writing the files of an undo: all or none.

The plan lies in the state folder before the first file is written (``records``). A file that has changed since it was
planned is not written, and those before it are put back. If the process is killed, `recover` finishes an undo with
all its files written, and puts the others back: within the next swarm command, or the next hook of any session at the
beginning or end of a turn. A file that has been changed by others since is left alone.

Each file is replaced in one step. Its content right before and right after is kept as a version, with an entry of the
tool ``UNDO``: so the undo is a step with an author (``versions.steps``).
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable

from swarm_hook_core.git_repository import NoAnswer, Refused, Repository, blob, sizes
from swarm_hook_core.paths import BeyondLink, FolderOf
from swarm_hook_core.repository import tree_over
from swarm_hook_core.state import open_private, write_all
from swarm_hook_core.traces import (
    AFTER,
    LOOK,
    NO_FILE,
    journal_name,
    state_of,
)
from swarm_hook_core.traces.versions.notes import PERSON, Act, Author, Notes, note_undo, withdraw_undo
from swarm_hook_core.traces.versions.steps import History
from swarm_mcp.changes.dirty import LARGEST, present, state_now
from swarm_mcp.changes.records import (
    LINK,
    FileUndo,
    Record,
    any_unfinished,
    mode_of,
    mode_of_new_file,
    one_at_a_time,
    unfinished,
    with_run_right,
)
from swarm_mcp.errors import SwarmError


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
            note_undo(one.path, LOOK, one.at_ns, record.by)
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
        with contextlib.suppress(OSError):  # a full disk: others take the note for a write to come, two minutes at most
            for one in record.files:
                withdraw_undo(one.path, one.at_ns, record.by)
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
        note_undo(one.path, AFTER, max(time.time_ns(), one.at_ns + 1), record.by)
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


# The parts of files that an undo cannot take back.

NOT_KEPT = "what was there before is neither kept nor in the last commit (over 1 MiB, a link, or older than 7 days)"
BEYOND = "it is beyond a symbolic link now"
TOO_EARLY = "no content is kept from the time that you name, only from before"
DELETED_TOO = "the file itself would go, too"
PARTLY = "the last commit has these lines alone of the change"


class Problem:
    """A part of a file that cannot be taken back.

    lines    in the present file, counted from 1; may be empty
    authors  the others who have these lines, or may have made the change
    reason   further words, or ""
    """

    __slots__ = ("path", "lines", "authors", "reason")

    def __init__(self, path: str, lines: list[int], authors: Iterable[Author] = (), reason: str = ""):
        self.path = path
        self.lines = lines
        self.authors = list(authors)
        self.reason = reason


# The undo of a file without versions: a symbolic link, or a file over 1 MiB. It is taken back whole, or not at all.
#
# The session alone must have changed it since the last commit. Its state before is that of the first version, if that
# was kept: mostly "no file". Else it is the last commit's, if the file was as in git's index when the session began:
# the journal's note of its state then, and git's own, are compared.

SECONDS = 5.0  # for git's answer about one file
TOO_LARGE = "larger than 16 MiB"
CHANGED = "changed since that undo"


class NoSuchUndo(Exception):
    """The file cannot be taken back whole; `problem` says why."""

    def __init__(self, problem: Problem):
        super().__init__(problem.reason)
        self.problem = problem


def undo_of(path: str, session: tuple[str, str], since_ns: int, settled_ns: int, notes: Notes) -> FileUndo | None:
    """Return the undo of the file at `path`; None if the session has not changed it since it was `settled_ns`.

    `settled_ns`: time of the last commit with the file, or of the last undo of it. Raises NoSuchUndo, OSError.
    """
    for _look in notes.rounds(os.path.dirname(path)):
        one, found = _present(path)
        if one.mode_before < 0:
            return None  # a folder; its files come by themselves
        acts = [act for act in History(path, b"", found, notes=notes).acts if act.at_ns > settled_ns]
    own = [act for act in acts if act.author.session == session]
    if not own or own[-1].at_ns < since_ns:
        return None
    if own[0].at_ns < since_ns:
        raise NoSuchUndo(Problem(path, [], (), TOO_EARLY))
    others = [act.author for act in acts if act.author.session != session]
    if found is not None and not any(act.has_certainly_written_at(found.st_ctime_ns) for act in own):
        others.append(PERSON)
    if others:
        raise NoSuchUndo(Problem(path, [], others))
    if one.before is None and found is not None:
        raise NoSuchUndo(Problem(path, [], (), TOO_LARGE))
    versions = notes.of(os.path.dirname(path)).versions(path)
    first = next((version for version in versions if version.at_ns > settled_ns), None)
    if first is not None and first.is_whole:
        one.after = first.content() if first.exists else None
        one.mode_after = first.mode | 0o200 if first.exists else 0
    else:
        state = _state_before(path, session, own[0], notes)
        if state != NO_FILE:
            _take_committed(one, state)
    return one if (one.before, one.mode_before) != (one.after, one.mode_after) else None


def back_of(file: FileUndo) -> FileUndo | None:
    """Return the undo of `file`, an undo with its contents; None if it is done already. Raises NoSuchUndo, OSError."""
    if file.is_now(file.before, file.mode_before):
        return None
    if not file.is_now(file.after, file.mode_after):
        raise NoSuchUndo(Problem(file.path, [], (), CHANGED))
    one = FileUndo(file.path)
    one.is_whole, one.state = True, state_now(file.path)
    one.before, one.mode_before = file.after, file.mode_after
    one.after, one.mode_after = file.before, file.mode_before
    return one


def _present(path: str) -> tuple[FileUndo, os.stat_result | None]:
    """Return the undo of the file with its state now, and its facts, None if it is missing."""
    one = FileUndo(path)
    one.is_whole, one.state = True, state_now(path)
    found, one.before = present(path)
    if found is not None:
        one.mode_before = mode_of(found)
    return one, found


def _state_before(path: str, session: tuple[str, str], act: Act, notes: Notes) -> str:
    """Return the file's state (``state_of``) before this call, as the journal noted it, or ""."""
    noted = notes.of(os.path.dirname(path)).journals.get(journal_name(*session))
    entries = noted.of_file(path, ("wrote",)) if noted is not None else ()
    return next((entry.text for entry in entries if entry.at_ns == act.at_ns), "")


def _take_committed(one: FileUndo, state: str) -> None:
    """Make the last commit's content the result, if the file in this `state` had it. Raises NoSuchUndo."""
    missing = NoSuchUndo(Problem(one.path, [], (), NOT_KEPT))
    tree = tree_over(os.path.dirname(one.path))
    if tree is None or not state:
        raise missing
    repository, name = Repository(tree.top, SECONDS), os.path.relpath(one.path, tree.top).replace(os.sep, "/")
    try:
        index = repository.ask("ls-files", "-s", "--debug", "--", f":(literal){name}").split()
        listed = repository.ask("ls-tree", "HEAD", "--", name).split()
        if not listed or index[:2] != [listed[0], listed[2]] or not _is_state(index, state):
            raise missing
        size = sizes(repository, [listed[2]])[0]
        if size is None or size > LARGEST:
            raise missing
        content = blob(repository, listed[2])
    except (Refused, NoAnswer):
        raise missing from None
    if len(content) != int(state.rpartition(" ")[2]):
        raise missing  # git changes it on its way
    one.after = content
    if listed[0] == "120000":
        one.mode_after = LINK
    else:
        kept = one.mode_before if one.before is not None and one.mode_before != LINK else mode_of_new_file()
        one.mode_after = with_run_right(kept, listed[0] == "100755")


def _is_state(index: list[str], state: str) -> bool:
    """Return True if git's index, as ``ls-files --debug`` prints it, notes the file in this state."""
    facts = dict(zip(index, index[1:]))
    seconds, _, nanoseconds = facts.get("ctime:", "").partition(":")
    changed, _, rest = state.partition(" ")
    size = rest.rpartition(" ")[2]
    return changed == f"{seconds}{nanoseconds:0>9}" and size == facts.get("size:")
