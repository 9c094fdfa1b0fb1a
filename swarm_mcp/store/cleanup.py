"""Cleaning: gone sessions, old mail, finished tasks, old events, orphaned values, free pages, temporary files.

`clean` does all of it at once, on request. `some` does a little now and then, beside other writes, and never on the way
to an answer: a call takes milliseconds, however much has piled up. Due rows are found through indexes, kind by kind,
inside a transaction, mostly by the module of their table. `limit`: of rows (-1: all); `scope`: None for all; `mode`: as
in events, ``manual`` or ``periodic``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from swarm_hook_core.lookup.sqlite import SPELLED
from swarm_hook_core.state import state_dir
from swarm_hook_core.traces import pruning, traces_dir
from swarm_mcp.domain import MUTEX_PREFIX, KeyValue, Lock
from swarm_mcp.errors import SwarmError
from swarm_mcp.store import (
    breaches,
    leases,
    lock_rows,
    locks,
    messages,
    reactions,
    refusals,
    runs,
    session_table,
    values,
)
from swarm_mcp.store.database import Database, Transaction, range_end
from swarm_mcp.store.driver import version, wal_is_safe
from swarm_mcp.store.reactions import CLEANUP_PAUSE_SECONDS as PAUSE_SECONDS

# The size of a store's file: free pages are given back a little at a time, so that no process waits for it.
#
# SQLite keeps the pages of deleted rows for later rows. In a file made by us they are moved to its end, some at a time,
# and cut off. A file made by another implementation is not laid out for that, and is written anew once, while it is
# small. The write-ahead log keeps the length of its longest day; it is cut when the file has all of it and no process
# reads it.

SPARE_PAGES = 16  # that may be free: the next rows take them
PAGES_AT_ONCE = 8  # between two looks at the clock
SECONDS = 0.005  # the longest wait for others
REWRITTEN_PAGES = 256  # a file with no more in use is written anew in about the same time
LOG_BYTES = 256 * 1024  # of a log that stays as it is
LONG_LOG_BYTES = 8 * 1024 * 1024  # the same while there is more to clean up, since that goes through the log

_INCREMENTAL = 2


class Space:
    """The size of an open store's file and of its log."""

    def __init__(self, db: Database):
        self._db = db

    def give_back(self) -> bool:
        """Outside a transaction: make the file a little shorter, if it can be; return True if more is possible."""
        free = self._pragma("freelist_count")
        if free <= SPARE_PAGES:
            return False
        if self._pragma("auto_vacuum") != _INCREMENTAL:
            # Lay the file out so that it can be made shorter, if that takes no noticeable time
            if self._pragma("page_count") - free <= REWRITTEN_PAGES:
                self._db.rows(f"PRAGMA auto_vacuum = {_INCREMENTAL}")
                try:
                    self._db.rows("VACUUM")
                except SwarmError:
                    return False  # no room, or another process writes: another time
            return False
        with self._db.writing():
            end = time.monotonic() + SECONDS
            while free > SPARE_PAGES and time.monotonic() < end:
                self._db.rows(f"PRAGMA incremental_vacuum({PAGES_AT_ONCE})")
                free = self._pragma("freelist_count")
        return free > SPARE_PAGES

    def shorten_log(self, more_to_come: bool) -> None:
        """Outside a transaction: take the write-ahead log into the file, and cut the log.

        If another process reads or writes right now, the log stays for another time.
        """
        try:
            size = os.stat(self._db.path + "-wal").st_size
        except OSError:
            return  # there is no log
        if size <= (LONG_LOG_BYTES if more_to_come else LOG_BYTES) or not wal_is_safe(version(self._db.driver)):
            return
        # The first needs no lock and does the work. After it the second has nothing to write while others wait.
        (busy, pages, folded) = self._db.rows("PRAGMA wal_checkpoint(PASSIVE)")[0].values()
        if not busy and pages == folded:
            self._db.rows("PRAGMA wal_checkpoint(TRUNCATE)")

    def _pragma(self, name: str) -> int:
        return int(self._db.rows(f"PRAGMA {name}")[0][name])


