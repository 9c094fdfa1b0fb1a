"""Rows of sessions: found, told from those that have gone, and deleted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from swarm_hook_core.lookup import plain
from swarm_hook_core.lookup.sqlite import EVIDENCE
from swarm_hook_core.process import RECLAIM_SECONDS, clients_in, departed, gone, start_time
from swarm_hook_core.state import has_turn_files
from swarm_hook_core.untrusted_text import same_circle, token
from swarm_mcp.domain import REMOTE, STALE_SECONDS, Record, Session
from swarm_mcp.store.database import Transaction

LOOKED_AT_ONCE = 200  # sessions that a registration looks at
ALIKE = 1000  # sessions that one ambiguous name can list


def get(tx: Transaction, instance_id: str) -> Session | None:
    """Return one row of ``sessions``."""
    return tx.row("SELECT * FROM instances WHERE id = ?", (instance_id,), Session)


def is_remote(tx: Transaction, instance_id: str) -> bool:
    """Return True for a session on another machine."""
    return tx.has("swarm_sessions WHERE instance_id = ? AND runtime = ?", instance_id, REMOTE)


def live(tx: Transaction, instance_id: str) -> Session | None:
    """Return one row, None if that session has gone."""
    found = _live(tx, "WHERE i.id = ?", (instance_id,))
    if found:
        return found[0]
    return None


def with_evidence(tx: Transaction, instance_id: str) -> Session | None:
    """Return a session, gone or not, with all that is known of its client."""
    found = _with_evidence(tx, "WHERE i.id = ?", (instance_id,))
    if found:
        return found[0][0]
    return None


def in_scope(tx: Transaction, scope: str) -> list[Session]:
    """Return the live rows of a scope, in order of registration, but those of other machines."""
    return _live(tx, f"WHERE i.scope = ? AND s.runtime IS NOT '{REMOTE}'", (scope,))


def on_all_machines(tx: Transaction, scope: str) -> list[Session]:
    """Return the live rows of a scope, in order of registration, those of other machines too."""
    return _live(tx, "WHERE i.scope = ?", (scope,))


def walk(tx: Transaction, scope: str, after: str = "") -> Iterator[tuple[str, Session]]:
    """Yield the live rows of a scope, those of other machines too, as pages of a listing take them."""
    from swarm_mcp.store import cursors

    def read(behind: str, place: list[Any], number: int) -> list[Session]:
        # First the rows, from the index alone; their columns are looked up afterwards.
        chosen = f"SELECT rowid FROM instances WHERE scope = ? {behind} ORDER BY registered_at, rowid"
        chosen += f" LIMIT {number}"
        return evidence_where(tx, f"WHERE i.rowid IN ({chosen})", (scope, *place), ", i.rowid AS row")

    now, here = tx.now(), tx.here
    behind, place_of = "AND (registered_at, rowid) > (?, ?)", lambda row: [row["registered_at"], row["row"]]
    for place, row in cursors.rows_after(after, (object, int), behind, read, place_of):
        if not departed(row, now, here):
            yield place, Session({name: value for name, value in row.items() if name != "row"})


def alike(tx: Transaction, scope: str, text: str) -> list[Session]:
    """Return sessions of `in_scope` with an id that begins with `text`, or a label that contains it: 1000 at most."""
    is_alike = "(substr(id, 1, ?) = ? OR instr(label, ?))"
    chosen = f"SELECT rowid FROM instances WHERE scope = ? AND {is_alike} ORDER BY registered_at, rowid LIMIT {ALIKE}"
    return _live(tx, f"WHERE i.rowid IN ({chosen})", (scope, len(text), text, text))


def count(tx: Transaction, scope: str, words: str = "", viewer: str = "") -> int:
    """Return the number of sessions on record in a scope: with `words` in their label, of no other identity.

    Gone sessions count until a process notices.
    """
    condition, values = "scope = ?", [scope]
    if words:
        condition, values = f"{condition} AND instr(label, ?)", [*values, words]
    if viewer:
        condition += " AND NOT (instr(' ' || coalesce(label, ''), ' identity:')"
        condition += " AND NOT instr(' ' || label || ' ', ' identity:' || ? || ' '))"
        values.append(viewer)
    return tx.count(f"instances WHERE {condition}", *values)


def scopes(tx: Transaction, limit: int) -> list[str]:
    """Return the scopes that sessions are on record in, the one that last had a sign of life first."""
    sql = "SELECT scope FROM instances GROUP BY scope ORDER BY max(heartbeat) DESC, scope LIMIT ?"
    return [row.scope for row in tx.rows(sql, (limit,))]


def of_session(tx: Transaction, runtime: str, session_id: str) -> Session | None:
    """Return the row of a runtime's session, looked up by the whole id."""
    return tx.row(
        "SELECT i.* FROM instances i JOIN swarm_sessions s ON s.instance_id = i.id"
        " WHERE s.runtime = ? AND s.session_id = ?",
        (runtime, session_id),
        Session,
    )


