"""What is due to go, kind by kind, and how each kind is found through an index.

Everything here runs inside a transaction and takes a `limit` (-1: all of it), a `scope` (None: all) and
the `mode` that the cleaning's events name: ``manual`` or ``periodic``.
"""

from __future__ import annotations

from swarm_mcp.domain.lock import MUTEX_PREFIX
from swarm_mcp.store import events
from swarm_mcp.store.denials import KEPT_SECONDS

MESSAGE_SECONDS = 3600
TASK_SECONDS = 86400
EVENT_SECONDS = 86400
ORPHAN_VALUE_SECONDS = 3600
TERMINAL = "('done', 'failed', 'cancelled')"
VALUE_PREFIXES = ("identity/herdr/", "identity/workspace/herdr/", "plan/", "progress/")

# kind -> table, condition (of the moment before which rows are due), order, seconds kept.
_BY_AGE = {
    "messages": ("messages", "created_at < ?", "created_at", MESSAGE_SECONDS),
    "terminal_tasks": ("tasks", f"status IN {TERMINAL} AND updated_at < ?", "updated_at", TASK_SECONDS),
    "events": ("events", "created_at < ?", "created_at", EVENT_SECONDS),
    "non_lock_context_rows": ("context", "type <> 'lock' AND ? >= 0", "id", 0),  # of any age
}


def old_rows(store, kind: str, limit: int, scope: str | None, mode: str) -> dict[str, int]:
    """Delete rows of a kind of `_BY_AGE`, oldest first; how many went, by scope."""
    table, condition, order, seconds = _BY_AGE[kind]
    past = store.now() - seconds
    condition, values = _in_scope(condition, past, scope)
    chosen = f"FROM {table} WHERE {condition} ORDER BY {order}, rowid LIMIT {limit}"
    counts = store.rows(f"SELECT scope, count(*) AS n FROM (SELECT scope {chosen}) GROUP BY scope", values)
    if counts:
        store.change(f"DELETE FROM {table} WHERE rowid IN (SELECT rowid {chosen})", values)
    found = {row["scope"]: row["n"] for row in counts}
    more = {"cutoff": past, "ttl_secs": seconds} if seconds else {}
    _report(store, kind, found, mode, **more)
    return found


def scopes_of_failures(store, limit: int, scope: str | None) -> list[str]:
    """Where `old_rows` is about to delete tasks that failed or were cancelled."""
    condition, values = _in_scope(_BY_AGE["terminal_tasks"][1], store.now() - TASK_SECONDS, scope)
    chosen = f"SELECT scope, status FROM tasks WHERE {condition} ORDER BY updated_at, rowid LIMIT {limit}"
    rows = store.rows(f"SELECT DISTINCT scope FROM ({chosen}) WHERE status <> 'done'", values)
    return [row["scope"] for row in rows]


def spent_mutexes(store, limit: int, scope: str | None, mode: str) -> dict[str, int]:
    """Delete mutexes whose task has ended; how many went, by scope."""
    rows = store.rows(
        "SELECT c.id, c.scope, c.instance_id, c.file, c.task_id, c.path_key FROM context c"
        " CROSS JOIN tasks t ON t.id = c.task_id"
        f" WHERE c.type = 'lock' AND c.file >= ? AND c.file < ? AND t.status IN {TERMINAL}"
        f" AND (? IS NULL OR c.scope = ?) LIMIT {limit}",
        (MUTEX_PREFIX, _after(MUTEX_PREFIX), scope, scope),
    )
    for row in rows:
        store.locks.drop([row], "dispatch_task_terminal", task_id=row["task_id"])
    return _told(store, "terminal_spawn_locks", rows, mode)


def orphan_locks(store, holders: list[str], limit: int, scope: str | None, mode: str) -> dict[str, int]:
    """Delete locks held by `holders`, who are not registered; how many went, by scope."""
    rows: list[dict] = []
    for holder in holders:
        found = [row for row in store.locks.of(holder) if scope in (None, row["scope"])]
        rows += found if limit < 0 else found[: limit - len(rows)]
    store.locks.drop(rows, "reclaimed")
    return _told(store, "orphan_locks", rows, mode)


