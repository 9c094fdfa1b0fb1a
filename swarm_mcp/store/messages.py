"""Mail between sessions, and notices that a session's next hook tells its model.

A poller first claims what it is about to answer with (`take`), and marks it read once the answer has
been written (`acknowledge`). Between the two a message is nobody else's; where the poller is killed
there, its claim is void and the next one gets the message. Other implementations on the same file
know only ``messages.read``, which changes when a message has arrived.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from swarm_hook_core.environment import is_on
from swarm_hook_core.json_text import dumps
from swarm_hook_core.naming import holder_name
from swarm_hook_core.process import gone, start_time
from swarm_hook_core.untrusted_text import same_circle, token
from swarm_mcp import contributions
from swarm_mcp.domain import SYSTEM, Message, Notice, Session, length, task_mark
from swarm_mcp.store import cursors, session_table
from swarm_mcp.store.database import Database, Transaction

# Names of sessions in messages that the store writes, and the wall between identities.


def without_walls() -> bool:
    """Return True if ``SWARM_MCP_ALLOW_CROSS_IDENTITY`` lifts the barriers between identities."""
    return is_on("SWARM_MCP_ALLOW_CROSS_IDENTITY")


def may_meet(mine: str | None, theirs: str | None) -> bool:
    """Return True if sessions with these labels may see, message and task each other.

    Two different identities may not, unless the barriers are lifted.
    """
    return without_walls() or same_circle(token(mine or "", "identity"), token(theirs or "", "identity"))


def name_of(session: Session, own_id: str = "") -> str:
    """Return the name of a session for tables and pages. `own_id` is the reader's own session, empty without one.

    A session without a label, as those of another identity are shown, is only a number.
    """
    return holder_name(session.label, session.id, bool(own_id) and session.id == own_id)


def known_as(session: Session) -> str:
    """Return the name of a session for a sentence to another session, with the id to write to."""
    return f"{name_of(session)} (instance {session.id})"


def seconds_since(moment: object, now: int) -> int:
    """Return the age of a time column; 0 if another program stored no time there."""
    if isinstance(moment, (int, float)):
        return max(0, now - int(moment))
    return 0


# A claim that old is void even where its process lives: it took messages and never answered.
CLAIM_SECONDS = 120

_COLUMNS = "id, sender, content, created_at"
_ALL_COLUMNS = "id, sender, recipient, content, created_at, read"
_own: tuple[int, str] = (0, "")


def post(
    tx: Transaction, scope: str, sender: str, recipient: str, content: str, told: bool = False, file: str = ""
) -> int:
    """Inside a transaction: add one message and its event; the message's id. `sender` may be ``system``.

    `told`, `file`: as for ``Notices.post``, which matters where the recipient is on another machine.
    """
    message_id = _insert(tx, scope, sender, recipient, content, told, file)
    payload = {"content": content, "length": length(content)}
    tx.add_event(scope, "message.sent", sender, recipient, payload)
    return message_id


def announce(tx: Transaction, sender: Session, content: str) -> list[str]:
    """Inside a transaction: the same, of what `sender` has just done."""
    peers = [
        row.id
        for row in session_table.on_all_machines(tx, sender.scope)
        if row.id != sender.id and may_meet(sender.label, row.label)
    ]
    for peer in peers:
        _insert(tx, sender.scope, sender.id, peer, content)
    if peers:
        payload = {"content": content, "recipients": len(peers), "length": length(content)}
        tx.add_event(sender.scope, "message.broadcast", sender.id, None, payload)
    return peers


def announce_removal(tx: Transaction, session: Session, by: Session) -> None:
    """Inside a transaction: tell the peers of session `by` that it has removed `session`, which has gone by now."""
    theirs, own = (token(one or "", "identity") for one in (session.label, by.label))
    known = theirs in ("", own)  # its peers may be of other identities than the removed one
    if known and session.label:
        name = known_as(session)
    else:
        name = f"instance {session.id}"
    announce(tx, by, f"[auto] {name} was removed by {known_as(by)}: its locks are free and its tasks open again.")


def hand_over(tx: Transaction, sender: Session, recipient_id: str, content: str, same: str, read_too: bool) -> None:
    """Post a message from `sender`, unless it lies there already: `content`, or `same`, which says no more.

    It lies there while it is unread; with `read_too` also once it has been read.
    """
    there = tx.row(
        "SELECT 1 FROM messages WHERE scope = ? AND recipient = ? AND read <= ? AND sender = ? AND content IN (?, ?)",
        (sender.scope, recipient_id, int(read_too), sender.id, content, same),
    )
    if not there and recipient_id != sender.id:
        post(tx, sender.scope, sender.id, recipient_id, content)


def write_down(db: Database, scope: str, sender_id: str, recipient_id: str, content: str) -> int:
    """Add a message as read and return its id: it shows what was said, and nobody is given it."""
    with db.writing() as tx:
        posted = post(tx, scope, sender_id, recipient_id, content)
        tx.change("UPDATE messages SET read = 1 WHERE id = ?", (posted,))
    return posted


def forget_of(tx: Transaction, session: Session) -> None:
    """Inside a transaction: drop the mail of a session that has gone."""
    tx.change("DELETE FROM messages WHERE scope = ? AND recipient = ?", (session.scope, session.id))


def forget_lost_deliveries(tx: Transaction, after: str, limit: int) -> str:
    """Inside a transaction: forget deliveries of messages that are gone, among the next `limit` behind `after`.

    Return the last one looked at, empty at the end.
    """
    rows = tx.rows(
        "SELECT message_id, EXISTS (SELECT 1 FROM messages m WHERE m.id = d.message_id) AS known"
        f" FROM swarm_deliveries d WHERE message_id > ? ORDER BY message_id LIMIT {limit}",
        (int(after or 0),),
    )
    for row in rows:
        if not row.known:
            tx.change("DELETE FROM swarm_deliveries WHERE message_id = ?", (row.message_id,))
    if len(rows) == limit:
        return str(rows[-1].message_id)
    return ""


def take(db: Database, instance: Session, limit: int = 50, about: str = "") -> list[Message]:
    """Claim up to `limit` unread messages for this process: ``{id, sender, content, created_at}``, oldest first.

    Nobody else is given them until this process has gone, or 120 s have passed without `acknowledge`.
    With `about`, a task's id, only those that begin with ``[task:<id>]``; the others stay where they are.
    """
    if not _unread(db, instance, 1, about):
        return []  # nothing to claim: the common case needs no write lock
    with db.writing() as tx:
        return _claimed(tx, _unread(tx, instance, limit, about))


def claim(tx: Transaction, instance: Session, ids: list[int]) -> list[Message]:
    """Inside a transaction: as `take`, of these messages alone; without those that are not there to be had."""
    wanted = ", ".join(str(int(message_id)) for message_id in ids)
    condition, values = _waiting(tx, instance)
    rows = tx.rows(f"SELECT {_COLUMNS} FROM messages WHERE {condition} AND id IN ({wanted})", values, Message)
    return _claimed(tx, sorted(rows, key=lambda row: row.id))


def acknowledge(db: Database, ids: list[int]) -> None:
    """Mark messages read, now that the answer with them has been written. They are never delivered again."""
    if not ids:
        return
    with db.writing() as tx:
        for message_id in ids:
            tx.change("UPDATE messages SET read = 1 WHERE id = ?", (message_id,))
            tx.change("DELETE FROM swarm_deliveries WHERE message_id = ?", (message_id,))


def put_back(db: Database, ids: list[int]) -> None:
    """Give up a claim: the answer with these messages will never be written. The next poll gets them."""
    if not ids:
        return
    with db.writing() as tx:
        for message_id in ids:
            tx.change("DELETE FROM swarm_deliveries WHERE message_id = ?", (message_id,))


def peek(tx: Transaction, instance: Session, limit: int = 50) -> list[Message]:
    """Return what `take` would give, left where it is."""
    return _unread(tx, instance, limit)


def walk_unread(tx: Transaction, instance: Session, after: str = "") -> Iterator[tuple[str, Message]]:
    """Yield what `peek` would give, as pages of a listing take it."""
    condition, values = _waiting(tx, instance)

    def read(behind: str, place: list[Any], number: int) -> list[Message]:
        sql = f"SELECT {_COLUMNS} FROM messages WHERE {condition} {behind} ORDER BY id LIMIT {number}"
        return tx.rows(sql, (*values, *place), Message)

    yield from cursors.rows_after(after, (int,), "AND id > ?", read, lambda row: [row.id])


def unread_count(tx: Transaction, instance: Session) -> int:
    """Return how many messages wait for this session, without those just being handed to it."""
    condition, values = _waiting(tx, instance)
    return tx.count(f"messages WHERE {condition}", *values)


def walk(
    tx: Transaction, scope: str, to: str = "", sender: str = "", viewer: str = "", after: str = "", unread: bool = False
) -> Iterator[tuple[str, Message]]:
    """Yield the messages of a scope, newest first, with all columns but the scope; only `unread` ones if asked for.

    `to` and `sender` are instance ids. `viewer` is the identity that looks on: mail of sessions that have another
    one is left out. Marks nothing.
    """
    condition, values = _seen_in(tx, scope, viewer, to, sender)
    condition += " AND read = 0 AND recipient IS NOT NULL" * unread

    def read(behind: str, place: list[Any], number: int) -> list[Message]:
        sql = f"SELECT {_ALL_COLUMNS} FROM messages WHERE {condition} {behind} ORDER BY id DESC LIMIT {number}"
        return tx.rows(sql, (*values, *place), Message)

    yield from cursors.rows_after(after, (int,), "AND id < ?", read, lambda row: [row.id])


def count(tx: Transaction, scope: str, to: str = "", sender: str = "", viewer: str = "") -> int:
    """Return how many messages `walk` has."""
    condition, values = _seen_in(tx, scope, viewer, to, sender)
    return tx.count(f"messages WHERE {condition}", *values)


def get(tx: Transaction, instance: Session, message_id: int) -> Message | None:
    """Return one message to this session, read or not, left as it is; None without any."""
    sql = f"SELECT {_COLUMNS} FROM messages WHERE id = ? AND scope = ? AND recipient = ?"
    return tx.row(sql, (message_id, instance.scope, instance.id), Message)


def counts(tx: Transaction, scope: str, since: int, viewer: str = "") -> dict[str, int]:
    """Return how many messages of a scope are unread, and how many were sent at `since` (seconds) or later.

    ``{unread, recent}``. `viewer` is the identity that looks on, as in `walk`.
    """
    condition, values = _seen_in(tx, scope, viewer)
    row = tx.row(
        "SELECT coalesce(sum(read = 0 AND recipient IS NOT NULL), 0) AS unread,"
        f" coalesce(sum(created_at >= ?), 0) AS recent FROM messages WHERE {condition}",
        (since, *values),
    )
    return row or {"unread": 0, "recent": 0}


def _seen_in(tx: Transaction, scope: str, viewer: str, to: str = "", sender: str = "") -> tuple[str, list[Any]]:
    """Return the condition, and its values, that picks a scope's messages that identity `viewer` may see.

    `to` and `sender` pick those of one recipient and one sender, where they are given.
    """
    condition, values = "scope = ?", [scope]
    for column, wanted in (("recipient", to), ("sender", sender)):
        if wanted:
            condition += f" AND {column} = ?"
            values.append(wanted)
    if viewer:
        sql = "SELECT id, label FROM instances WHERE scope = ? AND instr(label, 'identity:')"
        strangers = [row.id for row in tx.rows(sql, (scope,)) if not may_meet(f"identity:{viewer}", row.label)]
    else:
        strangers = []
    if strangers:
        # As one value: there may be more of them than SQLite takes values.
        among = "(SELECT value FROM json_each(?))"
        condition += f" AND sender NOT IN {among} AND coalesce(recipient, '') NOT IN {among}"
        values += [dumps(strangers)] * 2
    return condition, values


def _insert(
    tx: Transaction, scope: str, sender: str, recipient: str, content: str, told: bool = False, file: str = ""
) -> int:
    is_away = session_table.is_remote(tx, recipient) and bool(
        contributions.react_to_row(contributions.MESSAGE_ADDED, tx, sender, recipient, content, told, file)
    )
    return tx.insert(
        "INSERT INTO messages (scope, sender, recipient, content, created_at, read) VALUES (?, ?, ?, ?, ?, ?)",
        (scope, sender, recipient, content, tx.now(), int(is_away)),
    )


def _claimed(tx: Transaction, rows: list[Message]) -> list[Message]:
    """Return those `rows`, which are now this process's to hand out."""
    now = tx.now()
    tx.change(
        "DELETE FROM swarm_deliveries WHERE taken_at NOT BETWEEN ? AND ?",
        (now - CLAIM_SECONDS, now + CLAIM_SECONDS),
    )
    pid, started = _this_process()
    for row in rows:
        tx.change(
            "INSERT OR REPLACE INTO swarm_deliveries (message_id, host, pid, start, taken_at) VALUES (?, ?, ?, ?, ?)",
            (row.id, tx.here, pid, started, now),
        )
    return rows