# Temporary files that killed processes left in the state folder: they are removed after an hour.

KEPT_SECONDS = 3600  # no process of ours writes one file for so long
NOT_OURS = ("work", "worktrees")  # folders in which workers write files of their own


def remove(now: float, age: float = KEPT_SECONDS) -> None:
    """Remove temporary files that have not changed for `age` seconds. `now` in Unix seconds. Never raises."""
    top = state_dir()
    for folder, folders, names in os.walk(top):
        if folder == top:
            folders[:] = [name for name in folders if name not in NOT_OURS]
        for name in names:
            if name.endswith(".tmp"):
                _remove_old(os.path.join(folder, name), now, age)


def _remove_old(path: str, now: float, age: float) -> None:
    try:
        if abs(now - os.lstat(path).st_mtime) > age:  # the clock may have been set back
            os.remove(path)
    except OSError:
        return  # its process has just put it in its place


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


class _RollBack(Exception):
    pass


def some(db: Database) -> bool:
    """Outside a transaction: remove a little of the due rows, if it is time; return True if it was.

    It is time 30 s after the last pass of any process (2 s while something was left); until then this costs one read. A
    busy store is left alone until the next time. Each pass is a few short transactions, so that other writers get their
    turn. Free pages are given back, a few each time.
    """
    locks.let_lapse(db)  # has a time of its own
    if not reactions.is_cleanup_due(db):
        return False
    try:
        with db.hurried():
            with db.writing() as tx:
                if not reactions.is_cleanup_due(tx):  # another process was first
                    return False
                _note(tx, "pass", "", BACKLOG_SECONDS - PAUSE_SECONDS)  # should this one come to nothing
            left = _some(db)
            with db.writing() as tx:
                _note(tx, "pass", "", BACKLOG_SECONDS - PAUSE_SECONDS if left else 0)
    except SwarmError:
        # Busy; or there is a row that no rule foresees, of which `cleanup` tells. No caller waits for this.
        return False
    _drop_old_contents()
    _drop_old_journals(db)
    if _is_hour_over(db):
        remove(time.time())
    return True


def _is_hour_over(db: Database) -> bool:
    """Return True once an hour: a look goes through the whole state folder."""
    sql = "SELECT done_at FROM swarm_upkeep WHERE what = 'leftovers'"
    try:
        with db.writing() as tx:
            row = tx.row(sql)
            if row and abs(tx.now() - row.done_at) < KEPT_SECONDS:  # the clock may have been set back
                return False
            _note(tx, "leftovers", "")
    except SwarmError:
        return False  # busy; the next pass asks again
    return True


def due_in(tx: Transaction) -> float:
    """Return the seconds until it is time for `some` again."""
    row = tx.row("SELECT done_at FROM swarm_upkeep WHERE what = 'pass'")
    if row:
        return float(min(max(0, row.done_at + PAUSE_SECONDS - tx.now()), PAUSE_SECONDS))
    return 0.0


def _some(db: Database) -> bool:
    """Do one pass; return True if it left due rows.

    Each step is a short transaction, so that other processes have their turn in between.
    """
    # Most stores have neither. Where there are some, their modules are loaded before others have to wait.
    if db.has("tasks"):
        from swarm_mcp.store import tasks  # noqa: F401
    if db.has("swarm_runs"):
        from swarm_mcp.store import runs  # noqa: F401
    left = False
    with db.writing() as tx:
        sessions_left = _some_sessions(tx)
    for step in (_some_locks, _some_tasks, _some_rows, _some_records):
        with db.writing() as tx:
            left = step(tx) or left
    end = time.monotonic() + SESSIONS_SECONDS
    while sessions_left and time.monotonic() < end:
        with db.writing() as tx:
            sessions_left = _some_sessions(tx)
    space = Space(db)
    left = space.give_back() or left or sessions_left
    space.shorten_log(left)
    return left


