"""An undo as its callers see it: choice of the session, refusals, and the answer.

An agent takes back its own session's work, a person that of any session. Locks of others, and writes of others that
were let pass a moment ago, keep their files out. While the files are written they are locked.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from difflib import unified_diff
from typing import Any

from swarm_hook_core import lookup
from swarm_hook_core.process import start_time
from swarm_hook_core.traces import journal, journal_name, keys_of, place_of, seen, state_of, transcript
from swarm_hook_core.traces.changed_lines import split_lines
from swarm_hook_core.traces.others import OVERDUE_SECONDS, WRITES
from swarm_hook_core.traces.versions.notes import Author, Notes
from swarm_hook_core.traces.versions.stored import journals_of
from swarm_hook_core.untrusted_text import named
from swarm_mcp.changes import writing
from swarm_mcp.changes.owners import A_PERSON, PERSONS, session_called, session_in_words
from swarm_mcp.changes.planning import Plan, plan_session, plan_undo_of, sessions_at_work
from swarm_mcp.changes.writing import (
    AGE_SECONDS,
    LINK,
    ChangedMeanwhile,
    FileUndo,
    Problem,
    Record,
    recover,
    unreadable,
    write,
)
from swarm_mcp.doctor.own_checks import Asked
from swarm_mcp.domain import Session
from swarm_mcp.errors import LockRefused, Refused, SwarmError
from swarm_mcp.folders import current_scope, here
from swarm_mcp.locking.acquisition import take
from swarm_mcp.runtimes.base import Finding
from swarm_mcp.sessions.acting import terminal_session
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request
from swarm_mcp.store.sessions import Registration

PATIENCE, PAUSE = 3.0, 0.1  # seconds: for writes and undos of others at this moment, and between two attempts
LISTED = 20  # problems in one message
NOTE = "undoing a session's changes"


class NotUndone(Refused):
    """Parts of the files cannot be taken back; nothing was changed. `lines` names them, for people.

    `is_passing`: only writes and undos of others are in the way, which end in a moment.
    """

    def __init__(self, reason: str, *lines: str, is_passing: bool = False):
        super().__init__("\n".join([reason, *lines]))
        self.lines = [reason, *lines]
        self.is_passing = is_passing


class Undoing:
    """One undo for `session`, an agent's, or for a person (None), of files at and below `folder`."""

    def __init__(self, store: Store, session: Session | None, folder: str):
        self.store = store
        self.session = session
        self.folder = os.path.realpath(folder)
        self._scope = folder
        self._names: dict[tuple[str, str], str] = {}
        self.messages = recover()
        writing.prune(time.time())

    # ------------------------------------------------------------------------------------------ whose

    def only_session(self) -> tuple[str, str]:
        """Return the one session with work here, empty without any. Raises SwarmError if there are several."""
        found = sessions_at_work(self.folder)
        if len(found) == 1:
            return found[0]
        if not found:
            return ("", "")
        names = ", ".join(self.name_of(one) for one in found)
        raise SwarmError(
            f"{len(found)} sessions have uncommitted work here; say with --session which one, or --person: {names}"
        )

    def session_called(self, word: str) -> tuple[str, str]:
        """Return the session that `word` names, also one that has ended with work here. Raises UnknownInstance."""
        owners = {journal.owner_of(data) for data in journals_of(place_of(self.folder)).values()}
        ended = {one: self.name_of(one) for one in sorted(owners) if one[1]}
        return session_called(self.store, self._scope, word, ended)

    def name_of(self, owner: tuple[str, str]) -> str:
        """Return the name of a session by its client's id."""
        if owner not in self._names:
            self._names[owner] = session_in_words(self.store, owner, self.session)
        return self._names[owner]

    def _row(self, owner: tuple[str, str]) -> Session | None:
        return self.store.instances.of_session(*owner)

    def _author(self, author: Author, whose: tuple[str, str]) -> str:
        if author.is_person:
            return A_PERSON
        if author.session == whose:
            return "this session"
        return self.name_of(author.session)

    # ------------------------------------------------------------------------------------------ planning

    def plan(self, whose: tuple[str, str], only: list[str], since_ns: int, is_partial: bool) -> Plan:
        """Return the plan to take back this session's, or a person's work. Raises NotUndone for a problem, unless
        `is_partial`.
        """
        return self._checked(plan_session(whose, self.folder, only, since_ns), whose, is_partial)

    def plan_back(self, record: Record, only: list[str], is_partial: bool) -> Plan:
        """Return the plan to take back an undo. Raises NotUndone as `plan`."""
        return self._checked(plan_undo_of(record, only), record.whose, is_partial)

    def record_called(self, word: str) -> Record:
        """Return the undo with this id that the caller may take back; without an id the last one. Raises SwarmError."""
        own = None
        if self.session is not None:
            own = (self.session.runtime, self.session.session_id)
        found = [
            one
            for one in writing.finished()
            if one.id.startswith(word)
            and (own is None or own in (one.by, one.whose))
            and any((file.path + "/").startswith(self.folder.rstrip("/") + "/") for file in one.files)
        ]
        if not found:
            if not word:
                raise SwarmError("nothing was undone here")
            raise SwarmError(f"no undo here is called {word[:40]!r}")
        return found[0]

    def _checked(self, plan: Plan, whose: tuple[str, str], is_partial: bool) -> Plan:
        problems = [(problem.path, self.words_for(problem, whose)) for problem in _joined(plan.problems)]
        pending = [(one.path, words) for one in plan.files if (words := self._pending(one, whose, plan, plan.notes))]
        if (problems or pending) and not is_partial:
            lines = [f"- {named(os.path.relpath(path, self.folder))}{words}" for path, words in [*problems, *pending]]
            if len(lines) > LISTED:
                lines = [*lines[:LISTED], f"- and {len(lines) - LISTED} more"]
            advice = "Name the FILEs to undo without these, or --partial to undo all but these lines."
            raise NotUndone(
                "nothing was undone: these parts cannot be taken back alone:", *lines, advice, is_passing=not problems
            )
        plan.files = [one for one in plan.files if one.path not in dict(pending)]
        return plan

    def words_for(self, problem: Problem, whose: tuple[str, str]) -> str:
        """Return the words that follow the file's name: its lines, and their authors."""
        where = _ranges(problem.lines)
        others = [one for one in problem.authors if one.session != whose] or problem.authors
        who = " or ".join(dict.fromkeys(self._author(one, whose) for one in others))
        if who and len(problem.authors) > 1:
            who = f"perhaps by {who}"
        elif who:
            who = f"by {who}"
        if not problem.lines and who:
            who = f"changed {who}"
        if where:
            where = " " + where
        else:
            where = ":"
        return f"{where} {', '.join(filter(None, [who, problem.reason]))}"

    def _pending(self, file: FileUndo, whose: tuple[str, str], plan: Plan, notes: Notes) -> str:
        """Return words about a write of another session that was let pass and is not made yet, or "".

        Once this undo is noted (`FileUndo.at_ns`), a call with a later check meets the note, and waits.
        """
        path, now = file.path, time.time()
        state = state_of(path)
        undone_ns = max((undo.at_ns for undo in plan.undone.get(path, ())), default=0)
        own = ""
        if self.session is not None:
            own = journal_name(self.session.runtime or "", self.session.session_id or "")
        for name, noted in notes.of(os.path.dirname(path)).journals.items():
            entries = [found for key in keys_of(path) if (found := next(noted.of_file(key, WRITES), None))]
            for entry in entries:
                waits = own and 0 < file.at_ns < entry.at_ns
                is_open = (entry.kind == "will" and not waits) or (entry.kind == "wrote" and entry.text == state)
                is_new = now - entry.at_ns / 1e9 < OVERDUE_SECONDS
                is_new = is_new and entry.at_ns > undone_ns  # a file that was undone had been written
                if not (name != own and is_open and is_new):
                    continue
                if not seen.ended_ns(noted.data, entry) and not transcript.end_of(name, noted.data, entry):
                    return f": {self.name_of(noted.owner)} is about to write it"
        return ""

    # ------------------------------------------------------------------------------------------ doing

    def run(
        self, planned: Callable[[], Plan], whose: tuple[str, str], undoes: str, is_dry: bool
    ) -> tuple[Plan, Record | None]:
        """Make a plan and carry it out: anew if a file changes between the two. Raises as `do`.

        A write or an undo of others that ends in a moment is waited for. No Record if there is nothing to undo, or if
        `is_dry`.
        """
        end = time.monotonic() + PATIENCE
        while True:
            try:
                plan = planned()
                if is_dry or not plan.files:
                    return plan, None
                return plan, self.do(plan, whose, undoes)
            except (ChangedMeanwhile, NotUndone) as error:
                if time.monotonic() > end or (isinstance(error, NotUndone) and not error.is_passing):
                    raise
            time.sleep(PAUSE)

    def do(self, plan: Plan, whose: tuple[str, str], undoes: str = "") -> Record:
        """Write the files of `plan`, all or none. Raises Refused, ChangedMeanwhile, SwarmError."""
        by = ("", "")
        if self.session is not None and self.session.session_id:
            by = (self.session.runtime or "", self.session.session_id)
        record = Record(os.urandom(4).hex(), whose, by, undoes)
        record.files = plan.files

        def look_again(step: str) -> None:
            notes = Notes()  # a write may have been let pass since the plan
            for one in plan.files if step == "save" else ():
                words = self._pending(one, whose, plan, notes)
                if words:
                    raise NotUndone(f"nothing was undone: {named(one.path)}{words}", is_passing=True)

        with self._locks([one.path for one in plan.files], whose):
            try:
                write(record, look_again)
            except OSError as error:
                raise SwarmError(f"nothing was undone: {error.strerror or error}: {error.filename or ''}") from None
        self._tell(record)
        return record

    @contextlib.contextmanager
    def _locks(self, files: list[str], whose: tuple[str, str]) -> Iterator[None]:
        """Hold locks on the files for the time of the writing. Raises Refused if another session has one of them."""
        pid, started = os.getpid(), start_time(os.getpid())
        holder, agent = self.session, lookup.hold_agent(pid, started, self.store.here)
        if holder is None:
            agent = ""
            label = f"origin:undo pid:{pid}"
            holder = self.store.instances.register(
                Registration(
                    here(),
                    label=label,
                    scope=current_scope(),
                    runtime=lookup.HOLD,
                    session_id=f"undo-{pid}-{started}-{self.store.here}",
                    client=(pid, started),
                )
            )
        try:
            self._take(holder, agent, files, whose)
            yield
        finally:
            if agent:
                self.store.locks.release_of_agent(holder, agent)
            else:
                self.store.instances.remove(holder.id)

    def _take(self, holder: Session, agent: str, files: list[str], whose: tuple[str, str]) -> None:
        left, owner = list(files), self._row(whose)
        if whose == PERSONS:
            owner = terminal_session(self.store)
        for start in range(0, len(left), 100):
            some = left[start : start + 100]
            while some:
                try:
                    take(self.store, holder, request(holder, some, False, note=NOTE, agent=agent))
                    break
                except LockRefused as refusal:
                    active = refusal.active
                    if owner is None or active.get("instance_id") != owner.id or self.session is not None:
                        is_undo = NOTE in (active.get("content"), active.get("note"))
                        raise NotUndone(f"nothing was undone: {_locked(active)}", is_passing=is_undo) from None
                    # The session whose work is taken back, or the person's shell, holds the file itself.
                    some = [file for file in some if file != active.get("file")]

    def _tell(self, record: Record) -> None:
        """Tell the session whose work was taken back, if the caller is another one."""
        row = self._row(record.whose)
        if row is None or (self.session is not None and row.id == self.session.id):
            return
        names = ", ".join(named(one.path) for one in record.files[:LISTED])
        more = ""
        if len(record.files) > LISTED:
            more = f" and {len(record.files) - LISTED} more"
        deed = "took back your uncommitted changes of"
        if record.undoes:
            deed = "brought back your changes of"
        self.store.messages.write_down(
            row.scope,
            "system",
            row.id,
            f"[auto] A person {deed} {names}{more}. Read such a file again before you change it.",
        )


