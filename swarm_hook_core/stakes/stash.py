"""Commands that take entries of others out of the stash: of a session, or of a person.

To take out another session's entry is denied, and so is to drop one that no session at work has made: it is a person's,
or of a session that has ended. To pop such a one is denied once: its changes come into the work tree, where sessions
work. When such a call passes, the contents of the entry are kept first.

All work trees of a repository share one stash. Git records the time of an entry, but not its session. Each session's
journal has the times of its stash commands (``stash``, and the texts of unparsed commands). An entry belongs to the
session with the last such command before it, if that was shortly before. Where two sessions come into question, or no
session does, the entry has no known owner.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from swarm_hook_core.denial import Denial, Loss, Notice, without_owner
from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_hook_core.hooks import ToolCall, Verdict
from swarm_hook_core.lookup import Held
from swarm_hook_core.shell.call import split
from swarm_hook_core.shell.model import Effects, GitCall
from swarm_hook_core.shell.programs.git import touched_files
from swarm_hook_core.shell.programs.git.listings import tree_of
from swarm_hook_core.stakes.owners import Authors
from swarm_hook_core.stakes.wording import PERSON_ALONE, WAY_PAST, asked_of, joined
from swarm_hook_core.traces import NOTICE, OFF, journal, keeping
from swarm_hook_core.traces import head as heads
from swarm_hook_core.traces.head import Head, Note
from swarm_hook_core.traces.meetings import Meetings
from swarm_hook_core.traces.unread import Reading
from swarm_hook_core.untrusted_text import command, named, quoted
from swarm_hook_core.wording import and_more, duration, holder

Foreign = tuple["StashEntry", Held]  # an entry and its owner; the owner of a person's has no `instance_id`

WITHIN_SECONDS = 600  # from the command to the entry: a person may have been asked in between
TOGETHER_SECONDS = 3  # commands closer than this may each have made the same entry
MOST_ENTRIES = 200
MOST_COMMANDS = 20  # commands of one journal that are parsed for stashes
SECONDS = 1.0  # for all of git's answers about the stash
MOST_CALLS = 50  # git commands of one call
MOST_FILES = 100  # files of one call with their contents kept
MOST_NAMED = 5  # files of an entry
MOST_OWN = 3  # entries of the session itself
_PUTS = ("push", "save")
_BRINGS_BACK = ("pop", "branch")
_DEEDS = {"pop": "take out", "branch": "take out", "drop": "throw away", "clear": "throw away", "apply": "use"}


def judge(meetings: Meetings, authors: Authors, effects: Effects, identity: str, now: float) -> Verdict | None:
    """Return the Verdict on the stash commands of a call, or None if they take nothing of others."""
    made = pushes = 0  # entries that earlier commands make, and commands that would
    known = [(one, touched_files.without_aliases(one, SECONDS) or [""]) for one in effects.git[:MOST_CALLS]]
    commands = [(git_call, words, verb_of(words)) for git_call, words in known if words[0] == "stash"]
    if not any(verb in _DEEDS for _git_call, _words, verb in commands):
        return None
    for git_call, words, verb in commands:
        if verb in _PUTS:
            is_first = git_call is effects.git[0] and not (effects.writes or effects.trees)
            made += puts_aside(git_call, words, SECONDS, is_first)
            pushes += 1
        elif verb in _DEEDS:
            taking = Taking(git_call, words, verb, made, meetings, authors)
            taking.has_empty = made < pushes
            verdict = taking.verdict(identity, now)
            if verdict is not None:
                return verdict
            made = max(0, made - (verb != "apply"))
    return None


class Taking:
    """A command that takes entries out of the stash.

    foreign    others' entries among them
    own        numbers of the session's own entries
    has_empty  True if an earlier `git stash` of the call has nothing to put aside
    """

    def __init__(self, git_call: GitCall, words: list[str], verb: str, made: int, meetings: Meetings, authors: Authors):
        self.git_call = git_call
        self.verb = verb
        self.deed = _DEEDS[verb]
        self.foreign: list[Foreign] = []
        self.own: list[int] = []
        self.has_empty = False
        self._meetings = meetings
        self._trail = meetings.trail
        self.top = tree_of(git_call)
        if self.top is None:
            return
        self._repository = Repository(self.top, SECONDS, git_call.top, git_call.environment)
        found = entries(self._repository)
        numbers = meant(words, verb, made)
        if verb == "clear":
            numbers = list(range(len(found)))
        if not any(number < len(found) for number in numbers):
            return
        noted, times = notes(git_call.folder, meetings), [one.at for one in found]
        for entry in found:
            note = maker(entry.at, times, noted)
            if note is not None and not note.instance_id:
                self.own.append(entry.number)
            elif entry.number in numbers and note is not None and self._trail.level != OFF:
                held = Held("", note.instance_id, note.label)
                held.kin = note.kin
                self.foreign.append((entry, held))
            elif entry.number in numbers and note is None and verb != "apply":
                is_near = any(int(one.at) <= entry.at < one.at + TOGETHER_SECONDS for one in noted)
                if not is_near and not authors.ran_in_second(git_call.folder, entry.at):
                    self.foreign.append((entry, Held("", "")))

    def verdict(self, identity: str, now: float) -> Verdict | None:
        """Return the Verdict on the command; None if it takes nothing of others."""
        if not self.foreign or self.top is None:
            return None
        trail, git_call = self._trail, self.git_call
        first, held = self.foreign[0]
        is_persons = not any(owner.instance_id for _entry, owner in self.foreign)
        loss = Loss("stash", held, self.deed, git_call.by, first.at)
        if not held.instance_id:
            loss = without_owner("person", self.deed, git_call.by)
        is_once = is_persons and self.verb in _BRINGS_BACK
        denies = trail.level not in (OFF, NOTICE) and not git_call.in_doubt and self.verb != "apply"
        if denies and not (is_once and self._was_told(first)):
            files = files_in(self._repository, first)
            text = _denial(self, trail.call, files, is_once, identity, now)
            denial = Denial(self.top, None, text, loss=loss)
            if is_persons and not is_once:
                denial.question = _question(self)
                if trail.can_ask:
                    self._keep()
            return Verdict(denial)
        self._keep()
        if is_persons and trail.level != NOTICE:
            return None
        verdict = Verdict(None, _line(self, identity, now))
        verdict.noted = [Notice(git_call.folder, loss, verdict.notice)]
        return verdict

    def _was_told(self, entry: StashEntry) -> bool:
        """Return True if the session was told of the entry; note that it is told now. HEAD's notes keep such facts."""
        trail, fact, top = self._trail, f"stash:{entry.commit}", self.top or ""
        runtime, session_id = trail.config.runtime_name, trail.call.session_id
        head = heads.read(top) or Head("", "")
        note = heads.noted(runtime, session_id, top) or Note(head, 0, set())
        if fact not in note.told and not trail.is_asked:
            heads.note(runtime, session_id, top, note.head, note.told | {fact})
        return fact in note.told

    def _keep(self) -> None:
        """Keep the contents of the files in others' entries that go, for `swarm-mcp restore`, up to the limit."""
        if self._trail.is_asked or self.verb == "apply":
            return
        left = MOST_FILES
        for entry, _held in self.foreign:
            for name in files_in(self._repository, entry)[: max(0, left)]:
                left -= 1
                try:
                    content = content_in(self._repository, entry, name)
                    keeping.lost_text(self._trail, os.path.join(self._repository.top, name), content)
                except (NoAnswer, Refused, OSError, ValueError):
                    continue  # a file that the entry removes, or no room: the others can be kept all the same


