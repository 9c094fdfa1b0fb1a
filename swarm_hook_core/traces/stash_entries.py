"""Stash entries and their owners. All work trees of a repository share one stash.

Git records the time of an entry, but not its session. Each session's journal has the times of its stash commands
(``stash``, and the texts of unparsed commands). An entry belongs to the session with the last such command before it,
if that was shortly before. Where two sessions come into question, or no session does, the entry has no known owner.
"""

from __future__ import annotations

from collections.abc import Iterable

from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_hook_core.shell.model import GitCall
from swarm_hook_core.shell.options import split
from swarm_hook_core.shell.programs.git.command_line import tree_of
from swarm_hook_core.traces.journal import Entry
from swarm_hook_core.traces.unread import Reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.traces.meetings import Meetings
    from swarm_hook_core.traces.trail import Trail

WITHIN_SECONDS = 600  # from the command to the entry: a person may have been asked in between
TOGETHER_SECONDS = 3  # commands closer than this may each have made the same entry
MOST_ENTRIES = 200
MOST_COMMANDS = 20  # commands of one journal that are parsed for stashes


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
