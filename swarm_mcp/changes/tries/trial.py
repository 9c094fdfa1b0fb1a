"""Tries of a command on chosen authors' lines, and the search for the authors of the lines that make it fail.

A run has one of three outcomes: green, the same failure as with all lines, or another failure. Owners are left out one
by one, as long as the failure stays the same. Of the remaining ones a *culprit* makes it green by being left out.
Without the lines of the others it fails in another way: they are only needed to get that far.

Failures are compared by the lines of the output that speak of one. Numbers and addresses in them do not count.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from swarm_hook_core.repository import Tree, tree_over
from swarm_hook_core.traces.versions.notes import Author
from swarm_hook_core.untrusted_text import named
from swarm_mcp.changes.owners import PERSONS, Owners
from swarm_mcp.changes.tries import folder, running
from swarm_mcp.changes.tries.folder import place_of
from swarm_mcp.changes.tries.picture import Chosen, Group, Picture, Wanted, groups_of
from swarm_mcp.changes.tries.running import BOUND, COPY, MEMORY, OVERLAY, Result, Run
from swarm_mcp.changes.tries.space import Command
from swarm_mcp.cli.arguments import Arguments
from swarm_mcp.cli.output import say, show
from swarm_mcp.doctor.own_checks import Asked
from swarm_mcp.errors import Refused, SwarmError, UsageError
from swarm_mcp.folders import current_scope
from swarm_mcp.runtimes.base import Finding

Session = tuple[str, str]

NAMED = 5  # files that a line names
TOLD = "told"  # a file in the work tree's place: its ignored files have been spoken of


class Trial:
    """The commands on one picture of a work tree, for the session `own`."""

    def __init__(self, tree: Tree, picture: Picture, owners: Owners, own: Session):
        self.tree = tree
        self.picture = picture
        self.own = own
        self._owners = owners
        for author in self._authors():
            owners.name(author)  # it is known from now on, without the store

    def _authors(self) -> list[Author]:
        """Return the authors of all changes, and of lines that others have rewritten."""
        found = [author for some in self.picture.authors.values() for author in some]
        return [*found, *(author for one in self.picture.changed for pair in one.rewritten for author in pair)]

    def session_called(self, word: str, args: Arguments) -> Session:
        """Return the session that a word of the command line names; ``person`` for a person's."""
        if word.strip() in ("person", "a person"):
            return PERSONS
        return self._owners.chosen(word, current_scope(args.value("--scope")), self._authors())

    def name(self, group: Group) -> str:
        """Return the possible makers of a change in words: ``you or codex 5f0c2f6e``."""
        return " or ".join(dict.fromkeys(map(self._name, self.picture.authors[group])))

    def _name(self, author: Author) -> str:
        if author.session == self.own:
            return "you"
        return self._owners.name(author)

    def files(self, group: Group) -> str:
        """Return the files with changes of a group in words."""
        return listed(self.picture.groups[group])

    def named(self, groups: Sequence[Group]) -> str:
        """Return groups with their files in words."""
        return "; ".join(f"{self.name(group)} ({self.files(group)})" for group in groups)

    def described(self, groups: Sequence[Group]) -> list[dict[str, Any]]:
        """Return groups as objects for programs."""
        return [{"who": self.name(group), "files": self.picture.groups[group]} for group in groups]

    def parted(self, wanted: Wanted) -> tuple[list[Group], list[Group]]:
        """Return the groups that are wanted, and the others."""
        groups = list(self.picture.groups)
        return [one for one in groups if wanted(one)], [one for one in groups if not wanted(one)]

    def notes(self, wanted: Wanted, chosen: Chosen) -> list[str]:
        """Return lines about the content, for a reader of the answer."""
        inside, outside = self.parted(wanted)
        found = [f"the last commit with {self.named(inside) or 'no uncommitted lines'}"]
        if outside:
            found[0] += f"; without {self.named(outside)}"
        doubtful = [group for group in inside if len(group) > 1]
        if doubtful:
            found.append(f"not certain, and in: the lines of {self.named(doubtful)}")
        found += [
            f"left out, as its lines have no known order: {place.words} ({self._owners.names(place.authors)})"
            for place in chosen.unplaced
        ]
        return [*found, *self._rewritten(inside)]

    def _rewritten(self, inside: Sequence[Group]) -> list[str]:
        """Return lines about the chosen authors' lines that other authors have replaced."""
        counts: dict[tuple[str, str, str], int] = {}
        sessions = {session for group in inside for session in group}
        for one in self.picture.changed:
            for author, other in one.rewritten:
                if author.session in sessions and other.session not in sessions:
                    key = (self._name(author), one.file.name, self._name(other))
                    counts[key] = counts.get(key, 0) + 1
        return [
            f"{count} line{'s' * (count > 1)} of {who} in {named(name)} {('was', 'were')[count > 1]} rewritten by"
            f" {other}: the present ones are by {other}"
            for (who, name, other), count in counts.items()
        ]

    def is_first(self) -> bool:
        """Return True if nothing was tried in this work tree yet."""
        path = os.path.join(place_of(self.tree.own), TOLD)
        if os.path.exists(path):
            return False
        with contextlib.suppress(OSError), open(path, "w", encoding="utf-8"):
            pass
        return True

    def run(self, wanted: Wanted, command: Command, only: Callable[[str, int], bool] | None = None) -> Run:
        """Return a run of the command on the wanted lines. Its output is caught."""
        return Run(self.tree, self.picture, self.picture.content(wanted, only), command, is_caught=True)


