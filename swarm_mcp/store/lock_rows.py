"""Rows of locks as the store has them, and which of them still count."""

from __future__ import annotations

import time

from swarm_hook_core import clock
from swarm_hook_core.liveness import departed
from swarm_hook_core.lookup import GLOB, ascii_lower
from swarm_hook_core.lookup.peers import above
from swarm_hook_core.lookup.process_holders import PREFIX, has_ended
from swarm_hook_core.lookup.sqlite import EVIDENCE, NAME_OF_FILE
from swarm_hook_core.paths import NO_CASE, key_of
from swarm_mcp.domain.lock import Lock
from swarm_mcp.store import removal
from swarm_mcp.store.lock_reach import Reach, candidates, meet, reach_in

OWN = (
    "id", "scope", "instance_id", "file", "type", "content", "task_id", "created_at", "path_key", "mode", "agent",
    "pattern", "base", "ttl", "renewed", "booted", "wall_until", "expected_end", "fence", "repository",
)  # fmt: skip
# A note that another program or an earlier release stored may be of any length.
_COLUMNS = ", ".join(f"c.{name}" for name in OWN).replace("c.content", "substr(c.content, 1, 2048) AS content")
_SELECT = (
    f"SELECT {_COLUMNS}, i.label AS owner_label, i.id AS owner_id, {EVIDENCE}"
    " FROM context c LEFT JOIN instances i ON i.id = c.instance_id"
    " LEFT JOIN swarm_sessions s ON s.instance_id = c.instance_id WHERE c.type = 'lock'"
)


