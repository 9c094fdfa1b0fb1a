"""Ways to start a worker: the interface of a spawner, the spawners by name, and the spawner of a user interface.

A spawner only starts a worker. The worker shows up in the store, by registering under its reserved instance id.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple, Protocol

from swarm_hook_core.labels import token
from swarm_mcp.domain.session import Session
from swarm_mcp.errors import Refused, SwarmError
from swarm_mcp.store import Store

# Name -> (module here, class). Each class is a `Spawner`.
SPAWNERS = {
    "process": ("processes", "Processes"),
    "swarm-ui": ("spawners", "UiShells"),
}
ALIASES = {"ui": "swarm-ui"}
# It starts a supervisor of ours (``supervision``): that gives the worker its instructions and ends its task.
SUPERVISED = "process"
RETIRED = ("tmux", "herdr")


class SpawnFailed(SwarmError):
    """No worker could be set going; the text says why, in one line."""


class WorkerSpec(NamedTuple):
    """A worker for a spawner to start.

    requester    row of the requesting session
    task_id      its task
    instance_id  reserved for it: it is to register with ``SWARM_MCP_INSTANCE_ID`` set to this
    role, harness, cwd, label, name, message, placement   as in a dispatch
    command      the words that start the harness; empty for its own
    title        of the task
    lock         name of the spawn lock under which it is started
    run          options of a supervised worker's run (``request.RUN_OPTIONS``)
    """

    requester: Session
    task_id: str
    instance_id: str
    role: str
    harness: str
    command: tuple[str, ...]
    cwd: str
    label: str = ""
    name: str = ""
    message: str = ""
    placement: dict[str, Any] = {}
    title: str = ""
    lock: str = ""
    run: dict[str, Any] = {}

    @property
    def label_words(self) -> str:
        """Return the words of its label that name its owner and its purpose."""
        identity = token(self.requester.label or "", "identity")
        return " ".join([*([f"identity:{identity}"] if identity else []), f"role:{self.role}", *self.label.split()])


class Spawner(Protocol):
    """One way to start workers. `patience` is how long a dispatch waits for the worker by default, in seconds."""

    patience: float

    def start(self, store: Store, worker: WorkerSpec) -> dict[str, Any]:
        """Start `worker`, outside of any transaction. Returns facts to find it by; they also go into the answer.

        Called again for the same task after a crash, it must not start a second worker if it can see the first. Raises
        SpawnFailed.
        """

    def look(self, store: Store, facts: dict[str, Any]) -> dict[str, Any] | None:
        """Return new facts about a started worker, None while it is starting.

        They go into the answer, with ``instance_id`` once the worker's is known. Raises SpawnFailed.
        """


def canonical(name: str) -> str:
    """Return a spawner's own name. Raises Refused for one that does not exist."""
    known = ALIASES.get(name, name)
    if known in RETIRED:
        raise Refused(
            f"{known} starts no workers any more: leave the spawner out, and watch with swarm-mcp worker logs TASK -f"
        )
    if known not in SPAWNERS:
        raise Refused(f'Unknown dispatch spawner "{name}". Registered spawners: {", ".join(SPAWNERS)}.')
    return known


def spawner(name: str) -> Spawner:
    """Return the spawner of a canonical name."""
    module, kind = SPAWNERS[name]
    full = f"swarm_mcp.agents.dispatch.{module}"
    __import__(full)
    made: Spawner = getattr(sys.modules[full], kind)()
    return made


KIND = "spawn_shell"


class UiShells:
    """The spawner ``swarm-ui``. It asks; the interface, if one runs, starts the shell."""

    patience = 5.0

    def start(self, store: Store, worker: WorkerSpec) -> dict[str, Any]:
        """Implement ``spawners.Spawner``."""
        row: Any = self._under_way(store, worker)
        if row is None:
            payload: dict[str, Any] = {"cwd": worker.cwd, "harness": worker.harness, "role": worker.role}
            payload.update(task_id=worker.task_id, instance_id=worker.instance_id)
            for name in ("label", "name", "message", "placement"):
                if getattr(worker, name):
                    payload[name] = getattr(worker, name)
            row = store.ui_commands.enqueue(worker.requester.scope, worker.requester.id, KIND, payload)
        return {"ui_command_id": row["id"], "instance_id": row["payload"]["instance_id"]}

    def look(self, store: Store, facts: dict[str, Any]) -> dict[str, Any] | None:
        """Implement ``spawners.Spawner``."""
        row = store.ui_commands.get(facts["ui_command_id"])
        if row is None:
            raise SpawnFailed(f"ui command {facts['ui_command_id']} is not there any more")
        if row.status == "failed":
            raise SpawnFailed(row.error or f"ui command {row.id} failed and did not say why")
        if isinstance(row.result, dict):
            known = row.result.get("instance_id")
        else:
            known = None
        worker = store.instances.live(known if isinstance(known, str) else facts["instance_id"])
        if worker:
            return {"instance_id": worker.id, "ui_command": row}
        if row.status == "done":
            return {"ui_command": row}
        return None

    def _under_way(self, store: Store, worker: WorkerSpec) -> dict[str, Any] | None:
        """The order for the same task of a dispatcher that was killed right after it had put it there."""
        for status in ("pending", "running"):
            for row in store.ui_commands.recent(worker.requester.scope, status, -1):
                payload = row.payload
                same = isinstance(payload, dict) and payload.get("task_id") == worker.task_id
                if same and row.kind == KIND and isinstance(payload.get("instance_id"), str):
                    return row
        return None
