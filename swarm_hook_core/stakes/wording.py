"""The words about uncommitted work of others: denials and notices for the model, questions for the person.

The work of sessions and of persons is named in one sentence; the rest says what to do about it.
"""

from __future__ import annotations

from collections.abc import Sequence

from swarm_hook_core import REPLACE
from swarm_hook_core.labels import same_circle, token
from swarm_hook_core.stakes.files import Stake
from swarm_hook_core.stakes.owners import Author
from swarm_hook_core.traces.others import Trace
from swarm_hook_core.traces.wording import and_more, changed_by
from swarm_hook_core.untrusted_text import command, named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.hooks import ToolCall
    from swarm_hook_core.lookup import Held

LATE = (
    "Git was too slow to say if these files are still changed, so their sessions' own notes decide. Name your own"
    " files, if there are any."
)
OWN_COMMIT = (
    "`swarm-mcp commit -m TEXT [FILE...]`, or the tool commit, commits your own lines alone, in shared files too."
)
AGAIN = "If theirs are meant to go along, the same command again goes ahead."
PERSON_ALONE = "Past this only a person can go, by running it in a terminal of their own."
WAY_PAST = "`swarm-mcp protect off --for 5m`"
NAMED_SESSIONS = 3  # files of one session, and sessions, that are named
NAMED = 5  # files with a person's work in one message
RUNS = 3  # runs of lines of one file


class Theirs:
    """The work of others in some files, in words.

    traces   changes of other sessions
    persons  Stakes with a person's work
    identity the identity of the session that reads the words
    stakes   the changed files that were looked at
    count    of all changed files, if not all were looked at; else 0
    """

    def __init__(self, call: ToolCall, traces: list[Trace], persons: list[Stake], identity: str, now: float):
        self.call = call
        self.traces = traces
        self.persons = persons
        self._identity = identity
        self._now = now
        self.stakes: list[Stake] = []
        self.count = 0

    @property
    def paths(self) -> list[str]:
        """The files, without repeats."""
        return list(dict.fromkeys([*(one.path for one in self.traces), *(one.path for one in self.persons)]))

    def said(self) -> str:
        """Return the owners of the work, and its place."""
        of_persons = ""
        if self.persons:
            of_persons = f"a person's work that is not committed: {self.listed()}"
        if not self.traces:
            return of_persons
        of_sessions = f"others' uncommitted changes: {changed(self.traces, self._identity, self._now)}"
        parts = [of_sessions, of_persons]
        if self.count:
            parts.append(f"more, perhaps, of {self.count} changed files")
        return "; and ".join(filter(None, parts))

    def denial(self, by: str, deed: str, way: str, is_once: bool = False) -> str:
        """Return the denial of a call: the work that it affects, how to do without, and the way past it.

        `deed`: the call's effect, a verb; `way`: a sentence with a narrower command, or "". `is_once`: the same
        command again goes ahead.
        """
        fact = f"swarm: {self.call.client_tool}{_in_brackets(by)} would {deed} {self.said()}."
        nobody = bool(self.persons) and "No session at work has written it."
        if self.traces and self.persons:
            nobody = "No session at work has written the latter."
        if is_once:
            return joined(fact, nobody, way, OWN_COMMIT, AGAIN)
        if deed in ("stage", "commit"):
            way = joined(way, OWN_COMMIT)
        if not self.traces:
            return joined(fact, nobody, way, *self._leave_to_person())
        ask = asked_of(self.traces[0].held, self._identity)
        return joined(
            fact,
            nobody,
            way,
            f"Leave theirs as it is: go on without this command, or {ask} and try again once they have committed."
            f" {PERSON_ALONE}",
        )

    def _leave_to_person(self) -> list[str]:
        """Return the sentences that say what to do about a person's work."""
        it, as_it_is, stake, read = "it", "as it is", self.persons[0], ""
        if len(self.persons) > 1:
            it, as_it_is = "them", "as they are"
        if stake.how == REPLACE and not stake.words:
            show = " ".join(named(self._short(one.spelled)) for one in self.persons[:NAMED])
            read = f"Read {it} first (`cat {show}`) and keep the lines that are there: that passes."
        return [
            read,
            f"Leave {it} {as_it_is}, or ask the person to commit {it}, or to do this in a terminal of their own, where"
            f" {WAY_PAST} lets you do it.",
        ]

    def shortly(self, deed: str) -> str:
        """Return the denial for a client with room for few words."""
        return (
            f"swarm: would {deed} a person's uncommitted work: {self.listed(1)}."
            f" Leave it, or ask the person to commit it, or to type {WAY_PAST}."
        )

    def question(self, deed: str, by: str) -> str:
        """Return the question to the person at the client about work of their own."""
        if deed == "throw away":
            deed = "discard"
        stake, author = self.persons[0], self.persons[0].author
        asked = f"swarm: {deed} your uncommitted work: {self.listed()}?"
        if len(self.persons) == 1 and author is not None:
            asked = f"swarm: {deed} {_in_question(stake, author)} {named(self._short(stake.path))} that you wrote?"
        return f"{asked}{_in_brackets(by)} A copy is kept for `swarm-mcp restore`."

    def line(self, by: str, deed: str, way: str, may: bool = False) -> str:
        """Return the notice about a call that goes ahead. `may`: the effect is not certain."""
        verb, _, rest = deed.partition(" ")
        does = f"{verb}{'es' if verb.endswith('h') else 's'} {rest}".rstrip()
        if may or not self.traces:
            does = f"may {deed}"
        kept = ""
        if self.persons and deed not in ("stage", "commit"):
            kept = "`swarm-mcp restore --list` shows the copies that were kept."
        who = "this call"
        if by:
            who = command(by)
        return joined(f"swarm: {who} {does} {self.said()}.", way, kept)

    def listed(self, most: int = NAMED) -> str:
        """Return ``a.txt: 4 lines (12 to 15); b.txt: a new file, 10 lines; and 3 more`` of a person's files."""
        some = [f"{named(self._short(one.path))}: {_in_list(one, one.author)}" for one in self.persons[:most]]
        if most > 1 and len(self.persons) > most:
            some.append(f"and {len(self.persons) - most} more")
        return "; ".join(some)

    def _short(self, path: str) -> str:
        """Return `path` relative to the reader's folder if it lies there."""
        return path.removeprefix(self.call.reader_folder.rstrip("/") + "/")


