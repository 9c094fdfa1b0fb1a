"""The locks that end with a task: what its assignee locked for it, and nothing else."""

from __future__ import annotations

from swarm_hook_core.paths import key_of
from swarm_mcp.store import task_rows as rows
from swarm_mcp.store import task_states as states


def keys_of(task: dict) -> list[str]:
    """By what names its declared files may be locked. Asks the file system, which may be slow."""
    return [key_of(file) for file in task["files"] or ()]


def release(store, task: dict, keys: list[str] | None = None) -> None:
    """Inside a transaction: free what the assignee locked by the task's tag, or untagged on one of its files.

    `keys` as `keys_of` gives them; without them they are found here, where such a lock may be.
    """
    if not task["assignee"]:
        return
    held = "FROM context WHERE type = 'lock' AND instance_id = ?"
    if keys is None:
        untagged = store.row(f"SELECT 1 {held} AND task_id IS NULL LIMIT 1", (task["assignee"],))
        keys = keys_of(task) if untagged else []
    found = store.rows(
        f"SELECT id, instance_id, scope, file, path_key, task_id {held}"
        f" AND (task_id = ? OR task_id IS NULL AND (file IN {rows.AMONG} OR path_key IN {rows.AMONG}))",
        (task["assignee"], task["id"], states.as_json(task["files"] or []), states.as_json(keys)),
    )
    store.locks.drop(found, "task_terminal", task_id=task["id"])
