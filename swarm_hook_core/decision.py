"""The decision that every runtime shares: may this session make this call now?"""

from swarm_hook_core.labels import same_circle, token
from swarm_hook_core.lookup.peers import above
from swarm_hook_core.paths import keys_for, spellings, translated
from swarm_hook_core.targets import write_targets


class Denial:
    """A refused call: the `path` it would have written, the lock (`held`) and the `reason`.

    `file`: what to say it waits for; of a pattern no more than this path.
    """

    __slots__ = ("path", "held", "reason")

    def __init__(self, path, held, reason):
        self.path = path
        self.held = held
        self.reason = reason

    @property
    def file(self) -> str:
        return self.path if self.held.pattern else self.held.file


class Verdict:
    """What is to be done about a call: a `denial` or None, a line for the model (`notice`, may be empty), and the
    locks (`watched`) whose files are to be compared afterwards. `failed`: the call could not be checked."""

    __slots__ = ("denial", "notice", "watched", "failed")

    def __init__(self, denial=None, notice="", watched=(), failed=False):
        self.denial = denial
        self.notice = notice
        self.watched = watched
        self.failed = failed


def decide(config, session, call, peers, now: float):
    """A Denial of `call`, a ToolCall, or None to let it pass: by the files that it says it writes. Changes nothing.

    Raises ValueError where the call writes files but its paths cannot be read.
    """
    targets = write_targets(config, call.tool, call.input, call.folder)
    collision = first_collision(session, targets, peers.on)
    if collision is None:
        return None
    path, held, _place, within = collision
    words = reason(
        call.tool, path, held, token(session.label, "identity"), now,
        within=within, own_id=session.instance_id, waiting=peers.waiting_for(path),
    )  # fmt: skip
    return Denial(path, held, words)


def first_collision(session, targets, locks_on):
    """``(path, held, place, within)`` of the first of `targets` (folder, path as spelled) that another holds, or None.

    A path is held by a lock on itself or, `within`, on a folder over it. `place`: which target it is.
    """
    wanted: dict = {}  # key -> the path that a denial names, which target it is of, whether a folder over it
    own: dict = {}  # the keys of the paths themselves
    for place, (folder, spelled) in enumerate(targets):
        keys = all_keys(session, spelled, folder)
        for key in keys:
            own[key] = None
            wanted.setdefault(key, (keys[0], place, False))
        for key in keys:
            for over in above(key):
                wanted.setdefault(over, (keys[0], place, True))
    if not wanted:
        return None
    # Of one's own session only what another of its agents holds, which `locks_on` has sorted out.
    found = locks_on(list(own), [key for key in wanted if key not in own])
    theirs = [held for held in found if held.instance_id != session.instance_id or held.agent]
    if not theirs:
        return None
    order = {key: position for position, key in enumerate(wanted)}
    position, first = min(
        ((min(order.get(name, len(order)) for name in held.names), held) for held in theirs), key=lambda pair: pair[0]
    )
    named = next((wanted[name] for name in first.names if order.get(name) == position), (first.file, 0, False))
    path, place, within = named
    return path, first, place, within


def all_keys(session, spelled: str, folder: str) -> list[str]:
    """``keys_for`` of a path, and of where the session's `file_root` says that it really is."""
    keys = keys_for(spelled, folder)
    for moved in moved_by(session, spellings(spelled, folder)) if session.file_root else ():
        keys += keys_for(moved, folder)
    return keys


def moved_by(session, spelled: list[str]) -> list[str]:
    """Where the session's `file_root` says that these absolute paths really are; those it leaves alone not."""
    from os.path import realpath

    found: list[str] = []
    places = ((session.directory, session.root), (realpath(session.directory), realpath(session.root)))
    for path in spelled:
        for directory, root in places:
            moved = translated(path, directory, root, session.file_root)
            if moved != path and moved not in found:
                found.append(moved)
    return found


def reason(
    tool: str, path: str, held, viewer_identity: str, now: float, by: str = "", within: bool = False,
    own_id: str = "", waiting: int = 0,
) -> str:  # fmt: skip
    """Why the call was refused, for the model that reads it: who, why, since and until when, what now.

    `by`: the part of a longer command that would do it; `within`: the lock is on a folder over `path`; `own_id`: the
    session that is refused, which may be one whose other agent holds. A holder of another identity stays unnamed and
    its note unsaid; that it holds is never hidden. `waiting`: how many wait for it already.
    """
    who, why, ask = holder(held, viewer_identity, own_id)
    age = f"locked {duration(now - held.since)} ago" if held.since else "locked some time ago"
    from swarm_hook_core.untrusted_text import command, named

    through = f" (in the locked folder {named(held.file)})" if within else ""
    if held.pattern:
        through = f" (one of the locked {named(held.file)})"
    if held.elsewhere:
        what = "folder" if within else "file"
        through += f" (the same {what} of another work tree, {named(held.elsewhere)}, is locked for all work trees)"
    still = ", who reads it and keeps it still" if held.mode == "shared" else ""
    which = f" ({command(by)})" if by and not tool.endswith(f"__{by}") else ""
    without = "leave it out of the command, " if which else ""
    return (
        f"swarm lock blocked {tool}{which} for {named(path)}{through}: held by {who}{still} ({why}{age}, {until(held, now)})."
        f" Do not write this file another way: {without}work on something else, {ask}, or {joining(waiting)}"
        f" and then try again."
    )


def joining(waiting: int) -> str:
    """How to get what somebody else holds, by waiting behind as many as are `waiting` for it."""
    line = f"join the {waiting} who wait{'s' if waiting == 1 else ''} for it" if waiting else "wait in line for it"
    return f"{line} (lock_file with wait_seconds, or `swarm-mcp lock FILE --wait SECONDS`)"


def until(held, now: float) -> str:
    """How long a lock holds, in words."""
    words = "until it is released or that session ends"
    if held.lease is not None:
        from swarm_hook_core.clock import left
        from swarm_hook_core.process import host_id

        words = f"lapses in {duration(left(*held.lease, host_id(), now))} unless renewed"
    if isinstance(held.expected_end, (int, float)):
        away = held.expected_end - now
        words += f", expected to end in {duration(away)}" if away > 0 else f", expected to end {duration(-away)} ago"
    return words


def holder(held, viewer_identity: str, own_id: str = "") -> tuple[str, str, str]:
    """Who holds, ``note: ...; `` or nothing, and whom to ask, as far as this identity may know."""
    is_own = bool(own_id) and held.instance_id == own_id
    if not is_own and not same_circle(viewer_identity, token(held.label, "identity")):
        return "a session of another identity", "", "ask the person running it"
    from swarm_hook_core import untrusted_text

    agent, instance = untrusted_text.named(held.agent), untrusted_text.named(held.instance_id)
    why = f"note: {untrusted_text.quoted(held.note)}; " if held.note.strip() else ""
    if is_own:
        return f"another agent of your session (agent {agent})", why, "leave it to that agent"
    who = untrusted_text.label(held.label) if held.label else f"instance {instance}"
    if held.agent:
        who = f"agent {agent} of {who}"
    return who, why, f"message the holder (instance {instance})"


def duration(seconds: float) -> str:
    """A span for people: ``8 s``, ``12 min``, ``3 h``, ``2 days``."""
    seconds = max(0, int(seconds))
    for size, unit in ((172800, "days"), (7200, "h"), (120, "min")):
        if seconds >= size:
            return f"{seconds // {'days': 86400, 'h': 3600, 'min': 60}[unit]} {unit}"
    return f"{seconds} s"