def _unread(tx: Transaction, instance: Session, limit: int, about: str = "") -> list[Message]:
    condition, values = _waiting(tx, instance)
    if about:
        mark = task_mark(about)
        condition, values = f"{condition} AND substr(content, 1, {len(mark)}) = ?", (*values, mark)
    return tx.rows(f"SELECT {_COLUMNS} FROM messages WHERE {condition} ORDER BY id LIMIT ?", (*values, limit), Message)


def _waiting(tx: Transaction, instance: Session) -> tuple[str, tuple[Any, ...]]:
    condition, values = "scope = ? AND recipient = ? AND read = 0", (instance.scope, instance.id)
    claimed = ", ".join(str(message_id) for message_id in _on_their_way(tx, instance))
    return (f"{condition} AND id NOT IN ({claimed})" if claimed else condition), values


def _on_their_way(tx: Transaction, instance: Session) -> list[int]:
    """Return the ids of this session's messages under a claim that stands."""
    # From the claims to the messages, not the other way: claims are few, whatever the inbox holds.
    rows = tx.rows(
        "SELECT d.message_id, d.host, d.pid, d.start, d.taken_at FROM swarm_deliveries d"
        " CROSS JOIN messages m ON m.id = d.message_id WHERE m.recipient = ? AND m.scope = ? AND m.read = 0",
        (instance.id, instance.scope),
    )
    now, here, mine = tx.now(), tx.here, (tx.here, *_this_process())
    standing: dict[tuple[Any, ...], bool] = {}
    for row in rows:
        claimant = (row.host, row.pid, row.start)
        if claimant not in standing:
            standing[claimant] = claimant == mine or not gone(*claimant, here)
    return [
        row.message_id
        for row in rows
        if standing[row.host, row.pid, row.start] and abs(now - row.taken_at) <= CLAIM_SECONDS
    ]


