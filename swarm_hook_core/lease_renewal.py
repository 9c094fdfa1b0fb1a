"""The session's own leases, renewed on its way past a check, and news about them.

The hook itself writes nothing: the coordinator's command does, in the background if it only renews.
"""

from __future__ import annotations

import os
import time
from typing import Any

from swarm_hook_core import process, scratch
from swarm_hook_core.clock import left
from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.coordinator import command
from swarm_hook_core.process import host_id, run
from swarm_hook_core.state import write_private
from swarm_hook_core.untrusted_text import TEXT, cut_text

TELL_SECONDS = 0.8  # for the coordinator's news; after that, the next hook asks again
PARTS = 3  # signs of life in the time of a lease


def renew(
    config: RuntimeConfig,
    session_id: str,
    leases: list[Any],
    has_news: bool,
    coordinator: list[str] | None = None,
) -> str:
    """Renew this session's locks if a third of a lease is over; return words for its model, nearly always empty.

    `leases` has ``(ttl, renewed, booted, wall_until)`` of each lock with a lease. `has_news`: the coordinator has news
    of locks for the session. Raises OSError.
    """
    argv = coordinator or command()
    if not argv or not session_id:
        return ""
    words = [*argv, "alive", "--runtime", config.runtime_name, "--session-id", session_id]
    here, now = host_id(), time.time()
    spans = [(lease[0], span) for lease in leases if (span := left(lease, here, now)) is not None]
    if has_news or any(span <= 0 for _ttl, span in spans):
        done = run([*words, "--tell"], TELL_SECONDS)

        if done.code == 0:
            return cut_text(done.stdout.strip(), 10 * TEXT)
        return ""
    due = [ttl for ttl, span in spans if span <= ttl * (1 - 1 / PARTS)]
    if due and _is_first(config, session_id, min(due) / PARTS):
        process.start_detached(words)
    return ""


def _is_first(config: RuntimeConfig, session_id: str, seconds: float) -> bool:
    """Return True if no other hook of this session has started that within `seconds`."""
    mark = os.path.join(scratch.folder_of(config, session_id), scratch.RENEWED)
    try:
        if 0 <= time.time() - os.stat(mark).st_mtime < seconds:
            return False
    except OSError:
        pass  # the first time

    try:
        write_private(mark, "")
    except OSError:
        return True  # a command too many costs less than a lock
    return True
