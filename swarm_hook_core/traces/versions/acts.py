"""The calls that may have written one file, as the journals of all sessions tell them (`Acts`)."""

from __future__ import annotations

from bisect import bisect_right

from swarm_hook_core.traces import NO_FILE, OWN_NS, journal, journal_name, keys_of, seen
from swarm_hook_core.traces.others import is_in
from swarm_hook_core.traces.unread import Reading, UnreadCommands, looks_only
from swarm_hook_core.traces.versions.inputs import Inputs
from swarm_hook_core.traces.versions.stored import ended_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from swarm_hook_core.traces.journal import Entry
    from swarm_hook_core.traces.versions.inputs import Input
    from swarm_hook_core.traces.versions.stored import Version

SHELL = frozenset({"Bash", "Monitor", "shell", "local_shell", "exec_command", "PowerShell"})


class Author:
    """A session, or one of its agents, with the call that may have made a step. Without a session: a person, or a
    program that no session is known to have started.

    at_ns  time of the call's check; the last one if several calls made the step
    """

    __slots__ = ("runtime", "session_id", "agent", "tool", "at_ns")

    def __init__(self, runtime: str = "", session_id: str = "", agent: str = "", tool: str = "", at_ns: int = 0):
        self.runtime = runtime
        self.session_id = session_id
        self.agent = agent
        self.tool = tool
        self.at_ns = at_ns

    @property
    def is_person(self) -> bool:
        return not self.session_id

    @property
    def session(self) -> tuple[str, str]:
        """``(runtime, session id)``, empty for a person."""
        return (self.runtime, self.session_id)

    def __repr__(self) -> str:
        return f"Author({self.runtime} {self.session_id} {self.agent} {self.tool} {self.at_ns})"


PERSON = Author()


class Act:
    """A call that may have written the file.

    end_ns   end of the call, infinity if unknown
    late_ns  a change of the file until this time is certainly the call's; 0 for a call without an entry: its hook was
             killed, or the journal was cut
    is_once  True for a write tool: it writes once
    is_over  True once that write has been seen
    has_state  True if the file's state before it is noted
    is_ended  True if the hook after the call has noted its end
    input  of a write tool, if it was kept
    size  of the file before the call, -1 if unknown
    is_doubtful  True if the call has written a whole text over a content of another size than is known: it may have
             taken over another's lines
    next_ns  of a call that names the file: time of the same agent's next call, or of the turn's end; else 0
    is_made  True if its write was made, as far as that is known
    """

    __slots__ = (
        "author", "at_ns", "end_ns", "late_ns", "is_once", "is_over", "has_state", "is_ended", "input", "size",
        "is_doubtful", "next_ns", "is_made",
    )  # fmt: skip

    def __init__(
        self, author: Author, end_ns: float, late_ns: float, is_once: bool, has_state: bool = False,
        is_ended: bool = False,
    ):  # fmt: skip
        self.author = author
        self.at_ns = author.at_ns
        self.end_ns = end_ns
        self.late_ns = late_ns
        self.is_once = is_once
        self.is_over = False
        self.has_state = has_state
        self.is_ended = is_ended
        self.input: Input | None = None
        self.size = -1
        self.is_doubtful = False
        self.next_ns: float = 0
        self.is_made = True

    def may_write_at(self, at_ns: float) -> bool:
        """Return True if the call may have written at this time of change."""
        return self.at_ns - journal.SLACK_NS <= at_ns <= self.end_ns

    def has_certainly_written_at(self, at_ns: int) -> bool:
        """Return True if a change of the file at this time is certainly the call's, if no other call ran then."""
        return self.at_ns - journal.SLACK_NS <= at_ns <= self.late_ns + journal.SLACK_NS


class Acts:
    """The calls that may have written the file at `path`, from the `journals` of its `place`, by name.

    known     those whose files are known, in order of time
    commands  commands with unknown files
    kept      ``(journal, time)`` of the commands before which the session's own files were kept
    """

    def __init__(self, path: str, place: str, journals: dict[str, bytes], versions: list[Version]):
        self._path = path
        self._keys = keys_of(path)
        self._journals = journals
        self.commands: list[Act] = []
        self.kept: set[tuple[str, int]] = set()
        self.known = sorted(self._found(place, versions, ended_at(place)), key=lambda act: act.at_ns)

    def _found(self, place: str, versions: list[Version], ended: dict[str, int]) -> list[Act]:
        found, known = [], set()
        for name, data in self._journals.items():
            owner, ends = journal.owner_of(data), Ends(data)
            looks = [one.at_ns for one in versions if one.journal == name and one.is_after]
            states = {entry.at_ns for entry in journal.newest_first(data, self._path, ("before",))}
            inputs = Inputs(place, name)
            known |= {(name, at_ns) for at_ns in states}
            for entry in self._entries(data):
                act = _act(owner, entry, ends, looks)
                act.has_state = act.has_state or entry.at_ns in states
                if entry.kind == "wrote":
                    act.input = inputs.at(entry.at_ns)
                    act.size = _size_in(entry.text)
                    act.next_ns = ends.next_of(entry)
                    act.is_made = act.input is None  # else a step tells
                found.append(act)
                known.add((name, entry.at_ns))
            self.kept |= {(name, entry.at_ns) for entry in journal.newest_of(data, "kept")}
            for entry in (*journal.newest_of(data, "ran"), *journal.newest_of(data, "runs")):
                if not looks_only(b"\0" + entry.text.encode("utf-8", "surrogatepass")):
                    self.commands.append(_act(owner, entry, ends, ()))
        for one in versions:
            if not one.is_look and (one.journal, one.at_ns) not in known:  # its entry was never written, or is gone
                author = Author(*owner_by(one.journal, self._journals), at_ns=one.at_ns)
                found.append(Act(author, float("inf"), 0, is_once=False))
        for act in (*found, *self.commands):
            ended_ns = ended.get(journal_name(*act.author.session), 0)
            if ended_ns > act.at_ns:
                act.end_ns, act.late_ns = min(act.end_ns, ended_ns), min(act.late_ns, ended_ns)
                act.next_ns = min(act.next_ns, ended_ns)
        return found

    def _entries(self, data: bytes) -> list[Entry]:
        """Return the entries of a journal about calls that may have written the file."""
        found, is_answered = [], False
        for entry in journal.newest_first(data, self._path, ("wrote", "will", "wont")):
            if entry.kind == "wrote" or (entry.kind == "will" and not is_answered):  # its hook was killed
                found.append(entry)
            is_answered = entry.kind != "will"
        if b" clears " in data:
            found += [entry for entry in journal.newest_of(data, "clears") if is_in(self._keys, entry.key)]
        if b" ran " in data:
            from swarm_hook_core.paths import keys_for, real_paths

            real = real_paths()
            found += UnreadCommands(data, Reading(None, real)).that_wrote(keys_for(self._path, "/", real))
        return found


