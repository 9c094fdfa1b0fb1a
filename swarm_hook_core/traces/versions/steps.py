"""The steps of a file: from one content to the next, each with all authors that may have made it.

A call *may have made* a step if it was let pass before the step's end and was not over before its beginning.

- **Write tools.** The input of the call tells the content after it (``replay``). The step is parted there:
  what the inputs explain is the calls', whenever the writes were made; what is left over is a person's, or that of a
  command that ran then (``layout``).
- **Commands that were read**, and those that redirect into the file: the file's state before them is noted, and its
  content kept. A change in the time of the call is the call's; if another session's command of the third kind may have
  run then, too, it is either's.
- **Saves** that an editor reports are a person's, whatever ran at that time (``notes``).
- **Other commands.** A change in the time between a command and its end, as the hook after it has noted it, is that
  command's if the content right before it is known (``keeping``), and if no other session had a call at that time,
  nor a call since the content before that may have written the file. Else a person may have made it, too: before the
  command, hidden by the command's own change.

Where the input of a write tool is not known, or the end of a command is not, a change within two seconds is the call's,
and a later one may be a person's.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection

from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_hook_core.repository import tree_over
from swarm_hook_core.state import read_private
from swarm_hook_core.traces import NO_FILE, UNDO, journal_name
from swarm_hook_core.traces.changed_lines import split_lines
from swarm_hook_core.traces.journal import SLACK_NS, Entry
from swarm_hook_core.traces.versions.layout import Explained, brings_words, laid_out
from swarm_hook_core.traces.versions.notes import (
    PERSON,
    PERSONS,
    SAVED,
    SAVING,
    Act,
    Author,
    Notes,
    PlaceNotes,
    acts_on,
    authors_of,
    joined,
    number_in,
)
from swarm_hook_core.traces.versions.replay import contents_after, is_whole, source_of
from swarm_hook_core.traces.versions.stored import Version

IS_PROGRAM = 0o100
LARGEST_LOG = 64 << 20  # bytes of a reflog


class Moment:
    """The file's content at one time: a Version, the present content, or one computed from the input of a call.

    changed_ns  the file's time of change then; 0 for a missing file, None if it is unknown
    mode        permissions, without the owner's right to write
    tool        of the call that kept it, "" if unknown; `is_look`, `is_after` as in Version
    """

    __slots__ = ("at_ns", "exists", "changed_ns", "journal", "mode", "tool", "is_look", "is_after", "_version", "_data")

    def __init__(self, at_ns: int, changed_ns: int | None, exists: bool, version: Version | None, data: bytes = b""):
        self.at_ns = at_ns
        self.changed_ns = changed_ns
        self.exists = exists
        self.journal, self.mode, self.tool, self.is_look, self.is_after = "", 0, "", False, False
        if version is not None:
            self.journal, self.mode = version.journal, version.mode
            self.is_look, self.is_after = version.is_look, version.is_after
        self._version = version
        self._data = data

    def content(self) -> bytes:
        """Return the content, empty for a missing file. Raises OSError if the version is gone. It is read once."""
        if self._version is not None:
            self._data, self._version = self._version.content(), None
        return self._data


class Step:
    """The way from one Moment to the next one. `authors`: all that may have made it, never empty.

    is_left  True if it is what inputs have left over: a call before it may have failed in part, so that lines return
    is_layout  True if it only lays out lines anew (``layout``): words keep their authors
    moves    True if a formatter may have made it: lines that it moves keep their authors
    source   path of the file that the step has moved here by a patch, or ""
    """

    __slots__ = ("before", "after", "authors", "is_left", "is_layout", "moves", "source")

    def __init__(
        self, before: Moment, after: Moment, authors: tuple[Author, ...], is_left: bool = False, is_layout: bool = False
    ):
        self.before = before
        self.after = after
        self.authors = authors
        self.is_left = is_left
        self.is_layout = is_layout
        self.moves = False
        self.source = ""

    @property
    def is_of_mode(self) -> bool:
        """Return True if the step gives the file the right to be run, or takes it."""
        return self.before.exists and self.after.exists and bool((self.before.mode ^ self.after.mode) & IS_PROGRAM)

    @property
    def is_undo(self) -> bool:
        """Return True if the step is an undo (``swarm-mcp undo``)."""
        return _is_undo(self.before, self.after)


class History:
    """All that is known of the writes of the file at absolute `path`, links resolved.

    `data`: its present content; `present`: its state, None if it is missing. `until_ns`: only what was before that
    time, of a file that was moved away then. `notes`: of a question about many files.
    """

    def __init__(
        self, path: str, data: bytes, present: os.stat_result | None, until_ns: int = 0, notes: Notes | None = None
    ):
        self.path = path
        self._notes = (notes or Notes()).of(os.path.dirname(path))
        versions = [one for one in self._notes.versions(path) if not until_ns or one.at_ns <= until_ns]
        self._versions = versions
        self.acts = acts_on(path, self._notes, versions)
        self._commands = self._notes.commands
        self._states = _States(path, self._notes)
        known = [self._moment(one) for one in versions if one.is_whole]
        if not until_ns:
            now = Moment(time.time_ns(), 0, present is not None, None, data)
            if present is not None:
                now.changed_ns, now.mode = present.st_ctime_ns, present.st_mode & 0o177 | 0o400
            known.append(now)
        for after, before in zip(known[::-1], known[-2::-1]):
            # A version without the note of its call, not yet or never, of a file that has not changed since
            if before.changed_ns is None and 0 < (after.changed_ns or 0) < before.at_ns - SLACK_NS:
                before.changed_ns = after.changed_ns
        known = _with_whole_undos(known)
        self.moments = known[:1]
        self._steps: list[Step] = []
        for before, after in zip(known, known[1:]):
            self._add(before, after)

    def steps(self) -> list[Step]:
        """Return the steps from the first Moment on, in order: one less than `moments`."""
        return self._steps

    def earlier(self) -> tuple[Author, ...]:
        """Return all that may have changed the file between the last commit and the first Moment."""
        first = self.moments[0]
        acts = [act for act in self.acts if act.at_ns < first.at_ns]
        return (*authors_of([*acts, *self._commands_at([first.changed_ns], first, 0)]), PERSON)

    def writers(self) -> tuple[Author, ...]:
        """Return all sessions with a call that may have written the file, the last one first."""
        return authors_of(self.acts)[::-1]

    # ------------------------------------------------------------------------------------------- authors

    def _add(self, before: Moment, after: Moment) -> None:
        """Add the steps from one known Moment to the next one."""
        if _is_undo(before, after):
            owner = ("", "")
            if before.journal != PERSONS:
                owner = self._notes.owner_by(before.journal)
            self._go_to(after, (Author(*owner, tool=UNDO, at_ns=before.at_ns),))
            return
        if before.tool == SAVING and after.tool == SAVED and before.journal == after.journal == PERSONS:
            self._go_to(after, (PERSON,))
            return
        acts = [
            act
            for act in self.acts
            if act.at_ns < after.at_ns and not act.is_over
            # It may not have been over then: a mark of its end lags behind, but an input tells its own write.
            and act.end_ns + SLACK_NS * bool(act.input) > before.at_ns
        ]  # fmt: skip
        found = self._explained(before, after, acts)
        if found is None:
            if len(acts) == 1:
                is_made = acts[0].input is None and (after.changed_ns or 0) >= acts[0].at_ns  # an input tells itself
                acts[0].is_over = acts[0].is_once and is_made
            self._go_on(after, self._authors(before, after, acts))
            return
        for act in found.fitting:
            act.is_over = True
        for part, then in zip(found.parts, [*found.parts[1:], None]):
            at_ns = self.moments[-1].at_ns + 1
            if then is not None:
                at_ns = max(at_ns, then.call.at_ns)  # the content before that call
            made = self._computed(at_ns, part.content, before, after)
            if part is found.parts[-1] and part.content == _content_of(after):
                made = after
            authors = authors_of([part.call, *part.others])
            if not part.is_sure or part.call.is_doubtful:
                authors = (*authors, PERSON)
            part.call.is_made = part.is_sure
            self._go_to(made, authors, is_layout=part.is_layout)
            if part.call.input and not before.exists:
                self._steps[-1].source = source_of(part.call.input, self.path)
        if self.moments[-1] is not after:
            self._go_on(after, self._authors_of_rest(after, acts, found), bool(found.parts), found.formatted)

    @staticmethod
    def _computed(at_ns: int, content: bytes | None, before: Moment, after: Moment) -> Moment:
        """Return the Moment of a content that was computed, between the two known ones."""
        made = Moment(at_ns, after.changed_ns, content is not None, None, content or b"")
        made.journal = before.journal
        if made.exists:
            made.mode = after.mode or before.mode
        return made

    def _go_to(
        self, moment: Moment, authors: tuple[Author, ...], is_left: bool = False, is_layout: bool = False
    ) -> None:
        self._steps.append(Step(self.moments[-1], moment, authors, is_left, is_layout))
        self.moments.append(moment)

    def _go_on(
        self, after: Moment, authors: tuple[Author, ...], is_left: bool = False, is_formatted: bool = False
    ) -> None:
        """Add the last step to `after`, by any of these `authors`, parted by what a formatter may have made of it.

        If a person may have made it, its changes of layout are those of the session that had just written the file.
        Beside them other changes may be the formatter's, too, and so may changes without a new word.
        """
        before, act = self.moments[-1], self._just_before(after)
        if act is None or not (before.exists and after.exists and any(author.is_person for author in authors)):
            self._go_to(after, authors, is_left)
            return
        owners: tuple[Author, ...] = (act.author,)
        is_open = min(after.changed_ns or after.at_ns, after.at_ns) <= act.next_ns
        if not is_open:
            owners = (act.author, PERSON)
        old, new = split_lines(before.content()), split_lines(after.content())
        made = laid_out(old, new)
        if made != old:
            middle = after
            if made != new:
                middle = self._computed(before.at_ns + 1, b"".join(made), before, after)
            self._go_to(middle, owners, is_layout=True)
        if self.moments[-1] is not after:
            if is_open and (is_formatted or made != old or not brings_words(old, new)):
                authors = joined((*owners, *authors))
            self._go_to(after, authors, is_left)
            self._steps[-1].moves = is_open

    def _just_before(self, after: Moment) -> Act | None:
        """Return the last call that wrote the file before `after`, if it was its session's last one then; else None."""
        since_ns = self.moments[-1].at_ns
        acts = [act for act in self.acts if act.is_made and act.at_ns < after.at_ns and act.next_ns > since_ns]
        return next(reversed(acts), None)

    def _explained(self, before: Moment, after: Moment, acts: list[Act]) -> Explained | None:
        """Return what the inputs of these calls explain of the step; None if no input is known, or nothing changed."""
        if not any(act.input for act in acts):
            return None
        old, new = _content_of(before), _content_of(after)
        if old == new:
            return None
        calls = [(act, self._replay(act), act.end_ns >= after.at_ns) for act in acts if act.input]
        return Explained(old, new, calls)

    def _replay(self, act: Act) -> Callable[[bytes | None], list[bytes | None]]:
        """Return the function that computes the possible contents after the call from the one before it."""
        given = act.input
        assert given is not None

        def replay(content: bytes | None) -> list[bytes | None]:
            if content is not None and act.size >= 0 and len(content) != act.size:
                act.is_doubtful = is_whole(given)
            return contents_after(given, self.path, content, lambda path: self._source(act, path))

        return replay

    def _source(self, act: Act, path: str) -> bytes | None:
        """Return the content of another file before the call, None if it is not known."""
        given, name = act.input, journal_name(*act.author.session)
        if given is None:
            return None
        for one in self._notes.versions(path):
            is_kept = one.journal == name and one.has_content
            if is_kept and given.first_ns <= one.at_ns <= given.last_ns:
                return one.content()
        return None

    def _authors_of_rest(self, after: Moment, acts: list[Act], found: Explained) -> tuple[Author, ...]:
        """Return all that may have made what inputs have left over."""
        others = [act for act in acts if act.input is None or act in found.unfitting]
        if found.formatted:
            others.append(found.parts[-1].call)
        if not others:
            command = self._only_command(self.moments[-1].at_ns, after)
            if command is not None:
                return (command,)
        return (*authors_of([*others, *self._commands_at([after.changed_ns], after, self.moments[-1].at_ns)]), PERSON)

    def _authors(self, before: Moment, after: Moment, acts: list[Act]) -> tuple[Author, ...]:
        """Return all that may have made a step without known inputs."""
        others = self._unexplained(before, after, acts)
        if others is not None and not others and acts:
            # Other sessions' commands with unknown files that may have run at the last change before `after`
            sessions = {act.author.session for act in acts}
            changed_ns = after.changed_ns if after.exists else after.at_ns  # a removal leaves no time
            commands_beside = [
                act
                for act in self._commands
                if act.author.session not in sessions and act.at_ns < after.at_ns and act.may_write_at(changed_ns or 0)
            ]
            return authors_of([*acts, *commands_beside])
        command = self._only_command(before.at_ns, after)
        if command is not None:
            return (command,)
        changes = [after.changed_ns] if others is None else others
        return (*authors_of([*acts, *self._commands_at(changes, after, before.at_ns)]), PERSON)

    def _only_command(self, since_ns: int, after: Moment) -> Author | None:
        """Return the author of the command that alone can have made the last change before `after`, or None.

        It ran at that time; the hook after it has noted its end; the content before it is known. No other session had a
        call that may have written the file since `since_ns`, nor any call at that time.
        """
        if not after.changed_ns or not after.exists:
            return None
        acts = [act for act in self.acts if act.end_ns > since_ns and act.at_ns < after.at_ns and not act.is_over]
        commands = [act for act in self._commands if act.at_ns < after.at_ns]
        running = [act for act in (*acts, *commands) if act.may_write_at(after.changed_ns)]
        ended = [
            act
            for act in running
            if act.is_ended and not act.is_once and self._is_known_before(act)
            and not (act.is_long and not act.has_certainly_written_at(after.changed_ns))
        ]  # fmt: skip
        owners = {(act.author.session, act.author.agent) for act in (*acts, *running)}
        if not ended or len(owners) != 1:
            return None
        return ended[-1].author

    def _is_known_before(self, act: Act) -> bool:
        """Return True if the file's content right before this command is known."""
        if act.has_state:
            return True
        name = journal_name(*act.author.session)
        own = [one for one in self._versions if one.journal == name and one.at_ns <= act.at_ns]
        if not self._notes.has_kept(name, act.at_ns) or not own or not own[-1].is_whole:
            return False
        return not self._states.has_before(name, own[-1].at_ns, act.at_ns)  # its version was pruned

    def _commands_at(self, changes: Collection[int | None], before: Moment, since_ns: int) -> list[Act]:
        """Return the commands with unknown files that ran at one of these times of change.

        If such a time is not known, all that ran after `since_ns`. In both cases those that began before the Moment
        `before`: its content was kept as the others began.
        """
        is_unknown = None in changes and before.exists  # the removal of a file leaves no time
        times = [change or 0 for change in changes]
        return [
            act
            for act in self._commands
            if act.at_ns < before.at_ns
            and (
                (is_unknown and act.end_ns > since_ns)
                or any(act.has_certainly_written_at(at) or (act.is_long and act.may_write_at(at)) for at in times)
            )
        ]

    def _unexplained(self, before: Moment, after: Moment, acts: list[Act]) -> list[int] | None:
        """Return the times of changes between the two that are not certainly by one of these calls.

        None if such a time is not known.
        """
        hides_changes = any(act.at_ns > before.at_ns and not act.has_state for act in acts)  # those before itself
        if after.changed_ns is None or not all(act.late_ns for act in acts) or hides_changes:
            return None
        changes = [*self._states.between(before.at_ns, after.at_ns), after.changed_ns]
        if not after.exists:
            changes[-1] = after.at_ns  # a removal leaves no time
        return [
            change
            for change in changes
            if change != before.changed_ns and not any(act.has_certainly_written_at(change) for act in acts)
        ]

    # ------------------------------------------------------------------------------------------- what is known

    def _moment(self, version: Version) -> Moment:
        found = Moment(version.at_ns, None, version.exists, version)
        entry = self._states.at(version.journal, version.at_ns)
        if entry is not None:
            found.tool = entry.tool
            words, place = entry.text.split(" "), 3 if entry.kind == "is" else 0
            if version.exists and place < len(words):  # else the entry is torn
                found.changed_ns = number_in(words[place])
        return found


