"""Owners of stash entries. All work trees of a repository share one stash.

Git records the time of an entry, but not its session. Each session's journal has the times of its stash commands
(``stash``, and the texts of unparsed commands). An entry belongs to the session with the last such command before it,
if that was shortly before. Where two sessions come into question, or no session does, the entry has no known owner.
"""

from __future__ import annotations

from collections.abc import Iterable

from swarm_hook_core.denial import Denial, Loss, Notice
from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_hook_core.lookup import Held
from swarm_hook_core.shell.model import GitCall
from swarm_hook_core.shell.options import split
from swarm_hook_core.shell.programs.git.command_line import tree_of
from swarm_hook_core.traces import NOTICE, sweep_wording
from swarm_hook_core.traces.journal import Entry
from swarm_hook_core.traces.unread import Reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.traces.meetings import Meetings
    from swarm_hook_core.traces.sweeps import Sweeps
    from swarm_hook_core.traces.trail import Trail

WITHIN_SECONDS = 600  # from the command to the entry: a person may have been asked in between
TOGETHER_SECONDS = 3  # commands closer than this may each have made the same entry
MOST_ENTRIES = 200
MOST_COMMANDS = 20  # commands of one journal that are parsed for stashes

TAKES_OUT = ("pop", "drop", "clear", "branch")


class StashEntry:
    """A stash entry: its `number`, its `commit`, its time `at` in Unix seconds, its `subject`."""

    __slots__ = ("number", "commit", "at", "subject")

    def __init__(self, number: int, commit: str, at: int, subject: str):
        self.number = number
        self.commit = commit
        self.at = at
        self.subject = subject


class Note:
    """The time of a session's stash command; `instance_id` is empty for the call's own session.

    `kin`: see ``OthersJournal``.
    """

    __slots__ = ("at", "instance_id", "label", "kin")

    def __init__(self, at: float, instance_id: str, label: str, kin: str = ""):
        self.kin = kin
        self.at = at
        self.instance_id = instance_id
        self.label = label


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


def note(git_calls: Iterable[GitCall], trail: Trail) -> None:
    """Note in `trail` the stash commands of a call whose session is alone."""
    for one in git_calls:
        if one.words[0] == "stash" and verb_of(one.words) in ("push", "save") and not one.aside:
            trail.note_at(one.folder, "stash")


def judge(git_call: GitCall, words: list[str], sweeps: Sweeps) -> tuple[Denial | None, str] | None:
    """Judge a command that takes another living session's entry: ``(Denial or None, line)``; None for other commands.

    `sweeps`: the ``sweeps.Sweeps`` of the call. Entries made by its earlier commands are this session's own.
    """
    verb = verb_of(words)
    if words[0] != "stash" or verb not in (*TAKES_OUT, "apply"):
        return None
    times = _times(git_call, sweeps.left())
    noted = []
    if times:
        noted = notes(git_call.folder, sweeps.meetings)
    makers = [maker(made, times, noted) for made in times]
    numbers = list(range(len(times)))
    if verb != "clear":
        numbers = meant(words, verb, len(sweeps.stashed_in))
    known = [(at, one) for at in numbers if at < len(times) and (one := makers[at]) is not None]
    theirs = [(at, one) for at, one in known if one.instance_id]
    if not theirs:
        return None, ""
    own = [at for at, one in enumerate(makers) if one is not None and not one.instance_id]
    at, first_maker = theirs[0]
    made, held = times[at], Held("", first_maker.instance_id, first_maker.label)
    held.kin = first_maker.kin
    first, more = (at, held, made), len(theirs) - 1

    loss = Loss("stash", held, sweep_wording.TAKES.get(verb, "take out"), git_call.by, made)
    if sweeps.level != NOTICE and verb != "apply" and not git_call.in_doubt:
        text = sweep_wording.stash_denial(
            sweeps.call.client_tool, git_call.by, verb, first, more, own, sweeps.identity, sweeps.now,
        )  # fmt: skip
        return Denial(git_call.folder, None, text, loss=loss), ""
    line = sweep_wording.stash_line(git_call.by, first, more, own, sweeps.identity, sweeps.now)
    sweeps.meetings.trail.noted.append(Notice(git_call.folder, loss, line))
    return None, line


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


def _times(git_call: GitCall, seconds: float) -> list[int]:
    """Return the times of the entries in Unix seconds, the newest first."""
    top = tree_of(git_call)
    if top is None:
        return []
    return [one.at for one in entries(Repository(top, seconds, git_call.top, git_call.environment))]


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


def maker(made: int, times: list[int], notes: list[Note]) -> Note | None:
    """Return the Note of the session that made the entry of time `made`, or None if that is not certain."""
    before = [note for note in notes if int(note.at) <= made < note.at + WITHIN_SECONDS]
    if not before:
        return None
    last = max(before, key=lambda note: note.at)
    close = [note for note in before if last.at - note.at < TOGETHER_SECONDS]
    if any((note.instance_id, note.kin) != (last.instance_id, last.kin) for note in close):
        return None
    earlier = sum(1 for other in times if int(last.at) <= other < made)
    return last if earlier < len(close) else None  # otherwise its command made another entry


def notes(folder: str, meetings: Meetings) -> list[Note]:
    """Return the Notes of this session and of the other living ones, for the repository around `folder`."""
    sources = [("", "", "", meetings.journals.own(folder))]
    others = meetings.journals.of_others(meetings.trail.place_of(folder))
    sources += [(*theirs.writer, theirs.kin, theirs.data) for theirs in others if theirs.writer is not None]
    reading = meetings.reading()
    return [Note(at, *maker) for *maker, data in sources for at in _noted(data, reading)]


def _noted(data: bytes, reading: Reading) -> list[float]:
    """Return the times (Unix seconds) of the stash commands in a journal."""
    found, read = [], 0
    for raw in reversed(data.split(b"\n")) if b"stash" in data else ():
        if b"stash" not in raw:
            continue
        try:
            entry = Entry(raw)
        except ValueError:
            continue  # torn
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
