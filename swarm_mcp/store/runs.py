"""Runs: agent command lines as children, their supervisors, and one spawn at a time.

A row is written by the run's supervisor and read by any process. While the supervisor lives, the run's instance is the
supervisor's: sessions that the child's hooks and MCP server report are its guests. They come and go without taking the
instance, its locks or its task along.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from typing import Any

from swarm_hook_core.json_text import dumps, loads
from swarm_hook_core.process import gone, start_time
from swarm_mcp.domain import (
    ABANDONED,
    ENDED,
    MUTEX_PREFIX,
    RUN_COLUMNS,
    RUN_RUNTIME,
    STARTING,
    TERMINAL,
    Lock,
    Record,
    Run,
    Session,
    new_id,
)
from swarm_mcp.errors import Refused
from swarm_mcp.store import cursors, lock_finder, reactions, session_table
from swarm_mcp.store.database import Database, Transaction, object_in

KEPT_SECONDS = 30 * 86400  # an ended run and its record
_JSON = ("session_params", "usage", "result")


def begin(db: Database, spec: dict[str, Any]) -> Run:
    """Write down a run that this process will supervise; its row.

    `spec` has at least ``id``, ``variables``, ``instance_id``, ``harness`` and ``cwd``.
    """
    now = db.now()
    values: dict[str, Any] = {"state": STARTING, "started_at": now, "updated_at": now, "host": db.here}
    values.update(supervisor_pid=os.getpid(), supervisor_start=start_time(os.getpid()))
    values.update(_encoded(spec))
    with db.writing() as tx:
        tx.change(
            f"INSERT OR REPLACE INTO swarm_runs ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})",
            list(values.values()),
        )
    return get(db, values["id"]) or Run()


def update(db: Database, /, run_id: str, **columns: object) -> Run | None:
    """Change columns of a run; return its row, None without one."""
    values = {**_encoded(columns), "updated_at": db.now()}
    if columns.get("state") == ENDED:
        values.setdefault("ended_at", db.now())
    with db.writing() as tx:
        tx.change(
            f"UPDATE swarm_runs SET {', '.join(f'{name} = ?' for name in values)} WHERE id = ?",
            (*values.values(), run_id),
        )
    return get(db, run_id)


def ask(db: Database, run_id: str, control: str) -> Run:
    """Ask the supervisor for something (`CONTROLS`, empty takes it back); the row. Raises Refused."""
    row = get(db, run_id)
    if row is None or row.state == ENDED:
        raise Refused(f"run {run_id} has ended" if row else f"there is no run {run_id}")
    return update(db, run_id, control=control or None) or row


def get(tx: Transaction, run_id: str) -> Run | None:
    """Return one run."""
    found = _rows(tx, "WHERE id = ?", (run_id,))
    if found:
        return found[0]
    return None


def find(tx: Transaction, scope: str, reference: str) -> Run:
    """Return the newest run that `reference` names: its id, its task's id, or a unique beginning of either.

    Whole ids name runs of any scope. Raises Refused if it names no run, or runs of several tasks.
    """
    exact = _rows(tx, "WHERE id = ? OR task_id = ?", (reference, reference))
    if exact:
        return exact[0]
    pattern = reference.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
    found = _rows(
        tx, "WHERE scope = ? AND (id LIKE ? ESCAPE '\\' OR task_id LIKE ? ESCAPE '\\')", (scope, pattern, pattern)
    )
    if not reference or not found:
        raise Refused(f"no run here has {reference[:60]!r} for its id or its task's")
    if len({row.task_id or row.id for row in found}) > 1:
        raise Refused(f"{reference[:60]!r} is how several runs begin: {', '.join(row.id for row in found[:5])}")
    return found[0]


def of_task(tx: Transaction, scope: str, task_id: str) -> list[Run]:
    """Return the runs of a task, newest first."""
    return _rows(tx, "WHERE +scope = ? AND task_id = ?", (scope, task_id))


def walk(tx: Transaction, scope: str, state: str = "", after: str = "") -> Iterator[tuple[str, Run]]:
    """Yield the runs of a scope, of one state where that is given, newest first."""
    # A run whose supervisor was killed has ended, even if its row says otherwise.
    if state != ENDED:
        stored = state
    else:
        stored = ""

    def read(behind: str, place: list[Any], number: int) -> list[Record]:
        where, values = ("scope = ? AND state = ?", (scope, stored)) if stored else ("scope = ?", (scope,))
        sql = (
            f"SELECT rowid AS row, {', '.join(RUN_COLUMNS)} FROM swarm_runs WHERE {where} {behind}"
            f" ORDER BY started_at DESC, rowid DESC LIMIT {number}"
        )
        return tx.rows(sql, (*values, *place))

    behind, place_of = "AND (started_at, rowid) < (?, ?)", lambda row: [row["started_at"], row["row"]]
    for place, row in cursors.rows_after(after, (object, int), behind, read, place_of):
        run = _decoded(tx, Run({name: row[name] for name in RUN_COLUMNS}))
        if state in ("", run.state):
            yield place, run


def count(tx: Transaction, scope: str, state: str = "") -> int:
    """Return how many runs `walk` has."""
    if not state:
        return tx.count("swarm_runs WHERE scope = ?", scope)
    going_on = live(tx, scope)
    if state != ENDED:
        return sum(run.state == state for run in going_on)
    return count(tx, scope) - len(going_on)


def live(tx: Transaction, scope: str = "") -> list[Run]:
    """Return runs that have not ended, newest first."""
    where, values = (" AND scope = ?", (scope,)) if scope else ("", ())
    return [row for row in _rows(tx, f"WHERE state <> 'ended'{where}", values) if row.state != ENDED]


def session_of(tx: Transaction, task_id: str, harness: str) -> dict[str, Any] | None:
    """Return the parameters to continue a task's last session in that harness (``session_params``), or None."""
    for row in _rows(tx, "WHERE task_id = ? AND harness = ?", (task_id, harness)):
        if row.result and row.result.get("clear_session") and not row.session_params:
            return None
        if row.session_params:
            return row.session_params
    return None