def _drop_old_journals(tx: Transaction) -> None:
    """Remove the journals of sessions that have gone (``swarm_hook_core.traces``), and old words of prompts."""
    if not os.path.isdir(traces_dir()):
        return
    from swarm_hook_core import greetings

    greetings.prune(time.time())

    def is_known(runtime: str, session_id: str) -> bool:
        sql = "SELECT 1 FROM swarm_sessions WHERE runtime = ? AND session_id = ?"
        return tx.row(sql, (runtime, session_id)) is not None

    try:
        pruning.prune_journals(is_known, time.time())
    except (OSError, SwarmError):
        return  # the next pass tries again


def _some_sessions(tx: Transaction) -> bool:
    """Remove some sessions that have gone; return True if more were found than it removed."""
    before = _place(tx, "gone")
    found, place = session_table.gone_after(tx, before, AT_ONCE)
    for row in found[:SESSIONS_AT_ONCE]:
        reactions.session_gone(tx, row, "reclaimed")
    is_more_left = len(found) > SESSIONS_AT_ONCE
    if place != before and not is_more_left:
        _note(tx, "gone", place)
    return is_more_left


def _some_locks(tx: Transaction) -> bool:
    mode = "periodic"
    gone = [_drop_spent_mutexes(tx, AT_ONCE, None, mode)]
    holders = _walk(tx, "orphan_locks", lambda after: lock_rows.vanished_holders(tx, after, AT_ONCE))
    gone.append(_drop_orphan_locks(tx, holders, AT_ONCE, None, mode))
    locks.reaped(tx, lock_rows.ended_holds(tx))
    refusals.settle(tx)
    _walk(tx, "denials", lambda after: ((), refusals.settle_some(tx, after, AT_ONCE)))
    return _has_more(gone)


def _some_tasks(tx: Transaction) -> bool:
    _cascade(tx, AT_ONCE, None)
    found = _drop_aged(tx, "terminal_tasks", AT_ONCE, None, "periodic")
    _settle(tx, set(found))
    return _has_more([found])


def _some_rows(tx: Transaction) -> bool:
    return _has_more([_drop_aged(tx, kind, AT_ONCE, None, "periodic") for kind in AGED if kind != "terminal_tasks"])


def _some_records(tx: Transaction) -> bool:
    orphans: list[KeyValue] = []
    for prefix in VALUE_PREFIXES:
        orphans += _walk(tx, prefix, _orphans_of(tx, prefix))
    values.remove_orphans(tx, orphans, "periodic")
    gone = [refusals.forget_old(tx, AT_ONCE), breaches.forget_old(tx, AT_ONCE)]
    if tx.has("swarm_runs"):
        runs.forget_old(tx, AT_ONCE)
    _walk(tx, "notices", lambda after: ((), messages.forget_old(tx, after, AT_ONCE)))
    _walk(tx, "lapses", lambda after: ((), leases.forget_old_lapses(tx, after, AT_ONCE)))
    _walk(tx, "deliveries", lambda after: ((), messages.forget_lost_deliveries(tx, after, AT_ONCE)))
    return max(gone) >= AT_ONCE


def _orphans_of(tx: Transaction, prefix: str) -> Callable[[str], tuple[Sequence[Any], str]]:
    return lambda after: values.orphans(tx, prefix, after, AT_ONCE, None)


def _cascade(tx: Transaction, limit: int, scope: str | None) -> None:
    """Cancel dependents of failed tasks that are about to be deleted: afterwards the tasks would count as done."""
    # Where `_drop_aged` is about to delete tasks that failed or were cancelled
    condition, values = _in_scope(_BY_AGE["terminal_tasks"][1], tx.now() - TASK_SECONDS, scope)
    chosen = f"SELECT scope, status FROM tasks WHERE {condition} ORDER BY updated_at, rowid LIMIT {limit}"
    rows = tx.rows(f"SELECT DISTINCT scope FROM ({chosen}) WHERE status <> 'done'", values)
    for place in [row.scope for row in rows]:
        _let_go(tx, place)


def _settle(tx: Transaction, scopes: set[str]) -> None:
    """Let go of tasks that waited for deleted ones, here and, in turn, where another program deletes."""
    after = _place(tx, "waiting")
    row = tx.row(
        "SELECT min(scope) AS scope FROM tasks WHERE status IN ('blocked', 'approval_required') AND scope > ?",
        (after,),
    )
    following = row.scope if row else None
    _note(tx, "waiting", following or "")
    for scope in scopes | ({following} if following is not None else set()):
        _let_go(tx, scope)


