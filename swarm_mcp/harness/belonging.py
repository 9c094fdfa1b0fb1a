"""A run's place among the others while it lasts: taken before the child starts, kept alive, given up at the end."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from swarm_hook_core import faults
from swarm_mcp.harness.event_sink import RUNTIME

BEAT_SECONDS = 5.0


@contextlib.contextmanager
def belonging(membership) -> Iterator[None]:
    """`membership` as ``membership.Membership`` has it, None for none. Raises what its `join` raises.

    Signs of life are given by a thread: the store may keep one waiting, and the child's pipes must not fill meanwhile.
    """
    if membership is None:
        yield
        return
    membership.join()
    over = threading.Event()
    pulse = threading.Thread(target=_beat, args=(membership, over), daemon=True)
    pulse.start()
    try:
        yield
    finally:
        over.set()
        pulse.join(BEAT_SECONDS)
        try:
            membership.leave()
        except Exception as error:  # what the run came to is not to be lost over this
            faults.record(RUNTIME, "leave", faults.describe(error))


def _beat(membership, over: threading.Event) -> None:
    beat = getattr(membership, "beat", None)
    while beat and not over.wait(BEAT_SECONDS):
        try:
            beat()
        except Exception as error:  # the next one may be heard
            faults.record(RUNTIME, "beat", faults.describe(error))
