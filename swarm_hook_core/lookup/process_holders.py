"""Locks that one process holds: those of ``swarm-mcp hold``. They are void once it has ended.

Inside of a session such a process holds as one of its agents, whose name says which process it is. Without one it
is a session of its own, of the runtime `RUNTIME`. What it runs may write what it holds.
"""

from swarm_hook_core.process import ancestors, gone, start_time

PREFIX = "hold:"
RUNTIME = "hold"


def agent_of(pid: int, started: str, here: str) -> str:
    """Return the agent as which a process holds; `here` as ``process.host_id()``."""
    return f"{PREFIX}{pid}:{started}:{_place(here)}"


def has_ended(agent, here: str) -> bool:
    """Tell whether `agent` (None or empty for none) is a process that provably no longer runs."""
    pid, started, place = _parts(agent)
    return bool(pid) and place == _place(here) and gone(here, pid, started, here)


def runs_inside(agent, evidence) -> bool:
    """Tell whether this process was started by the one that holds, by its `agent` or ``liveness`` `evidence`."""
    pid, started, _place = _parts(agent)
    if not pid and evidence and evidence["runtime"] == RUNTIME:
        pid, started = evidence["client_pid"], evidence["client_start"]
    return bool(pid) and pid in ancestors() and start_time(pid) == started


def _parts(agent) -> tuple:
    """Return pid, start time and place of a process; ``(0, "", "")`` where `agent` is none."""
    if not isinstance(agent, str) or not agent.startswith(PREFIX):
        return 0, "", ""
    pid, _, rest = agent[len(PREFIX) :].partition(":")
    started, _, place = rest.rpartition(":")
    return (int(pid), started, place) if pid.isdigit() else (0, "", "")


def _place(here: str) -> str:
    from binascii import crc32  # a file of its own, for what few sessions have

    return f"{crc32(here.encode('utf-8', 'replace')):08x}"
