"""Breaches: locked files that changed under their holders, restored contents, attempts to weaken protection.

A row says for a file during whose call it changed, and where the earlier content is kept
(``swarm_hook_core.traces.versions``). It goes when the kept content does.
"""

from __future__ import annotations

from typing import Any

from swarm_hook_core import untrusted_text
from swarm_hook_core.lookup import plain
from swarm_hook_core.lookup.sqlite import covered
from swarm_hook_core.paths import contains, key_of
from swarm_hook_core.traces.versions import AGE_SECONDS
from swarm_hook_core.untrusted_text import as_word
from swarm_hook_core.wording import duration
from swarm_mcp.domain import REMOTE, Breach, Lock, Session
from swarm_mcp.store import lock_finder, messages, session_table
from swarm_mcp.store.database import Database, Transaction
from swarm_mcp.store.messages import known_as, may_meet

SAME_SECONDS = 60  # two calls at once both see one change; it is told once
LISTED = 8  # files that one message names
RESTORED = "restored"  # the kind of a row written by `restore`; the content that it replaced is kept as well

_WHAT = {"changed": "changed", "replaced": "was replaced", "created": "was created", "removed": "was removed"}


def report(db: Database, writer: Session | None, tool: str, command: str, changes: list[dict[str, Any]]) -> list[int]:
    """Write down `changes` while session `writer` (None: not registered) ran a call; return the new rows' ids.

    Each is ``{file, holder_id, kind, kept, at}``: absolute file, how it changed (``records.difference``), path of the
    earlier content (empty if it was not kept), Unix seconds; with ``key`` where the file's key before the change is
    known: a link may have taken its place. A file without a holder at that time is left out. Each holder gets one
    message.
    """
    # Asks the disk, and so comes before the transaction.
    keys = {change["file"]: change.get("key") or key_of(change["file"]) for change in changes}
    told: dict[str, list[dict[str, Any]]] = {}
    added = []
    with db.writing() as tx:
        for change in changes:
            row = {**change, "path_key": keys[change["file"]], "tool": tool, "command": command}
            holder = session_table.live(tx, change["holder_id"])
            if holder:
                lock = _lock_on(tx, row, holder)
            else:
                lock = None
            if lock is None or _is_known(tx, writer, row):
                continue
            row["id"] = _add(tx, lock.scope, writer, row)
            added.append(row["id"])
            told.setdefault(change["holder_id"], []).append(row)
            _say(tx, lock, writer, row)
        for holder_id, rows in told.items():
            _post(tx, session_table.with_evidence(tx, holder_id), writer, rows)
    return added


def restored(db: Database, restorer: Session | None, file: str, kept: str, source: str, scope: str) -> int:
    """Write down that absolute `file` was brought back from kept content `source`; return the row's id.

    `kept` is the path of the content that it replaced, empty without one. Holders of the file are told, except
    `restorer` itself (None: a person).
    """
    key = key_of(file)
    held = lock_finder.on(db, file)
    with db.writing() as tx:
        row = {"file": file, "path_key": key, "kind": RESTORED, "kept": kept, "at": tx.now()}
        row.update(holder_id=held[0].instance_id if held else "", tool="restore", command="")
        actor = "system"
        if restorer:
            actor, scope = restorer.id, restorer.scope
        number = _add(tx, scope, restorer, row)
        payload = {"key": key, "kept": kept, "source": source, "alteration": number, "holder": row["holder_id"]}
        tx.add_event(scope, "context.restored", actor, file, payload)
        for lock in held:
            holder = session_table.live(tx, lock.instance_id)
            if holder and not (restorer and restorer.id == holder.id):
                undo = ""
                if holder.runtime == REMOTE:
                    undo = " That was in a clone on another machine: yours is as it was."
                elif kept:
                    undo = f" What it replaced is kept: `swarm-mcp restore {as_word(file)}` undoes this."
                who = "A person at a terminal"
                if restorer:
                    who = _name(restorer, holder)
                what = f"has restored an earlier content of {untrusted_text.named(file)}, which you hold."
                text = f"[auto] {who} {what}{undo}"
                messages.post(tx, holder.scope, "system", holder.id, text)
    return number


