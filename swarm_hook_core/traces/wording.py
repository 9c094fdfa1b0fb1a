"""Denials and notices for a model about other sessions' uncommitted changes."""

from __future__ import annotations

import os
from collections.abc import Sequence

from swarm_hook_core import REMOVE
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.labels import same_circle, token
from swarm_hook_core.lookup.locks import Held
from swarm_hook_core.traces import journal
from swarm_hook_core.traces.others import Trace
from swarm_hook_core.untrusted_text import command, cut, named, quoted
from swarm_hook_core.wording import duration, holder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.traces.file_changes import Patience
    from swarm_hook_core.traces.meetings import Meetings

    # path, quoted lines of its diff, True if they are all, True if it is the diff to what the session has seen
    Changes = tuple[str, list[str], bool, bool]

NAMED = 5  # files named in one line
NAMED_WITH_OWNERS = 3  # files of a message with all their owners


def changed_by(trace: Trace, identity: str, now: float) -> str:
    """Return the session that changed the file, when, and its purpose if this identity may know it."""
    who, _note, _ask = holder(trace.held, identity)
    return f"{who} {duration(now - trace.held.since)} ago{purpose(trace, identity)}"


def purpose(trace: Trace, identity: str) -> str:
    """Return the purpose of the session, in brackets after a blank, or "" if it is unknown or private."""
    if not trace.held.note.strip() or not same_circle(identity, token(trace.held.label, "identity")):
        return ""

    return f" (working on {quoted(trace.held.note)})"


def and_more(count: int) -> str:
    """Return " and 3 more", or "" if there are no more."""
    return f" and {count} more" if count > 0 else ""


def also_in(traces: Sequence[Trace], meetings: Meetings, patience: Patience, identity: str) -> str:
    """Return the sentence about further owners of uncommitted lines in the files of `traces`; mostly empty.

    A Trace names the last writer of its file, and `blame` all of them: so a message does.
    """
    parts, traces = [], traces[:NAMED_WITH_OWNERS]
    patience.prepare(trace.path for trace in traces)
    for trace in traces:
        lines = patience.lines_of(trace.path) or ()
        certain = [line.author for line in lines if line.author is not None]
        sessions = {author.session for author in certain}
        owners = []
        for theirs in meetings.journals.of_others(meetings.trail.place_of(os.path.dirname(trace.path))):
            if theirs.name != trace.journal and not theirs.kin and journal.owner_of(theirs.data) in sessions:
                owners += [holder(Held(trace.path, *writer), identity)[0] for writer in [theirs.writer] if writer]
        if any(author.is_person for author in certain):
            owners.append("a person")
        if owners:
            parts.append(f"{named(trace.path)} has lines of {' and of '.join(owners)}, too.")
    return " ".join(parts)


def _writing(trace: Trace, identity: str) -> str:
    who, _note, _ask = holder(trace.held, identity)
    return f"{who} is writing it{purpose(trace, identity)}"


def would_lose(
    call: ToolCall, trace: Trace, how: str, by: str, others: list[Trace], identity: str, now: float, times: int,
    changes: Sequence[Changes] = (), also: str = "",
) -> str:  # fmt: skip
    """Return the denial of a call that would replace or remove a file with a change that its session has not seen.

    `others`: Traces of further such files; `times`: number of recent denials of the session for this file; `changes`:
    the lost changes that are shown; `also`: a sentence about further owners, or "".
    """
    from swarm_hook_core.storms import MANY

    tool, part = call.client_tool, f" ({command(by)})" if by else ""
    paths = [trace.path, *(one.path for one in others[: NAMED - 1])]
    if times >= MANY:
        return _denied_again(call, trace, how, paths, identity, times)
    if trace.is_pending:
        return (
            f"swarm: {tool}{part} would {_verb(how)} {named(trace.path)} at the very moment when"
            f" {_writing(trace, identity)}: one of the two changes would be lost. {_way(trace, how, paths, call)}"
        )
    names = [f"{named(one.path)} (by {changed_by(one, identity, now)})" for one in others[: NAMED - 1]]
    same = f" The same goes for {', '.join(names)}{and_more(len(others) - len(names))}." if names else ""
    return (
        f"swarm: {tool}{part} would {_verb(how)} {named(trace.path)}, changed by {changed_by(trace, identity, now)},"
        f" after you last saw it, and not committed: their work would be lost.{same}{also and f' {also}'}"
        f"{_shown(changes)}{_way(trace, how, paths, call, changes)}"
    )


def _shown(changes: Sequence[Changes]) -> str:
    """Return the changes as quoted lines: another session's words, each behind a mark."""
    parts = []
    for path, lines, is_whole, is_seen in changes:
        if lines:
            since = "you last saw it" if is_seen else "the last commit"
            first = "" if is_whole else "the first "
            parts.append(f"Changed in {named(path)} since {since} ({first}{len(lines)} lines of diff, quoted):")
            parts += lines
    return "\n".join(["", *parts, ""]) if parts else " "


def _denied_again(call: ToolCall, trace: Trace, how: str, paths: list[str], identity: str, times: int) -> str:
    """Return the denial of a call after many like it; in the end it asks the session to stop."""
    from swarm_hook_core.storms import PERSON

    who = holder(trace.held, identity)[0]
    why, first = f"it has a change by {who} that you have not seen", ""
    if trace.is_pending:
        why, first = f"{who} is writing it", "wait until that is made, then "
    fact = f"swarm: {call.client_tool} would {_verb(how)} {named(trace.path)}: denied {times} times, as {why}."
    look = _look(paths, call)
    if how == REMOVE and times < PERSON:
        return f"{fact} Trying again changes nothing: leave it to them, or {first or 'first '}{look}."
    if times >= PERSON:
        return f"{fact} Trying again changes nothing. Stop: {look}, or do the rest without this file and report that."
    return (
        f"{fact} Trying again changes nothing: {first}write a text that keeps that change, or {look} first, or edit"
        " only your lines."
    )