# ------------------------------------------------------------------------------------------------ entries


class StashEntry(NamedTuple):
    """A stash entry: its `number`, its `commit`, its time `at` in Unix seconds, its `subject`."""

    number: int
    commit: str
    at: int
    subject: str


class Announced(NamedTuple):
    """The time `at` of a session's stash command; `instance_id` is empty for the call's own session.

    `kin`: see ``OthersJournal``.
    """

    at: float
    instance_id: str
    label: str
    kin: str = ""


def verb_of(words: list[str]) -> str:
    """Return the verb of ``git stash <words>``; the default is push."""
    if len(words) > 1 and words[1][:1] != "-":
        return words[1]
    return "push"


def puts_aside(git_call: GitCall, words: list[str], seconds: float, is_first: bool) -> bool:
    """Return True if ``git <words>`` makes a stash entry.

    `is_first`: no earlier part of the call can have changed files.
    """
    if words[0] != "stash" or verb_of(words) not in ("push", "save"):
        return False
    options = split(words[1:], "m", ("--message", "--pathspec-from-file"))
    top = tree_of(git_call)
    if top is None or not is_first or options.has("-u", "--include-untracked", "-a", "--all"):
        return top is not None
    try:  # git makes no entry if there is nothing to put aside
        return bool(Repository(top, seconds, git_call.top, git_call.environment).against("HEAD", [""]))
    except (NoAnswer, Refused):
        return True  # no answer: an entry is likely