def _this_process() -> tuple[int, str]:
    """Return the pid and start time of this process, looked up once in each."""
    global _own
    pid = os.getpid()
    if _own[0] != pid:
        _own = (pid, start_time(pid))
    return _own


# Messages about its locks that a session's next hook tells its model.

NOTICES_AT_ONCE = 10  # in one hook's words


def post_notice(tx: Transaction, instance: Session, content: str, file: str = "", sender: str = SYSTEM) -> int:
    """Inside a transaction: add a message to `instance`, told by its next hook; return the message's id.

    With absolute `file`, the hook names the file's holder at that moment besides.
    """

    message_id = post(tx, instance.scope, sender, instance.id, content, told=True, file=file)
    tx.change(
        "INSERT INTO swarm_notices (message_id, instance_id, file) VALUES (?, ?, ?)",
        (message_id, instance.id, file or None),
    )
    return message_id


def tell(db: Database, instance: Session, content: str) -> bool:
    """Have the next hook of a session tell its model `content`; False where the session has gone."""
    with db.writing() as tx:
        is_there = tx.row("SELECT 1 FROM instances WHERE id = ?", (instance.id,)) is not None
        if is_there:
            post_notice(tx, instance, content)
    return is_there


def unread(tx: Transaction, instance: Session, sender: str, file: str) -> bool:
    """Return True if a notice of this sender about this file still waits for `instance`."""
    sql = (
        "SELECT 1 FROM swarm_notices n JOIN messages m ON m.id = n.message_id"
        " WHERE n.instance_id = ? AND n.file = ? AND m.sender = ? AND m.read = 0"
    )
    return tx.row(sql, (instance.id, file, sender)) is not None


