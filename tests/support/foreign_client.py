"""Another implementation of the contract: plain statements over the contract's tables, its only knowledge.

It stands for programs that share a file with this one: each statement commits by itself, reads and writes are not one
transaction, paths are compared as text, a session without a heartbeat is gone after a minute, and deleting a row
ignores unknown tables.
"""

import json
import os
import time
import uuid
from pathlib import Path

from swarm_mcp.store import driver

BASE_TABLES = ("instances", "messages", "tasks", "context", "events", "kv", "kv_scope_updates", "ui_commands")
SCHEMA = Path(__file__).parents[1] / "data" / "schemas" / "contract.sql"
STATUSES = {"open", "claimed", "in_progress", "done", "failed", "cancelled", "blocked", "approval_required"}
TYPES = {"review", "implement", "fix", "test", "research", "other"}
FIRST = 1_600_000_000  # a moment of ours in seconds is later, one in milliseconds later than `LAST` seconds
LAST = 10_000_000_000


class Other:
    """One process of it; `found` counts its granted or denied locks, tasks and messages, if wanted."""

    def __init__(self, database: str):
        if not os.path.exists(database):
            os.makedirs(os.path.dirname(database), exist_ok=True)
            self._create(database)
        self.sqlite = driver.load()
        self.connection = self.sqlite.connect(database, timeout=3, isolation_level=None)
        if self.one("PRAGMA user_version")["user_version"] > 1:
            raise AssertionError("a version it would refuse")

    def _create(self, database: str) -> None:
        """A file as it makes one, with the contract's tables only."""
        connection = driver.load().connect(database)
        tables = SCHEMA.read_text().partition("INSERT INTO")[0]
        connection.executescript(f"PRAGMA journal_mode = WAL; {tables} PRAGMA user_version = 1;")
        connection.close()

    def rows(self, sql: str, *values) -> list[dict]:
        cursor = self.connection.execute(sql, values)
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row)) for row in cursor.fetchall()]

    def one(self, sql: str, *values) -> dict:
        return (self.rows(sql, *values) or [{}])[0]

    def change(self, sql: str, *values) -> int:
        return self.connection.execute(sql, values).rowcount

    def event(self, scope: str, kind: str, actor: str | None, subject: str | None, **payload) -> None:
        self.change(
            "INSERT INTO events (scope, type, actor, subject, payload) VALUES (?, ?, ?, ?, ?)",
            scope, kind, actor, subject, json.dumps(payload),
        )  # fmt: skip

    def scope(self, instance: str) -> str:
        return self.one("SELECT scope FROM instances WHERE id = ?", instance)["scope"]

    def register(self, scope: str, label: str | None = None) -> str:
        instance = str(uuid.uuid4())
        self.change(
            "INSERT INTO instances (id, scope, directory, root, file_root, pid, label) VALUES (?, ?, ?, ?, ?, 1, ?)",
            instance, scope, scope, scope, scope, label,
        )  # fmt: skip
        self.event(scope, "instance.registered", instance, instance, label=label, adopted=False)
        return instance

    def heartbeat(self, instance: str) -> None:
        self.change("UPDATE instances SET pid = 1, heartbeat = unixepoch() WHERE id = ?", instance)

    def adopt(self, instance: str) -> None:
        """Adopt a waiting lease, as its server does."""
        self.change(
            "UPDATE instances SET adopted = 1, lease_until = NULL, pid = 1, heartbeat = unixepoch() WHERE id = ?",
            instance,
        )

    def remove(self, instance: str, kind: str = "instance.deregistered") -> None:
        scope, now_ms = self.scope(instance), int(time.time() * 1000)
        self.change(
            "UPDATE tasks SET status = 'open', assignee = NULL, updated_at = unixepoch(), changed_at = ?"
            " WHERE assignee = ? AND status IN ('claimed', 'in_progress')", now_ms, instance,
        )  # fmt: skip
        self.change(
            "UPDATE tasks SET assignee = NULL, changed_at = ? WHERE assignee = ?"
            " AND status IN ('blocked', 'approval_required')", now_ms, instance,
        )  # fmt: skip
        self.change("DELETE FROM context WHERE instance_id = ?", instance)
        self.change("DELETE FROM messages WHERE recipient = ?", instance)
        self.change(
            "DELETE FROM kv WHERE key IN (?, ?)", f"identity/workspace/herdr/{instance}", f"identity/herdr/{instance}"
        )
        self.change("DELETE FROM instances WHERE id = ?", instance)
        self.event(scope, kind, instance, instance)

    def cleanup(self) -> list[str]:
        """Clean up as each of its commands does first, in every scope. Returns the reclaimed sessions."""
        gone = self.rows(
            "SELECT id FROM instances WHERE (adopted = 1 AND heartbeat < unixepoch() - 60)"
            " OR (adopted = 0 AND lease_until < unixepoch())"
            " OR (adopted = 1 AND lease_until IS NULL AND heartbeat > unixepoch() + 30)"
        )
        for row in gone:
            self.remove(row["id"], "instance.stale_reclaimed")
        self.change("DELETE FROM context WHERE type = 'lock' AND instance_id NOT IN (SELECT id FROM instances)")
        self.change("DELETE FROM messages WHERE created_at < unixepoch() - 3600")
        self.change(
            "DELETE FROM tasks WHERE status IN ('done', 'failed', 'cancelled') AND updated_at < unixepoch() - 86400"
        )
        self.change("DELETE FROM context WHERE type <> 'lock'")
        self.change("DELETE FROM events WHERE created_at < unixepoch() - 86400")
        return [row["id"] for row in gone]

    def lock(self, instance: str, file: str, note: str = "") -> str:
        """Return an empty text if it has the lock now, else the holder."""
        scope, lock = self.scope(instance), str(uuid.uuid4())
        self.change(
            "DELETE FROM context WHERE scope = ? AND file = ? AND instance_id = ? AND type = 'lock'",
            scope,
            file,
            instance,
        )
        try:
            self.change(
                "INSERT INTO context (id, scope, instance_id, file, type, content) VALUES (?, ?, ?, ?, 'lock', ?)",
                lock, scope, instance, file, note,
            )  # fmt: skip
        except self.sqlite.IntegrityError:
            holder = self.one(
                "SELECT instance_id FROM context WHERE scope = ? AND file = ? AND type = 'lock'", scope, file
            )
            return holder.get("instance_id", "somebody")
        self.event(scope, "context.lock_acquired", instance, file, id=lock, content=note)
        return ""

    def unlock(self, instance: str, file: str) -> None:
        scope = self.scope(instance)
        gone = self.change(
            "DELETE FROM context WHERE scope = ? AND file = ? AND instance_id = ? AND type = 'lock'",
            scope,
            file,
            instance,
        )
        if gone:
            self.event(scope, "context.lock_released", instance, file, released=gone)

    def send(self, sender: str, recipient: str, content: str) -> None:
        scope = self.scope(sender)
        self.change(
            "INSERT INTO messages (scope, sender, recipient, content) VALUES (?, ?, ?, ?)",
            scope,
            sender,
            recipient,
            content,
        )
        self.event(scope, "message.sent", sender, recipient, content=content, length=len(content))

    def poll(self, instance: str) -> list[str]:
        found = self.rows("SELECT id, content FROM messages WHERE recipient = ? AND read = 0 ORDER BY id", instance)
        for row in found:
            self.change("UPDATE messages SET read = 1 WHERE id = ?", row["id"])
        return [row["content"] for row in found]

    def put(self, instance: str, key: str, value: str) -> None:
        scope = self.scope(instance)
        self.change(
            "INSERT INTO kv (scope, key, value) VALUES (?, ?, ?) ON CONFLICT (scope, key) DO UPDATE SET"
            " value = excluded.value, owner_identity = COALESCE(kv.owner_identity, excluded.owner_identity),"
            " updated_at = unixepoch()", scope, key, value,
        )  # fmt: skip
        self.change(
            "INSERT INTO kv_scope_updates (scope, changed_at) VALUES (?, ?) ON CONFLICT (scope) DO UPDATE SET"
            " changed_at = max(excluded.changed_at, kv_scope_updates.changed_at + 1)", scope, int(time.time() * 1000),
        )  # fmt: skip
        self.event(scope, "kv.set", instance, key, value=value, length=len(value))

    def request(self, requester: str, title: str, **columns) -> str:
        task, scope = str(uuid.uuid4()), self.scope(requester)
        row = {"id": task, "scope": scope, "type": "fix", "title": title, "requester": requester, "status": "open"}
        row.update(changed_at=int(time.time() * 1000), **columns)
        self.change(f"INSERT INTO tasks ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", *row.values())
        self.event(scope, "task.created", requester, task, title=title, status=row["status"])
        return task

    def claim(self, instance: str, task: str) -> bool:
        taken = self.change(
            "UPDATE tasks SET status = 'in_progress', assignee = ?, updated_at = unixepoch(), changed_at = ?"
            " WHERE id = ? AND (status = 'open' OR (status = 'claimed' AND assignee = ?))",
            instance, int(time.time() * 1000), task, instance,
        )  # fmt: skip
        if taken:
            self.event(self.scope(instance), "task.claimed", instance, task, status="in_progress")
        return bool(taken)

    def end(self, instance: str, task: str, status: str = "done", result: str | None = None) -> bool:
        """The task's own row and no more: its dependents are left as they are."""
        ended = self.change(
            "UPDATE tasks SET status = ?, result = ?, updated_at = unixepoch(), changed_at = ?"
            " WHERE id = ? AND assignee = ? AND status IN ('claimed', 'in_progress')",
            status, result, int(time.time() * 1000), task, instance,
        )  # fmt: skip
        if ended:
            self.event(self.scope(instance), "task.updated", instance, task, status=status, result=result)
        return bool(ended)

    def task(self, task: str) -> dict:
        """Return a whole row, its lists parsed in its own way: invalid JSON makes it fail."""
        row = self.one("SELECT * FROM tasks WHERE id = ?", task)
        return {**row, **{name: json.loads(row[name]) if row[name] else None for name in ("files", "depends_on")}}

    def moment(self, instance: str) -> tuple:
        """Return the counters that tell its waiters of news."""
        scope = self.scope(instance)
        return tuple(
            self.one(sql, *values)["n"]
            for sql, *values in (
                ("SELECT max(id) AS n FROM messages WHERE recipient = ? AND read = 0", instance),
                ("SELECT max(changed_at) AS n FROM tasks WHERE scope = ?", scope),
                ("SELECT count(*) || ':' || max(registered_at) AS n FROM instances WHERE scope = ?", scope),
                ("SELECT max(changed_at) AS n FROM kv_scope_updates WHERE scope = ?", scope),
            )
        )

    def audit(self) -> None:
        """Fail for a row that breaks its assumptions."""
        assert self.one("PRAGMA user_version") == {"user_version": 1}
        assert self.one("PRAGMA integrity_check") == {"integrity_check": "ok"}
        for table, columns in (
            ("instances", "registered_at, heartbeat, lease_until"),
            ("messages", "created_at"),
            ("tasks", "created_at, updated_at, progress_updated_at"),
            ("context", "created_at"),
            ("events", "created_at"),
            ("kv", "updated_at"),
            ("ui_commands", "created_at, started_at, completed_at"),
        ):
            for row in self.rows(f"SELECT {columns} FROM {table}"):
                assert all(value is None or FIRST < value < LAST for value in row.values()), (table, row)
        for table in ("tasks", "kv_scope_updates"):
            for row in self.rows(f"SELECT changed_at FROM {table}"):
                assert FIRST * 1000 < row["changed_at"] < LAST * 1000, (table, row)
        for row in self.rows("SELECT * FROM tasks"):
            lists = [self.task(row["id"])[name] for name in ("files", "depends_on")]
            assert all(value is None or value and all(isinstance(item, str) for item in value) for value in lists), row
            assert row["status"] in STATUSES and row["type"] in TYPES and row["tracker_required"] in (0, 1), row
            assert (row["status"] == "in_progress") <= (row["assignee"] is not None), row
            assert all(os.path.normpath(file) == file and os.path.isabs(file) for file in lists[0] or ()), row
        for row in self.rows("SELECT * FROM events"):
            assert row["payload"] is None or isinstance(json.loads(row["payload"]), dict), row
        for row in self.rows("SELECT * FROM context"):
            assert row["type"] == "lock" and os.path.normpath(row["file"]) == row["file"], row
        for row in self.rows("SELECT * FROM instances"):
            assert row["adopted"] in (0, 1) and row["heartbeat"] <= time.time() + 30, row
            assert os.path.isabs(row["scope"]) and os.path.isabs(row["file_root"]) and isinstance(row["pid"], int), row
        for row in self.rows("SELECT * FROM messages"):
            assert row["read"] in (0, 1) and row["recipient"], row
