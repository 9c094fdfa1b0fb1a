"""Locks that lapsed under their holders: telling them, and remembering who was given the same since.

A record stands until its session is given that lock again, has left, or a day is over. While it stands, and another
has had the file, the commit guard lets that session commit no such file: what it knows of it is old.
"""

from __future__ import annotations

import time

from swarm_hook_core.lookup import plain
from swarm_hook_core.untrusted_text import label, named
from swarm_hook_core.wording import duration
from swarm_mcp.store.lock_reach import meet, reach_in
from swarm_mcp.visibility import may_meet

KEPT_SECONDS = 86400


class Lapses:
    """The embedded store's lapsed locks. Rows are those of ``swarm_lapses``."""

    def __init__(self, store):
        self.store = store

    def note(self, locks: list[dict]) -> None:
        """Inside a transaction that has removed these locks: write them down, and tell each holder."""
        for lock in locks:
            left = self.store.locks.rows.left(lock) or 0.0
            lapsed_at = int(time.time() + left)
            holder = self.store.instances.get(lock["instance_id"])
            if holder is None:
                continue
            file = plain(lock["file"])
            row = {name: lock[name] for name in ("instance_id", "path_key", "pattern", "base", "fence")}
            row.update(file=file, agent=lock["agent"] or "", lapsed_at=lapsed_at)
            row["message_id"] = self.store.notices.post(holder, _words({**lock, "file": file}, lapsed_at), file)
            marks = ", ".join("?" * len(row))
            self.store.change(
                f"INSERT OR REPLACE INTO swarm_lapses ({', '.join(row)}) VALUES ({marks})", list(row.values())
            )

    def granted(self, instance: dict, locks: list[dict]) -> None:
        """Inside a transaction that has granted these locks: whose they were before, if they lapsed."""
        if not locks or not self.store.row("SELECT 1 FROM swarm_lapses LIMIT 1"):
            return  # the common case
        for lapse in self.store.rows("SELECT * FROM swarm_lapses"):
            for lock in locks:
                if lapse["instance_id"] == instance["id"]:
                    if lapse["file"] == lock["file"] and lapse["agent"] == (lock.get("agent") or ""):
                        self._forget(lapse)
                elif lapse["taken_fence"] is None and _same_place(lapse, lock):
                    self._taken(lapse, instance, lock)
                    break

    def overtaken(self, instance_id: str) -> list[dict]:
        """What this session held until it lapsed, and somebody else has had since."""
        return self.store.rows(
            "SELECT * FROM swarm_lapses WHERE instance_id = ? AND taken_fence IS NOT NULL ORDER BY lapsed_at",
            (instance_id,),
        )

    def forget_old(self, limit: int) -> None:
        """Inside a transaction: drop what is more than a day old, or of no session that is here."""
        self.store.change(
            "DELETE FROM swarm_lapses WHERE rowid IN (SELECT rowid FROM swarm_lapses WHERE lapsed_at < ?"
            " OR instance_id NOT IN (SELECT id FROM instances) LIMIT ?)",
            (self.store.now() - KEPT_SECONDS, limit),
        )

    # -------------------------------------------------------------- innards

    def _forget(self, lapse: dict) -> None:
        self.store.change(
            "DELETE FROM swarm_lapses WHERE instance_id = ? AND file = ? AND agent = ?",
            (lapse["instance_id"], lapse["file"], lapse["agent"]),
        )

    def _taken(self, lapse: dict, taker: dict, lock: dict) -> None:
        self.store.change(
            "UPDATE swarm_lapses SET taken_fence = ?, taken_by = ?, taken_label = ?"
            " WHERE instance_id = ? AND file = ? AND agent = ?",
            (lock["fence"], taker["id"], taker["label"], lapse["instance_id"], lapse["file"], lapse["agent"]),
        )
        former = self.store.instances.get(lapse["instance_id"])
        known = former and may_meet(former["label"], taker["label"])
        own = label(taker["label"]) if taker["label"] else f"instance {taker['id']}"
        name = own if known else "a session of another identity"
        more = f" Since then {name} has been given {named(lock['file'])}: read before you write."
        self.store.change(
            "UPDATE messages SET content = content || ? WHERE id = ? AND read = 0", (more, lapse["message_id"])
        )


def _same_place(lapse: dict, lock: dict) -> bool:
    one, other = reach_in(lapse), reach_in(lock)
    return bool(one and other and meet(one, other))


def _words(lock: dict, lapsed_at: int) -> str:
    moment = time.strftime("%H:%M:%S", time.localtime(lapsed_at))
    held = f" (agent {named(lock['agent'])})" if lock["agent"] else ""
    fence = f", fence {lock['fence']}" if lock["fence"] else ""
    return (
        f"[auto] Your lock on {named(lock['file'])}{held} lapsed at {moment}: there was no sign of life for"
        f" {duration(lock['ttl'])}{fence}. It may have changed; lock it again before you go on with it."
    )