def _let_go(tx: Transaction, scope: str | None) -> None:
    from swarm_mcp.store import tasks

    tasks.settle_vanished(tx, scope)


def _walk(tx: Transaction, what: str, step: Callable[[str], tuple[Sequence[Any], str]]) -> list[Any]:
    """Do one step of a long way round, `step(place) -> (found, next place)`; return the found rows."""
    before = _place(tx, what)
    found, place = step(before)
    if place != before:
        _note(tx, what, place)
    return list(found)


def _place(tx: Transaction, what: str) -> str:
    row = tx.row("SELECT place FROM swarm_upkeep WHERE what = ?", (what,))
    return (row.place if row else "") or ""


def _note(tx: Transaction, what: str, place: str, offset: int = 0) -> None:
    tx.change(
        "INSERT OR REPLACE INTO swarm_upkeep (what, done_at, place) VALUES (?, ?, ?)",
        (what, tx.now() + offset, place),
    )


def clean(db: Database, scope: str | None = None, dry_run: bool = False) -> dict[str, Any]:
    """Remove all due rows in `scope` (None: everywhere); return counts in the contract's shape.

    A dry run does the same in a transaction that is rolled back, so that it cannot disagree.
    """
    report: dict[str, Any] = {"dry_run": dry_run, "mode": "manual", "scope": scope, "at": db.now()}
    try:
        with db.writing() as tx:
            report.update(_clean(tx, scope))
            if dry_run:
                raise _RollBack
    except _RollBack:  # a dry run ends so
        pass
    else:
        _drop_old_contents()
        remove(time.time())
        _give_back_all(db)
    return report


def _give_back_all(db: Database) -> None:
    """Give back all free pages, in as many short transactions as it takes: the caller may wait."""
    space = Space(db)
    try:
        while space.give_back():
            time.sleep(SHRINK_PAUSE_SECONDS)
        space.shorten_log(False)
    except SwarmError:
        return  # another process writes all the time; the passes go on with it


def _clean(tx: Transaction, scope: str | None) -> dict[str, Any]:
    mode = "manual"
    before = tx.count("context WHERE type = 'lock'")
    gone = [row for row in session_table.all_gone(tx) if scope in (None, row.scope)]
    reopened = cleared = identities = 0
    for row in gone:
        reopened += tx.count("tasks WHERE assignee = ? AND status IN ('claimed', 'in_progress')", row.id)
        cleared += tx.count("tasks WHERE assignee = ? AND status IN ('blocked', 'approval_required')", row.id)
        panes = (f"identity/workspace/herdr/{row.id}", f"identity/herdr/{row.id}")
        identities += tx.count("kv WHERE key IN (?, ?)", *panes)
        reactions.session_gone(tx, row, "reclaimed")
    _drop_orphan_locks(tx, lock_rows.vanished_holders(tx, "", -1)[0], -1, scope, mode)
    mutexes = sum(_drop_spent_mutexes(tx, -1, scope, mode).values())
    _cascade(tx, -1, scope)
    counts = {kind: sum(_drop_aged(tx, kind, -1, scope, mode).values()) for kind in AGED}
    orphans = []
    for prefix in VALUE_PREFIXES:
        orphans += values.orphans(tx, prefix, "", -1, scope)[0]
    keys = values.remove_orphans(tx, orphans, mode)
    locks.settle_leases(tx)
    refusals.settle_some(tx, "", -1)
    refusals.forget_old(tx, -1)
    messages.forget_old(tx, "", -1)
    leases.forget_old_lapses(tx, "", -1)
    breaches.forget_old(tx, -1)
    messages.forget_lost_deliveries(tx, "", -1)
    _let_go(tx, scope)
    return {
        "instances_reclaimed": len(gone),
        "tasks_reopened": reopened,
        "task_assignees_cleared": cleared,
        "locks_deleted": before - tx.count("context WHERE type = 'lock'") - mutexes,
        "terminal_spawn_locks_deleted": mutexes,
        "messages_deleted": counts["messages"],
        "terminal_tasks_deleted": counts["terminal_tasks"],
        "non_lock_context_rows_deleted": counts["non_lock_context_rows"],
        "events_deleted": counts["events"],
        "kv_deleted": len(keys),
        "kv_keys_deleted": keys,
        "identity_rows_deleted": identities,
    }


