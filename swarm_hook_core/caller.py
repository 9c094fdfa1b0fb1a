"""The process that a call comes from, as checks see it.

A hook that runs as a process of its own is that process. A checker (``swarm_mcp.checker``) answers for the hooks of its
client: then the caller is the relay that has handed the call over, and this module holds the relay's words.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

LONGEST_TRY_NS = 10 * 10**9  # of a checker, before the hook runs as a process


answers: dict[tuple[object, ...], str] | None = None  # git's, during one check that may ask the same again


class Abandoned(BaseException):
    """The relay has stopped waiting: the hook was killed, or runs as a process of its own by now.

    No ``Exception``: a check that goes on after a fault must not go on after this.
    """


class _Relay:
    """The relay whose call is answered now: its `pid` and `parent`; 0 while this process is a hook itself.

    A plugin that asks from the client's process has no relay: its `pid` is 0, and the client is the `parent`.
    """

    pid = 0
    parent = 0
    demand: Callable[[], None] | None = None
    found: dict[object, str] = {}


def answer_for(pid: int, parent: int, demand: Callable[[], None] | None) -> None:
    """Answer a call of the relay `pid` below `parent` from now on; 0 and 0: be the caller again.

    `demand()` raises Abandoned once the relay has stopped waiting.
    """
    _Relay.pid, _Relay.parent, _Relay.demand, _Relay.found = pid, parent, demand, {}


def is_answering() -> bool:
    """Return True while this process is a checker that answers a call."""
    return _Relay.demand is not None


def once(key: object, find: Callable[[], str]) -> str:
    """Return ``find()``; a checker finds it once for a call, since the environment stays as it is for so long."""
    if _Relay.demand is None:
        return find()
    if key not in _Relay.found:
        _Relay.found[key] = find()
    return _Relay.found[key]


def pid() -> int:
    """Return the pid of the hook; where a plugin asks, this process stands for it."""
    return _Relay.pid or os.getpid()


def parent() -> int:
    """Return the pid of the process that has started the hook: its client, or a shell of its client."""
    if _Relay.demand is None:
        return os.getppid()
    return _Relay.parent  # 0 for one outside of the namespace


def demand_waiting() -> None:
    """Raise Abandoned if the relay has stopped waiting: traces that are left from here on would be left twice."""
    if _Relay.demand is not None:
        _Relay.demand()


def tried_ns() -> int:
    """Return the time at which a relay handed this very call to a checker without an answer; 0 if that was not so."""
    told = os.environ.get("SWARM_TRIED_NS", "")
    if told.isdecimal() and 0 <= time.time_ns() - int(told) < LONGEST_TRY_NS:
        return int(told)
    return 0
