"""The store's file as the contract has it, and the shapes that it has had before."""

import os
import sqlite3
from pathlib import Path

from support.fixtures import Ground
from swarm_mcp.store import schema

# The contract's tables: column -> type, default, NOT NULL, part of the key. "now" is unixepoch().
CONTRACT: dict[str, dict[str, tuple]] = {
    "instances": {
        "id": ("TEXT", None, 0, 1), "scope": ("TEXT", None, 1, 0), "directory": ("TEXT", None, 1, 0),
        "root": ("TEXT", None, 1, 0), "file_root": ("TEXT", "", 1, 0), "pid": ("INTEGER", None, 1, 0),
        "label": ("TEXT", None, 0, 0), "registered_at": ("INTEGER", "now", 1, 0), "heartbeat": ("INTEGER", "now", 1, 0),
        "adopted": ("INTEGER", 1, 1, 0), "lease_until": ("INTEGER", None, 0, 0),
    },
    "messages": {
        "id": ("INTEGER", None, 0, 1), "scope": ("TEXT", "", 1, 0), "sender": ("TEXT", None, 1, 0),
        "recipient": ("TEXT", None, 0, 0), "content": ("TEXT", None, 1, 0), "created_at": ("INTEGER", "now", 1, 0),
        "read": ("INTEGER", 0, 1, 0),
    },
    "tasks": {
        "id": ("TEXT", None, 0, 1), "scope": ("TEXT", "", 1, 0), "type": ("TEXT", None, 1, 0),
        "title": ("TEXT", None, 1, 0), "description": ("TEXT", None, 0, 0), "requester": ("TEXT", None, 1, 0),
        "assignee": ("TEXT", None, 0, 0), "status": ("TEXT", "open", 1, 0), "files": ("TEXT", None, 0, 0),
        "result": ("TEXT", None, 0, 0), "created_at": ("INTEGER", "now", 1, 0), "updated_at": ("INTEGER", "now", 1, 0),
        "changed_at": ("INTEGER", 0, 1, 0), "priority": ("INTEGER", 0, 1, 0), "depends_on": ("TEXT", None, 0, 0),
        "idempotency_key": ("TEXT", None, 0, 0), "parent_task_id": ("TEXT", None, 0, 0),
        "review_of_task_id": ("TEXT", None, 0, 0), "fixes_task_id": ("TEXT", None, 0, 0),
        "progress_summary": ("TEXT", None, 0, 0), "progress_updated_at": ("INTEGER", None, 0, 0),
        "blocked_reason": ("TEXT", None, 0, 0), "expected_next_update_at": ("INTEGER", None, 0, 0),
        "tracker_required": ("INTEGER", 0, 1, 0), "tracker_provider": ("TEXT", None, 0, 0),
    },
    "context": {
        "id": ("TEXT", None, 0, 1), "scope": ("TEXT", "", 1, 0), "instance_id": ("TEXT", None, 1, 0),
        "file": ("TEXT", None, 1, 0), "type": ("TEXT", None, 1, 0), "content": ("TEXT", None, 1, 0),
        "task_id": ("TEXT", None, 0, 0), "created_at": ("INTEGER", "now", 1, 0),
    },
    "events": {
        "id": ("INTEGER", None, 0, 1), "scope": ("TEXT", None, 1, 0), "type": ("TEXT", None, 1, 0),
        "actor": ("TEXT", None, 0, 0), "subject": ("TEXT", None, 0, 0), "payload": ("TEXT", None, 0, 0),
        "created_at": ("INTEGER", "now", 1, 0),
    },
    "kv": {
        "scope": ("TEXT", None, 1, 1), "key": ("TEXT", None, 1, 2), "value": ("TEXT", None, 1, 0),
        "owner_identity": ("TEXT", None, 0, 0), "updated_at": ("INTEGER", "now", 1, 0),
    },
    "kv_scope_updates": {"scope": ("TEXT", None, 0, 1), "changed_at": ("INTEGER", None, 1, 0)},
    "ui_commands": {
        "id": ("INTEGER", None, 0, 1), "scope": ("TEXT", None, 1, 0), "created_by": ("TEXT", None, 0, 0),
        "kind": ("TEXT", None, 1, 0), "payload": ("TEXT", None, 1, 0), "status": ("TEXT", "pending", 1, 0),
        "claimed_by": ("TEXT", None, 0, 0), "result": ("TEXT", None, 0, 0), "error": ("TEXT", None, 0, 0),
        "created_at": ("INTEGER", "now", 1, 0), "started_at": ("INTEGER", None, 0, 0),
        "completed_at": ("INTEGER", None, 0, 0),
    },
}  # fmt: skip
UNIQUE = {"context_lock_idx", "tasks_idempotency_key_idx"}
PLAIN_INDEXES = {
    "messages_scope_recipient_read_idx", "messages_created_at_idx", "instances_scope_idx", "instances_heartbeat_idx",
    "tasks_scope_status_idx", "tasks_scope_assignee_idx", "tasks_scope_changed_at_idx",
    "tasks_scope_review_of_task_id_idx", "tasks_scope_fixes_task_id_idx", "tasks_scope_expected_next_update_idx",
    "context_task_lock_idx", "events_scope_id_idx", "events_created_at_idx",
    "ui_commands_scope_status_id_idx",
}  # fmt: skip
MEANT = {"now": "unixepoch()", "": "''", "open": "'open'", "pending": "'pending'", 0: "0", 1: "1"}

