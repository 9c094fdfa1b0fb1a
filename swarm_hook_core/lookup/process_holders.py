"""Locks that one process holds: those of ``swarm-mcp hold``. They are void once it has ended.

Inside a session such a process holds as one of its agents, with the process in the agent's name. Outside, it is a
session of its own, of the runtime `RUNTIME`. Its child processes may write the locked files.
"""

from __future__ import annotations

from typing import Any

from swarm_hook_core.process import ancestors, gone, start_time

PREFIX = "hold:"
RUNTIME = "hold"


def agent_of(pid: int, started: str, here: str) -> str:
    """Return the agent name of a process that holds locks; `here` as ``process.host_id()``."""
    return f"{PREFIX}{pid}:{started}:{_place(here)}"


def has_ended(agent: str | None, here: str) -> bool:
    """Return True if `agent` (may be None or empty) is a process that provably no longer runs."""
    pid, started, place = _parts(agent)
    return bool(pid) and place == _place(here) and gone(here, pid, started, here)


def runs_inside(agent: str | None, evidence: Any) -> bool:
    """Return True if the holder, known by its `agent` or ``process`` `evidence`, has started this process."""
    pid, started, _place = _parts(agent)
    if not pid and evidence and evidence["runtime"] == RUNTIME:
        pid, started = evidence["client_pid"], evidence["client_start"]
    return bool(pid) and pid in ancestors() and start_time(pid) == started


def _parts(agent: str | None) -> tuple[Any, ...]:
    """Return pid, start time and place of a process; ``(0, "", "")`` if `agent` is no process."""
    if not isinstance(agent, str) or not agent.startswith(PREFIX):
        return 0, "", ""
    pid, _, rest = agent[len(PREFIX) :].partition(":")
    started, _, place = rest.rpartition(":")
    if pid.isdigit():
        return (int(pid), started, place)
    return (0, "", "")


def _place(here: str) -> str:
    from binascii import crc32  # a module of its own, since few sessions need it

    return f"{crc32(here.encode('utf-8', 'replace')):08x}"
