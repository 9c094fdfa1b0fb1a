"""Locks: which session keeps which file still."""

from __future__ import annotations

from swarm_hook_core.labels import same_circle, token
from swarm_hook_core.liveness import departed
from swarm_hook_core.paths import LONGEST, key_of, keys_for
from swarm_hook_core.reader import COLUMNS, NAME_OF_FILE, ascii_lower, storable
from swarm_mcp.errors import LockRefused, SwarmError
from swarm_mcp.scope import file_of
from swarm_mcp.shapes import seconds_since
from swarm_mcp.store import events, removal
from swarm_mcp.store.panes import PANE_COLUMNS, lock_with_pane
from swarm_mcp.store.registration import new_id

MUTEX_PREFIX = "/__swarm/"
_EVIDENCE = [column.strip().split(".")[1] for column in COLUMNS.split(",")]


class Locks:
    """The embedded store's locks."""

    def __init__(self, store):
        self.store = store
        self._looked_for_foreign = 0

    def acquire(
        self,
        instance: dict,
        file: str,
        note: str = "",
        exclusive: bool = False,
        task_id: str | None = None,
        tool: str = "lock_file",
    ) -> dict:
        """Lock `file`, as the session names it; the lock's row.

        One's own lock is renewed in place, so no peer can slip in between; with `exclusive` it is
        refused like anybody's. Raises LockRefused; then the session is told when the file is free.
        """
        path = file_of(instance, self._checked(file))
        keys, key = self._keys(path), self._key(path)  # they ask the disk: not while others wait for the store
        if self._looked_for_foreign != self.store.now():
            self._looked_for_foreign = self.store.now()  # once a second: until then they are found by their name
            if self._without_key(1):
                with self.store.writing():
                    self.key_foreign_rows(2000)
        # A look before the write lock: who is refused over and over need not queue for it.
        refusal = _first_other(instance, self._live(self._rows_on(path, keys)), exclusive)
        if refusal and (refusal["instance_id"] == instance["id"] or self.store.denials.is_known(instance, refusal)):
            raise LockRefused(self._active(refusal, token(instance["label"] or "", "identity")))
        with self.store.writing():
            self.store.instances.require(instance["id"])
            self.store.denials.forget(instance["id"], keys)
            self.store.denials.taker = (instance["id"], keys)
            try:
                there = self._on(path, keys)
            finally:
                self.store.denials.taker = ("", [])
            refusal = _first_other(instance, there, exclusive)
            if refusal is None:
                return self._take(instance, path, key, note, task_id, there[0] if there else None)
            if refusal["instance_id"] != instance["id"]:
                self.store.denials.record(instance, refusal, tool)
        raise LockRefused(self._active(refusal, token(instance["label"] or "", "identity")))

    def release(self, instance: dict, file: str) -> int:
        """Give up this session's lock on `file`; how many rows went (none is no error)."""
        path = file_of(instance, self._checked(file))
        keys = self._keys(path)
        with self.store.writing():
            mine = [row for row in self._on(path, keys) if row["instance_id"] == instance["id"]]
            self.drop(mine)
        return len(mine)

    def drop(self, locks: list[dict], reason: str = "", **payload) -> None:
        """Inside a transaction: delete `locks` (rows of `of`), each with its event, and tell who waits for them.

        `reason` and `payload` go into the events: ``task_terminal`` with its ``task_id``,
        ``deregistered``, ``moved``, ``reclaimed``; no reason for an ordinary release.
        """
        told = {"released": 1, **({"reason": reason} if reason else {}), **payload}
        for lock in locks:
            self.store.change("DELETE FROM context WHERE id = ?", (lock["id"],))
            events.add(self.store, lock["scope"], "context.lock_released", lock["instance_id"], lock["file"], told)
        if locks:
            self.store.denials.tell(locks, reason)

    def of(self, instance_id: str) -> list[dict]:
        """Every lock this session holds, mutexes too: ``{id, scope, instance_id, file, task_id, path_key}``."""
        return self.store.rows(
            "SELECT id, scope, instance_id, file, task_id, path_key FROM context"
            " WHERE instance_id = ? AND type = 'lock' ORDER BY created_at, rowid",
            (instance_id,),
        )

    def path_of(self, instance: dict, file: str) -> str:
        """The file that `file` means for a session. Raises SwarmError where it cannot name one."""
        return file_of(instance, self._checked(file))

    def on(self, file: str) -> list[dict]:
        """Live locks on absolute `file` by any of its names, in whatever scope."""
        return self._live(self._rows_on(file, self._keys(file)))

    def held(self, scope: str | None, viewer_identity: str = "") -> list[dict]:
        """Live locks of a scope (None: all), oldest first, with ``owner_label``.

        What sessions of another identity hold is listed; their names and notes are not.
        """
        condition, values = ("AND c.scope = ?", (scope,)) if scope is not None else ("", ())
        visible = f"{condition} AND substr(c.file, 1, {len(MUTEX_PREFIX)}) <> '{MUTEX_PREFIX}'"
        rows = self._live(self._select(visible, values))
        return [self._seen_by(row, viewer_identity) for row in rows]

    def glance(self, instance: dict, limit: int, viewer_identity: str) -> tuple[int, list[dict]]:
        """How many locks others hold in this session's scope (counted up to 1000), and a few of them.

        For right after a registration, which has just removed whatever belonged to sessions now gone.
        """
        others = "type = 'lock' AND scope = ? AND instance_id <> ?"
        values = (instance["scope"], instance["id"])
        sql = f"SELECT count(*) AS n FROM (SELECT 1 FROM context WHERE {others} LIMIT 1000)"
        counted = self.store.row(sql, values) or {"n": 0}
        few = self._select(f"AND c.rowid IN (SELECT rowid FROM context WHERE {others} LIMIT {limit})", values)
        return counted["n"], [self._seen_by(row, viewer_identity) for row in few]

    def active_on(self, file: str, viewer_identity: str) -> dict | None:
        """Who holds absolute `file`, in the shape of a refusal's ``active``; None where nobody does."""
        held = self.on(file)
        return self._active(held[0], viewer_identity) if held else None

    def describe(self, row: dict, viewer_identity: str) -> dict:
        """A lock found by `on`, in the shape of a refusal's ``active``."""
        return self._active(row, viewer_identity)

    def listed(self, row: dict, viewer_identity: str) -> dict:
        """A lock found by `on`, in the shape of a listing (`held`)."""
        return self._seen_by(row, viewer_identity)

    def key_foreign_rows(self, limit: int) -> None:
        """Inside a transaction: give a key to locks that another implementation stored without one."""
        for row in self._without_key(limit):
            file = row["file"]
            if isinstance(file, str) and storable(file) and "\0" not in file and len(file) <= LONGEST:
                self.store.change("UPDATE context SET path_key = ? WHERE id = ?", (key_of(file), row["id"]))

    # -------------------------------------------------------------- innards

    def _without_key(self, limit: int) -> list[dict]:
        return self.store.rows(
            "SELECT id, file FROM context WHERE type = 'lock' AND path_key IS NULL"
            f" AND substr(file, 1, {len(MUTEX_PREFIX)}) <> '{MUTEX_PREFIX}' LIMIT ?",
            (limit,),
        )

    def _checked(self, file: str) -> str:
        if not file.strip() or "\0" in file:
            raise SwarmError("a lock needs the path of a file")
        if len(file) > LONGEST:
            raise SwarmError(f"no file has a path of {len(file)} characters")
        if not storable(file):
            raise SwarmError("a file whose name is not valid UTF-8 cannot be locked")
        return file

    def _key(self, path: str) -> str | None:
        return None if path.startswith(MUTEX_PREFIX) else key_of(path)

    def _take(
        self, instance: dict, path: str, key: str | None, note: str, task_id: str | None, own: dict | None
    ) -> dict:
        """Inside a transaction: the new lock's row, in place of `own` where there is one."""
        lock = {"id": new_id(), "scope": instance["scope"], "instance_id": instance["id"], "file": path}
        lock.update(type="lock", content=note, task_id=task_id, created_at=self.store.now())
        if own:
            self.store.change(
                "UPDATE context SET id = ?, content = ?, task_id = ?, created_at = ?, path_key = ? WHERE id = ?",
                (lock["id"], note, task_id, lock["created_at"], key, own["id"]),
            )
            lock.update(file=own["file"], scope=own["scope"])
        else:
            self.store.change(
                "INSERT INTO context (id, scope, instance_id, file, type, content, task_id, created_at, path_key)"
                " VALUES (?, ?, ?, ?, 'lock', ?, ?, ?, ?)",
                (lock["id"], lock["scope"], lock["instance_id"], path, note, task_id, lock["created_at"], key),
            )
        payload = {"id": lock["id"], "content": note}
        events.add(self.store, lock["scope"], "context.lock_acquired", instance["id"], lock["file"], payload)
        return lock

    def _keys(self, path: str) -> list[str]:
        """Under what names a lock on `path` may be stored."""
        return [path] if path.startswith(MUTEX_PREFIX) else keys_for(path, "/")

    def _on(self, path: str, keys: list[str]) -> list[dict]:
        """Live locks on `path`, inside a transaction: those of sessions that have gone are removed."""
        rows = self._rows_on(path, keys)
        dead = [row for row in rows if self._has_gone(row)]
        for holder_id in {row["instance_id"] for row in dead}:
            holder = self.store.instances.get(holder_id)
            if holder:
                removal.remove(self.store, holder, "reclaimed")
            else:
                self.drop([row for row in dead if row["instance_id"] == holder_id], "reclaimed")
        return [row for row in rows if row not in dead]

    def _rows_on(self, path: str, keys: list[str]) -> list[dict]:
        marks = ",".join("?" * len(keys))
        # Apart, because SQLite reads every lock there is for an OR over two partial indexes.
        some = "SELECT rowid FROM context WHERE type = 'lock' AND"
        found = f"{some} path_key IN ({marks}) UNION {some} file IN ({marks})"
        rows = self._select(f"AND c.rowid IN ({found})", (*keys, *keys))
        names = tuple({ascii_lower(key.rsplit("/", 1)[-1]) for key in keys})
        expression = NAME_OF_FILE.replace("file", "c.file")
        unkeyed = self._select(f"AND c.path_key IS NULL AND {expression} IN ({','.join('?' * len(names))})", names)
        seen = {row["id"] for row in rows}
        return rows + [row for row in unkeyed if row["id"] not in seen and key_of(row["file"]) in keys]

    def _select(self, condition: str, values: tuple) -> list[dict]:
        return self.store.rows(
            "SELECT c.id, c.instance_id, c.file, c.type, c.content, c.created_at, c.task_id, c.scope, c.path_key,"
            f" i.label AS owner_label, i.id AS owner_id, {COLUMNS}"
            " FROM context c LEFT JOIN instances i ON i.id = c.instance_id"
            " LEFT JOIN swarm_sessions s ON s.instance_id = c.instance_id"
            f" WHERE c.type = 'lock' {condition} ORDER BY c.created_at, c.rowid",
            values,
        )

    def _live(self, rows: list[dict]) -> list[dict]:
        return [row for row in rows if not self._has_gone(row)]

    def _has_gone(self, row: dict) -> bool:
        if row["owner_id"] is None:
            return True
        return departed([row[name] for name in _EVIDENCE], self.store.now(), self.store.here)

    def _seen_by(self, row: dict, viewer: str) -> dict:
        shown = {name: row[name] for name in ("id", "instance_id", "file", "type", "content", "created_at")}
        shown["owner_label"] = row["owner_label"]
        if not same_circle(viewer, token(row["owner_label"] or "", "identity")):
            shown.update(content="", owner_label=None, hidden=True)
        return shown

    def _active(self, row: dict, viewer: str) -> dict:
        if not same_circle(viewer, token(row["owner_label"] or "", "identity")):
            return {"hidden": True, "reason": "cross_identity", "file": row["file"]}
        age = seconds_since(row["heartbeat"], self.store.now())
        # A live session that is merely quiet is not stale: its client is there, or its lease runs.
        quiet = row["last_seen"] is None and age > removal.STALE_SECONDS
        owner = {"id": row["instance_id"], "label": row["owner_label"], "heartbeat": row["heartbeat"]}
        owner.update(heartbeat_age_seconds=age, stale=quiet, reclaimable=False, active=not quiet)
        tasks = self.store.rows(
            "SELECT id, type, title, status, requester, assignee FROM tasks"
            " WHERE scope = ? AND assignee = ? AND status IN ('claimed', 'in_progress')"
            " ORDER BY priority DESC, created_at, id LIMIT 5",
            (row["scope"], row["instance_id"]),
        )
        if tasks:
            tasks = _shown_to(self.store, viewer, tasks)
        shown = {name: row[name] for name in ("id", "instance_id", "file", "type", "content", "created_at")}
        place = lock_with_pane(self.store, {"instance_id": row["instance_id"]})
        owner.update((name, place[name]) for name in PANE_COLUMNS if place.get(name))
        workspace = {"workspace": place["workspace"]} if "workspace" in place else {}
        return {**shown, "owner": owner, **workspace, "active_tasks": tasks}


def _shown_to(store, viewer: str, tasks: list[dict]) -> list[dict]:
    """``{id, type, title, status}`` of those tasks that identity `viewer` may see."""
    from swarm_mcp.store.task_rows import Sight, onlooker

    sight = Sight(store, onlooker(viewer))
    names = ("id", "type", "title", "status")
    return [{name: task[name] for name in names} for task in tasks if sight.sees(task)]


def _first_other(instance: dict, locks: list[dict], exclusive: bool) -> dict | None:
    """The lock that keeps this session from the file: another's, with `exclusive` also its own."""
    return next((lock for lock in locks if exclusive or lock["instance_id"] != instance["id"]), None)
