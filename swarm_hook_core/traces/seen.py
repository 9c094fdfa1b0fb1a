"""What the session of a call knows of a file by its own journal: whether it has seen what somebody else wrote.

It saw what it read, what it wrote itself, and what it was told of. Two more things are looked at on the disk. The
write of a trace comes later than its note, after a person was asked, say: so a file that has changed since a session
saw it is unseen, even where the trace is older. Unless that was the session's own write: what it left is noted at its
next call (``is``).
"""

import os

from swarm_hook_core.traces import journal

KNOWN = ("wrote", "saw")
OWN_TAIL = 8192  # bytes at the end of the own journal in which writes are still to be looked at


def is_unseen(own: bytes, path: str, keys, entry) -> bool:
    """Whether the session with the entries `own` does not know of another's write, `entry`, of the file at `path`.

    `keys`: those of the path.
    """
    last = _newest(own, keys, KNOWN)
    if last is None or entry.at_ns > last.at_ns:
        return True
    try:
        changed_ns = os.lstat(path).st_ctime_ns
    except OSError:
        return False
    return changed_ns > last.at_ns - journal.SLACK_NS and not _is_as_left(own, path, keys, last)


def is_untold(own: bytes, path: str, entry) -> bool:
    """Whether it was not told of that write either, among others."""
    told = journal.newest(own, path, ("told",))
    return told is None or told.at_ns < entry.at_ns


def note_what_was_left(own: bytes, trail) -> None:
    """Note in `trail` what the session's own last writes have left, where that was not noted yet."""
    noted = set()
    for raw in reversed(own[-OWN_TAIL:].split(b"\n")):
        if b" wrote " not in raw and b" is " not in raw:
            continue
        try:
            entry = journal.Entry(raw)
        except ValueError:
            continue  # torn, or cut off
        if entry.key in noted:
            continue
        noted.add(entry.key)
        if entry.kind == "wrote" and entry.key.startswith("/"):
            from swarm_hook_core.watching.snapshot import full

            trail.note("is", entry.key, str(full(entry.key)))


def _is_as_left(own: bytes, path: str, keys, last) -> bool:
    """Whether the file is as this session's own write has left it. `last`: its newest entry of KNOWN."""
    left = _newest(own, keys, ("is",))
    if left is None or (last.kind == "wrote" and left.at_ns < last.at_ns):
        return last.kind == "wrote"  # what it left has not been looked at: nobody else is known to have written
    from swarm_hook_core.watching.snapshot import difference, parse

    return not difference(parse(left.text), path)[0]


def _newest(own: bytes, keys, kinds):
    found = [entry for key in keys if (entry := journal.newest(own, key, kinds))]
    return max(found, key=lambda entry: entry.at_ns, default=None)