def meant(words: list[str], verb: str, made: int) -> list[int]:
    """Return the present number of the entry that ``git stash <verb>`` names, in a list.

    `made`: number of entries that earlier commands of the call make.
    """
    operands = split(words[2:]).operands[1 if verb == "branch" else 0 :]
    number = "0"
    if operands:
        number = operands[0]
    number = number.removeprefix("refs/").removeprefix("stash@{").removesuffix("}")
    if number.isascii() and number.isdigit() and int(number) >= made:
        return [int(number) - made]
    return []


def entries(repository: Repository) -> list[StashEntry]:
    """Return the entries of the stash, the newest first."""
    try:
        listing = repository.ask("log", "-g", "--format=%H %ct %gs", f"--max-count={MOST_ENTRIES}", "refs/stash", "--")
    except (NoAnswer, Refused):
        return []  # no answer, or no stash
    found: list[StashEntry] = []
    for line in filter(None, listing.split("\n")):
        commit, at, subject = [*line.split(" ", 2), "", ""][:3]
        if at.isdigit():
            found.append(StashEntry(len(found), commit, int(at), subject))
    return found


def files_in(repository: Repository, entry: StashEntry) -> list[str]:
    """Return the names of the files in an entry, as far as git answers."""
    try:
        found = repository.ask(
            "diff-tree", "-r", "-z", "--name-only", "--no-renames", f"{entry.commit}^1", entry.commit
        )
        try:
            found += repository.ask("ls-tree", "-r", "-z", "--name-only", f"{entry.commit}^3")
        except Refused:
            pass  # an entry without untracked files
    except (NoAnswer, Refused):
        return []  # their names are only shown and kept
    return [name for name in found.split("\0") if name]


def content_in(repository: Repository, entry: StashEntry, name: str) -> bytes:
    """Return the content of a file in an entry. Raises Refused if the entry removes it, and NoAnswer."""
    try:
        text = repository.ask("cat-file", "blob", f"{entry.commit}:{name}")
    except Refused:
        text = repository.ask("cat-file", "blob", f"{entry.commit}^3:{name}")
    return text.encode("utf-8", "surrogateescape")


def maker(made: int, times: list[int], notes: list[Announced]) -> Announced | None:
    """Return the Announced of the session that made the entry of time `made`, or None if that is not certain."""
    before = [note for note in notes if int(note.at) <= made < note.at + WITHIN_SECONDS]
    if not before:
        return None
    last = max(before, key=lambda note: note.at)
    close = [note for note in before if last.at - note.at < TOGETHER_SECONDS]
    if any((note.instance_id, note.kin) != (last.instance_id, last.kin) for note in close):
        return None
    earlier = sum(1 for other in times if int(last.at) <= other < made)
    return last if earlier < len(close) else None  # otherwise its command made another entry


