"""Workers started by a user interface that reads the store's queue of commands."""

from __future__ import annotations

from typing import Any

from swarm_mcp.dispatch.spawners import SpawnFailed, WorkerSpec

KIND = "spawn_shell"


class UiShells:
    """The spawner ``swarm-ui``. It asks; the interface, if one runs, starts the shell."""

    patience = 5.0

    def start(self, store, worker: WorkerSpec) -> dict:
        """Implement ``spawners.Spawner``."""
        row: Any = self._under_way(store, worker)
        if row is None:
            payload: dict = {"cwd": worker.cwd, "harness": worker.harness, "role": worker.role}
            payload.update(task_id=worker.task_id, instance_id=worker.instance_id)
            for name in ("label", "name", "message", "placement"):
                if getattr(worker, name):
                    payload[name] = getattr(worker, name)
            row = store.ui_commands.enqueue(worker.requester.scope, worker.requester.id, KIND, payload)
        return {"ui_command_id": row["id"], "instance_id": row["payload"]["instance_id"]}

    def look(self, store, facts: dict) -> dict | None:
        """Implement ``spawners.Spawner``."""
        row = store.ui_commands.get(facts["ui_command_id"])
        if row is None:
            raise SpawnFailed(f"ui command {facts['ui_command_id']} is not there any more")
        if row["status"] == "failed":
            raise SpawnFailed(row["error"] or f"ui command {row['id']} failed and did not say why")
        known = row["result"].get("instance_id") if isinstance(row["result"], dict) else None
        worker = store.instances.live(known if isinstance(known, str) else facts["instance_id"])
        if worker:
            return {"instance_id": worker.id, "ui_command": row}
        return {"ui_command": row} if row["status"] == "done" else None

    def _under_way(self, store, worker: WorkerSpec) -> dict | None:
        """The order for the same task of a dispatcher that was killed right after it had put it there."""
        for status in ("pending", "running"):
            for row in store.ui_commands.recent(worker.requester.scope, status, -1):
                payload = row["payload"]
                same = isinstance(payload, dict) and payload.get("task_id") == worker.task_id
                if same and row["kind"] == KIND and isinstance(payload.get("instance_id"), str):
                    return row
        return None