def are_messages_unread(tx: Transaction, instance: Session) -> bool:
    """Return True if the session has unread messages besides the notices for its next hook."""
    sql = (
        "SELECT 1 FROM messages m WHERE m.scope = ? AND m.recipient = ? AND m.read = 0"
        " AND NOT EXISTS (SELECT 1 FROM swarm_notices n WHERE n.message_id = m.id) LIMIT 1"
    )
    return tx.row(sql, (instance.scope, instance.id)) is not None


def take_notices(db: Database, instance: Session) -> list[Notice]:
    """Claim the notices for a session, oldest first: ``{id, text}``; `messages.acknowledge` once they have been told.

    No other process is given these messages meanwhile, as with `messages.take`.
    """
    if not db.row("SELECT 1 FROM swarm_notices WHERE instance_id = ? LIMIT 1", (instance.id,)):
        return []

    with db.writing() as tx:
        about = {
            row.message_id: row.file
            for row in tx.rows(
                "SELECT message_id, file FROM swarm_notices WHERE instance_id = ? ORDER BY message_id",
                (instance.id,),
            )
        }
        claimed = claim(tx, instance, list(about)[:NOTICES_AT_ONCE])
        gone = [name for name in list(about)[:NOTICES_AT_ONCE] if name not in {row.id for row in claimed}]
        for message_id in gone:  # read by a poll, deleted, or just on its way to one
            if tx.row("SELECT 1 FROM messages WHERE id = ? AND read = 0", (message_id,)) is None:
                tx.change("DELETE FROM swarm_notices WHERE message_id = ?", (message_id,))
    return [Notice(id=row.id, text=row.content + _now(db, instance, about[row.id])) for row in claimed]


