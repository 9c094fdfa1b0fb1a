"""`swarm-mcp try --whose`: the runs of the search for the authors of a failure (``whose``), and its answer in words."""

from __future__ import annotations

import contextlib
from typing import NamedTuple

from swarm_hook_core.untrusted_text import named
from swarm_mcp.changes.tries import whose
from swarm_mcp.changes.tries.picture import Picture, groups_of
from swarm_mcp.changes.tries.running import Result
from swarm_mcp.changes.tries.space import Command
from swarm_mcp.changes.tries.trial import Trial, listed
from swarm_mcp.cli.arguments import Arguments
from swarm_mcp.cli.output import say, show
from swarm_mcp.errors import Refused, UsageError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from swarm_mcp.changes.tries.picture import Group
    from swarm_mcp.changes.tries.whose import Blame, Failure

NO_ANSWER = 75  # exit code


class _Moving(Exception):
    """Files have changed during a run."""


def answer_whose(args: Arguments, trial: Trial, command: Command) -> int:
    """Answer whose lines make the command fail. Return the exit code."""
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
    return {whose.GREEN: 0, whose.FLAKY: NO_ANSWER}.get(blame.kind, 1)


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

    search = whose.Search(list(trial.picture.groups), ask, jobs)
    blame = search.result()
    if not has_lines or blame.kind != whose.LINES:
        return blame, []
    return blame, _lines(trial, command, blame)


def _failure(result: Result) -> Failure:
    if result.changed:
        raise _Moving(listed(result.changed))
    return whose.failure(result.code, result.output)


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
    return [hunk.words for hunk in whose.smallest(hunks, lambda some: failure(some) == before)]


def _at(name: str, first: int, last: int) -> str:
    if last < first:
        return f"{name}: lines removed after line {last}"
    if last == first:
        return f"{name}:{first}"
    return f"{name}:{first}-{last}"


def _blamed(trial: Trial, blame: Blame, lines: Sequence[str]) -> str:
    """Return the answer as a sentence."""
    if blame.kind == whose.GREEN:
        return "green here: no uncommitted lines make it fail"
    if blame.kind == whose.FLAKY:
        return "no answer: it failed in different ways, or not at all, on the very same files"
    if blame.kind == whose.HEAD:
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