def notes(folder: str, meetings: Meetings) -> list[Announced]:
    """Return the stash commands of this session and of the other living ones, for the repository around `folder`."""
    sources = [("", "", "", meetings.journals.own(folder))]
    others = meetings.journals.of_others(meetings.trail.place_of(folder))
    sources += [(*theirs.writer, theirs.kin, theirs.data) for theirs in others if theirs.writer is not None]
    return [Announced(at, *maker) for *maker, data in sources for at in _noted(data, meetings.reading)]


def _noted(data: bytes, reading: Reading) -> list[float]:
    """Return the times (Unix seconds) of the stash commands in a journal."""
    found, read = [], 0
    lines = [raw for raw in data.split(b"\n") if b"stash" in raw]
    for entry in journal.entries(reversed(lines)):
        if entry.kind == "stash":
            found.append(entry.at_ns / 1e9)
        elif entry.kind == "ran" and read < MOST_COMMANDS:
            read += 1
            effects = reading.effects_of(entry)
            made = [
                call
                for call in (effects.git if effects else ())
                if call.words[0] == "stash" and verb_of(call.words) in ("push", "save")
            ]
            found += [entry.at_ns / 1e9] * len(made)
    return found


# ------------------------------------------------------------------------------------------------ words


def _denial(taking: Taking, call: ToolCall, files: list[str], is_once: bool, identity: str, now: float) -> str:
    """Return the denial of a command that takes others' entries out of the stash.

    files    names of the files in the first one
    is_once  the same command passes the next time
    """
    held, inside = taking.foreign[0][1], ""
    if files:
        inside = f" It has {', '.join(map(named, files[:MOST_NAMED]))}{and_more(len(files) - MOST_NAMED)}."
    empty = taking.has_empty and "Your own `git stash` had nothing to put aside."
    if is_once:
        number = taking.foreign[0][0].number
        way = f"`git stash show -p stash@{{{number}}}` shows it. If it is meant, the same command again goes ahead."
    elif held.instance_id:
        way = f"Leave theirs where it is, or {asked_of(held, identity)}. {PERSON_ALONE}"
    else:
        way = f"Leave it, or ask the person to do this in a terminal of their own, where {WAY_PAST} lets you do it."
    return joined(
        f"swarm: {call.client_tool} ({command(taking.git_call.by)}) would {taking.deed} a stash entry that is not"
        f" yours: {_entries(taking, identity, now)}.{inside} All work trees of a repository share it.",
        empty,
        _own(taking),
        way,
    )


def _question(taking: Taking) -> str:
    """Return the question to the person about a command that drops a person's entries."""
    entry, more = taking.foreign[0][0], len(taking.foreign) - 1
    what = f"the stash entry stash@{{{entry.number}}} ({quoted(entry.subject)}){and_more(more)}"
    return (
        f"swarm: {taking.deed} {what}, which you or an ended session made? ({command(taking.git_call.by)}) A copy is"
        " kept for `swarm-mcp restore`."
    )


def _line(taking: Taking, identity: str, now: float) -> str:
    """Return the notice about a command that goes ahead."""
    kept = taking.verb != "apply" and "`swarm-mcp restore --list` shows the copies that were kept."
    told = f"may {taking.deed} a stash entry that is not yours: {_entries(taking, identity, now)}."
    return joined(f"swarm: {command(taking.git_call.by)} {told}", _own(taking), kept)


def _entries(taking: Taking, identity: str, now: float) -> str:
    """Return the first entry with its owner, and the number of the rest."""
    entry, held = taking.foreign[0]
    age, rest = f"{duration(now - entry.at)} ago", and_more(len(taking.foreign) - 1)
    if held.instance_id:
        return f"stash@{{{entry.number}}} (by {holder(held, identity)[0]} {age}){rest}"
    return (
        f"stash@{{{entry.number}}} ({age}){rest}, {quoted(entry.subject)}. No session at work has made it: it is a"
        " person's, or an ended session's"
    )


def _own(taking: Taking) -> str:
    names = ", ".join(f"stash@{{{number}}}" for number in taking.own[:MOST_OWN])
    return names and f"Yours: {names}, by the numbers of now."