def _drop_aged(tx: Transaction, kind: str, limit: int, scope: str | None, mode: str) -> dict[str, int]:
    """Delete rows of a kind of `_BY_AGE`, oldest first; how many went, by scope."""
    table, condition, order, seconds = _BY_AGE[kind]
    past = tx.now() - seconds
    condition, values = _in_scope(condition, past, scope)
    chosen = f"FROM {table} WHERE {condition} ORDER BY {order}, rowid LIMIT {limit}"
    counts = tx.rows(f"SELECT scope, count(*) AS n FROM (SELECT scope {chosen}) GROUP BY scope", values)
    if counts:
        tx.change(f"DELETE FROM {table} WHERE rowid IN (SELECT rowid {chosen})", values)
        if table == "tasks":
            tx.change("DELETE FROM swarm_questions WHERE task_id NOT IN (SELECT id FROM tasks)")
    found = {row.scope: row.n for row in counts}
    if seconds:
        more = {"cutoff": past, "ttl_secs": seconds}
    else:
        more = {}
    _report(tx, kind, found, mode, **more)
    return found


def _drop_spent_mutexes(tx: Transaction, limit: int, scope: str | None, mode: str) -> dict[str, int]:
    """Delete mutexes of ended tasks; return their number by scope."""
    rows = tx.rows(
        "SELECT c.id, c.scope, c.instance_id, c.file, c.task_id, c.path_key FROM context c"
        " CROSS JOIN tasks t ON t.id = c.task_id"
        f" WHERE c.type = 'lock' AND {SPELLED} AND c.file >= ? AND c.file < ? AND t.status IN {TERMINAL}"
        f" AND (? IS NULL OR c.scope = ?) LIMIT {limit}",
        (MUTEX_PREFIX, range_end(MUTEX_PREFIX), scope, scope),
        Lock,
    )
    for row in rows:
        reactions.end_locks(tx, [row], "dispatch_task_terminal", task_id=row.task_id)
    return _report_locks(tx, "terminal_spawn_locks", rows, mode)


def _drop_orphan_locks(tx: Transaction, holders: list[str], limit: int, scope: str | None, mode: str) -> dict[str, int]:
    """Delete locks held by `holders`, which are not registered; return their number by scope."""
    rows: list[Lock] = []
    for holder in holders:
        found = [row for row in lock_rows.of(tx, holder) if scope in (None, row.scope)]
        rows += found if limit < 0 else found[: limit - len(rows)]
    reactions.end_locks(tx, rows, "reclaimed")
    return _report_locks(tx, "orphan_locks", rows, mode)


def _report_locks(tx: Transaction, kind: str, rows: list[Lock], mode: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in rows:
        found[row.scope] = found.get(row.scope, 0) + 1
    _report(tx, kind, found, mode)
    return found


def _report(tx: Transaction, kind: str, found: dict[str, int], mode: str, **more: object) -> None:
    for scope, count in found.items():
        tx.add_event(scope, f"cleanup.{kind}_deleted", "system", None, {"count": count, "mode": mode, **more})


def _has_more(gone: list[dict[str, int]]) -> bool:
    """Return True if a kind of row, of which these numbers went by scope, may have more due rows."""
    return any(sum(found.values()) >= AT_ONCE for found in gone)


def _drop_old_contents() -> None:
    """Remove kept contents past their age and bounds: hooks never do."""

    try:
        pruning.prune_versions(time.time())
    except OSError:
        return  # there are no kept contents, or this user may not see them


def _in_scope(condition: str, past: int, scope: str | None) -> tuple[str, tuple[Any, ...]]:
    if scope is None:
        return (condition, (past,))
    return (f"scope = ? AND {condition}", (scope, past))
