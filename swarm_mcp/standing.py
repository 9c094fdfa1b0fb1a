"""Where a session stands: itself, its peers, its mail, its work. What it asks for first, and after losing context."""

from __future__ import annotations

from swarm_hook_core.labels import token
from swarm_mcp.domain.lock import is_mutex
from swarm_mcp.views import registration
from swarm_mcp.visibility import may_meet, veiled

COLUMNS = (
    "id", "scope", "directory", "root", "file_root", "pid", "label", "registered_at", "heartbeat", "adopted",
    "lease_until",
)  # fmt: skip


def peer(store, row: dict) -> dict:
    """An instance in the shape that ``list_instances`` and ``bootstrap`` show: `adopted` is a number there."""
    return store.panes.with_session({name: row[name] for name in COLUMNS})


def met_by(store, me: dict) -> list[dict]:
    """The live sessions of this session's scope that it may meet, itself among them."""
    return [row for row in store.instances.in_scope(me["scope"]) if may_meet(me["label"], row["label"])]


def peers_of(store, me: dict) -> list[dict]:
    """The other sessions that `me` may meet, as `peer` shows them."""
    return [peer(store, row) for row in met_by(store, me) if row["id"] != me["id"]]


def neighbours_of(store, me: dict) -> list[dict]:
    """All other live sessions of the scope, as `peer` shows them; those of another identity without a label."""
    rows = [row for row in store.instances.in_scope(me["scope"]) if row["id"] != me["id"]]
    return [peer(store, row) for row in veiled(rows, token(me["label"] or "", "identity"))]


def held_by(store, me: dict) -> list[dict]:
    """The files this session has locked, oldest first: ``{id, file, content, task_id, created_at}``."""
    names = ("id", "file", "content", "task_id", "created_at")
    return [{name: lock[name] for name in names} for lock in store.locks.of(me["id"]) if not is_mutex(lock["file"])]


def standing(store, me: dict, peers: list[dict], messages: list[dict], tasks: dict, **more: object) -> dict:
    """The whole answer: ``{instance, peers, unread_messages, ..., tasks, work_tracker}``, with `more` in between."""
    return {
        "instance": registration(me),
        "peers": peers,
        "unread_messages": messages,
        **more,
        "tasks": tasks,
        "work_tracker": store.tracker.of(me),
    }