def would_lose_shortly(call: ToolCall, trace: Trace, how: str, identity: str) -> str:
    """Return a short denial, for clients with room for few words: the way out comes first."""
    who = cut(holder(trace.held, identity)[0], 40)
    if trace.is_pending:
        return f"swarm: {who} is writing {named(trace.path)} at this very moment. Wait, read it, then try again."
    look = _look([trace.path], call)
    if how == REMOVE:
        return f"swarm: would remove a change by {who} that is not committed. Leave it, or first {look}."
    return f"swarm: would {_verb(how)} a change by {who} that is not committed. First {look}, then keep it."


def _verb(how: str) -> str:
    return "remove" if how == REMOVE else "overwrite"


def _way(trace: Trace, how: str, paths: list[str], call: ToolCall, changes: Sequence[Changes] = ()) -> str:
    """Return the advice: a text that keeps the `changes` shown, or a command that counts as a look.

    A client's own reading tool mostly has no hook.
    """
    if how == REMOVE:
        return _way_to_remove(trace, paths, call)
    if trace.is_pending:
        return (
            f"Wait until it is made, {_look(paths, call)}, then write a text that keeps it. Until then this is denied"
            " each time, for two minutes at most if its end is not reported. Or edit only your lines."
        )
    it = "them" if len(paths) > 1 else "it"
    if {path for path, _lines, is_whole, _is_seen in changes if is_whole} == set(paths):
        return (
            f"Write a text that keeps {it}: that passes. To drop {it} on purpose, first {_look(paths, call)}. Or edit"
            " only your lines, or leave it to them."
        )
    return (
        f"First {_look(paths, call)} (only a shell command that shows all of {it}, or all changes in {it}, counts as a"
        " look here), then write a text that keeps their change: that passes. Or edit only your lines, or leave it"
        " to them."
    )


def _way_to_remove(trace: Trace, paths: list[str], call: ToolCall) -> str:
    """Return the advice for a removal: no text can keep the change."""
    it = "them" if len(paths) > 1 else "it"
    if trace.is_pending:
        return (
            f"Leave {it}, or wait until the write is made, and {_look(paths, call)}: if {it} may go, the removal passes"
            " then. Until then this is denied each time, for two minutes at most if the end is not reported."
        )
    return (
        f"Leave {it} to their author. If {it} may go all the same, first {_look(paths, call)} (only a shell command"
        f" that shows all of {it} counts as a look here): then the removal passes."
    )


def _look(paths: list[str], call: ToolCall) -> str:
    """Return the command that shows these files; after it the session may write them."""
    from swarm_hook_core.watching.report import quoted

    start = call.reader_folder.rstrip("/") + "/"
    names = [path.removeprefix(start) for path in paths]
    return f"run `cat {' '.join(quoted(name) for name in names)}`"


def cannot_be_noted(error: OSError) -> str:
    """Return the notice that a call goes ahead over another's change, because nothing can be noted."""
    why = error.strerror or type(error).__name__
    return (
        f"swarm: this call would be denied, but nothing can be written into swarm's state folder ({why}), so it"
        " goes ahead: keep the change of the other session. `swarm-mcp doctor` says more; tell the user."
    )


def are_cleared(clearings: list[tuple[Trace, str, str]], identity: str) -> str:
    """Return one line per file that the call writes while another call clears its folder.

    `clearings`: results of ``Meetings.clearing``.
    """
    lines = []
    for trace, deed, place in clearings[:NAMED]:
        who, _note, _ask = holder(trace.held, identity)
        what = f"{deed} {'everything in' if deed == REMOVE else 'the changes in'} {named(place)}"
        lines.append(
            f"swarm: {named(trace.path)}: at this very moment {who} is about to {what}{purpose(trace, identity)}."
            " Read the file again afterwards: if your change is missing, make it again."
        )
    return "\n".join(lines)


def were_written_elsewhere(traces: list[Trace], identity: str, now: float) -> str:
    """Return one line per file that the call writes and that sessions on other machines have written."""
    lines = [
        f"swarm: {named(trace.path)} was written by {changed_by(trace, identity, now)}, and that is not pushed: the two"
        " changes meet when one of you pulls. Keep yours small there, or agree with them first."
        for trace in traces[:NAMED]
    ]
    if len(traces) > NAMED:
        lines.append(f"swarm: so were {len(traces) - NAMED} more files that this call writes.")
    return "\n".join(lines)


def during_hooks(trace: Trace, name: str, identity: str) -> str:
    """Return the reason not to write the file now: during another session's commit `name` puts changes aside."""
    who, _note, _ask = holder(trace.held, identity)
    return (
        f"{who} is committing or pushing in this work tree, and its hooks ({cut(name, 40)}) put changes aside or reset"
        f" files at the end: a change written to {named(trace.path)} now may be lost."
    )


def were_changed(traces: list[Trace], identity: str, now: float) -> str:
    """Return one line per file that the call goes ahead to write although others have changed it."""
    lines = []
    for trace in traces[:NAMED]:
        if trace.is_pending:
            what = f"is written at this very moment: {_writing(trace, identity)}. Read it again afterwards"
            lines.append(f"swarm: {named(trace.path)} {what}: if one of the two changes is missing, make it again.")
        else:
            what = f"was changed by {changed_by(trace, identity, now)}, and that is not committed: read it again before"
            lines.append(f"swarm: {named(trace.path)} {what} you go on with it, and keep their change.")
    if len(traces) > NAMED:
        lines.append(f"swarm: so were {len(traces) - NAMED} more files that this call writes.")
    return "\n".join(lines)