def listed(names: Sequence[str]) -> str:
    """Return some names in words."""
    words = ", ".join(map(named, names[:NAMED]))
    if len(names) > NAMED:
        words += f" and {len(names) - NAMED} more"
    return words


# The search among owners of lines, and then among single changes.


Item = TypeVar("Item")
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


# The runs of the search, and its answer in words.

NO_ANSWER = 75  # exit code


class _Moving(Exception):
    """Files have changed during a run."""


def answer_whose(args: Arguments, trial: Trial, command: Command) -> int:
    """Name the authors of the lines that make the command fail. Return the exit code."""
    jobs = args.number("--jobs", 1)
    if jobs < 1:
        raise UsageError("--jobs wants a number from 1 on")
    for last in (False, True):
        try:
            blame, lines = _searched(trial, command, jobs, args.given("--lines"))
            break
        except _Moving as error:
            if last:
                raise Refused(f"no answer: {error} changed in the checkout meanwhile, again and again") from None
            trial.picture = Picture(trial.tree.top)
    words = _blamed(trial, blame, lines)
    if args.json:
        value: dict[str, Any] = {"kind": blame.kind, "runs": blame.runs, "text": words}
        for name, groups in (("culprits", blame.culprits), ("needed", blame.needed)):
            value[name] = trial.described(groups)  # type: ignore[arg-type]
        if args.given("--lines"):
            value["lines"] = lines
        show(value)
    else:
        say(f"{words} ({blame.runs} runs)")
        for line in lines:
            say(line)
    return {GREEN: 0, FLAKY: NO_ANSWER}.get(blame.kind, 1)


def _searched(trial: Trial, command: Command, jobs: int, has_lines: bool) -> tuple[Blame, list[str]]:
    def ask(contents: Sequence[frozenset[Group]]) -> list[Failure]:
        found: list[Failure] = []
        for at in range(0, len(contents), jobs):
            with contextlib.ExitStack() as stack:
                runs = [stack.enter_context(trial.run(some.__contains__, command)) for some in contents[at : at + jobs]]
                for run in runs:
                    run.begin()
                found += [_failure(run.end()) for run in runs]
        return found

    search = Search(list(trial.picture.groups), ask, jobs)
    blame = search.result()
    if not has_lines or blame.kind != LINES:
        return blame, []
    return blame, _lines(trial, command, blame)


def _failure(result: Result) -> Failure:
    if result.changed:
        raise _Moving(listed(result.changed))
    return failure(result.code, result.output)


class _Hunk(NamedTuple):
    """Pieces of a file that can only be chosen together."""

    name: str
    numbers: tuple[int, ...]
    words: str