class _States:
    """The states of the file at `path` that all journals have noted, parsed once: a file may have thousands."""

    def __init__(self, path: str, notes: PlaceNotes):
        self._at: dict[tuple[str, int], Entry] = {}  # (journal, time) -> its newest entry of that time
        self._before: dict[str, list[int]] = {}  # journal -> times of its entries ``before``
        changes: list[tuple[int, int]] = []  # time of the entry, time of the file's change noted there
        for name, noted in notes.journals.items():
            for entry in noted.of_file(path, ("wrote", "will", "before", "is")):
                if entry.kind != "will":
                    self._at.setdefault((name, entry.at_ns), entry)
                if entry.kind == "before":
                    self._before.setdefault(name, []).append(entry.at_ns)
                if entry.kind != "is" and entry.text != NO_FILE:
                    changes.append((entry.at_ns, number_in(entry.text.partition(" ")[0])))
        self._changes = sorted(changes)

    def at(self, name: str, at_ns: int) -> Entry | None:
        """Return the entry with a state by the journal `name` at this time, or None."""
        return self._at.get((name, at_ns))

    def has_before(self, name: str, since_ns: int, until_ns: int) -> bool:
        """Return True if the journal has an entry ``before`` after the first time, up to the second."""
        return any(since_ns < at_ns <= until_ns for at_ns in self._before.get(name, ()))

    def between(self, since_ns: int, until_ns: int) -> list[int]:
        """Return the times of change noted by calls between the two times."""
        start, end = bisect_right(self._changes, (since_ns, 1 << 63)), bisect_left(self._changes, (until_ns,))
        return [changed_ns for _at_ns, changed_ns in self._changes[start:end]]