def vanished_holders(store, after: str, limit: int) -> tuple[list[str], str]:
    """Which of the next `limit` lock holders from `after` on are not registered, and the last one looked at.

    That is empty at the end. Hops from holder to holder along an index, however many locks each has.
    """
    next_one = "SELECT min(instance_id) FROM context WHERE type = 'lock' AND instance_id"
    rows = store.rows(
        f"WITH RECURSIVE holders(id) AS ({next_one} >= ? UNION ALL"
        f" SELECT ({next_one} > holders.id) FROM holders WHERE holders.id IS NOT NULL)"
        " SELECT id, EXISTS (SELECT 1 FROM instances i WHERE i.id = holders.id) AS known"
        f" FROM holders WHERE id IS NOT NULL LIMIT {limit}",
        (after,),
    )
    return [row["id"] for row in rows if not row["known"]], _last(rows, limit, "id")


def orphan_values(store, prefix: str, after: str, limit: int, scope: str | None) -> tuple[list[dict], str]:
    """Values under `prefix` whose session is not registered in their scope: ``[{scope, key}]``.

    Of the next `limit` keys behind `after`; with the last one looked at, empty at the end.
    """
    condition, values = ("AND scope = ?", [scope]) if scope is not None else ("", [])
    rows = store.rows(
        "SELECT scope, key, updated_at, EXISTS (SELECT 1 FROM instances i WHERE i.scope = kv.scope"
        f" AND i.id = substr(kv.key, {len(prefix) + 1})) AS known FROM kv"
        f" WHERE key >= ? AND key < ? AND key > ? AND key <> 'plan/latest' {condition} ORDER BY key LIMIT {limit}",
        (prefix, _after(prefix), after, *values),
    )
    past = store.now() - ORPHAN_VALUE_SECONDS
    return [row for row in rows if not row["known"] and row["updated_at"] < past], _last(rows, limit, "key")


def drop_values(store, rows: list[dict], mode: str) -> list[str]:
    """Delete the `orphan_values` found; ``scope:key`` of each."""
    removed: dict[str, list[str]] = {}
    for row in rows:
        store.change("DELETE FROM kv WHERE scope = ? AND key = ?", (row["scope"], row["key"]))
        removed.setdefault(row["scope"], []).append(row["key"])
    for scope, keys in removed.items():
        store.kv.touch(scope)
        payload = {"count": len(keys), "mode": mode, "keys": keys, "ttl_secs": ORPHAN_VALUE_SECONDS}
        events.add(store, scope, "cleanup.kv_deleted", "system", None, payload)
    return [f"{scope}:{key}" for scope, keys in removed.items() for key in keys]


def old_denials(store, limit: int) -> None:
    """Forget refusals of a day ago."""
    chosen = f"SELECT rowid FROM swarm_denials WHERE denied_at < ? ORDER BY denied_at LIMIT {limit}"
    store.change(f"DELETE FROM swarm_denials WHERE rowid IN ({chosen})", (store.now() - KEPT_SECONDS,))


def lost_deliveries(store, after: str, limit: int) -> str:
    """Forget deliveries of messages that are gone, among the next `limit` behind `after`; the last one looked at."""
    rows = store.rows(
        "SELECT message_id, EXISTS (SELECT 1 FROM messages m WHERE m.id = d.message_id) AS known"
        f" FROM swarm_deliveries d WHERE message_id > ? ORDER BY message_id LIMIT {limit}",
        (int(after or 0),),
    )
    for row in rows:
        if not row["known"]:
            store.change("DELETE FROM swarm_deliveries WHERE message_id = ?", (row["message_id"],))
    return _last(rows, limit, "message_id")


def _in_scope(condition: str, past: int, scope: str | None) -> tuple[str, tuple]:
    return (condition, (past,)) if scope is None else (f"scope = ? AND {condition}", (scope, past))


def _told(store, kind: str, rows: list[dict], mode: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in rows:
        found[row["scope"]] = found.get(row["scope"], 0) + 1
    _report(store, kind, found, mode)
    return found


def _report(store, kind: str, found: dict[str, int], mode: str, **more) -> None:
    for scope, count in found.items():
        events.add(store, scope, f"cleanup.{kind}_deleted", "system", None, {"count": count, "mode": mode, **more})


def _last(rows: list[dict], limit: int, column: str) -> str:
    return str(rows[-1][column]) if len(rows) == limit else ""


def _after(prefix: str) -> str:
    """The first text behind all that begin with `prefix`, by bytes."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)
