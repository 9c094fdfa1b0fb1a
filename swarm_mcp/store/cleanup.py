"""What falls due with time: gone sessions, old mail, finished tasks, old events, orphaned values.

`Cleanup.clean` does all of it at once, because somebody asked. `Cleanup.some` does a little of it now
and then, beside other writes, and never on the way to an answer: whatever has piled up, a call
takes milliseconds. What is due is found through indexes, kind by kind, inside a transaction, and most of it by the part
whose it is. `limit`: of rows (-1: all); `scope`: None for all; `mode`: as events name it, ``manual`` or ``periodic``.
"""

from __future__ import annotations

import os
import time

from swarm_hook_core.lookup.sqlite import SPELLED
from swarm_mcp.domain.lock import MUTEX_PREFIX, Lock
from swarm_mcp.errors import SwarmError
from swarm_mcp.store import events
from swarm_mcp.store.upkeep import PAUSE_SECONDS, is_due

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NamedTuple

    from swarm_mcp.store.breaches import Breaches
    from swarm_mcp.store.database import Database
    from swarm_mcp.store.denials import Denials
    from swarm_mcp.store.events import Signals
    from swarm_mcp.store.leases import Leases
    from swarm_mcp.store.lock_endings import LockEndings
    from swarm_mcp.store.lock_finder import LockFinder
    from swarm_mcp.store.messages import Messages
    from swarm_mcp.store.notices import Notices
    from swarm_mcp.store.runs import Runs
    from swarm_mcp.store.sessions import Sessions
    from swarm_mcp.store.tasks import Tasks
    from swarm_mcp.store.values import KeyValues
else:
    from swarm_mcp.domain.record import NamedValues as NamedTuple

BACKLOG_SECONDS = 2  # the same while a pass leaves something for the next
AT_ONCE = 200  # rows of each kind in one pass
SESSIONS_AT_ONCE = 20  # of those that have gone: each has much to leave behind
SESSIONS_SECONDS = 0.05  # for those in one pass, in several transactions
SHRINK_PAUSE_SECONDS = 0.005
AGED = ("messages", "terminal_tasks", "non_lock_context_rows", "events")
MESSAGE_SECONDS = 3600
TASK_SECONDS = 86400
EVENT_SECONDS = 86400
TERMINAL = "('done', 'failed', 'cancelled')"
VALUE_PREFIXES = ("identity/herdr/", "identity/workspace/herdr/", "plan/", "progress/")

# kind -> table, condition (of the moment before which rows are due), order, seconds kept.
_BY_AGE = {
    "messages": ("messages", "created_at < ?", "created_at", MESSAGE_SECONDS),
    "terminal_tasks": ("tasks", f"status IN {TERMINAL} AND updated_at < ?", "updated_at", TASK_SECONDS),
    "events": ("events", "created_at < ?", "created_at", EVENT_SECONDS),
    "non_lock_context_rows": ("context", "type <> 'lock' AND ? >= 0", "id", 0),  # of any age
}


class CleanupParts(NamedTuple):
    """The parts of a store in which something falls due."""

    signals: Signals
    sessions: Sessions
    finder: LockFinder
    endings: LockEndings
    leases: Leases
    denials: Denials
    messages: Messages
    notices: Notices
    breaches: Breaches
    values: KeyValues
    tasks: Callable[[], Tasks]
    runs: Callable[[], Runs]