def of_session(tx: Transaction, harness: str, session_id: str) -> dict[str, Any] | None:
    """Return the parameters to resume a harness's session, as its newest run left them, or None."""
    text = session_id.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    rows = _rows(tx, "WHERE harness = ? AND session_params LIKE ? ESCAPE '\\'", (harness, f'%"{text}"%'))
    found = (row.session_params for row in rows)
    return next((params for params in found if params and params.get("session_id") == session_id), None)


def of_instance(tx: Transaction, instance_id: str) -> Run | None:
    """Return the run under way with this instance, or None."""
    rows = _rows(tx, "WHERE instance_id = ? AND state <> 'ended'", (instance_id,))
    if rows and rows[0].state != ENDED:
        return rows[0]
    return None


def admit(tx: Transaction, instance_id: str, client: tuple[int, str]) -> Run | None:
    """Return the run under way of that instance, if the process `client` (pid, start time) is its child; else None.

    The first client that reports is the child. Clients that it starts inherit its environment, and are sessions of
    their own.
    """
    run = of_instance(tx, instance_id)
    if run is None or not client[0]:
        return run
    known = [(run[f"{who}_pid"], run[f"{who}_start"]) for who in ("supervisor", "child", "client")]
    if client in known:
        return run
    pid, started = known[2]
    if pid and not gone(run.host or "", pid, started or "", tx.here):
        return None
    tx.change("UPDATE swarm_runs SET client_pid = ?, client_start = ? WHERE id = ?", (*client, run.id))
    return run.replace(client_pid=client[0], client_start=client[1])


def take_back(db: Database, instance_id: str) -> bool:
    """Give a run's instance back to its supervisor: its child's session has ended. Return True if it is a run's."""
    run = of_instance(db, instance_id)
    if run is None:
        return False
    with db.writing() as tx:
        tx.change(
            "UPDATE swarm_sessions SET runtime = ?, session_id = ?, state = 'idle' WHERE instance_id = ?",
            (RUN_RUNTIME, run.id, instance_id),
        )
        tx.change("UPDATE swarm_runs SET client_pid = NULL, client_start = NULL WHERE id = ?", (run.id,))
    return True