class Ends:
    """The entries of a journal that tell the ends of earlier calls, parsed once."""

    def __init__(self, data: bytes):
        # Sorted: a journal has thousands of calls, and each asks for its end.
        self._all: dict[bytes, list[int]] = {}  # agent -> times of entries of all kinds
        self._over: dict[bytes, list[int]] = {}  # agent -> times of the kind ``over``
        self._calls: dict[bytes, list[int]] = {}  # agent -> times of calls
        self._turns: dict[bytes, list[int]] = {}  # agent -> ends of turns
        self._noted: set[int] = set()  # ends that the hook after a call has noted
        for raw in data.split(b"\n"):
            words = raw.partition(b"\0")[0].split(b" ")
            if len(words) == 4 and words[0].isdigit() and words[1] in (b"over", b"is", *seen.CALLS):
                self._all.setdefault(words[2], []).append(int(words[0]))
                if words[1] == b"over":
                    self._over.setdefault(words[2], []).append(int(words[0]))
                    if words[3] != b"-":
                        self._noted.add(int(words[0]))
                    else:
                        self._turns.setdefault(words[2], []).append(int(words[0]))
                elif words[1] != b"is":
                    self._calls.setdefault(words[2], []).append(int(words[0]))
        for by_agent in (self._all, self._over, self._calls, self._turns):
            for times in by_agent.values():
                times.sort()

    def of(self, entry: Entry) -> float:
        """Return the end of the call of `entry`, infinity if unknown.

        A later call of the same agent begins after it, unless the two may have run side by side.
        """
        agent = (entry.agent or "-").encode()
        later = _first_after(self._all.get(agent, []), entry.at_ns + seen.APART_NS)
        return min(later, _first_after(self._over.get(agent, []), entry.at_ns))

    def next_of(self, entry: Entry) -> float:
        """Return the time of the next call of the agent of `entry`, or of the turn's end; infinity if it is to come."""
        agent = (entry.agent or "-").encode()
        later = _first_after(self._calls.get(agent, []), entry.at_ns + seen.APART_NS)
        return min(later, _first_after(self._turns.get(agent, []), entry.at_ns))

    def is_noted(self, end_ns: float) -> bool:
        """Return True if the hook after a call has noted this end."""
        return end_ns in self._noted


def _first_after(times: list[int], at_ns: int) -> float:
    """Return the first of the sorted `times` after `at_ns`, infinity without any."""
    index = bisect_right(times, at_ns)
    return times[index] if index < len(times) else float("inf")


def _act(owner: tuple[str, str], entry: Entry, ends: Ends, looks: Collection[int]) -> Act:
    """Return the Act of an entry. `looks`: times of the session's looks at the file at the end of a call."""
    author = Author(*owner, entry.agent, entry.tool, entry.at_ns)
    look_ns: float = min((at for at in looks if at > entry.at_ns), default=float("inf"))
    end_ns = min(ends.of(entry), look_ns)
    is_once = entry.kind in ("wrote", "will") and entry.tool not in SHELL
    late_ns = end_ns
    is_ended = end_ns < float("inf") and (end_ns == look_ns or ends.is_noted(end_ns))
    if not is_ended or (is_once and end_ns != look_ns):  # the next call tells only that this one is over by then
        late_ns = min(end_ns, entry.at_ns + OWN_NS)
    return Act(author, end_ns, late_ns, is_once, entry.kind in ("wrote", "will"), is_ended)


def authors_of(acts: Iterable[Act]) -> tuple[Author, ...]:
    """Return one Author for each session and agent, of its last call."""
    return tuple({(act.author.session, act.author.agent): act.author for act in acts}.values())


def owner_by(name: str, journals: dict[str, bytes]) -> tuple[str, str]:
    """Return ``(runtime, session id)`` of the session with the journal of this `name`; its id may be abridged there."""
    owner = journal.owner_of(journals.get(name, b""))
    if owner[1]:
        return owner
    runtime, _, session_id = name.partition(".")
    return runtime, session_id


def _size_in(state: str) -> int:
    """Return the size in a ``state_of``, -1 for a missing file."""
    if state == NO_FILE:
        return -1
    return number_in(state.rpartition(" ")[2])


def number_in(text: str) -> int:
    if text.isdigit():
        return int(text)
    return 0
