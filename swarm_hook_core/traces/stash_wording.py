"""Denials, questions and notices about stash entries of others."""

from __future__ import annotations

from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.traces.sweep_wording import PERSON_ALONE, WAY_PAST, asked_of, joined
from swarm_hook_core.traces.wording import and_more
from swarm_hook_core.untrusted_text import command, named, quoted
from swarm_hook_core.wording import duration, holder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.traces.stash import Taking

MOST_NAMED = 5  # files of an entry
MOST_OWN = 3  # entries of the session itself


def denial(taking: Taking, call: ToolCall, files: list[str], is_once: bool, identity: str, now: float) -> str:
    """Return the denial of a command that takes others' entries out of the stash.

    files    names of the files in the first one
    is_once  the same command passes the next time
    """
    held, inside = taking.foreign[0][1], ""
    if files:
        inside = f" It has {', '.join(map(named, files[:MOST_NAMED]))}{and_more(len(files) - MOST_NAMED)}."
    empty = taking.has_empty and "Your own `git stash` had nothing to put aside."
    if is_once:
        number = taking.foreign[0][0].number
        way = f"`git stash show -p stash@{{{number}}}` shows it. If it is meant, the same command again goes ahead."
    elif held.instance_id:
        way = f"Leave theirs where it is, or {asked_of(held, identity)}. {PERSON_ALONE}"
    else:
        way = f"Leave it, or ask the person to do this in a terminal of their own, where {WAY_PAST} lets you do it."
    return joined(
        f"swarm: {call.client_tool} ({command(taking.git_call.by)}) would {taking.deed} a stash entry that is not"
        f" yours: {_entries(taking, identity, now)}.{inside} All work trees of a repository share it.",
        empty,
        _own(taking),
        way,
    )


def question(taking: Taking) -> str:
    """Return the question to the person about a command that drops a person's entries."""
    entry, more = taking.foreign[0][0], len(taking.foreign) - 1
    what = f"the stash entry stash@{{{entry.number}}} ({quoted(entry.subject)}){and_more(more)}"
    return (
        f"swarm: {taking.deed} {what}, which you or an ended session made? ({command(taking.git_call.by)}) A copy is"
        " kept for `swarm-mcp restore`."
    )


def line(taking: Taking, identity: str, now: float) -> str:
    """Return the notice about a command that goes ahead."""
    kept = taking.verb != "apply" and "`swarm-mcp restore --list` shows the copies that were kept."
    told = f"may {taking.deed} a stash entry that is not yours: {_entries(taking, identity, now)}."
    return joined(f"swarm: {command(taking.git_call.by)} {told}", _own(taking), kept)


def _entries(taking: Taking, identity: str, now: float) -> str:
    """Return the first entry with its owner, and the number of the rest."""
    entry, held = taking.foreign[0]
    age, rest = f"{duration(now - entry.at)} ago", and_more(len(taking.foreign) - 1)
    if held.instance_id:
        return f"stash@{{{entry.number}}} (by {holder(held, identity)[0]} {age}){rest}"
    return (
        f"stash@{{{entry.number}}} ({age}){rest}, {quoted(entry.subject)}. No session at work has made it: it is a"
        " person's, or an ended session's"
    )


def _own(taking: Taking) -> str:
    names = ", ".join(f"stash@{{{number}}}" for number in taking.own[:MOST_OWN])
    return names and f"Yours: {names}, by the numbers of now."
