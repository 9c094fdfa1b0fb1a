"""The search for the authors of the uncommitted lines that make a command fail.

A run has one of three outcomes: green, the same failure as with all lines, or another failure. Owners are left out one
by one, as long as the failure stays the same. Of the remaining ones a *culprit* makes it green by being left out.
Without the lines of the others it fails in another way: they are only needed to get that far.

Failures are compared by the lines of the output that speak of one. Numbers and addresses in them do not count.
"""

from __future__ import annotations

import re
from typing import Generic, NamedTuple, TypeVar

TYPE_CHECKING = False
Item = TypeVar("Item")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Ask = Callable[[Sequence[frozenset[Item]]], list["Failure"]]  # contents with these alone -> their outcomes

GREEN, SAME, OTHER = "green", "same", "other"
# The kinds of an answer.
FLAKY, HEAD, LINES = "flaky", "head", "lines"
MOST_RUNS = 100  # for the search among single changes
_SPEAKS = re.compile(
    rb"error|fail|exception|assert|panic|fatal|undefined|unresolved|cannot|can't|not found|mismatch|expected|traceback"
    rb"|denied|invalid|missing|no such",
    re.IGNORECASE,
)
_PASSING = re.compile(rb"0x[0-9a-fA-F]+|\b[0-9a-f]{7,40}\b|\d+(\.\d+)?\s*(ns|us|ms|s|sec|seconds)\b|\d+")
_PASSED = re.compile(rb"\b#? ?(passed|ok|skipped|deselected|xfailed|warnings?)\b,?")
_COLOUR = re.compile(rb"\x1b\[[0-9;]*m")


class Failure(NamedTuple):
    """The outcome of a run: its exit code, and the lines that speak of a failure; no code for a green one."""

    code: int
    lines: frozenset[bytes]


def failure(code: int, output: bytes) -> Failure:
    """Return the outcome of a run."""
    if not code:
        return Failure(0, frozenset())
    lines = [_COLOUR.sub(b"", line).strip() for line in output.splitlines()]
    speaking = [line for line in lines if _SPEAKS.search(line)] or lines
    return Failure(code, frozenset(_PASSED.sub(b"#", _PASSING.sub(b"#", line)) for line in speaking))


class Blame(NamedTuple):
    """The answer: its kind (GREEN, FLAKY, HEAD, LINES), the culprits, those needed to get that far, and the runs.

    is_green_without  True if it is green without any one of the culprits
    """

    kind: str
    culprits: Sequence[object] = ()
    needed: Sequence[object] = ()
    runs: int = 0
    is_green_without: bool = True


class Search(Generic[Item]):
    """A search among `owners`. `ask` runs the command on contents, each with the lines of some owners alone.

    `side_by_side`: the number of runs at one time.
    """

    def __init__(self, owners: Sequence[Item], ask: Ask[Item], side_by_side: int = 1):
        self._owners = list(owners)
        self._ask = ask
        self._side_by_side = side_by_side
        self._known: dict[frozenset[Item], Failure] = {}
        self.runs = 0

    def result(self) -> Blame:
        """Return the answer."""
        everyone = frozenset(self._owners)
        first, second = self._ask([everyone, everyone])
        self.runs = 2
        self._known[everyone] = first
        if first != second:
            return Blame(FLAKY, runs=self.runs)
        if not first.code:
            return Blame(GREEN, runs=self.runs)
        left = everyone
        for place, owner in enumerate(self._owners):
            self._learn([left - {one} for one in self._owners[place:]])
            if self._outcome(left - {owner}) == SAME:
                left -= {owner}
        if not left:
            return Blame(HEAD, runs=self.runs)
        self._learn([left - {owner} for owner in left], is_needed=True)
        culprits = [owner for owner in self._owners if owner in left and self._outcome(left - {owner}) == GREEN]
        needed = [owner for owner in self._owners if owner in left and owner not in culprits]
        if culprits:
            return Blame(LINES, culprits, needed, self.runs)
        return Blame(LINES, needed, (), self.runs, is_green_without=False)

    def _outcome(self, some: frozenset[Item]) -> str:
        self._learn([some], is_needed=True)
        found = self._known[some]
        if not found.code:
            return GREEN
        if found == self._known[frozenset(self._owners)]:
            return SAME
        return OTHER

    def _learn(self, contents: Iterable[frozenset[Item]], is_needed: bool = False) -> None:
        """Run the unknown contents: all if they are needed, else as many as run side by side."""
        new = [one for one in dict.fromkeys(contents) if one not in self._known]
        if not is_needed:
            new = new[: self._side_by_side]
        if new:
            self._known.update(zip(new, self._ask(new)))
            self.runs += len(new)


def smallest(items: Sequence[Item], fails: Callable[[Sequence[Item]], bool]) -> list[Item]:
    """Return items that fail together, as few as can be (Zeller's ddmin); at most MOST_RUNS questions."""
    left, parts, runs = list(items), 2, 0
    while len(left) > 1 and runs < MOST_RUNS:
        size = -(-len(left) // parts)
        some = [left[at : at + size] for at in range(0, len(left), size)]
        rests = [[one for one in left if one not in part] for part in some if len(some) > 2]
        for candidate in (*some, *rests):
            runs += 1
            if fails(candidate):
                parts, left = max(parts - 1, 2), candidate
                break
        else:
            if size == 1:
                break
            parts = min(len(left), 2 * parts)
    return left