def of(tx: Transaction, file: str, keys: list[str]) -> list[Breach]:
    """Return all that happened to absolute `file`, by this name or by any of these keys, newest first."""
    marks = ",".join("?" * len(keys))
    condition = f"path_key IN ({marks}) OR file = ?"
    return tx.rows(f"SELECT * FROM swarm_alterations WHERE {condition} ORDER BY id DESC", (*keys, file), Breach)


def known(tx: Transaction, scope: str) -> list[Breach]:
    """Return all that happened to files of a scope, newest first."""
    return tx.rows("SELECT * FROM swarm_alterations WHERE scope = ? ORDER BY id DESC", (scope,), Breach)


def forget_old(tx: Transaction, limit: int) -> int:
    """Inside a transaction: drop up to `limit` rows whose kept content is too old; return their number."""
    chosen = f"SELECT id FROM swarm_alterations WHERE altered_at < ? ORDER BY altered_at LIMIT {limit}"
    past = tx.now() - AGE_SECONDS
    return tx.change(f"DELETE FROM swarm_alterations WHERE id IN ({chosen})", (past,))


def _add(tx: Transaction, scope: str, writer: Session | None, row: dict[str, Any]) -> int:
    return tx.insert(
        "INSERT INTO swarm_alterations (scope, file, path_key, writer_id, writer_label, holder_id, tool, command,"
        " kind, kept, altered_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            scope, row["file"], row["path_key"], writer and writer.id, writer and writer.label,
            row["holder_id"], row["tool"], row["command"], row["kind"], row["kept"], int(row["at"]),
        ),
    )  # fmt: skip


def _lock_on(tx: Transaction, row: dict[str, Any], holder: Session) -> Lock | None:
    """Return the lock that covers the file, or did when it changed; else None."""
    file, key = row["file"], row["path_key"]
    locks = tx.rows(
        "SELECT id, scope, file, path_key, content, pattern, base FROM context WHERE type = 'lock' AND instance_id = ?",
        (holder.id,),
        Lock,
    )
    for lock in locks:
        if lock.pattern:
            if covered(lock.pattern, lock.base, lock.path_key, [key]):
                return lock
        elif contains(plain(lock.file), file) or (lock.path_key and contains(lock.path_key, key)):
            return lock
    for lock in lock_finder.on(tx, file):  # by a pattern, or in another work tree
        if lock.instance_id == holder.id:
            return lock
    released = tx.rows(
        "SELECT subject FROM events WHERE created_at >= ? AND type = 'context.lock_released' AND actor = ?",
        (int(row["at"]), holder.id),
    )
    if any(event.subject and contains(plain(event.subject), file) for event in released):
        return Lock(id=None, scope=holder.scope, content="")
    return None


def _is_known(tx: Transaction, writer: Session | None, row: dict[str, Any]) -> bool:
    found = tx.row(
        "SELECT 1 FROM swarm_alterations WHERE path_key = ? AND writer_id IS ? AND kind = ? AND kept = ?"
        " AND abs(altered_at - ?) <= ?",
        (
            row["path_key"], writer and writer.id, row["kind"], row["kept"], int(row["at"]),
            SAME_SECONDS if row["kept"] else 0,
        ),
    )  # fmt: skip
    return found is not None


def _say(tx: Transaction, lock: Lock, writer: Session | None, row: dict[str, Any]) -> None:
    payload = {
        "holder": row["holder_id"], "lock": lock.id, "note": lock.content, "key": row["path_key"],
        "writer_label": writer and writer.label, "tool": row["tool"], "command": row["command"],
        "kind": row["kind"], "kept": row["kept"], "altered_at": int(row["at"]), "alteration": row["id"],
    }  # fmt: skip
    if writer:
        actor = writer.id
    else:
        actor = "system"
    tx.add_event(lock.scope, "context.lock_breached", actor, row["file"], payload)


