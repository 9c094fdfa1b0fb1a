"""The session's own knowledge of a file: by its journal, has it seen another session's change?

A session has seen the changes in a file that it read or wrote. A denial, or a notice about a change, is no look
(``met``). Each look is noted with the file's state. A file still in that state was seen, whatever the clocks say. A
file in another state is unseen, even if the trace is older than the look: a write may come long after its entry, for
example when a person was asked. The exception is the session's own write: the state that it left is noted at the
session's next call (``is``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from functools import partial

from swarm_hook_core.traces import NO_FILE, OWN_NS, UNDO, escaped, journal, state_of
from swarm_hook_core.traces.journal import Entry
from swarm_hook_core.watching.records import difference, full_resolved, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.traces.trail import Trail

KNOWN = ("wrote", "saw")
NO_ID = "-"  # for calls of a client without ids
APART_NS = 10**9  # calls of one agent closer than this may run side by side
CALLS = (b"will", b"wrote", b"ran", b"runs", b"clears")  # kinds of entries that a call makes as it begins
OWN_TAIL = 8192  # bytes at the end of the session's own journal that are searched for open writes


def has_seen(
    own: bytes, path: str, keys: Collection[str], entry: Entry, ended_ns: Callable[[], int] | None = None
) -> bool:
    """Return True if the session with the journal `own` has seen the change by `entry`, another session's write.

    `keys`: keys of the file's path. `ended_ns()`: the end of that write's call, 0 if unknown.
    """
    state = state_of(path)
    last = last_known(own, keys, state)
    if last is None or was_merged(own, keys, entry.at_ns):
        return False
    if last.kind == "wrote":
        if entry.at_ns > last.at_ns or not _is_as_left(own, path, keys, last):
            return False
        # Both calls found the file in the same state: the other's write may have come after the session's own, or
        # before it ended.
        return not _is_alike(entry, last) or (ended_ns is not None and was_over(ended_ns(), last.at_ns))
    if last.text != state:
        return state == NO_FILE
    # A file's times do not change within a tick: a write after the look may have left the same state.
    age_ns = -1
    if state != NO_FILE:
        age_ns = last.at_ns - int(state.partition(" ")[0])
    return entry.at_ns <= last.at_ns or not 0 <= age_ns < journal.SLACK_NS


def was_merged(own: bytes, keys: Collection[str], at_ns: int) -> Entry | None:
    """Return the entry of the session's write that was merged with others' changes after `at_ns`, or None.

    None also if the session has looked at the file since: then it knows the merged text.
    """
    if not journal.has_kind(own, b"merged"):
        return None
    last = _newest(own, keys, ("merged", "saw"))
    return last if last is not None and last.kind == "merged" and last.at_ns > at_ns else None


def is_own(own: bytes, path: str, keys: Collection[str], since_ns: int) -> bool:
    """Return True if the session itself has written the file after `since_ns`, and the file is as it left it."""
    last = _newest(own, keys, ("wrote",))
    return (
        last is not None
        and last.at_ns > since_ns
        and last.text != state_of(path)
        and _is_as_left(own, path, keys, last)
    )


def has_met(own: bytes, keys: Collection[str], entry: Entry) -> bool:
    """Return True if the session was told of `entry`, or has written the file with these `keys` since."""
    met = (one for key in keys for one in journal.newest_first(own, key, ("wrote", "met")) if one.tool != UNDO)
    return any(one.at_ns >= entry.at_ns for one in met)


def may_have_changed(own: bytes, keys: Collection[str], entry: Entry, changed_ns: int) -> bool:
    """Return True if a change of the file since `entry`, another session's write, may come from an own write.

    `changed_ns`: as of `may_come_from`.
    """
    wrote = (one for key in keys for one in journal.newest_first(own, key, ("wrote",)))
    return any(may_come_from(one, entry, changed_ns, partial(ended_ns, own, one)) for one in wrote)


def may_come_from(one: Entry, entry: Entry, changed_ns: int, ended_ns: Callable[[], int]) -> bool:
    """Return True if a change of the file since the write `entry` may come from `one`, another write of it.

    Both were let pass while the file was in the same state; or `one`, or a formatter behind it, was still at work at
    `changed_ns` (0: a change that `entry` alone explains). Not so if the call of `one` was over by then.
    """
    if _is_alike(one, entry):
        return not was_over(ended_ns(), entry.at_ns)
    is_earlier = one.kind == "wrote" and one.at_ns < entry.at_ns
    if not is_earlier or not 0 < changed_ns <= one.at_ns + OWN_NS:
        return False
    return not 0 < ended_ns() < changed_ns


def was_over(ended_ns: int, at_ns: int) -> bool:
    """Return True if a call with this end, 0 if unknown, was over by the time `at_ns` of the clock.

    A mark of an end has a file's time: it lags behind.
    """
    return 0 < ended_ns < at_ns - journal.SLACK_NS


def ended_ns(data: bytes, entry: Entry) -> int:
    """Return the end of the call of `entry`, by later entries of the journal `data`; 0 if unknown.

    Its end is certain after the session's next call (``is``, ``over``) and after the end of its turn (``over``). A
    session that is alone notes only the beginning of calls; there a later call of the same agent ends it, unless the
    two may have run side by side.
    """
    found, later = 0, entry.at_ns + APART_NS
    about, agent = escaped(entry.key), (entry.agent or "-").encode()
    for words, raw in journal.heads(data, newest_first=True):
        at_ns, kind = int(words[0]), words[1]
        if at_ns < entry.at_ns - APART_NS:
            break
        if at_ns <= entry.at_ns:
            continue  # noted at the same moment
        is_left = kind == b"is" and entry.kind != "ran" and raw.split(b"\0", 2)[1:2] == [about]
        if is_left or (words[2] == agent and (kind == b"over" or (kind in CALLS and at_ns > later))):
            found = at_ns
    return found


def times_denied(own: bytes, key: str, call_id: str, since_ns: int) -> int:
    """Return the number of calls denied for the file after `since_ns`, and after its last look or write.

    The call with the id `call_id` is not counted: two processes may answer one call.
    """
    ids: set[str] = set()
    for number, entry in enumerate(journal.newest_first(own, key, ("met", *KNOWN))):
        if entry.kind != "met" or entry.at_ns < since_ns:
            break
        if not call_id or entry.text != call_id:
            ids.add(entry.text if entry.text != NO_ID else str(number))
    return len(ids)


def _is_alike(entry: Entry, own: Entry) -> bool:
    return entry.kind == own.kind == "wrote" and entry.text == own.text


def is_untold(own: bytes, path: str, at_ns: int, kind: str = "told") -> bool:
    """Return True if the session was not told of a write at that time, by an entry of this kind."""
    told = journal.newest(own, path, (kind,))
    return told is None or told.at_ns < at_ns


def note_what_was_left(own: bytes, trail: Trail, only: Collection[str] | None = None) -> bool:
    """Note in `trail` the states that the session's last writes have left, if not noted before: their calls are over.

    A write that has not changed its file is over only if it belongs to the same agent and to no parallel call. `only`:
    restrict to these paths, of a call that has ended. Return True if anything was noted.
    """
    has_noted, last_ns = False, time.time_ns() - (APART_NS if only is None else 0)
    for entry in open_writes(own):
        if only is not None and entry.key not in only:
            continue
        is_over = entry.agent == trail.call.agent and entry.at_ns <= last_ns
        if is_over or entry.text != state_of(entry.key):
            trail.look(entry.key, str(full_resolved(entry.key)), at_end=only is not None)
            has_noted = True
    return has_noted


def has_open_command(own: bytes, agent: str) -> bool:
    """Return True if the agent's newest entry is an unparsed command of an earlier call."""
    name, last_ns = (agent or "-").encode(), time.time_ns() - APART_NS
    for words, _raw in journal.heads(own[-OWN_TAIL:], newest_first=True):
        if words[2] == name and words[1] != b"takes":
            return words[1] in (b"ran", b"runs") and int(words[0]) <= last_ns
    return False