def forget_notices_of(tx: Transaction, instance_id: str) -> None:
    """Inside a transaction: drop those of a session that has gone."""
    tx.change("DELETE FROM swarm_notices WHERE instance_id = ?", (instance_id,))


def forget_old(tx: Transaction, after: str, limit: int) -> str:
    """Inside a transaction: drop notices of read or deleted messages, among the next `limit` from `after`.

    Return the last one looked at, empty at the end.
    """
    chosen = f"SELECT message_id FROM swarm_notices WHERE message_id > ? ORDER BY message_id LIMIT {limit}"
    rows = tx.rows(chosen, (int(after or 0),))
    if rows:
        tx.change(
            "DELETE FROM swarm_notices WHERE message_id > ? AND message_id <= ?"
            " AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = message_id AND m.read = 0)",
            (int(after or 0), rows[-1].message_id),
        )
    if len(rows) == limit:
        return str(rows[-1].message_id)
    return ""


def _now(tx: Transaction, instance: Session, file: str | None) -> str:
    if not file:
        return ""
    from swarm_mcp.store import lock_finder

    locks = [lock for lock in lock_finder.on(tx, file) if lock.instance_id != instance.id]
    if not locks:
        if lock_finder.on(tx, file):
            return ""
        return " Nobody holds it now."
    mine, theirs = (token(one or "", "identity") for one in (instance.label, locks[0].owner_label))
    name = holder_name(locks[0].owner_label, locks[0].instance_id)
    return f" It is held by {name if same_circle(mine, theirs) else 'a session of another identity'} now."