def _post(tx: Transaction, holder: Session | None, writer: Session | None, rows: list[dict[str, Any]]) -> None:
    if holder is None:
        return
    first = rows[0]
    ran = "made a call"
    if writer is None or may_meet(writer.label, holder.label):
        tool = untrusted_text.named(first["tool"])
        if first["command"]:
            ran = f"ran {untrusted_text.command(first['command'])} ({tool})"
        else:
            ran = f"called {tool}"
    if writer:
        while_ran = f"while {_name(writer, holder)} {ran}"
    else:
        while_ran = f"while a session unknown here {ran}"
    age = f"{duration(tx.now() - first['at'])} ago"
    named = untrusted_text.named
    if len(rows) == 1:
        what = _WHAT.get(first["kind"], "changed")
        text = f"[auto] {named(first['file'])}, which you hold, {what} {age}, {while_ran}."
    else:
        text = f"[auto] {len(rows)} files that you hold changed {age}, {while_ran}:"
        text += "".join(f"\n- {named(row['file'])} {_WHAT.get(row['kind'], 'changed')}" for row in rows[:LISTED])
        text += f"\n- and {len(rows) - LISTED} more" if len(rows) > LISTED else ""
    if holder.runtime == REMOTE:
        text += "\nThat was in a clone on another machine: yours is as it was, and the two may conflict."
        messages.post(tx, holder.scope, "system", holder.id, text)
        return
    text += "".join(f"\n{_how_to_undo(row)}" for row in rows[:LISTED])
    text += "\nLook at the file before you restore it: only that it changed meanwhile is known, not by whose hand."
    messages.post(tx, holder.scope, "system", holder.id, text)


def _how_to_undo(row: dict[str, Any]) -> str:
    if row["kept"]:
        command = f"swarm-mcp restore {as_word(row['file'])} --id {row['id']}"
        return f"The content before is kept in {row['kept']}; `{command}` brings it back."
    if row["kind"] == "created":
        return f"There was no such file before; `swarm-mcp restore {as_word(row['file'])} --force` removes it."
    return f"The earlier content of {untrusted_text.named(row['file'])} was not kept."


def _name(session: Session, reader: Session) -> str:
    if not may_meet(session.label, reader.label):
        return "a session of another identity"
    return known_as(session)


# Attempts to weaken the protection of others, and weakened protection: events for people, words for sessions.

ATTEMPTED, LOWERED = "protection.attempted", "protection.lowered"
LONGEST = 300  # characters of a command in an event


def attempted(db: Database, scope: str, actor: str | None, deed: str, path: str = "", tool: str = "") -> bool:
    """Write down that session `actor` (None: not known) tried `deed`, on `path` with `tool` if it named one.

    Return False if the same was written down within the last minute.
    """
    deed = deed[:LONGEST]
    with db.writing() as tx:
        same = tx.row(
            "SELECT 1 FROM events WHERE created_at > ? AND type = ? AND actor IS ? AND subject = ?",
            (tx.now() - SAME_SECONDS, ATTEMPTED, actor, path or deed),
        )
        if same is None:
            payload = {"deed": deed, "path": path, "tool": tool}
            told = {name: value for name, value in payload.items() if value}
            tx.add_event(scope, ATTEMPTED, actor, path or deed, told)
    return same is None


def lowered(tx: Transaction, scope: str, actor: str | None, what: str, words: str) -> None:
    """Write down that `what` protects the sessions of `scope` less than before, and tell them so in `words`.

    `actor` is the session behind it; None for a person, or if it is not known.
    """
    tx.add_event(scope, LOWERED, actor, what, {"deed": words})
    for row in session_table.in_scope(tx, scope):
        if row.id != actor and row.runtime != REMOTE and row.last_seen is not None:
            messages.post_notice(tx, row, f"[auto] {words}")
