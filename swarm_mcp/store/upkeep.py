"""What falls due with time: gone sessions, old mail, finished tasks, old events, orphaned values.

`Upkeep.clean` does all of it at once, because somebody asked. `Upkeep.some` does a little of it now
and then, beside other writes, and never on the way to an answer: whatever has piled up, a call
takes milliseconds.
"""

from __future__ import annotations

from swarm_mcp.errors import SwarmError
from swarm_mcp.store import due

PAUSE_SECONDS = 30  # between two passes, of whatever process
BACKLOG_SECONDS = 2  # the same while a pass leaves something for the next
AT_ONCE = 200  # rows of each kind in one pass
PATIENCE_SECONDS = 0.05  # a busy store has more urgent things to do
AGED = ("messages", "terminal_tasks", "non_lock_context_rows", "events")


class Upkeep:
    """The embedded store's cleaning."""

    def __init__(self, store):
        self.store = store

    # ---------------------------------------------------------------- a little

    def some(self) -> bool:
        """Outside a transaction: remove a little of what is due, if it is time; whether it did.

        It is time when no process has done so for 30 s (2 s while something was left). Where it is not,
        this costs one read. A busy store is left alone; it will be time again.
        """
        self.store.leases.some()  # has a time of its own
        if not self._is_time():
            return False
        store = self.store
        patience, store.busy_seconds = store.busy_seconds, min(store.busy_seconds, PATIENCE_SECONDS)
        try:
            with store.writing():
                if not self._is_time():  # somebody else was first
                    return False
                self._note("pass", "", BACKLOG_SECONDS - PAUSE_SECONDS if self._some() else 0)
        except SwarmError:
            # Busy; or there is a row that no rule foresees, of which `cleanup` tells. Nobody's work waits for this.
            return False
        finally:
            store.busy_seconds = patience
        _drop_old_contents()
        return True

    def _some(self) -> bool:
        """One pass; whether it left something that could have gone."""
        store, mode = self.store, "periodic"
        store.instances.reclaim()
        gone = [due.spent_mutexes(store, AT_ONCE, None, mode)]
        scopes: set[str] = set()
        self._cascade(AT_ONCE, None)
        for kind in AGED:
            found = due.old_rows(store, kind, AT_ONCE, None, mode)
            gone.append(found)
            if kind == "terminal_tasks":
                scopes.update(found)
        holders = self._walk("orphan_locks", lambda after: due.vanished_holders(store, after, AT_ONCE))
        gone.append(due.orphan_locks(store, holders, AT_ONCE, None, mode))
        values = []
        for prefix in due.VALUE_PREFIXES:
            values += self._walk(prefix, self._orphans_of(prefix))
        due.drop_values(store, values, mode)
        store.locks.rows.reaped(store.locks.rows.ended_holds())
        store.denials.settle(AT_ONCE)
        due.old_denials(store, AT_ONCE)
        store.notices.forget_old(AT_ONCE)
        store.lapses.forget_old(AT_ONCE)
        store.alterations.forget_old(AT_ONCE)
        store.runs.forget_old(AT_ONCE)
        self._walk("deliveries", lambda after: ((), due.lost_deliveries(store, after, AT_ONCE)))
        self._settle(scopes)
        return any(sum(found.values()) >= AT_ONCE for found in gone)

    def _orphans_of(self, prefix: str):
        return lambda after: due.orphan_values(self.store, prefix, after, AT_ONCE, None)

    def _cascade(self, limit: int, scope: str | None) -> None:
        """Cancel what depends on failed tasks that are about to be deleted: afterwards they would count as done."""
        for place in due.scopes_of_failures(self.store, limit, scope):
            self.store.tasks.settle_vanished(place)

    def _settle(self, scopes: set[str]) -> None:
        """Let go of tasks that waited for deleted ones, here and, in turn, where another program deletes."""
        after = self._place("waiting")
        row = self.store.row(
            "SELECT min(scope) AS scope FROM tasks WHERE status IN ('blocked', 'approval_required') AND scope > ?",
            (after,),
        )
        following = row["scope"] if row else None
        self._note("waiting", following or "")
        for scope in scopes | ({following} if following is not None else set()):
            self.store.tasks.settle_vanished(scope)

    def _is_time(self) -> bool:
        row = self.store.row("SELECT done_at FROM swarm_upkeep WHERE what = 'pass'")
        return row is None or not 0 <= self.store.now() - row["done_at"] < PAUSE_SECONDS

    def _walk(self, what: str, step):
        """One step of a long way round: `step(place) -> (found, next place)`; what it found."""
        before = self._place(what)
        found, place = step(before)
        if place != before:
            self._note(what, place)
        return found

    def _place(self, what: str) -> str:
        row = self.store.row("SELECT place FROM swarm_upkeep WHERE what = ?", (what,))
        return (row["place"] if row else "") or ""

    def _note(self, what: str, place: str, offset: int = 0) -> None:
        self.store.change(
            "INSERT OR REPLACE INTO swarm_upkeep (what, done_at, place) VALUES (?, ?, ?)",
            (what, self.store.now() + offset, place),
        )

    # --------------------------------------------------------------------- all

    def clean(self, scope: str | None = None, dry_run: bool = False) -> dict:
        """Remove what is due in `scope` (None: everywhere); counts in the contract's shape.

        A dry run does the same in a transaction that is rolled back, so that it cannot disagree.
        """
        report: dict = {"dry_run": dry_run, "mode": "manual", "scope": scope, "at": self.store.now()}
        try:
            with self.store.writing():
                report.update(self._clean(scope))
                if dry_run:
                    raise _RollBack
        except _RollBack:
            pass
        else:
            _drop_old_contents()
        return report

    def _clean(self, scope: str | None) -> dict:
        store, mode = self.store, "manual"
        before = self._count("context", "type = 'lock'", ())
        gone = [row for row in store.instances.gone() if scope in (None, row["scope"])]
        reopened = cleared = identities = 0
        from swarm_mcp.store import removal

        for row in gone:
            reopened += self._count("tasks", "assignee = ? AND status IN ('claimed', 'in_progress')", (row["id"],))
            cleared += self._count("tasks", "assignee = ? AND status IN ('blocked', 'approval_required')", (row["id"],))
            identities += self._count(
                "kv", "key IN (?, ?)", (f"identity/workspace/herdr/{row['id']}", f"identity/herdr/{row['id']}")
            )
            removal.remove(store, row, "reclaimed")
        due.orphan_locks(store, due.vanished_holders(store, "", -1)[0], -1, scope, mode)
        mutexes = sum(due.spent_mutexes(store, -1, scope, mode).values())
        self._cascade(-1, scope)
        counts = {kind: sum(due.old_rows(store, kind, -1, scope, mode).values()) for kind in AGED}
        orphans = []
        for prefix in due.VALUE_PREFIXES:
            orphans += due.orphan_values(store, prefix, "", -1, scope)[0]
        keys = due.drop_values(store, orphans, mode)
        store.leases.settle()
        store.denials.settle(-1)
        due.old_denials(store, -1)
        store.notices.forget_old(-1)
        store.lapses.forget_old(-1)
        store.alterations.forget_old(-1)
        due.lost_deliveries(store, "", -1)
        store.tasks.settle_vanished(scope)
        return {
            "instances_reclaimed": len(gone),
            "tasks_reopened": reopened,
            "task_assignees_cleared": cleared,
            "locks_deleted": before - self._count("context", "type = 'lock'", ()) - mutexes,
            "terminal_spawn_locks_deleted": mutexes,
            "messages_deleted": counts["messages"],
            "terminal_tasks_deleted": counts["terminal_tasks"],
            "non_lock_context_rows_deleted": counts["non_lock_context_rows"],
            "events_deleted": counts["events"],
            "kv_deleted": len(keys),
            "kv_keys_deleted": keys,
            "identity_rows_deleted": identities,
        }

    def _count(self, table: str, condition: str, values: tuple) -> int:
        row = self.store.row(f"SELECT count(*) AS n FROM {table} WHERE {condition}", values)
        return row["n"] if row else 0


class _RollBack(Exception):
    pass


def _drop_old_contents() -> None:
    """Remove kept contents of locked files past their age: hooks do so only when they keep another."""
    import time

    from swarm_hook_core.watching.kept import Kept, forget_broken

    try:
        now = time.time()
        Kept(now).prune()
        forget_broken(now)
    except OSError:
        return  # there are none, or they are not ours to see
