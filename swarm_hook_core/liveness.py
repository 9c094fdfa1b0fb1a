"""The rule by which a session has gone, and its locks with it.

A session that hooks registered goes on proof of its client's death (or, idle, of its terminal's), of every client's if
several have it open, or when it has shown no sign of life for its whole lease. Sessions of other implementations on the
same file carry no process identity; they go by the rule those implementations themselves follow, 60 s without a
heartbeat.
"""

from typing import Any

from swarm_hook_core.process import gone

RECLAIM_SECONDS = 60
FUTURE_SECONDS = 30
SERVER_RUNTIME = "mcp"  # the runtime of sessions that no hook has registered, only an MCP server


def served_by(evidence: "Any", host: str, pid: int, started: str) -> bool:
    """Return True if that session is known only through the MCP server of this very client process."""
    client = (evidence["host"], evidence["client_pid"], evidence["client_start"])
    return evidence["runtime"] == SERVER_RUNTIME and client == (host, pid, started)


def departed(evidence: "Any", now: float, here: str) -> bool:
    """Return True if the session described by `evidence` has gone.

    `evidence`: the columns of ``lookup.sqlite.EVIDENCE`` by name; `now` in Unix seconds; `here` is
    ``process.host_id()`` of the caller.
    """
    host, heartbeat, last_seen = evidence["host"], evidence["heartbeat"], evidence["last_seen"]
    lease, lease_until = evidence["lease_seconds"], evidence["lease_until"]
    try:
        if last_seen is not None:
            # A client that outlives its terminals ends a running turn first, writing as it goes.
            left = gone(host or "", evidence["client_pid"] or 0, evidence["client_start"] or "", here) or (
                evidence["state"] == "idle"
                and gone(host or "", evidence["terminal_pid"] or 0, evidence["terminal_start"] or "", here)
            )
            if left and not living(host, clients_in(evidence["other_clients"]), here):
                return True
            return bool(lease) and last_seen + lease < now
        if evidence["adopted"]:
            if heartbeat < now - RECLAIM_SECONDS:
                return True
            return lease_until is None and heartbeat > now + FUTURE_SECONDS
        return lease_until is not None and lease_until < now
    except (TypeError, AttributeError, ValueError, OverflowError):
        return False  # a row with odd values proves nothing


def clients_in(text: str) -> "list[Any]":
    """Return ``(pid, start time)`` of each other client that has a session open. `text` may be None.

    Words that name no process are left out.
    """
    parts = [word.partition(":") for word in (text or "").split()]
    return [(int(pid), started) for pid, _, started in parts if pid.isascii() and pid.isdigit() and len(pid) < 10]


def living(host: "str | None", clients: "Any", here: str) -> "list[Any]":
    """Return those of `clients`, pairs of pid and start time on `host`, without proof that they have gone."""
    return [client for client in clients if not gone(host or "", client[0] or 0, client[1] or "", here)]