class LockRows:
    """Finding locks: by name, by what they reach, by holder. A row has `OWN` and ``owner_label``, ``owner_id``."""

    def __init__(self, store):
        self.store = store

    def select(self, condition: str, values: tuple) -> list[Lock]:
        """Every lock that fits, live or not, oldest first."""
        return self.store.rows(f"{_SELECT} {condition} ORDER BY c.created_at, c.rowid", values, Lock)

    def found(
        self, names: tuple[str, ...] | list[str], ranges: list[tuple[str, str]] | tuple = (), patterns: bool = False
    ) -> list[Lock]:
        """Locks whose key or spelling is any of `names` or in `ranges`, or `patterns`; and what may be one of them.

        That is every lock without a key that ends in the last part of a name. One question, since each has its price.
        """
        some, marks = "SELECT rowid FROM context WHERE type = 'lock' AND", ",".join("?" * len(names))
        last = list({ascii_lower(name.rsplit("/", 1)[-1]) for name in names})
        between = [*ranges, (GLOB, GLOB[:-1] + ";")] if patterns else ranges
        # Apart, because SQLite reads every lock there is for an OR over several partial indexes.
        asked = [f"{some} path_key IN ({marks})", f"{some} file IN ({marks})"]
        asked.append(f"{some} path_key IS NULL AND {NAME_OF_FILE} IN ({','.join('?' * len(last))})")
        asked += [f"{some} path_key >= ? AND path_key < ?"] * len(between)
        spelled = [ends for ends in ranges if not ends[0].startswith(NO_CASE)]
        asked += [f"{some} file >= ? AND file < ?"] * len(spelled)
        values = (*names, *names, *last, *(end for ends in (*between, *spelled) for end in ends))
        return self.select(f"AND c.rowid IN ({' UNION ALL '.join(asked)})", values)

    def named(self, keys: tuple[str, ...] | list[str]) -> list[Lock]:
        """Locks on a path by any of its names."""
        return [
            row for row in self.found(keys)
            if row["path_key"] in keys or row["file"] in keys or (not row["path_key"] and key_of(row["file"]) in keys)
        ]  # fmt: skip

    def covering(self, reach: Reach) -> list[Lock]:
        """Locks that keep the path of `reach` still: on itself, on a folder over it, by a pattern; or on the same
        path of another work tree.
        """
        if reach.key is None:
            return self.named(reach.keys)
        names = [name for key in reach.keys for name in (key, *above(key))]
        found = {row["id"]: row for row in self.named(list(dict.fromkeys(names)))}
        exact = reach._replace(segments=tuple(part for part in reach.segments if part is not None))
        for row in self.select("AND c.path_key >= ? AND c.path_key < ?", (GLOB, GLOB[:-1] + ";")):
            there = reach_in(row)
            if there and meet(exact, there):
                found[row["id"]] = row
        found.update((row["id"], row) for row in self.store.logical.covering(reach))
        return sorted(found.values(), key=lambda row: (row["created_at"], row["id"]))

    def meeting(self, reach: Reach) -> list[Lock]:
        """Locks whose reach meets `reach`, here or in another work tree, whoever holds them, in whatever mode."""
        here, elsewhere = self.in_place(reach), self.store.logical.meeting(reach)
        if not elsewhere:
            return here
        found = {row["id"]: row for row in (*here, *elsewhere)}
        return sorted(found.values(), key=lambda row: (row["created_at"], row["id"]))

    def in_place(self, reach: Reach) -> list[Lock]:
        """Those that meet it by their paths, oldest first."""
        names, ranges = candidates(reach)
        rows = self.found(names, ranges, patterns=reach.key is not None)
        return [row for row in rows if (there := reach_in(row)) and meet(reach, there)]

    def live(self, rows: list[Lock]) -> list[Lock]:
        """Those of `rows` that still hold."""
        return [row for row in rows if not self.is_void(row)]

    def reaped(self, rows: list[Lock]) -> list[Lock]:
        """Inside a transaction: those of `rows` that still hold. What is left of gone sessions is removed."""
        void = [row for row in rows if self.is_void(row)]
        for holder_id in {row["instance_id"] for row in void if self.has_gone(row)}:
            holder = self.store.instances.get(holder_id)
            if holder:
                removal.remove(self.store, holder, "reclaimed")
            else:
                self.store.locks.drop([row for row in void if row["instance_id"] == holder_id], "reclaimed")
        left = [row for row in void if not self.has_gone(row)]
        ended = [row for row in left if has_ended(row["agent"], self.store.here)]
        self.store.locks.drop(ended, "ended")
        self.store.leases.let_go([row for row in left if row not in ended])
        ids = {row["id"] for row in void}
        return [row for row in rows if row["id"] not in ids]

    def ended_holds(self) -> list[Lock]:
        """Locks of processes that have ended, though their sessions live: see ``hold_marks``."""
        held = "SELECT rowid FROM context WHERE type = 'lock' AND agent >= ? AND agent < ?"
        sql = f"SELECT DISTINCT agent FROM context WHERE rowid IN ({held})"
        rows = self.store.rows(sql, (PREFIX, PREFIX[:-1] + ";"))
        ended = [row["agent"] for row in rows if has_ended(row["agent"], self.store.here)]
        return self.select(f"AND c.agent IN ({','.join('?' * len(ended))})", tuple(ended)) if ended else []

    def is_void(self, row: dict) -> bool:
        """Whether a lock no longer holds: its session has gone, its lease has lapsed, or who held it has ended."""
        return self.has_gone(row) or self.has_lapsed(row) or has_ended(row["agent"], self.store.here)

    def has_gone(self, row: dict) -> bool:
        """Whether the session that took a lock has gone."""
        if row["owner_id"] is None:
            return True
        return departed(row, self.store.now(), self.store.here)

    def has_lapsed(self, row: dict) -> bool:
        """Whether a lock's lease is over."""
        left = self.left(row)
        return left is not None and left <= 0

    def left(self, row: dict) -> float | None:
        """Seconds until a lock's lease is over; None for one without a lease."""
        lease = (row["ttl"], row["renewed"], row["booted"], row["wall_until"])
        return clock.left(*lease, self.store.here, time.time())


def facts(lock: dict) -> dict:
    """What an event says of a lock, so that its history can be told later; nothing that there is nothing of."""
    named = ("fence", "mode", "agent", "pattern", "base", "repository")
    return {"key": lock.get("path_key"), **{name: lock[name] for name in named if lock.get(name)}}
