"""What the session of a call knows of a file by its own journal: whether it has seen what somebody else wrote.

It saw what it read and what it wrote itself. That it was denied a call, or told of a change, is no look (``met``). With
what it saw stands the state that the file had then: one that is in that state still was seen, whatever the clocks say.
One that is not is unseen, even where the trace is older: a write may come long after its note, when a person was asked,
say. Unless that was the session's own write: what it left is noted at its next call (``is``).
"""

import time

from swarm_hook_core.traces import NO_FILE, escaped, journal, state_of

KNOWN = ("wrote", "saw")
NO_ID = "-"  # of a call whose client has no ids
APART_NS = 10**9  # calls of one agent that are noted within that time may be made side by side
_CALLS = (b"will", b"wrote", b"ran", b"clears")  # kinds that a call leaves as it begins
OWN_TAIL = 8192  # bytes at the end of the own journal in which writes are still to be looked at


def has_seen(own: bytes, path: str, keys, entry, ended_ns=None) -> bool:
    """Return True if the session with the entries `own` has seen what another's write, `entry`, made of the file.

    `keys`: those of the file's path; `ended_ns()`: when the call of that write was over, 0 where nobody knows.
    """
    state = state_of(path)
    known = [found for key in keys if (found := _last_known(own, key, state))]
    if not known:
        return False
    last = max(known, key=lambda found: found.at_ns)
    if last.kind == "wrote":
        if entry.at_ns > last.at_ns or not _is_as_left(own, path, keys, last):
            return False
        # Where both began from one state, the other's may have come after the session's own, or before its end.
        return not _is_alike(entry, last) or (ended_ns is not None and 0 < ended_ns() < last.at_ns)
    if last.text != state:
        return state == NO_FILE
    # A file's times do not change within a tick: what was written just before a look may have been written again.
    age_ns = last.at_ns - int(state.partition(" ")[0]) if state != NO_FILE else -1
    return entry.at_ns <= last.at_ns or not 0 <= age_ns < journal.SLACK_NS


def is_own(own: bytes, path: str, keys, since_ns: int) -> bool:
    """Return True if the session itself has written the file since then, and left it as it is."""
    last = _newest(own, keys, ("wrote",))
    return (
        last is not None
        and last.at_ns > since_ns
        and last.text != state_of(path)
        and _is_as_left(own, path, keys, last)
    )


def has_met(own: bytes, keys, entry) -> bool:
    """Return True if the session was told of `entry` itself, or has written the file with these `keys` since."""
    last = _newest(own, keys, ("wrote", "met"))
    return last is not None and last.at_ns >= entry.at_ns


def wrote_alike(own: bytes, keys, entry) -> bool:
    """Return True if the session was let write the file in the very state that the file had when `entry` was noted.

    Nobody knows then which of the two has changed it since, unless the session's own call was over before.
    """
    wrote = (one for key in keys for one in journal.newest_first(own, key, ("wrote",)))
    return any(_is_alike(entry, one) and not 0 < ended_ns(own, one) < entry.at_ns for one in wrote)


def ended_ns(data: bytes, entry) -> int:
    """Return when the call that `entry` of the journal `data` is of has ended, by what is noted since; 0: nobody knows.

    It has by the session's next call (``is``, ``over``), by the end of its turn (``over``), and, where the session is
    alone and notes no more than each call, by what the same agent has been let write since, but for what may have been
    side by side with it.
    """
    found, later = 0, entry.at_ns + APART_NS
    about, agent = escaped(entry.key), (entry.agent or "-").encode()
    for raw in reversed(data.split(b"\n")):
        head, _, rest = raw.partition(b"\0")
        words = head.split(b" ")
        if len(words) != 4 or not words[0].isdigit():
            continue  # torn
        at_ns, kind = int(words[0]), words[1]
        if at_ns < entry.at_ns - APART_NS:
            break
        if at_ns <= entry.at_ns:
            continue  # noted at the same moment
        is_left = kind == b"is" and entry.kind != "ran" and rest.partition(b"\0")[0] == about
        if is_left or (words[2] == agent and (kind == b"over" or (kind in _CALLS and at_ns > later))):
            found = at_ns
    return found


def times_denied(own: bytes, key: str, call_id: str, since_ns: int) -> int:
    """Return how many calls were denied for the file with this key since then, or since it was last seen or written.

    That with the id `call_id` is not counted: two processes may answer one call.
    """
    ids: set = set()
    for number, entry in enumerate(journal.newest_first(own, key, ("met", *KNOWN))):
        if entry.kind != "met" or entry.at_ns < since_ns:
            break
        if not call_id or entry.text != call_id:
            ids.add(entry.text if entry.text != NO_ID else str(number))
    return len(ids)


def _is_alike(entry, own) -> bool:
    return entry.kind == own.kind == "wrote" and entry.text == own.text


def is_untold(own: bytes, path: str, trace) -> bool:
    """Whether it was not told of that write either, among others."""
    told = journal.newest(own, path, ("told",))
    return told is None or told.at_ns < trace.at_ns


def note_what_was_left(own: bytes, trail, only=None) -> bool:
    """Note in `trail` what the session's own last writes have left, where that was not noted yet: they are over.

    One that has not changed its file is over only where it is of the same agent, and no call that was made beside this
    one. `only`: the paths that are looked at, of a call that has ended. Return True if there was anything to note.
    """
    has_noted, last_ns = False, time.time_ns() - (APART_NS if only is None else 0)
    for entry in open_writes(own):
        if only is not None and entry.key not in only:
            continue
        is_over = entry.agent == trail.call.agent and entry.at_ns <= last_ns
        if is_over or entry.text != state_of(entry.key):
            from swarm_hook_core.watching.snapshot import full

            trail.note("is", entry.key, str(full(entry.key)))
            has_noted = True
    return has_noted


def has_open_command(own: bytes, agent: str) -> bool:
    """Return True if the agent's newest entry is a command that nobody had read, and was not made beside this call."""
    name, last_ns = (agent or "-").encode(), time.time_ns() - APART_NS
    for raw in reversed(own[-OWN_TAIL:].split(b"\n")):
        words = raw.partition(b"\0")[0].split(b" ")
        if len(words) == 4 and words[2] == name and words[0].isdigit():
            return words[1] == b"ran" and int(words[0]) <= last_ns
    return False


def open_writes(own: bytes) -> list:
    """Return the entries of the session's own last writes of which it is not noted what they have left."""
    found, noted = [], set()
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
            found.append(entry)
    return found


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