def open_writes(own: bytes) -> list[Entry]:
    """Return the session's last writes without a noted result."""
    newest: dict[bytes, bytes] = {}  # key -> its last entry of these kinds
    for raw in reversed(own[-OWN_TAIL:].split(b"\n")):
        head, _, rest = raw.partition(b"\0")
        if b" wrote " in head or b" is " in head:
            newest.setdefault(rest.partition(b"\0")[0], raw)
    found = journal.entries(raw for raw in newest.values() if b" wrote " in raw)
    return [entry for entry in found if entry.kind == "wrote" and entry.key.startswith("/")]


def _is_as_left(own: bytes, path: str, keys: Collection[str], last: Entry) -> bool:
    """Return True if the file is as this session's own write, the entry `last`, has left it."""
    left = _newest(own, keys, ("is",))
    if left is None or left.at_ns < last.at_ns:
        return True  # the result was not noted: no other write is known

    return not difference(parse(left.text), path)[0]


def last_known(own: bytes, keys: Collection[str], state: str) -> Entry | None:
    """Return the session's newest look or write of the file with these `keys`, now in this `state`, or None.

    Writes that were never made are skipped, and undos: they show the session nothing of others' lines in the file.
    """
    known = []
    for key in keys:
        entries = (entry for entry in journal.newest_first(own, key, KNOWN) if entry.tool != UNDO)
        known.append(next((entry for entry in entries if entry.kind != "wrote" or entry.text != state), None))
    return max(filter(None, known), key=lambda entry: entry.at_ns, default=None)


def _newest(own: bytes, keys: Collection[str], kinds: Collection[str]) -> Entry | None:
    found = [entry for key in keys if (entry := journal.newest(own, key, kinds))]
    return max(found, key=lambda entry: entry.at_ns, default=None)