class Cleanup:
    """The embedded store's cleaning."""

    def __init__(self, db: Database, leases: Leases, parts: Callable[[], CleanupParts]):
        # It is seldom time for it, and only then all that it takes is loaded.
        self._db = db
        self._leases = leases
        self._parts = parts
        self._sessions_left = False  # whether a step has found more sessions that have gone than it removed

    # ---------------------------------------------------------------- a little

    def some(self) -> bool:
        self._leases.some()  # has a time of its own
        if not is_due(self._db):
            return False
        try:
            with self._db.hurried():
                with self._db.writing():
                    if not is_due(self._db):  # somebody else was first
                        return False
                    self._note("pass", "", BACKLOG_SECONDS - PAUSE_SECONDS)  # should this one come to nothing
                left = self._some()
                with self._db.writing():
                    self._note("pass", "", BACKLOG_SECONDS - PAUSE_SECONDS if left else 0)
        except SwarmError:
            # Busy; or there is a row that no rule foresees, of which `cleanup` tells. Nobody's work waits for this.
            return False
        _drop_old_contents()
        self._drop_old_journals()
        return True

    def due_in(self) -> float:
        row = self._db.row("SELECT done_at FROM swarm_upkeep WHERE what = 'pass'")
        return float(min(max(0, row.done_at + PAUSE_SECONDS - self._db.now()), PAUSE_SECONDS)) if row else 0.0

    def _some(self) -> bool:
        """Do one pass; tell whether it left something that could have gone.

        Each step is a short transaction of its own, so that others have their turn between them.
        """
        parts = self._parts()
        # Loaded now, where it is needed: not while others wait for the store.
        if self._db.row("SELECT 1 FROM tasks LIMIT 1"):
            parts.tasks()
        if self._db.row("SELECT 1 FROM swarm_runs LIMIT 1"):
            parts.runs()
        left = False
        for step in (self._some_sessions, self._some_locks, self._some_tasks, self._some_rows, self._some_records):
            with self._db.writing():
                left = step(parts) or left
        end = time.monotonic() + SESSIONS_SECONDS
        while self._sessions_left and time.monotonic() < end:
            with self._db.writing():
                self._some_sessions(parts)
        space = self._space()
        left = space.give_back() or left or self._sessions_left
        space.shorten_log(left)
        return left

    def _drop_old_journals(self) -> None:
        """Remove what sessions that have gone wrote down of their work (``swarm_hook_core.traces``)."""
        from swarm_hook_core.traces import traces_dir

        if not os.path.isdir(traces_dir()):
            return
        from swarm_hook_core.traces.pruning import prune

        def is_known(runtime: str, session_id: str) -> bool:
            sql = "SELECT 1 FROM swarm_sessions WHERE runtime = ? AND session_id = ?"
            return self._db.row(sql, (runtime, session_id)) is not None

        try:
            prune(is_known, time.time())
        except (OSError, SwarmError):
            return  # the next pass tries again

    def _space(self):
        from swarm_mcp.store.space import Space

        return Space(self._db)

    def _some_sessions(self, parts: CleanupParts) -> bool:
        before = self._place("gone")
        found, place = parts.sessions.gone_after(before, AT_ONCE)
        for row in found[:SESSIONS_AT_ONCE]:
            parts.signals.session_gone(row, "reclaimed")
        self._sessions_left = len(found) > SESSIONS_AT_ONCE
        if place != before and not self._sessions_left:
            self._note("gone", place)
        return self._sessions_left

    def _some_locks(self, parts: CleanupParts) -> bool:
        mode = "periodic"
        gone = [self._drop_spent_mutexes(parts, AT_ONCE, None, mode)]
        holders = self._walk("orphan_locks", lambda after: parts.finder.vanished_holders(after, AT_ONCE))
        gone.append(self._drop_orphan_locks(parts, holders, AT_ONCE, None, mode))
        parts.endings.reaped(parts.finder.ended_holds())
        parts.denials.settle()
        self._walk("denials", lambda after: ((), parts.denials.settle_some(after, AT_ONCE)))
        return _has_more(gone)

    def _some_tasks(self, parts: CleanupParts) -> bool:
        self._cascade(AT_ONCE, None)
        found = self._drop_aged("terminal_tasks", AT_ONCE, None, "periodic")
        self._settle(set(found))
        return _has_more([found])

    def _some_rows(self, parts: CleanupParts) -> bool:
        return _has_more(
            [self._drop_aged(kind, AT_ONCE, None, "periodic") for kind in AGED if kind != "terminal_tasks"]
        )

    def _some_records(self, parts: CleanupParts) -> bool:
        values = []
        for prefix in VALUE_PREFIXES:
            values += self._walk(prefix, self._orphans_of(prefix))
        parts.values.remove_orphans(values, "periodic")
        gone = [parts.denials.forget_old(AT_ONCE), parts.breaches.forget_old(AT_ONCE)]
        if self._db.row("SELECT 1 FROM swarm_runs LIMIT 1"):
            parts.runs().forget_old(AT_ONCE)
        self._walk("notices", lambda after: ((), parts.notices.forget_old(after, AT_ONCE)))
        self._walk("lapses", lambda after: ((), parts.leases.forget_old_lapses(after, AT_ONCE)))
        self._walk("deliveries", lambda after: ((), parts.messages.forget_lost_deliveries(after, AT_ONCE)))
        return max(gone) >= AT_ONCE

    def _orphans_of(self, prefix: str):
        return lambda after: self._parts().values.orphans(prefix, after, AT_ONCE, None)

    def _cascade(self, limit: int, scope: str | None) -> None:
        """Cancel what depends on failed tasks that are about to be deleted: afterwards they would count as done."""
        for place in self._scopes_of_failures(limit, scope):
            self._parts().tasks().settle_vanished(place)

    def _settle(self, scopes: set[str]) -> None:
        """Let go of tasks that waited for deleted ones, here and, in turn, where another program deletes."""
        after = self._place("waiting")
        row = self._db.row(
            "SELECT min(scope) AS scope FROM tasks WHERE status IN ('blocked', 'approval_required') AND scope > ?",
            (after,),
        )
        following = row.scope if row else None
        self._note("waiting", following or "")
        for scope in scopes | ({following} if following is not None else set()):
            self._parts().tasks().settle_vanished(scope)

    def _walk(self, what: str, step):
        """Do one step of a long way round, `step(place) -> (found, next place)`; return what it found."""
        before = self._place(what)
        found, place = step(before)
        if place != before:
            self._note(what, place)
        return found

    def _place(self, what: str) -> str:
        row = self._db.row("SELECT place FROM swarm_upkeep WHERE what = ?", (what,))
        return (row.place if row else "") or ""

    def _note(self, what: str, place: str, offset: int = 0) -> None:
        self._db.change(
            "INSERT OR REPLACE INTO swarm_upkeep (what, done_at, place) VALUES (?, ?, ?)",
            (what, self._db.now() + offset, place),
        )

    # --------------------------------------------------------------------- all

    def clean(self, scope: str | None = None, dry_run: bool = False) -> dict:
        report: dict = {"dry_run": dry_run, "mode": "manual", "scope": scope, "at": self._db.now()}
        try:
            with self._db.writing():
                report.update(self._clean(scope))
                if dry_run:
                    raise _RollBack
        except _RollBack:
            pass
        else:
            _drop_old_contents()
            self._give_back_all()
        return report

    def _give_back_all(self) -> None:
        """Give back what is free now, in as many short transactions as it takes: whoever asked for it may wait."""
        space = self._space()
        try:
            while space.give_back():
                time.sleep(SHRINK_PAUSE_SECONDS)
            space.shorten_log(False)
        except SwarmError:
            return  # somebody else writes all the time; the passes go on with it

    def _clean(self, scope: str | None) -> dict:
        parts, mode = self._parts(), "manual"
        before = self._count("context", "type = 'lock'", ())
        gone = [row for row in parts.sessions.gone() if scope in (None, row.scope)]
        reopened = cleared = identities = 0
        for row in gone:
            reopened += self._count("tasks", "assignee = ? AND status IN ('claimed', 'in_progress')", (row.id,))
            cleared += self._count("tasks", "assignee = ? AND status IN ('blocked', 'approval_required')", (row.id,))
            identities += self._count(
                "kv", "key IN (?, ?)", (f"identity/workspace/herdr/{row.id}", f"identity/herdr/{row.id}")
            )
            parts.signals.session_gone(row, "reclaimed")
        self._drop_orphan_locks(parts, parts.finder.vanished_holders("", -1)[0], -1, scope, mode)
        mutexes = sum(self._drop_spent_mutexes(parts, -1, scope, mode).values())
        self._cascade(-1, scope)
        counts = {kind: sum(self._drop_aged(kind, -1, scope, mode).values()) for kind in AGED}
        orphans = []
        for prefix in VALUE_PREFIXES:
            orphans += parts.values.orphans(prefix, "", -1, scope)[0]
        keys = parts.values.remove_orphans(orphans, mode)
        parts.leases.settle()
        parts.denials.settle_some("", -1)
        parts.denials.forget_old(-1)
        parts.notices.forget_old("", -1)
        parts.leases.forget_old_lapses("", -1)
        parts.breaches.forget_old(-1)
        parts.messages.forget_lost_deliveries("", -1)
        parts.tasks().settle_vanished(scope)
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
        row = self._db.row(f"SELECT count(*) AS n FROM {table} WHERE {condition}", values)
        return row.n if row else 0

    # ------------------------------------------------------------- what is due

    def _drop_aged(self, kind: str, limit: int, scope: str | None, mode: str) -> dict[str, int]:
        """Delete rows of a kind of `_BY_AGE`, oldest first; how many went, by scope."""
        table, condition, order, seconds = _BY_AGE[kind]
        past = self._db.now() - seconds
        condition, values = _in_scope(condition, past, scope)
        chosen = f"FROM {table} WHERE {condition} ORDER BY {order}, rowid LIMIT {limit}"
        counts = self._db.rows(f"SELECT scope, count(*) AS n FROM (SELECT scope {chosen}) GROUP BY scope", values)
        if counts:
            self._db.change(f"DELETE FROM {table} WHERE rowid IN (SELECT rowid {chosen})", values)
        found = {row.scope: row.n for row in counts}
        more = {"cutoff": past, "ttl_secs": seconds} if seconds else {}
        self._report(kind, found, mode, **more)
        return found

    def _scopes_of_failures(self, limit: int, scope: str | None) -> list[str]:
        """Return where `_drop_aged` is about to delete tasks that failed or were cancelled."""
        condition, values = _in_scope(_BY_AGE["terminal_tasks"][1], self._db.now() - TASK_SECONDS, scope)
        chosen = f"SELECT scope, status FROM tasks WHERE {condition} ORDER BY updated_at, rowid LIMIT {limit}"
        rows = self._db.rows(f"SELECT DISTINCT scope FROM ({chosen}) WHERE status <> 'done'", values)
        return [row.scope for row in rows]

    def _drop_spent_mutexes(self, parts: CleanupParts, limit: int, scope: str | None, mode: str) -> dict[str, int]:
        """Delete mutexes whose task has ended; how many went, by scope."""
        rows = self._db.rows(
            "SELECT c.id, c.scope, c.instance_id, c.file, c.task_id, c.path_key FROM context c"
            " CROSS JOIN tasks t ON t.id = c.task_id"
            f" WHERE c.type = 'lock' AND {SPELLED} AND c.file >= ? AND c.file < ? AND t.status IN {TERMINAL}"
            f" AND (? IS NULL OR c.scope = ?) LIMIT {limit}",
            (MUTEX_PREFIX, _after(MUTEX_PREFIX), scope, scope),
            Lock,
        )
        for row in rows:
            parts.endings.drop([row], "dispatch_task_terminal", task_id=row.task_id)
        return self._report_locks("terminal_spawn_locks", rows, mode)

    def _drop_orphan_locks(
        self, parts: CleanupParts, holders: list[str], limit: int, scope: str | None, mode: str
    ) -> dict[str, int]:
        """Delete locks held by `holders`, who are not registered; how many went, by scope."""
        rows: list[Lock] = []
        for holder in holders:
            found = [row for row in parts.finder.of(holder) if scope in (None, row.scope)]
            rows += found if limit < 0 else found[: limit - len(rows)]
        parts.endings.drop(rows, "reclaimed")
        return self._report_locks("orphan_locks", rows, mode)

    def _report_locks(self, kind: str, rows: list[Lock], mode: str) -> dict[str, int]:
        found: dict[str, int] = {}
        for row in rows:
            found[row.scope] = found.get(row.scope, 0) + 1
        self._report(kind, found, mode)
        return found

    def _report(self, kind: str, found: dict[str, int], mode: str, **more) -> None:
        for scope, count in found.items():
            events.add(
                self._db, scope, f"cleanup.{kind}_deleted", "system", None, {"count": count, "mode": mode, **more}
            )


class _RollBack(Exception):
    pass


def _has_more(gone: list[dict[str, int]]) -> bool:
    """Tell whether of some kind, of which so many went by scope, there may be more."""
    return any(sum(found.values()) >= AT_ONCE for found in gone)


def _drop_old_contents() -> None:
    """Remove kept contents of locked files past their age: hooks do so only when they keep another."""
    from swarm_hook_core.watching.kept import Kept, forget_broken

    try:
        now = time.time()
        kept = Kept(now)
        kept.prune()
        kept.forget_names()
        forget_broken(now)
    except OSError:
        return  # there are none, or they are not ours to see


def _in_scope(condition: str, past: int, scope: str | None) -> tuple[str, tuple]:
    return (condition, (past,)) if scope is None else (f"scope = ? AND {condition}", (scope, past))


def _after(prefix: str) -> str:
    """Return the first text behind all that begin with `prefix`, by bytes."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)