SCHEMAS = Path(__file__).parents[1] / "data" / "schemas"
SHAPES = sorted(path.stem for path in SCHEMAS.glob("*.sql"))
FIRST = "first-days"  # of them


def columns(ground: Ground, table: str) -> dict[str, tuple]:
    """Return a table's columns by name: type, default, NOT NULL, part of the key."""
    rows = ground.sql(f"SELECT * FROM pragma_table_info('{table}')")
    return {row["name"]: (row["type"], row["dflt_value"], row["notnull"], row["pk"]) for row in rows}


def has_the_contract(ground: Ground) -> None:
    """Fail unless the file has every table, column, default and index of the contract, and version 1."""
    for table, wanted in CONTRACT.items():
        found = columns(ground, table)
        assert set(wanted) <= set(found), table
        for name, (kind, default, strict, key) in wanted.items():
            assert found[name][0] == kind and found[name][3] == key, f"{table}.{name}: {found[name]}"
            assert bool(found[name][2]) >= bool(strict), f"{table}.{name} may be NULL"
            if default is not None:
                assert found[name][1] == MEANT[default], f"{table}.{name}: default {found[name][1]}"
        extra = {name: found[name] for name in found if name not in wanted}
        assert all(not strict and default is None for _, default, strict, _ in extra.values()), extra
    indexes = {row["name"]: row for row in ground.sql("SELECT name, sql FROM sqlite_master WHERE type = 'index'")}
    assert set(indexes) >= (UNIQUE | PLAIN_INDEXES)
    assert {name for name, row in indexes.items() if "UNIQUE" in (row["sql"] or "")} == UNIQUE
    assert ground.sql("PRAGMA user_version") == [{"user_version": 1}]
    assert set(schema.TABLES) <= {row["name"] for row in ground.sql("SELECT name FROM sqlite_master")}


def text_of(shape: str) -> str:
    """The SQL that makes a store's file as it was once, with rows in it."""
    return (SCHEMAS / f"{shape}.sql").read_text()


def make(ground: Ground, shape: str, more: str = "") -> None:
    """Make the store's file in that shape; `more`: SQL for additional content."""
    os.makedirs(os.path.dirname(ground.database))
    connection = sqlite3.connect(ground.database)
    connection.executescript(text_of(shape) + more)
    connection.close()
