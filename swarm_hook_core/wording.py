"""Words for a model about another session's lock: holder, note, since, until, and the way out."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_hook_core import untrusted_text
from swarm_hook_core.clock import left
from swarm_hook_core.lookup import AUTO, Held
from swarm_hook_core.process import host_id
from swarm_hook_core.untrusted_text import command, cut, named, quoted, same_circle, token

LONGEST_WHY = 700  # characters of why a call may write
LONGEST_BY = 60  # characters of the part of a command that writes
NAMED = 3  # locks that the line for the model names


def reason(
    tool: str, path: str, held: Held, viewer_identity: str, now: float, by: str = "", within: bool = False,
    own_id: str = "", waiting: int = 0, folder: str = "",
) -> str:  # fmt: skip
    """Return the reason for a denial: holder, the way out, note, since, until, and the other ways out.

    The first lines say the most: Claude Code shows a person three of them.

    by       the part of a longer command that would write
    within   True if the lock is on a folder over `path`
    own_id   the denied session; the holder may be another agent of it
    waiting  the number of sessions that wait for the lock already
    folder   the session's, in which it types commands

    A holder of another identity stays unnamed, and so does its note. That it holds the lock is never hidden.
    """
    who, why, ask = holder(held, viewer_identity, own_id)
    if held.since:
        age = f"locked {duration(now - held.since)} ago"
    else:
        age = "locked some time ago"

    if within:
        through = f" (in the locked folder {named(held.file)})"
    else:
        through = ""
    if held.pattern:
        through = f" (one of the locked {named(held.file)})"
    if held.elsewhere:
        if within:
            what = "folder"
        else:
            what = "file"
        through += f" (the same {what} of another work tree, {named(held.elsewhere)}, is locked for all work trees)"
    if held.mode == "shared":
        still = ", who reads it and keeps it still"
    else:
        still = ""
    if by and not tool.endswith(by):
        which = f" ({command(cut(by, LONGEST_BY))})"
    else:
        which = ""
    if which:
        without = "leave it out of the command, "
    else:
        without = ""
    file = named(inside(path, folder))
    return (
        f"swarm lock blocked {tool}{which} for {file}{through}: held by {who}{still}"
        f" ({line(waiting)}: {command(f'swarm-mcp lock {file} --wait 60')}; {why}{age}, {until(held, now)})."
        f" Do not write this file another way: {without}work on something else, {ask}, or {line(waiting)}"
        f" (lock_file with wait_seconds) and then try again."
    )


def inside(path: str, folder: str) -> str:
    """Return absolute `path` as a person in `folder` names it."""
    return path.removeprefix(f"{folder.rstrip('/')}/") if folder else path


def named_locks(locks: Sequence[Held], viewer_identity: str, own_id: str) -> str:
    """Name the locks and their holders in a line for the model; of many locks only some."""

    some = []
    for lock in locks[:NAMED]:
        who, note, _ask = holder(lock, viewer_identity, own_id)
        if lock.mode == "shared":
            who += ", who reads it and keeps it still"
        if note:
            who += "; " + note.removesuffix("; ")
        some.append(f"{named(lock.file)} (held by {who})")
    return ", ".join(some) + and_more(len(locks) - NAMED)


def are_near(why: str, locks: Sequence[Held], viewer_identity: str, own_id: str) -> str:
    """Return the notice about locks near a call that goes ahead. `why`: the reason why its writes are not known."""

    return (
        f"swarm: other sessions hold {named_locks(locks, viewer_identity, own_id)}. What this call writes cannot be"
        f" told beforehand ({cut(why, LONGEST_WHY)}); it may go on, but it must leave those files alone, and they are"
        " compared afterwards."
    )


def may_write(tool: str, why: str, held: Held, viewer_identity: str, own_id: str) -> str:
    """Return the reason for a denial by the setting `strict`. `why`: the reason why the call's writes are not known."""

    who, note, ask = holder(held, viewer_identity, own_id)
    return (
        f"swarm lock blocked {tool}: it may write {named(held.file)} ({cut(why, LONGEST_WHY)}), held by {who}"
        f" ({note}nothing uncertain may run here while it is locked: SWARM_STRICT). Name the files that are to be"
        f" written, work on something else, or {ask}."
    )