def _lines(trial: Trial, command: Command, blame: Blame) -> list[str]:
    """Return the places of the culprits' lines that the failure needs."""
    guilty = frozenset(blame.culprits)
    left: frozenset[Any] = guilty | frozenset(blame.needed)
    hunks = []
    for one in trial.picture.changed:
        for numbers in groups_of(one.pieces):
            pieces = [one.pieces[number] for number in numbers]
            if any(piece.sessions in guilty for piece in pieces):
                first, last = pieces[0].new + 1, pieces[-1].new + len(pieces[-1].added)
                hunks.append(_Hunk(one.file.name, numbers, _at(named(one.file.name), first, last)))
    every = {(hunk.name, number) for hunk in hunks for number in hunk.numbers}

    def failure(some: Sequence[_Hunk]) -> Failure:
        kept = {(hunk.name, number) for hunk in some for number in hunk.numbers}
        with trial.run(left.__contains__, command, lambda *one: one in kept or one not in every) as run:
            run.begin()
            return _failure(run.end())

    before = failure(hunks)
    return [hunk.words for hunk in smallest(hunks, lambda some: failure(some) == before)]


def _at(name: str, first: int, last: int) -> str:
    if last < first:
        return f"{name}: lines removed after line {last}"
    if last == first:
        return f"{name}:{first}"
    return f"{name}:{first}-{last}"


def _blamed(trial: Trial, blame: Blame, lines: Sequence[str]) -> str:
    """Return the answer as a sentence."""
    if blame.kind == GREEN:
        return "green here: no uncommitted lines make it fail"
    if blame.kind == FLAKY:
        return "no answer: it failed in different ways, or not at all, on the very same files"
    if blame.kind == HEAD:
        return "red already at the last commit"
    culprits: list[Any] = list(blame.culprits)
    words = [f"{_possessive(trial.name(group))} lines of {trial.files(group)}" for group in culprits]
    if len(words) == 1 and blame.is_green_without:
        found = f"red with {words[0]}; green without them"
    elif len(words) == 1:
        found = f"red with {words[0]}; without them it fails in another way"
    elif blame.is_green_without:
        found = f"red only together: {', and '.join(words)}; green without either"
    else:
        found = f"red with {', and with '.join(words)}; without one of them it fails in another way"
    if blame.needed:
        found += f"; only needed to get that far: {trial.named(list(blame.needed))}"  # type: ignore[arg-type]
    return found


def _possessive(name: str) -> str:
    if name == "you":
        return "your"
    return f"{name}'s"


# The finding of `swarm-mcp doctor`: the way in the checkout here, and the folders that are kept.


_WORDS = {
    OVERLAY: "commands run at this checkout's path, in an overlay over it",
    MEMORY: "commands run at this checkout's path, in an overlay with its files in memory",
    BOUND: "commands run at this checkout's path, in a copy of its files",
    COPY: "commands run in a copy of its files elsewhere",
}


def findings(asked: Asked) -> Finding:
    """Return the way of `swarm-mcp try` in the work tree here."""
    tree, kept = tree_over(os.path.realpath(current_scope(asked.scope_flag))), folder.kept()
    details: dict[str, Any] = {
        "kept": [{"top": one.top, "bytes": one.bytes, "command": one.command or None} for one in kept]
    }
    words = folder.in_words(kept)
    if words:
        words = f"; {words}"
    if tree is None:
        return Finding("try", "info", f"no repository here{words}", details=details)
    try:
        details["way"] = _way(tree)
    except SwarmError as error:
        return Finding("try", "info", f"nothing can be tried here: {error}{words}", details=details)
    return Finding("try", "ok", f"{_WORDS[details['way']]}{words}", details=details)


def _way(tree: Tree) -> str:
    """Return the way in this work tree. A command that does nothing shows if an overlay works; nothing is copied."""
    picture, found = Picture(tree.top), running.ways(tree)
    overlays = [way for way in found if way in (OVERLAY, MEMORY)]
    if overlays:
        try:
            with Run(tree, picture, Chosen({}, []), Command(["true"], tree.top, os.environ), is_caught=True) as run:
                run.begin(overlays)
                return run.end().way
        except Refused:  # the kernel, or the file system, has none
            pass
    return next(way for way in found if way not in overlays)