def forget_old(tx: Transaction, limit: int) -> None:
    """Inside a transaction: drop runs that ended a month ago, with their records; end those left behind."""
    for row in tx.rows(f"SELECT * FROM swarm_runs WHERE state <> '{ENDED}' LIMIT ?", (limit,), Run):
        if _is_abandoned(tx, row):
            tx.change(
                "UPDATE swarm_runs SET state = ?, ended_at = ?, control = NULL, result = ? WHERE id = ?",
                (ENDED, tx.now(), dumps(_abandoned(row)), row.id),
            )
    before = tx.now() - KEPT_SECONDS
    old = tx.rows("SELECT id, record FROM swarm_runs WHERE ended_at < ? LIMIT ?", (before, limit))
    for ended in old:
        folder = os.path.dirname(ended.record or "")
        if os.path.basename(folder) == ended.id:  # nothing but a run's own folder
            import shutil

            shutil.rmtree(folder, ignore_errors=True)
        tx.change("DELETE FROM swarm_runs WHERE id = ?", (ended.id,))


def _rows(tx: Transaction, where: str, values: tuple[Any, ...]) -> list[Run]:
    sql = f"SELECT {', '.join(RUN_COLUMNS)} FROM swarm_runs {where} ORDER BY started_at DESC, rowid DESC"
    rows = tx.rows(sql, values, Run)
    return [_decoded(tx, row) for row in rows]


def _decoded(tx: Transaction, row: Run) -> Run:
    run = row.replace(**{name: _parsed(row[name]) for name in _JSON})
    if run.state != ENDED and _is_abandoned(tx, run):
        return run.replace(state=ENDED, control=None, result=_abandoned(run))
    return run


def _is_abandoned(tx: Transaction, row: Run) -> bool:
    supervisor = (row.supervisor_pid or 0, row.supervisor_start or "")
    return gone(row.host or "", *supervisor, tx.here)


def _parsed(text: object) -> dict[str, Any] | None:
    try:
        if isinstance(text, str) and text:
            found = loads(text)
        else:
            found = None
    except (ValueError, RecursionError):  # another program's text
        return None
    if isinstance(found, dict):
        return found
    return None


def _abandoned(row: Run) -> dict[str, Any]:
    return {
        "run_id": row.id, "harness": row.harness, "is_error": True, "error_category": "process_crashed",
        "error_message": ABANDONED, "output": "", "record": row.record or "",
    }  # fmt: skip


def _encoded(columns: dict[str, Any]) -> dict[str, Any]:
    unknown = set(columns) - set(RUN_COLUMNS)
    if unknown:
        raise AssertionError(f"a run has no {', '.join(sorted(unknown))}")
    return {name: dumps(value) if name in _JSON and value is not None else value for name, value in columns.items()}


# One spawn at a time: an exclusive lock for each role and dispatch key of a scope.
#
# It is a lock like others, on ``/__swarm/spawn/<role>/<16 hex digits of the key's SHA-256>``, so that other
# implementations on the same file honour it. Its note says how far the spawn has come. So a spawn whose dispatcher was
# killed, or whose worker never came up, does not block the next for ever.

# A worker that has not registered by then will not: its terminal was closed, or it never started.
ARRIVAL_SECONDS = 600
SPAWN_STARTING, SPAWN_STARTED = "starting", "started"


