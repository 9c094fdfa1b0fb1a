"""The words in which a model is told what other sessions have changed and not committed."""

from swarm_hook_core.change import REMOVE
from swarm_hook_core.labels import same_circle, token
from swarm_hook_core.wording import duration, holder

NAMED = 5  # files that one line names


def changed_by(trace, identity: str, now: float) -> str:
    """Who has changed the file of a Trace, when, and what they work on, as far as this identity may know."""
    who, _note, _ask = holder(trace.held, identity)
    return f"{who} {duration(now - trace.held.since)} ago{purpose(trace, identity)}"


def purpose(trace, identity: str) -> str:
    """What the session that wrote it works on, in brackets after a blank; empty where that is not known or said."""
    if not trace.held.note.strip() or not same_circle(identity, token(trace.held.label, "identity")):
        return ""
    from swarm_hook_core.untrusted_text import quoted

    return f" (working on {quoted(trace.held.note)})"


def _writing(trace, identity: str) -> str:
    who, _note, _ask = holder(trace.held, identity)
    return f"{who} is writing it{purpose(trace, identity)}"


def would_lose(tool: str, trace, how: str, by: str, others, identity: str, now: float) -> str:
    """Why a call was denied that would have replaced or removed a file with a change that its session has not seen.

    `others`: the Traces of more such files, which the next attempt may lose as well.
    """
    from swarm_hook_core.untrusted_text import command, named

    part = f" ({command(by)})" if by else ""
    if trace.is_pending:
        return (
            f"swarm: {tool}{part} would write {named(trace.path)} at the very moment when {_writing(trace, identity)}:"
            " one of the two changes would be lost. Read it again, then try again: the next attempt passes unless it"
            " would lose what they wrote."
        )
    verb = "remove" if how == "remove" else "overwrite"
    names = [f"{named(one.path)} (by {changed_by(one, identity, now)})" for one in others[: NAMED - 1]]
    more = f" and {len(others) - len(names)} more" if len(others) > len(names) else ""
    same = f" The same goes for {', '.join(names)}{more}." if names else ""
    it = "each" if same else "it"
    return (
        f"swarm: {tool}{part} would {verb} {named(trace.path)}, changed by {changed_by(trace, identity, now)}, after"
        f" you last saw it, and not committed: their work would be lost.{same} Read {it} again, then write"
        f" what keeps it: the next attempt passes. Or edit only your lines, or leave the file to them."
    )


def are_cleared(clearings, identity: str) -> str:
    """One line for each of a few files that a call goes ahead to write in what another call clears at this moment.

    `clearings`: as ``Meetings.clearing`` has them.
    """
    from swarm_hook_core.untrusted_text import named

    lines = []
    for trace, deed, place in clearings[:NAMED]:
        who, _note, _ask = holder(trace.held, identity)
        what = f"{deed} {'all that is in' if deed == REMOVE else 'what is changed in'} {named(place)}"
        lines.append(
            f"swarm: {named(trace.path)}: at this very moment {who} is about to {what}{purpose(trace, identity)}."
            " Read the file again afterwards: if your change is missing, make it again."
        )
    return "\n".join(lines)


def were_written_elsewhere(traces, identity: str, now: float) -> str:
    """One line for each of a few files that a call goes ahead to write, and that others write on other machines."""
    from swarm_hook_core.untrusted_text import named

    lines = [
        f"swarm: {named(trace.path)} was written by {changed_by(trace, identity, now)}, and that is not pushed: the two"
        " changes meet when one of you pulls. Keep yours small there, or agree with them first."
        for trace in traces[:NAMED]
    ]
    if len(traces) > NAMED:
        lines.append(f"swarm: so were {len(traces) - NAMED} more files that this call writes.")
    return "\n".join(lines)


def during_hooks(trace, name: str, identity: str) -> str:
    """Say why the file of `trace` is better left alone: during another session's commit `name` puts changes aside."""
    from swarm_hook_core.untrusted_text import cut, named

    who, _note, _ask = holder(trace.held, identity)
    return (
        f"{who} is committing or pushing in this work tree, and {cut(name, 40)}, which that runs, puts changes aside or"
        f" sets files back at its end: what is written to {named(trace.path)} now may be lost."
    )


def were_changed(traces, identity: str, now: float) -> str:
    """One line for each of a few files that a call goes ahead to write, and that others have changed."""
    from swarm_hook_core.untrusted_text import named

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
