"""Entries of the stash, which all work trees of a repository share: whose each of them is.

Git does not say who has made an entry, only when. A session's journal has when it was about to make one (``stash``, and
the text of commands that nobody read): an entry belongs to whoever said so last before it was made, if that was not
long before. Where two may have made it, or nobody is known to have, nothing is said.
"""

from swarm_hook_core.decision import Denial, Loss
from swarm_hook_core.lookup import Held
from swarm_hook_core.shell.options import split
from swarm_hook_core.shell.programs.git.command_line import tree_of
from swarm_hook_core.shell.programs.git.repository import NoAnswer, Refused, Repository
from swarm_hook_core.traces import NOTICE
from swarm_hook_core.traces.journal import Entry

WITHIN_SECONDS = 600  # from the note to the entry: a person may have been asked first
TOGETHER_SECONDS = 3  # two that noted so close to one another may each have made what came then
MOST_ENTRIES = 200
MOST_COMMANDS = 20  # of one journal that are read to see whether they put something aside

_TAKES_OUT = ("pop", "drop", "clear", "branch")


class Note:
    """When a session was about to put something aside; `instance_id` is empty for the session itself."""

    __slots__ = ("at", "instance_id", "label")

    def __init__(self, at: float, instance_id: str, label: str):
        self.at = at
        self.instance_id = instance_id
        self.label = label


def verb_of(words) -> str:
    """The verb of ``git stash <words>``: push where there is none."""
    return words[1] if len(words) > 1 and words[1][:1] != "-" else "push"


def puts_aside(git_call, words, seconds: float, is_first: bool) -> bool:
    """Whether ``git <words>`` makes an entry. `is_first`: nothing of its call can have changed a file before it."""
    if words[0] != "stash" or verb_of(words) not in ("push", "save"):
        return False
    options = split(words[1:], "m", ("--message", "--pathspec-from-file"))
    top = tree_of(git_call)
    if top is None or not is_first or options.has("-u", "--include-untracked", "-a", "--all"):
        return top is not None
    try:  # where nothing is to be put aside git makes no entry
        return bool(Repository(top, seconds, git_call.top, git_call.environment).against("HEAD", [""]))
    except (NoAnswer, Refused):
        return True


def note(git_calls, trail) -> None:
    """Note in `trail` which of a call's git commands put something aside, where nobody else is there to be met."""
    for one in git_calls:
        if one.words[0] == "stash" and verb_of(one.words) in ("push", "save") and not one.aside:
            trail.note_at(one.folder, "stash")


def judge(git_call, words, sweeps):
    """``(Denial or None, line)`` of a command that takes an entry of another living session; None for other commands.

    `sweeps`: the ``sweeps.Sweeps`` that it is one of; the entries that those before it make are this session's own.
    """
    verb = verb_of(words)
    if words[0] != "stash" or verb not in (*_TAKES_OUT, "apply"):
        return None
    times = _times(git_call, sweeps.left())
    notes = _notes(git_call.folder, sweeps.meetings) if times else []
    makers = [_maker(made, times, notes) for made in times]
    meant = range(len(times)) if verb == "clear" else _meant(words, verb, len(sweeps.stashed_in))
    theirs = [at for at in meant if at < len(times) and (maker := makers[at]) is not None and maker.instance_id]
    if not theirs:
        return None, ""
    own = [at for at, maker in enumerate(makers) if maker is not None and not maker.instance_id]
    maker, made = makers[theirs[0]], times[theirs[0]]
    held = Held("", maker.instance_id, maker.label)
    first, more = (theirs[0], held, made), len(theirs) - 1
    from swarm_hook_core.traces import sweep_wording

    if sweeps.level != NOTICE and verb != "apply" and not git_call.in_doubt:
        text = sweep_wording.stash_denial(
            sweeps.call.client_tool, git_call.by, verb, first, more, own, sweeps.identity, sweeps.now,
        )  # fmt: skip
        loss = Loss("stash", held, sweep_wording.TAKES[verb], git_call.by, made)
        return Denial(git_call.folder, None, text, loss=loss), ""
    return None, sweep_wording.stash_line(git_call.by, first, more, own, sweeps.identity, sweeps.now)


def _meant(words, verb: str, made: int) -> list:
    """Which entry ``git stash <verb>`` is about, as it is numbered now; `made`: entries that will be there by then."""
    operands = split(words[2:]).operands[1 if verb == "branch" else 0 :]
    number = operands[0] if operands else "0"
    number = number.removeprefix("refs/").removeprefix("stash@{").removesuffix("}")
    return [int(number) - made] if number.isascii() and number.isdigit() and int(number) >= made else []


def _times(git_call, seconds: float) -> list:
    """When each entry was made, in Unix seconds, the newest first."""
    top = tree_of(git_call)
    if top is None:
        return []
    repository = Repository(top, seconds, git_call.top, git_call.environment)
    try:
        told = repository.ask("log", "-g", "--format=%ct", f"--max-count={MOST_ENTRIES}", "refs/stash", "--")
    except (NoAnswer, Refused):
        return []
    return [int(line) for line in told.split("\n") if line.isdigit()]


def _maker(made: int, times, notes):
    """The Note of whoever made the entry of this time; None where that cannot be told."""
    before = [note for note in notes if int(note.at) <= made < note.at + WITHIN_SECONDS]
    if not before:
        return None
    last = max(before, key=lambda note: note.at)
    close = [note for note in before if last.at - note.at < TOGETHER_SECONDS]
    if any(note.instance_id != last.instance_id for note in close):
        return None
    earlier = sum(1 for other in times if int(last.at) <= other < made)
    return last if earlier < len(close) else None  # else what it made is another one


def _notes(folder: str, meetings) -> list:
    """What the journals of this session and of the other living ones say, of the repository around `folder`."""
    sources = [("", "", meetings.own_entries(folder))]
    sources += [(*theirs.writer, theirs.data) for theirs in meetings.living_others(folder)]
    reading = meetings.reading()
    return [Note(at, instance_id, label) for instance_id, label, data in sources for at in _noted(data, reading)]


def _noted(data: bytes, reading) -> list:
    """When, in Unix seconds, the session with these entries was about to put something aside."""
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
