"""The number of sessions that wait for a lock, for a denial. Loaded only for a denied call."""

from typing import Any

from swarm_hook_core import clock
from swarm_hook_core.json_text import loads
from swarm_hook_core.lookup.pattern_locks import covered
from swarm_hook_core.paths import NO_CASE, contains, key_of
from swarm_hook_core.process import gone, host_id


def count(rows: "Any", path: str) -> int:
    """Return how many of `rows` wait for something that `path` is part of, or that is below it.

    A row is ``(wants, until, host, pid, start)`` of ``swarm_waiters``; those that have gone do not count.
    """
    key, here, now = key_of(path), host_id(), clock.now()
    found = 0
    for wants, until, host, pid, start in rows:
        over = isinstance(until, (int, float)) and until < now
        if not over and not gone(host, pid, start, here) and _meets(wants, key):
            found += 1
    return found


def _meets(wants: "Any", key: str) -> bool:
    try:
        asked = loads(wants)
    except (ValueError, TypeError, RecursionError):  # another program's row
        return False
    return isinstance(asked, list) and any(_is_met(want, key) for want in asked if isinstance(want, dict))


def _is_met(want: "dict[str, Any]", key: str) -> bool:
    pattern, stored = want.get("pattern"), want.get("path_key")
    if pattern:
        return bool(covered(pattern, want.get("base"), stored, (key,)))
    names = [stored, *(want.get("keys") or ())]
    return any(_is_in_reach(key, name) for name in names if isinstance(name, str))


def _is_in_reach(key: str, other: str) -> bool:
    fold = NO_CASE in (key[: len(NO_CASE)], other[: len(NO_CASE)])
    one, two = (_plain(name, fold) for name in (key, other))
    return contains(one, two) or contains(two, one)


def _plain(key: str, fold: bool) -> str:
    if key.startswith(NO_CASE):
        path = key[len(NO_CASE) :]
    else:
        path = key
    if fold:
        return path.casefold()
    return path
