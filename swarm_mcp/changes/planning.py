"""The plan of an undo: for each file the content without a session's steps, and the lines that stand in the way.

The steps and their authors are those of the hook core (``versions.steps``). A step that only the session can have made
is taken back. Where it may be another's as well, or another has changed the same lines since, the plan has a Problem.
Changes that the last commit has are no matter of an undo.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from typing import NamedTuple

from swarm_hook_core.paths import FolderOf, is_beyond_link
from swarm_hook_core.traces import NO_FILE, UNDO, state_of
from swarm_hook_core.traces.versions import LIMIT_BYTES
from swarm_hook_core.traces.versions.notes import Author, Notes
from swarm_hook_core.traces.versions.steps import History, Moment, Step
from swarm_hook_core.traces.versions.stored import files_of
from swarm_hook_core.watching.records import read
from swarm_mcp.changes import writing
from swarm_mcp.changes.commit.parts import A_MODE
from swarm_mcp.changes.dirty import PROGRAM, LastCommit, last_commits, relative_names, top_over
from swarm_mcp.changes.owners import PERSONS
from swarm_mcp.changes.records import FileUndo, Record, mode_of, mode_of_new_file, undone_files, with_run_right
from swarm_mcp.changes.uncommitted import uncommitted
from swarm_mcp.changes.weave import Element, Weave
from swarm_mcp.changes.writing import BEYOND, DELETED_TOO, NOT_KEPT, PARTLY, TOO_EARLY, Problem

BINARY = 8000  # bytes that are searched for NUL, as git does
WRITE_BY_OWNER = 0o200
WHOLE = "it has no lines to take back; `git checkout -- FILE` is for the whole file"


class Persons(NamedTuple):
    """The facts of a file for an undo of a person's work: no version lies before that, but the last commit does.

    undo_ns     the time of the undo that is taken back
    converts    True if git turns CRLF of the work tree into LF
    is_program  True if the commit has the file as a program, as far as that is known
    """

    undo_ns: int = 0
    converts: bool = False
    is_program: bool | None = None


class Plan:
    """The files to write, and the problems. `undone`: path -> earlier undos of the file, read once.

    notes  of the files' places
    """

    def __init__(self, notes: Notes | None = None) -> None:
        self.notes = notes or Notes()
        self.files: list[FileUndo] = []
        self.problems: list[Problem] = []
        self.undone = undone_files()

    def add(
        self,
        path: str,
        commit: LastCommit,
        session: tuple[str, str] | None,
        is_chosen: Callable[[Step], bool],
        since_ns: int,
        persons: Persons | None = None,
    ) -> None:
        """Add the undo of the file at `path`; `commit`: the same in the last commit. Raises OSError.

        `session`: the author of the steps; without one an undo is taken back. `persons`: for a person's work.
        """
        woven = _Woven(path, commit, self.undone.get(path, ()), self.notes, persons)
        if not woven.is_readable:
            self.add_whole(path, session or PERSONS, since_ns, woven.committed_at)
            return
        if session and woven.unknown(session, since_ns) and self.add_whole(path, session, since_ns, woven.committed_at):
            return
        steps, unsure = set(), set()
        for number, step in enumerate(woven.steps):
            if step.is_undo and not is_chosen(step):
                continue
            if is_chosen(step):
                steps.add(number)
            elif not step.is_undo and any(_is_late(author, session, since_ns) for author in step.authors):
                unsure.add(number)
        one, problems = woven.without(steps, unsure)
        is_change = (one.after, one.mode_after) != (one.before, one.mode_before)
        if (problems or is_change) and is_beyond_link(path):
            self.problems.append(Problem(path, [], (), BEYOND))
            return
        self.problems += problems
        if is_change:
            self.files.append(one)

    def add_whole(self, path: str, session: tuple[str, str], since_ns: int, committed_at: int) -> bool:
        """Add the undo of a file without versions, or the reason against it. Return False for a reason."""
        try:
            settled_ns = max([committed_at * 10**9, *(undo.at_ns for undo in self.undone.get(path, ()))])
            one = writing.undo_of(path, session, since_ns, settled_ns, self.notes)
        except writing.NoSuchUndo as error:
            self.problems.append(error.problem)
            return False
        if one is not None:
            self._append(one)
        return True

    def _append(self, one: FileUndo) -> None:
        if is_beyond_link(one.path):
            self.problems.append(Problem(one.path, [], (), BEYOND))
        else:
            self.files.append(one)

    def add_back(self, record: Record, file: FileUndo) -> None:
        """Add the undo of an undo of a file without versions, or the reason against it. Raises OSError."""
        try:
            one = writing.back_of(record.with_contents(file))
        except FileNotFoundError:
            self.problems.append(Problem(file.path, [], (), NOT_KEPT))
            return
        except writing.NoSuchUndo as error:
            self.problems.append(error.problem)
            return
        if one is not None:
            self._append(one)


def plan_session(
    session: tuple[str, str], folder: str, only: list[str], since_ns: int, notes: Notes | None = None
) -> Plan:
    """Return the plan to take back the work of `session`, or of a person (`PERSONS`), at and below `folder`.

    `only`: absolute files or folders, all without any; `since_ns`: since that time. `notes`: of a question about
    several sessions. Raises SwarmError, OSError.
    """

    def is_chosen(step: Step) -> bool:
        """Return True for a step that only the session can have made, all of it since then."""
        is_own = not step.is_undo and all(author.session == session for author in step.authors)
        return is_own and (not since_ns or step.before.at_ns >= since_ns)

    plan = Plan(notes)
    persons: dict[str, Persons] = {}
    if session == PERSONS:
        persons = _files_of_persons(plan, folder, only)
        paths = [*persons]
    else:
        paths = [path for path in files_of(*session, folder) if _is_among(path, only)]
    for path, commit in last_commits(paths).items():
        plan.add(path, commit, session, is_chosen, since_ns, persons.get(path))
    return plan


def _files_of_persons(plan: Plan, folder: str, only: list[str]) -> dict[str, Persons]:
    """Return the uncommitted files with lines that may be a person's. One without lines is a problem of the `plan`."""
    top, found = top_over(folder), {}
    for changed in uncommitted(top, relative_names(top, only or [folder]), plan.notes):
        file, authors = changed.file, changed.authors
        if not any(author.is_person for author in authors):
            continue
        if changed.reason:
            others = [author for author in authors if not author.is_person]
            plan.problems.append(Problem(file.path, [], others, WHOLE))
        else:
            found[file.path] = Persons(converts=file.converts, is_program=file.old_mode == PROGRAM)
    return found