def of_session_id(tx: Transaction, session_id: str) -> list[Session]:
    """Return live rows of every runtime's session with this whole id."""
    return _live(tx, "WHERE s.session_id = ?", (session_id,))


def of_client(tx: Transaction, pid: int, started: str) -> list[Session]:
    """Return live rows of the sessions that are open in one client process, with their ``session_id``."""
    return [row for row in _open_in(tx, [pid]) if (pid, started) in clients_of(row)]


def of_processes(tx: Transaction, pids: list[int]) -> list[list[Session]]:
    """Return the same of each of these running processes of this machine."""
    found, known = [], _open_in(tx, pids)
    for pid in pids:
        rows = [row for row in known if pid in [client for client, _ in clients_of(row)]]
        started = start_time(pid) if rows else ""
        found.append([row for row in rows if (pid, started) in clients_of(row)])
    return found


def _open_in(tx: Transaction, pids: list[int]) -> list[Session]:
    """Return live rows of the sessions that are or were open in clients with these pids."""
    pids = [pid for pid in pids if pid]
    if not pids:
        return []
    others = " OR ".join(["instr(' ' || s.other_clients, ?) > 0"] * len(pids))
    return _live(
        tx,
        f"WHERE s.host = ? AND (s.client_pid IN ({','.join('?' * len(pids))}) OR {others})",
        (tx.here, *pids, *(f" {pid}:" for pid in pids)),
    )


def is_session(tx: Transaction, instance_id: str) -> bool:
    """Return True if a runtime's session has this instance, and not just a row that waits for one."""
    return tx.row("SELECT 1 FROM swarm_sessions WHERE instance_id = ?", (instance_id,)) is not None


def terminal_of(tx: Transaction, runtime: str, session_id: str) -> tuple[int, str]:
    """Return the pid and start time of the terminal recorded for a session, if it still runs; else ``(0, "")``."""
    row = tx.row(
        "SELECT host, terminal_pid, terminal_start FROM swarm_sessions WHERE runtime = ? AND session_id = ?",
        (runtime, session_id),
    )
    if not row or not row.terminal_pid:
        return 0, ""
    terminal = (row.terminal_pid, row.terminal_start)
    if gone(row.host, *terminal, tx.here):
        return (0, "")
    return terminal


def beside(tx: Transaction, instance: Session) -> list[Session]:
    """Return the other sessions of this session's scope: for right after its registration, which removes gone ones."""
    sql = "SELECT * FROM instances WHERE scope = ? AND id <> ? ORDER BY registered_at, rowid"
    return tx.rows(sql, (instance.scope, instance.id), Session)


def held_beside(
    tx: Transaction, instance: Session, limit: int, viewer_identity: str
) -> tuple[int, list[dict[str, Any]]]:
    """Return how many locks those hold in the scope (counted up to 1000), and a few of them, as `beside` does.

    Each has `file`, `content`, `owner_label` (these two empty where the holder is of another identity) and
    `instance_id`.
    """
    others = "FROM context WHERE type = 'lock' AND scope = ? AND instance_id <> ? LIMIT"
    values = (instance.scope, instance.id)
    counted = tx.count(f"(SELECT 1 {others} 1000)", *values)
    few = tx.rows(
        "SELECT c.file, substr(c.content, 1, 2048) AS content, c.instance_id, i.label AS owner_label"
        f" FROM (SELECT file, content, instance_id, created_at {others} {limit}) c"
        " LEFT JOIN instances i ON i.id = c.instance_id ORDER BY c.created_at",
        values,
    )
    if has_turn_files():
        from swarm_mcp.store import lock_finder

        of_turns = [row for row in lock_finder.standing(tx, instance.scope) if row.instance_id != instance.id]
        counted += len(of_turns)
        names = ("file", "content", "instance_id", "owner_label")
        few += [Record({name: row[name] for name in names}) for row in of_turns[: max(0, limit - len(few))]]
    found = [{**row, "file": plain(row.file)} for row in few]
    for row in found:
        if not same_circle(viewer_identity, token(row["owner_label"] or "", "identity")):
            row.update(content="", owner_label=None)
    return counted, found