def _content_of(moment: Moment) -> bytes | None:
    """Return the content; None for a missing file. Raises OSError if the version is gone."""
    if not moment.exists:
        return None
    return moment.content()


def _is_undo(before: Moment, after: Moment) -> bool:
    return before.tool == after.tool == UNDO and before.journal == after.journal and after.is_after and before.is_look


def _with_whole_undos(known: list[Moment]) -> list[Moment]:
    """Return the Moments without peers' looks inside of an undo, at the content before or after it: it is one step."""
    found: list[Moment] = []
    for one in known:
        begins = [at for at, before in enumerate(found) if _is_undo(before, one)]
        inner = found[begins[-1] + 1 :] if begins else []
        if inner and {_content_of(each) for each in inner} <= {_content_of(found[begins[-1]]), _content_of(one)}:
            del found[begins[-1] + 1 :]
        found.append(one)
    return found


# The commits that HEAD has had since some time, by its reflog, and the content that they have of a file.

SECONDS = 2.0  # for git's answer
MOST_COMMITS = 200  # since a file's first version; more are not compared
MOST_CONTENTS = 12  # of one file in these commits


def contents_since(path: str, at_ns: int) -> list[bytes] | None:
    """Return the file's different contents in the commits that HEAD has had since some time, empty for a missing file.

    Return [] if HEAD has not moved since then, None if its commits are not known.
    """
    tree = tree_over(os.path.dirname(path))
    if tree is None:
        return []  # no commit at all
    log = os.path.join(tree.own, "logs", "HEAD")
    try:
        moved_ns = os.stat(log).st_mtime_ns
        if moved_ns <= at_ns - SLACK_NS:
            return []
        lines = read_private(log, LARGEST_LOG, follows=True).split(b"\n")
        commits = _commits_since(lines, at_ns, moved_ns)
    except OSError:
        return None  # a repository without a reflog
    name = os.path.relpath(path, tree.top)
    if not 0 < len(commits) <= MOST_COMMITS or "\n" in name:
        return None
    asked = "".join(f"{commit}:{name}\n" for commit in commits)
    repository = Repository(tree.top, SECONDS)
    try:
        answers = repository.ask("cat-file", "--batch-check", stdin=asked).split("\n")[:-1]
        found = dict.fromkeys(answer.split(" ")[0] * (not answer.endswith(" missing")) for answer in answers)
        if len(found) > MOST_CONTENTS:
            return None
        return [_content(repository, one) for one in found]
    except (NoAnswer, Refused):
        return None  # a commit without its contents, or a busy machine


def _content(repository: Repository, blob: str) -> bytes:
    if not blob:
        return b""
    return repository.ask("cat-file", "blob", blob).encode("utf-8", "surrogateescape")


def _commits_since(log: list[bytes], at_ns: int, moved_ns: int) -> list[str]:
    """Return the commits of HEAD since a time, with the one before it, from the lines of a reflog.

    Empty if the times there are not to be trusted: the last one is not that of the reflog's own change, `moved_ns`.
    """
    moves = []  # (time in seconds, old commit, new commit)
    for line in log:
        words = line.partition(b"\t")[0].split(b" ")
        if len(words) > 4 and words[-2].isdigit():
            moves.append((int(words[-2]), words[0].decode(), words[1].decode()))
    if not moves or abs(moves[-1][0] - moved_ns // 10**9) > 1:
        return []
    first_s = (at_ns - SLACK_NS) // 10**9
    later = next(at for at, move in enumerate(moves) if move[0] >= first_s or move is moves[-1])
    return list(dict.fromkeys(commit for move in moves[later:] for commit in move[1:]))