def _joined(problems: list[Problem]) -> list[Problem]:
    """Return the problems, with those of one file and the same others as one."""
    found: dict[tuple[object, ...], Problem] = {}
    for one in problems:
        key = (one.path, tuple(author.session for author in one.authors), one.reason)
        known = found.setdefault(key, Problem(one.path, [], one.authors, one.reason))
        known.lines += one.lines
    return list(found.values())


def _locked(active: dict[str, Any]) -> str:
    words = f"{active.get('file')} is locked by {active.get('label') or active.get('instance_id')}"
    note = active.get("content") or active.get("note")
    if note:
        words += f": {note}"
    return words


def _ranges(lines: list[int]) -> str:
    """Return line numbers as ``line 3``, ``lines 3 to 5, 9``; "" without any."""
    parts: list[list[int]] = []
    for line in sorted(set(lines)):
        if parts and parts[-1][1] == line - 1:
            parts[-1][1] = line
        else:
            parts.append([line, line])
    words = ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in parts)
    return words and f"line{'s' * (len(set(lines)) > 1)} {words}"


def patch_of(files: list[FileUndo], folder: str) -> str:
    """Return the undo of the files as a patch, for reading."""
    parts = []
    for one in files:
        name = os.path.relpath(one.path, folder)
        before, after = one.before or b"", one.after or b""
        old = f"a/{name}" if one.before is not None else os.devnull
        new = f"b/{name}" if one.after is not None else os.devnull
        if one.mode_before != one.mode_after and one.before is not None and one.after is not None:
            parts.append(f"old mode {one.mode_before:o}\nnew mode {one.mode_after:o}\n")
        if b"\0" in before + after or LINK in (one.mode_before, one.mode_after):
            parts.append(f"Binary files {old} and {new} differ\n")
            continue
        texts = (_lines(before), _lines(after))
        for line in unified_diff(*texts, old, new):
            parts.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(parts)