def way_past_hooks(name: str) -> str:
    """Return the advice for a call during which `name` puts unstaged changes aside."""

    return (
        f"While it runs, {cut(name, 40)} takes changes that are not staged out of the work tree, or sets it back if a"
        " check fails: what another session writes meanwhile is lost. Commit in a work tree of your own (`git worktree"
        " add`), or, if a person agrees to leave the checks out, use --no-verify (`git commit --no-verify FILE...` with"
        " your own files)."
    )


def way_past_hook(hook: str, can_be_left_out: bool) -> str:
    """Return the advice for a git command in a hook of the repository."""
    way = "Commit in a work tree of your own (`git worktree add`), or ask them to commit first"
    if can_be_left_out:
        way += "; if a person agrees to leave the checks out, --no-verify does"
    return f"The repository's hook {hook} does that. {way}."


def line(waiting: int) -> str:
    """Return the advice to wait for a lock, behind as many sessions as are `waiting` for it."""
    if waiting:
        return f"join the {waiting} who wait{'s' if waiting == 1 else ''} for it"
    return "wait in line for it"


def joining(waiting: int) -> str:
    """Return the advice to wait for a lock, and the tool and the command for that."""
    return f"{line(waiting)} (lock_file with wait_seconds, or `swarm-mcp lock FILE --wait SECONDS`)"


def until(held: Held, now: float) -> str:
    """Return the end of a lock, in words."""
    words = "until it is released or that session ends"
    if held.mode == AUTO:
        words = "until its turn ends, at most 10 min after its last write to it"
    elif held.lease is not None:
        words = f"lapses in {duration(left(held.lease, host_id(), now) or 0.0)} unless renewed"
    if isinstance(held.expected_end, (int, float)):
        away = held.expected_end - now
        words += f", expected to end in {duration(away)}" if away > 0 else f", expected to end {duration(-away)} ago"
    return words


def holder(held: Held, viewer_identity: str, own_id: str = "") -> tuple[str, str, str]:
    """Return the holder, ``note: ...; `` or nothing, and the address for questions, as this identity may know them."""
    if held.kin:
        return held.kin, "", "leave it to them"
    is_own = bool(own_id) and held.instance_id == own_id
    if not is_own and not same_circle(viewer_identity, token(held.label, "identity")):
        return "a session of another identity", "", "ask the person running it"
    from swarm_hook_core.naming import agent_name, holder_name

    if held.note.strip():
        why = f"note: {untrusted_text.quoted(held.note)}; "
    else:
        why = ""
    if is_own:
        return f"another agent of your session ({agent_name(held.agent)})", why, "leave it to that agent"
    who = holder_name(held.label, held.instance_id)
    if held.agent:
        who = f"{agent_name(held.agent)} of {who}"
    return who, why, f"message the holder (instance {untrusted_text.named(held.instance_id)})"


def changed_by(held: Held, viewer_identity: str, now: float) -> str:
    """Return the session that changed a file, when, and its purpose if this identity may know it."""
    who = holder(held, viewer_identity)[0]
    return f"{who} {duration(now - held.since)} ago{purpose(held, viewer_identity)}"


def purpose(held: Held, viewer_identity: str) -> str:
    """Return the purpose of the session, in brackets after a blank, or "" if it is unknown or private."""
    if not held.note.strip() or not same_circle(viewer_identity, token(held.label, "identity")):
        return ""

    return f" (working on {quoted(held.note)})"


def and_more(count: int) -> str:
    """Return " and 3 more", or "" if there are no more."""
    return f" and {count} more" if count > 0 else ""


def duration(seconds: float) -> str:
    """A span for people: ``8 s``, ``12 min``, ``3 h``, ``2 days``."""
    seconds = max(0, int(seconds))
    for size, unit in ((172800, "days"), (7200, "h"), (120, "min")):
        if seconds >= size:
            return f"{seconds // {'days': 86400, 'h': 3600, 'min': 60}[unit]} {unit}"
    return f"{seconds} s"


def ago(seconds: float) -> str:
    """Return the time since something, for people: ``views``, ``4 min ago``."""
    if seconds >= 1:
        return f"{duration(seconds)} ago"
    return "now"