def take(tx: Transaction, instance: Session, name: str, task_id: str, worker_id: str) -> Lock | None:
    """Return the lock, now this process's to spawn under; None if a spawn is under way.

    `worker_id` is the id reserved for the started worker. Raises SwarmError if `instance`, the session that dispatches,
    has gone.
    """
    reactions.require(tx, instance.id)
    held = holder(tx, instance.scope, name)
    if held and not is_void(tx, held):
        return None
    _delete(tx, instance.scope, name, "spawn_void")
    row = {
        "id": new_id(),
        "scope": instance.scope,
        "instance_id": instance.id,
        "file": name,
        "task_id": task_id,
    }
    by = [tx.here, os.getpid(), start_time(os.getpid())]
    row["content"] = _spawn_note(SPAWN_STARTING, {"by": by, "instance_id": worker_id})
    tx.change(
        "INSERT INTO context (id, scope, instance_id, file, type, content, task_id, created_at)"
        " VALUES (?, ?, ?, ?, 'lock', ?, ?, ?)",
        (row["id"], row["scope"], row["instance_id"], name, row["content"], task_id, tx.now()),
    )
    payload = {"id": row["id"], "content": row["content"]}
    tx.add_event(row["scope"], "context.lock_acquired", instance.id, name, payload)
    return Lock(row)


def started(tx: Transaction, row: Lock, facts: dict[str, Any]) -> None:
    """Note that the spawn under `row` is out of our hands; `facts` say how to ask about it."""
    tx.change("UPDATE context SET content = ? WHERE id = ?", (_spawn_note(SPAWN_STARTED, facts), row.id))


def release(tx: Transaction, row: Lock, reason: str) -> None:
    """Give up the lock `row` (from `take`), where it is still that one."""
    _release(tx, row, reason)


def _release(tx: Transaction, row: Lock, reason: str) -> None:
    if tx.change("DELETE FROM context WHERE id = ?", (row.id,)):
        payload = {"released": 1, "reason": reason, "task_id": row.task_id}
        tx.add_event(row.scope, "context.lock_released", row.instance_id, row.file, payload)


def holder(tx: Transaction, scope: str, name: str) -> Lock | None:
    """Return the lock of this scope as ``locks.on`` gives it, None without a live holder."""
    return next((row for row in lock_finder.on(tx, name) if row.scope == scope), None)


def worker_of(tx: Transaction, row: Lock) -> Session | None:
    """Return the worker that was started under a lock, where it has come up."""
    reserved = reserved_in(row)
    if reserved:
        return session_table.live(tx, reserved)
    return None


def is_void(tx: Transaction, row: Lock) -> bool:
    """Return True if the spawn under a lock is provably over without a worker."""
    task = tx.row("SELECT status FROM tasks WHERE id = ?", (row.task_id,))
    if task is None or task.status in TERMINAL:
        return True
    note = object_in(row.content)
    if worker_of(tx, row):
        return False
    if note.get("stage") == SPAWN_STARTING:
        return _is_gone(tx, note.get("by"))
    if _is_gone(tx, note.get("supervisor")):
        return True
    command = note.get("ui_command_id")
    if isinstance(command, int):
        found = tx.row("SELECT status FROM ui_commands WHERE id = ?", (command,))
        if found is None or found.status == "failed":
            return True
        if found.status != "done":
            return False  # the queue's reader may yet come
    return note.get("stage") == SPAWN_STARTED and tx.now() - row.created_at > ARRIVAL_SECONDS


def _delete(tx: Transaction, scope: str, name: str, reason: str) -> None:
    for row in tx.rows(
        "SELECT id, scope, instance_id, file, task_id FROM context WHERE scope = ? AND file = ? AND type = 'lock'",
        (scope, name),
        Lock,
    ):
        _release(tx, row, reason)


def _is_gone(tx: Transaction, process: object) -> bool:
    """Return True if a process ``[host, pid, start time]`` has provably ended."""
    if not isinstance(process, list) or [type(part) for part in process] != [str, int, str]:
        return False
    host, pid, started = process
    return gone(host, pid, started, tx.here)


def name_of(role: str, key: str) -> str:
    """Return the lock's file for a role and a dispatch key."""
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{MUTEX_PREFIX}spawn/{role}/{digest[:16]}"


def reserved_in(row: Lock) -> str:
    """Return the instance id that is reserved for the worker started under a lock; empty without one."""
    reserved = object_in(row.content).get("instance_id")
    if isinstance(reserved, str):
        return reserved
    return ""


def _spawn_note(stage: str, facts: dict[str, Any]) -> str:
    return dumps({"stage": stage, **facts})
