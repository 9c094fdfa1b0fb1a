"""The words about a person's uncommitted work: a denial or a notice for the model, a question for the person."""

from __future__ import annotations

import os

from swarm_hook_core.change import REPLACE
from swarm_hook_core.untrusted_text import command, named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.hooks import ToolCall
    from swarm_hook_core.persons.lines import Extent
    from swarm_hook_core.persons.losses import Loss

    Part = tuple[Loss, "Extent | None"]  # a file and its uncommitted lines, if they are known

NAMED = 5  # files of one message
RUNS = 3  # runs of lines of one file
WAY_PAST = "`swarm-mcp protect off --for 5m`"


def denial(call: ToolCall, parts: list[Part], deed: str, way: str, folder: str) -> str:
    """Return the denial of a call: the files and lines that would go, and what to do instead.

    deed  the call's effect as a verb; `way`: a sentence with a narrower command, or ""
    """
    loss = parts[0][0]
    by = f" ({command(loss.by)})" if loss.by else ""
    it = "them" if len(parts) > 1 else "it"
    read = ""
    if loss.how == REPLACE and not loss.words:
        show = " ".join(named(_short(one.spelled, folder)) for one, _extent in parts[:NAMED])
        read = f"Read {it} first (`cat {show}`) and keep what is there: that passes."
    sentences = [
        f"swarm: {call.client_tool}{by} would {deed} a person's work that is not committed: {listed(parts, folder)}."
        " No session at work has written it.",
        way,
        read,
        f"Leave {it} as it is, or ask the person to commit {it}, or to do this in a terminal of their own, where"
        f" {WAY_PAST} lets you do it.",
    ]
    return " ".join(filter(None, sentences)).replace("Leave them as it is", "Leave them as they are")


def shortly(parts: list[Part], deed: str, folder: str) -> str:
    """Return the denial for a client with room for few words."""
    return (
        f"swarm: would {deed} a person's uncommitted work: {listed(parts[:1], folder)}."
        f" Leave it, or ask the person to commit it, or to type {WAY_PAST}."
    )


def question(parts: list[Part], deed: str, by: str, folder: str) -> str:
    """Return the question to the person at the client."""
    if len(parts) == 1:
        what = f"{_extent_of(parts[0], of_file=True)} {named(_short(parts[0][0].path, folder))}"
    else:
        what = f"your uncommitted work: {listed(parts, folder)}"
    run = f" {command(by)} would do that." if by else ""
    whose = " that you wrote" if len(parts) == 1 else ""
    return f"swarm: {deed} {what}{whose}?{run} A copy is kept for `swarm-mcp restore`."


def notice(parts: list[Part], deed: str, folder: str) -> str:
    """Return the notice about a call that goes ahead."""
    return (
        f"swarm: this call may {deed} a person's work that is not committed: {listed(parts, folder)}."
        " `swarm-mcp restore --list` shows the copies that were kept."
    )


def late(call: ToolCall, by: str, deed: str) -> str:
    """Return the denial of a git command that clearly discards changes, while git does not say which."""
    return (
        f"swarm: {call.client_tool} ({command(by)}) would {deed} all uncommitted changes, and git was too slow to say"
        " if any of them are a person's. Name your own files in the command, or ask the person to run it, or to type"
        f" {WAY_PAST}."
    )


def late_question(by: str, deed: str) -> str:
    """Return the question about such a command."""
    return f"swarm: {deed} all uncommitted changes here? {command(by)} would do that; git was too slow to list them."


def listed(parts: list[Part], folder: str) -> str:
    """Return ``a.txt: 4 lines (12 to 15); b.txt: a new file, 10 lines; and 3 more files``."""
    some = [f"{named(_short(part[0].path, folder))}: {_extent_of(part)}" for part in parts[:NAMED]]
    more = len(parts) - NAMED
    return "; ".join(some) + (f"; and {more} more file{'s' if more > 1 else ''}" if more > 0 else "")


def _extent_of(part: Part, of_file: bool = False) -> str:
    """Return the uncommitted part of a file in words. `of_file`: as the beginning of "... a.txt"."""
    extent = part[1]
    end = " of" if of_file else ""
    if extent is None or not extent.is_text:
        return ("the uncommitted change" if extent is None or not extent.is_new else "the new file") + (
            end if extent is None or not extent.is_new else ""
        )
    count = len(extent.added)
    if extent.is_new:
        return "the new file" if of_file else f"a new file, {_lines(count)}"
    if not count and not extent.removed:
        return f"its mode or type{end}" if not of_file else f"the uncommitted change{end}"
    if not count:
        return f"{_lines(extent.removed)} taken out{end}"
    kind = " uncommitted" if of_file else ""
    return f"{count}{kind} line{'s' if count > 1 else ''}{end}" + ("" if of_file else f" ({_runs(extent.added)})")


def _lines(count: int) -> str:
    return f"{count} line{'s' if count != 1 else ''}"


def _runs(numbers: list[int]) -> str:
    """Return ``12 to 15, 20 and more`` for sorted line numbers."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    said = [str(first) if first == last else f"{first} to {last}" for first, last in runs[:RUNS]]
    return ", ".join(said) + (" and more" if len(runs) > RUNS else "")


def _short(path: str, folder: str) -> str:
    """Return `path` relative to `folder` if it lies there."""
    start = folder.rstrip("/") + "/"
    return os.path.relpath(path, folder) if path.startswith(start) else path
