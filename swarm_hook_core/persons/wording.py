"""The words about a person's uncommitted work: a denial or a notice for the model, a question for the person."""

from __future__ import annotations

from swarm_hook_core import REPLACE
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.persons.losses import Loss
from swarm_hook_core.persons.owners import Author
from swarm_hook_core.traces.sweep_wording import AGAIN, OWN_COMMIT, WAY_PAST
from swarm_hook_core.untrusted_text import command, named

TYPE_CHECKING = False
if TYPE_CHECKING:
    Part = tuple[Loss, Author]

NAMED = 5  # files of one message
RUNS = 3  # runs of lines of one file


def denial(call: ToolCall, parts: list[Part], deed: str, also: str, way: str, folder: str) -> str:
    """Return the denial of a call: the files and lines that would go, and the next step.

    deed  the call's effect as a verb; `also`: a sentence about other sessions' files, or ""
    way   a sentence with a narrower command, or ""
    """
    loss, read, it, as_it_is = parts[0][0], "", "it", "as it is"
    if len(parts) > 1:
        it, as_it_is = "them", "as they are"
    if loss.how == REPLACE and not loss.words:
        show = " ".join(named(_short(one.spelled, folder)) for one, _author in parts[:NAMED])
        read = f"Read {it} first (`cat {show}`) and keep the lines that are there: that passes."
    sentences = [
        f"swarm: {call.client_tool}{_in_brackets(loss.by)} would {deed} a person's work that is not committed:"
        f" {listed(parts, folder)}. No session at work has written it.",
        also,
        way,
        read,
        f"Leave {it} {as_it_is}, or ask the person to commit {it}, or to do this in a terminal of their own, where"
        f" {WAY_PAST} lets you do it.",
    ]
    return " ".join(filter(None, sentences))


def along(call: ToolCall, parts: list[Part], deed: str, also: str, way: str, folder: str) -> str:
    """Return the denial of a git command that stages or commits a person's work; it is denied once."""
    sentences = [
        f"swarm: {call.client_tool}{_in_brackets(parts[0][0].by)} would {deed} a person's work that is not committed:"
        f" {listed(parts, folder)}. No session at work has written it.",
        also,
        way,
        OWN_COMMIT,
        AGAIN,
    ]
    return " ".join(filter(None, sentences))


def along_notice(parts: list[Part], deed: str, folder: str) -> str:
    """Return the notice about such a command at the level `notice`."""
    return f"swarm: this call may {deed} a person's work that is not committed: {listed(parts, folder)}."


def shortly(parts: list[Part], deed: str, folder: str) -> str:
    """Return the denial for a client with room for few words."""
    return (
        f"swarm: would {deed} a person's uncommitted work: {listed(parts[:1], folder)}."
        f" Leave it, or ask the person to commit it, or to type {WAY_PAST}."
    )


def question(parts: list[Part], deed: str, by: str, folder: str) -> str:
    """Return the question to the person at the client."""
    if len(parts) == 1:
        loss, author = parts[0]
        asked = f"swarm: {deed} {_in_question(loss, author)} {named(_short(loss.path, folder))} that you wrote?"
    else:
        asked = f"swarm: {deed} your uncommitted work: {listed(parts, folder)}?"
    return f"{asked}{_in_brackets(by)} A copy is kept for `swarm-mcp restore`."


def notice(parts: list[Part], deed: str, folder: str) -> str:
    """Return the notice about a call that goes ahead."""
    return (
        f"swarm: this call may {deed} a person's work that is not committed: {listed(parts, folder)}."
        " `swarm-mcp restore --list` shows the copies that were kept."
    )


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


def listed(parts: list[Part], folder: str) -> str:
    """Return ``a.txt: 4 lines (12 to 15); b.txt: a new file, 10 lines; and 3 more files``."""
    some = [f"{named(_short(loss.path, folder))}: {_in_list(loss, author)}" for loss, author in parts[:NAMED]]
    if len(parts) > NAMED:
        some.append(f"and {len(parts) - NAMED} more")
    return "; ".join(some)


def _in_list(loss: Loss, author: Author) -> str:
    """Return the person's part of a file in words, behind its name."""
    if loss.is_new and not author.is_part:
        return f"a new file, {_lines(len(author.lines))}" if author.lines else "a new file"
    if author.lines:
        return f"{_lines(len(author.lines))} ({_runs(author.lines)})"
    if author.removed:
        return f"{_lines(author.removed)} taken out"
    return "uncommitted changes" if author.lines is None else "its mode or type"


def _in_question(loss: Loss, author: Author) -> str:
    """Return the same in front of the file's name."""
    if loss.is_new and not author.is_part:
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


def _short(path: str, folder: str) -> str:
    """Return `path` relative to `folder` if it lies there."""
    return path.removeprefix(folder.rstrip("/") + "/")
