"""What the session of a call knows of a file by its own journal: whether it has seen what somebody else wrote.

It saw what it read, what it wrote itself, and what it was told of. With what it saw stands the state that the file had
then: one that is in that state still was seen, whatever the clocks say. One that is not is unseen, even where the trace
is older: a write may come long after its note, when a person was asked, say. Unless that was the session's own write:
what it left is noted at its next call (``is``).
"""

from swarm_hook_core.traces import NO_FILE, journal, state_of

KNOWN = ("wrote", "saw")
OWN_TAIL = 8192  # bytes at the end of the own journal in which writes are still to be looked at


def is_unseen(own: bytes, path: str, keys, entry) -> bool:
    """Whether the session with the entries `own` does not know of another's write, `entry`, of the file at `path`.

    `keys`: those of the path.
    """
    state = state_of(path)
    known = [found for key in keys if (found := _last_known(own, key, state))]
    if not known:
        return True
    last = max(known, key=lambda found: found.at_ns)
    if last.kind == "wrote":
        return entry.at_ns > last.at_ns or not _is_as_left(own, path, keys, last)
    if last.text != state:
        return state != NO_FILE
    # A file's times do not change within a tick: what was written just before a look may have been written again.
    age_ns = last.at_ns - int(state.partition(" ")[0]) if state != NO_FILE else -1
    return entry.at_ns > last.at_ns and 0 <= age_ns < journal.SLACK_NS


def is_newer(own: bytes, keys, entry) -> bool:
    """Whether `entry` is newer than all that the session knows of the file with these `keys`."""
    last = _newest(own, keys, KNOWN)
    return last is None or last.at_ns < entry.at_ns


def is_untold(own: bytes, path: str, trace) -> bool:
    """Whether it was not told of that write either, among others."""
    told = journal.newest(own, path, ("told",))
    return told is None or told.at_ns < trace.at_ns


def note_what_was_left(own: bytes, trail) -> None:
    """Note in `trail` what the session's own last writes have left, where that was not noted yet."""
    noted = set()
    for raw in reversed(own[-OWN_TAIL:].split(b"\n")):
        if b" wrote " not in raw and b" is " not in raw:
            continue
        try:
            key = raw.split(b"\0", 2)[1]
            if key in noted:
                continue
            entry = journal.Entry(raw)
        except (IndexError, ValueError):
            continue  # torn, or cut off
        noted.add(key)
        if entry.kind == "wrote" and entry.key.startswith("/"):
            from swarm_hook_core.watching.snapshot import full

            trail.note("is", entry.key, str(full(entry.key)))


def _is_as_left(own: bytes, path: str, keys, last) -> bool:
    """Whether the file is as this session's own write, the entry `last`, has left it."""
    left = _newest(own, keys, ("is",))
    if left is None or left.at_ns < last.at_ns:
        return True  # that has not been looked at: nobody else is known to have written
    from swarm_hook_core.watching.snapshot import difference, parse

    return not difference(parse(left.text), path)[0]


def _last_known(own: bytes, key: str, state: str):
    """Its newest entry of KNOWN; what it knew before a write that was never made, it knows after it as well."""
    entries = journal.newest_first(own, key, KNOWN)
    return next((entry for entry in entries if entry.kind != "wrote" or entry.text != state), None)


def _newest(own: bytes, keys, kinds):
    found = [entry for key in keys if (entry := journal.newest(own, key, kinds))]
    return max(found, key=lambda entry: entry.at_ns, default=None)