def _lines(content: bytes) -> list[str]:
    return [line.decode("utf-8", "replace") for line in split_lines(content)]


def turn_began(whose: tuple[str, str], folder: str) -> int:
    """Return the beginning of the session's last turn with a write, in nanoseconds; 0 if it was its first one."""
    data = journals_of(place_of(os.path.realpath(folder))).get(journal_name(*whose), b"")
    last = max((entry.at_ns for kind in ("wrote", "ran") for entry in journal.newest_of(data, kind)), default=0)
    ends = (entry.at_ns for entry in journal.newest_of(data, "over") if entry.tool == "-")
    return max((at for at in ends if at < last), default=0)


# The doctor's check of undos that were interrupted: it finishes them, puts them back, or names those it cannot.

DAYS = AGE_SECONDS // 86400


def findings(_asked: Asked) -> list[Finding]:
    """Return a finding for interrupted undos that were put right, and one for each that cannot be; mostly []."""
    try:
        told = recover()
    except OSError as error:
        return [Finding("undo", "warn", f"an interrupted undo cannot be put right: {error}", "swarm-mcp undo")]
    found = [Finding("undo", "warn", "; ".join(told))] if told else []
    return [*found, *(_unreadable(folder) for folder in unreadable())]


def _unreadable(folder: str) -> Finding:
    message = (
        f"the undo {os.path.basename(folder)} was interrupted, and its plan cannot be read: some of its files may be"
        f" undone, others not. {folder} has their contents, before and after it, for {DAYS} days"
    )
    return Finding("undo", "warn", message, f"swarm-mcp diff, to compare; then rm -r {folder}")
