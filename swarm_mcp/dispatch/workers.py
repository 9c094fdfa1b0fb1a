"""The sessions that work could go to, and telling one of them."""

from __future__ import annotations

from swarm_hook_core.labels import token
from swarm_hook_core.process import ancestors, start_time
from swarm_mcp.actor import NO_AGENTS
from swarm_mcp.dispatch.request import GENERALIST, scrubbed_text
from swarm_mcp.store.registration import RUN_RUNTIME
from swarm_mcp.visibility import may_meet
from swarm_mcp.workspace.prompting import deliver

# Of sessions that are no agents, or have their one task already.
BUSY_RUNTIMES = (*NO_AGENTS, RUN_RUNTIME)


def find(store, requester: dict, role: str) -> dict | None:
    """The first live session with the role, else the first that is good for anything."""
    sessions = store.instances.in_scope(requester["scope"])
    runs = store.runs.live(requester["scope"])
    busy = {run["instance_id"] for run in runs}  # a supervised worker has one task and ends with it
    masters = _processes_of(sessions, runs, store.here)
    peers = [
        row
        for row in sessions
        if row["id"] != requester["id"]
        and row["id"] not in busy
        and row["runtime"] not in BUSY_RUNTIMES
        and may_meet(requester["label"], row["label"])
    ]
    for roles in ((role,), ("", GENERALIST)):
        for row in peers:
            if token(row["label"] or "", "role") in roles and not _is_anothers_helper(row, masters, store.here):
                return row
    return None


def _processes_of(sessions: list[dict], runs: list[dict], here: str) -> set[tuple[int, str]]:
    """Pid and start time of the agents at work on this machine, and of the supervisors of runs."""
    agents = [row for row in sessions if row["runtime"] not in NO_AGENTS]
    found = {(row["client_pid"], row["client_start"]) for row in agents if row["client_pid"] and row["host"] == here}
    return found | {(run["supervisor_pid"], run["supervisor_start"]) for run in runs if run["host"] == here}


def _is_anothers_helper(row: dict, masters: set[tuple[int, str]], here: str) -> bool:
    """Whether an agent, or a run, has started this session: then it works for that one, and ends when it is done."""
    if not row["client_pid"] or row["host"] != here:
        return False
    pids = {pid for pid, _started in masters}
    return any(pid in pids and (pid, start_time(pid)) in masters for pid in ancestors(below=row["client_pid"]))


def assigned(store, requester: dict, task: dict) -> dict | None:
    """The live session that has the task, as far as the requester may meet it."""
    row = store.instances.live(task["assignee"]) if task["assignee"] else None
    return row if row and may_meet(requester["label"], row["label"]) else None


def tell(store, requester: dict, worker: dict, task: dict, message: str, nudge: bool, force: bool) -> dict:
    """Leave the instructions in the worker's inbox and wake it; not twice while they lie there unread.

    A supervised worker had them with its start, and is told what is new only.
    """
    content = f"[task:{task['id']}] {message}"
    kept = f"[task:{task['id']}] {scrubbed_text(message)}"  # as a supervisor writes it down
    told = 1 if store.runs.of_instance(worker["id"]) else 0
    with store.writing():
        waiting = store.row(
            "SELECT 1 FROM messages WHERE scope = ? AND recipient = ? AND read <= ? AND sender = ?"
            " AND content IN (?, ?)",
            (requester["scope"], worker["id"], told, requester["id"], content, kept),
        )
        if not waiting and worker["id"] != requester["id"]:
            store.messages.post(requester["scope"], requester["id"], worker["id"], content)
    return deliver(store, requester, worker["id"], content, nudge, force)