def some_gone(tx: Transaction) -> list[Session]:
    """Return the gone ones of the sessions that have been silent the longest."""
    longest = f"SELECT id FROM instances ORDER BY heartbeat LIMIT {LOOKED_AT_ONCE}"
    return [row for row, has_gone in _with_evidence(tx, f"WHERE i.id IN ({longest})", ()) if has_gone]


def all_gone(tx: Transaction) -> list[Session]:
    """Return the rows of sessions that have provably or by their lease gone, in all scopes."""
    return [row for row, has_gone in _with_evidence(tx, "", ()) if has_gone]


def gone_after(tx: Transaction, after: str, limit: int) -> tuple[list[Session], str]:
    """Return the gone ones of the next `limit` sessions behind `after`, and the last one looked at.

    The latter is empty at the end.
    """
    chosen = f"SELECT rowid FROM instances WHERE rowid > ? ORDER BY rowid LIMIT {limit}"
    rows = tx.rows(chosen, (int(after or 0),))
    if rows:
        found = _with_evidence(tx, f"WHERE i.rowid IN ({chosen})", (int(after or 0),))
    else:
        found = []
    return [row for row, has_gone in found if has_gone], str(rows[-1].rowid) if len(rows) == limit else ""


def delete(tx: Transaction, session: Session, reason: str) -> None:
    """Inside a transaction: delete the row of a session, with its event.

    `reason` is ``deregistered`` or ``reclaimed``. ``reactions.session_gone`` removes the rest.
    """
    tx.change("DELETE FROM swarm_sessions WHERE instance_id = ?", (session.id,))
    tx.change("DELETE FROM instances WHERE id = ?", (session.id,))
    payload = {"label": session.label, "pid": session.pid}
    if reason == "reclaimed":
        payload.update(last_heartbeat=session.heartbeat)
        payload.update(stale_threshold_secs=STALE_SECONDS, reclaim_threshold_secs=RECLAIM_SECONDS)
        tx.add_event(session.scope, "instance.stale_reclaimed", "system", session.id, payload)
    else:
        tx.add_event(session.scope, "instance.deregistered", session.id, session.id, payload)


def _live(tx: Transaction, where: str, values: tuple[Any, ...]) -> list[Session]:
    return [row for row, has_gone in _with_evidence(tx, where, values) if not has_gone]


def _with_evidence(tx: Transaction, where: str, values: tuple[Any, ...]) -> list[tuple[Session, bool]]:
    now, here = tx.now(), tx.here
    return [(row, departed(row, now, here)) for row in evidence_where(tx, where, values)]


def evidence_where(tx: Transaction, where: str, values: tuple[Any, ...], more: str = "") -> list[Session]:
    """Return rows, in order of registration, with all that is known of their clients; `more`: another column."""
    return tx.rows(
        f"SELECT i.*, {EVIDENCE}, s.session_id{more} FROM instances i"
        f" LEFT JOIN swarm_sessions s ON s.instance_id = i.id {where} ORDER BY i.registered_at, i.rowid",
        values,
        Session,
    )


def clients_of(session: Record) -> list[Any]:
    """Return pid and start time of each client that a row of ``swarm_sessions`` names, the last that spoke first."""
    own = (session.client_pid, session.client_start)
    return [*([own] if own[0] else []), *clients_in(session.other_clients)]


def clients_text(clients: list[Any]) -> str | None:
    """Return clients as ``swarm_sessions.other_clients`` has them; None without clients."""
    return " ".join(f"{pid}:{started}" for pid, started in clients) or None