def late(call: ToolCall, by: str, deed: str) -> str:
    """Return the denial of a git command that clearly discards changes, while git does not answer."""
    return (
        f"swarm: {call.client_tool} ({command(by)}) would {deed} all uncommitted changes, and git was too slow to say"
        " if any of them are a person's. Name your own files in the command, or ask the person to run it, or to type"
        f" {WAY_PAST}."
    )


def late_question(by: str, deed: str) -> str:
    """Return the question about such a command."""
    return f"swarm: {deed} all uncommitted changes here? {command(by)} would do that; git was too slow to list them."


def changed(traces: Sequence[Trace], identity: str, now: float) -> str:
    """Return the files with their sessions: a few of each, then the number of the rest."""
    writers: dict[tuple[str, str], list[Trace]] = {}
    for trace in traces:
        writers.setdefault((trace.held.instance_id, trace.held.agent), []).append(trace)
    parts = []
    for some in list(writers.values())[:NAMED_SESSIONS]:
        files = ", ".join(named(trace.path) for trace in some[:NAMED_SESSIONS])
        newest = max(some, key=lambda trace: trace.at_ns)
        parts.append(f"{files}{and_more(len(some) - NAMED_SESSIONS)} (by {changed_by(newest, identity, now)})")
    rest = sum(len(some) for some in list(writers.values())[NAMED_SESSIONS:])
    return "; ".join(parts) + (f"; and {rest} more of other sessions" if rest else "")


def asked_of(held: Held, identity: str) -> str:
    """Return how to reach the session that `held` names."""
    if held.kin:
        return "let that agent finish first" if held.agent else "report to the main thread"
    if not same_circle(identity, token(held.label, "identity")):
        return "ask the person running theirs"
    return f"message their session (instance {named(held.instance_id)})"


def joined(*sentences: str | bool) -> str:
    """Return the sentences in one line, without those that are empty or False."""
    return " ".join(one for one in sentences if isinstance(one, str) and one)


def _in_list(stake: Stake, author: Author | None) -> str:
    """Return the person's part of a file in words, behind its name."""
    if author is None or author.lines is None:
        return "a new file" if stake.is_new else "uncommitted changes"
    if stake.is_new and not author.is_part:
        return f"a new file, {_lines(len(author.lines))}" if author.lines else "a new file"
    if author.lines:
        return f"{_lines(len(author.lines))} ({_runs(author.lines)})"
    if author.removed:
        return f"{_lines(author.removed)} taken out"
    return "its mode or type"


def _in_question(stake: Stake, author: Author) -> str:
    """Return the same in front of the file's name."""
    if stake.is_new and not author.is_part:
        return "the new file"
    if not author.lines:
        return "the uncommitted changes of"
    return f"{_lines(len(author.lines), ' uncommitted')} of"


def _lines(count: int, kind: str = "") -> str:
    if count == 1:
        return f"1{kind} line"
    return f"{count}{kind} lines"


def _in_brackets(by: str) -> str:
    if not by:
        return ""
    return f" ({command(by)})"


def _runs(numbers: list[int]) -> str:
    """Return ``12 to 15, 20 and more`` for sorted line numbers."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    said = [" to ".join(map(str, dict.fromkeys(run))) for run in runs[:RUNS]]
    listed = ", ".join(said)
    if len(runs) > RUNS:
        listed += " and more"
    return listed