def plan_undo_of(record: Record, only: list[str]) -> Plan:
    """Return the plan to take an undo back. Raises OSError."""
    plan, files = Plan(), [file for file in record.files if _is_among(file.path, only)]
    commits = last_commits(file.path for file in files if not file.is_whole)
    for file in files:
        at_ns = file.at_ns
        if file.is_whole:
            plan.add_back(record, file)
            continue
        plan.add(
            file.path,
            commits[file.path],
            None,
            lambda step, at_ns=at_ns: step.is_undo and step.before.at_ns == at_ns,  # type: ignore[misc]
            at_ns,
            Persons(at_ns) if record.whose == PERSONS else None,
        )
    return plan


def _is_among(path: str, only: list[str]) -> bool:
    """Return True if `path` is one of these files, or below one of these folders; `only` may be empty."""
    return not only or any((path + "/").startswith(one.rstrip("/") + "/") for one in only)


def _is_late(author: Author, session: tuple[str, str] | None, since_ns: int) -> bool:
    return author.session == session and author.at_ns >= since_ns


class _Woven:
    """One file with its steps since the last commit that had all of it."""

    def __init__(
        self, path: str, commit: LastCommit, undone: Iterable[FileUndo], notes: Notes, persons: Persons | None
    ):
        self.path = path
        self._undone = undone
        self._persons = persons
        self.head, self.committed_at = commit.content, commit.at
        for _look in notes.rounds(os.path.dirname(path)):
            self.is_readable: bool = self._look() and not commit.is_large
            if not self.is_readable:
                return
            present = self._found
            history = History(path, self.undo.before or b"", present, notes=notes)
        self.acts = history.acts
        first = self._first(history.moments, self.committed_at)
        self.moments: list[Moment] = history.moments[first:]
        self.is_whole = first > 0 or self._is_head(self.moments[0])
        contents = [moment.content() for moment in self.moments]
        self.steps = history.steps()[first:]
        if persons and not first:
            base = self._committed(self.moments[0], persons)
            contents.insert(0, base.content())
            self.steps = [Step(base, self.moments[0], history.earlier()), *self.steps]
            self.moments = [base, *self.moments]
        self.is_binary = any(b"\0" in content[:BINARY] for content in contents)
        self.weave = self._weave(contents)

    def _look(self) -> bool:
        """Read the present file. Return False if it has no versions: a link, a folder, a pipe, or too large."""
        self.undo = one = FileUndo(self.path)
        one.state = NO_FILE
        self._found = None
        try:
            with FolderOf(self.path) as (name, folder):
                one.state = state_of(name, folder)
                self._found = found = os.lstat(name, dir_fd=folder)
                if not stat.S_ISREG(found.st_mode) or found.st_size > LIMIT_BYTES:
                    return False
                one.mode_before = one.mode_after = mode_of(found)
                one.before = read(name, LIMIT_BYTES, folder)[1]
        except (FileNotFoundError, NotADirectoryError):
            pass  # a missing file: an undo may bring it back
        return True

    def _first(self, moments: list[Moment], committed_at: int) -> int:
        """Return the index of the Moment that the last commit of the file has, if it can be told, else 0."""
        for index, moment in enumerate(moments):
            is_last = index == len(moments) - 1
            if not is_last and moments[index + 1].at_ns < committed_at * 10**9:
                continue
            if self._is_head(moment) and moment.tool != UNDO:  # an undo has its own content of the commit
                return index
            if moment.at_ns > (committed_at + 1) * 10**9 or (self._persons and moment.at_ns == self._persons.undo_ns):
                break
        return 0

    def _committed(self, like: Moment, persons: Persons) -> Moment:
        """Return the last commit's content as a Moment before all others, with the permissions of one of them."""
        base = Moment(0, 0, self.head is not None, None, _in_tree(self.head or b"", persons.converts))
        base.mode = like.mode or mode_of_new_file() & 0o177 | 0o400
        if persons.is_program is not None:
            base.mode = with_run_right(base.mode, persons.is_program)
        return base

    def _is_head(self, moment: Moment) -> bool:
        if self.head is None:
            return False
        return moment.exists and _unified(moment.content()) == _unified(self.head)

    def _weave(self, contents: list[bytes]) -> Weave:
        weave = Weave(contents[0], self.is_binary)
        numbers = {step.before.at_ns: number for number, step in enumerate(self.steps)}
        taken = {one.at_ns: one.taken for one in self._undone}
        for number, (step, content) in enumerate(zip(self.steps, contents[1:])):
            if step.is_undo:
                times = taken.get(step.before.at_ns, ())
                weave.follow_undo(number, content, {numbers[at] for at in times if at in numbers})
            else:
                weave.follow(number, content, step.is_layout and not self.is_binary)
        if self.head is not None:
            weave.commit(self.head)
        return weave

    # ------------------------------------------------------------------------------------------ the result

    def without(self, steps: set[int], unsure: set[int]) -> tuple[FileUndo, list[Problem]]:
        """Return the file without these steps, and the problems with them. Parts with a problem stay."""
        one, weave, problems = self.undo, self.weave, []
        kept: set[Element] = weave.settled(steps)
        for hunk, conflict in weave.conflicts(steps, kept):
            reason = PARTLY if conflict.step in steps else ""
            problems.append(Problem(self.path, conflict.lines, self.steps[conflict.step].authors, reason))
            kept |= set(hunk.changed)
        for number in sorted(unsure):
            lines, step, reason = weave.lines_of(number, steps), self.steps[number], ""
            if lines is None and step.is_of_mode:
                lines, reason = [], A_MODE
            if len(step.authors) == 1:
                reason = TOO_EARLY
            if lines is not None:
                problems.append(Problem(self.path, lines, step.authors, reason))
        one.after = weave.content_without(steps, kept)
        if not self._exists_without(steps):
            others = [] if self.is_binary or not one.after else weave.alive_by_others(steps)
            problems += [
                Problem(self.path, other.lines, self._authors_of(other.step), DELETED_TOO)
                for other in others
                if other.lines and not any(known.lines == other.lines for known in problems)
            ]
            if not one.after or self.is_binary:
                one.after = None
        if one.after is None:
            one.mode_after = 0
        else:
            one.mode_after = self._mode_without(steps)
        if one.before is None:
            one.mode_before = 0
        one.taken = sorted(self.steps[number].before.at_ns for number in steps)
        return one, problems

    def unknown(self, session: tuple[str, str], since_ns: int) -> bool:
        """Return True if the session has written the file before its first known content."""
        if self.is_whole or not session[1]:
            return False
        first = self.moments[0].at_ns
        return any(act.author.session == session and since_ns <= act.at_ns < first for act in self.acts)

    def _authors_of(self, step: int) -> tuple[Author, ...]:
        return self.steps[step].authors if step >= 0 else ()

    def _exists_without(self, steps: set[int]) -> bool:
        ends = [
            step.after.exists
            for number, step in enumerate(self.steps)
            if step.before.exists != step.after.exists and number not in self.weave.all_without(steps)
        ]
        return [self.moments[0].exists, *ends][-1]

    def _mode_without(self, steps: set[int]) -> int:
        modes = [self.moments[0].mode] if self.moments[0].exists else []
        for number, step in enumerate(self.steps):
            is_change = step.after.exists and (not step.before.exists or step.before.mode != step.after.mode)
            if is_change and number not in self.weave.all_without(steps):
                modes.append(step.after.mode)
        now = self.undo.mode_before or (0o600 if not modes else modes[-1]) | WRITE_BY_OWNER
        if not modes or modes[-1] == now & 0o177 | 0o400:
            return now
        return now & ~0o177 | modes[-1]


def _unified(content: bytes) -> bytes:
    return content.replace(b"\r\n", b"\n")


def _in_tree(content: bytes, converts: bool) -> bytes:
    """Return a committed content as git writes it into the work tree."""
    if converts:
        content = _unified(content).replace(b"\n", b"\r\n")
    return content


def sessions_at_work(folder: str) -> list[tuple[str, str]]:
    """Return ``[(runtime, session id)]`` of the sessions with work to take back at and below `folder`."""
    found, notes = [], Notes()
    for noted in notes.of(os.path.realpath(folder)).journals.values():
        owner = noted.owner
        if owner[1] and owner not in found:
            plan = plan_session(owner, folder, [], 0, notes)
            if plan.files or plan.problems:
                found.append(owner)
    return found
