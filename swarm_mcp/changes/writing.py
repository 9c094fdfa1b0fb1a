"""Writing the files of an undo together; the undos that were made, so that each can be undone.

    <state>/undos/<id>.json       an undo that is over
    <state>/undos/<id>.<number>.before, .after     its contents of files without versions
    <state>/undos/<id>/           one that is being made: `PLAN`, and each file's contents before and after it

The plan lies in the state folder before the first file is written. A file that has changed since it was
planned is not written, and those before it are put back. If the process is killed, `recover` finishes an undo with
all its files written, and puts the others back: within the next swarm command, or the next hook of any session at the
beginning or end of a turn. A file that has been changed by others since is left alone.

Each file is replaced in one step. Its content right before and right after is kept as a version, with an entry of the
tool ``UNDO``: so the undo is a step with an author (``versions.steps``).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from swarm_hook_core.git_repository import NoAnswer, Refused, Repository, blob, sizes
from swarm_hook_core.paths import BeyondLink, FolderOf
from swarm_hook_core.process import start_time
from swarm_hook_core.repository import tree_over
from swarm_hook_core.state import make_private, open_private, write_all, write_private
from swarm_hook_core.traces import (
    AFTER,
    LOOK,
    NO_FILE,
    journal_name,
    state_of,
)
from swarm_hook_core.traces.keeping import FILE, RECORD, checked, file_of, record_of, undos_dir
from swarm_hook_core.traces.versions.notes import PERSON, Act, Author, Notes, note_undo, withdraw_undo
from swarm_hook_core.traces.versions.steps import History
from swarm_mcp.changes.dirty import LARGEST, present, state_now
from swarm_mcp.errors import SwarmError

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


# Writing all files together.


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
