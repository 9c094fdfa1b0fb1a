"""Mail between sessions: one row for each recipient, handed out to one poller only.

A poller first claims what it is about to answer with (`take`), and marks it read once the answer has
been written (`acknowledge`). Between the two a message is nobody else's; where the poller is killed
there, its claim is void and the next one gets the message. Other implementations on the same file
know only ``messages.read``, which changes when a message has arrived.
"""

from __future__ import annotations

import os

from swarm_hook_core.json_text import dumps
from swarm_hook_core.labels import token
from swarm_hook_core.process import gone, start_time
from swarm_mcp.domain.message import Message, task_mark
from swarm_mcp.errors import Refused, SwarmError, UnknownInstance
from swarm_mcp.store import events
from swarm_mcp.views import known_as
from swarm_mcp.visibility import may_meet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarm_mcp.domain.session import Session
    from swarm_mcp.store.database import Database
    from swarm_mcp.store.session_table import SessionTable

# A claim that old is void even where its process lives: it took messages and never answered.
CLAIM_SECONDS = 120
LONGEST = 65536  # bytes of a message

_COLUMNS = "id, sender, content, created_at"
_ALL_COLUMNS = "id, sender, recipient, content, created_at, read"
_own: tuple[int, str] = (0, "")


class Messages:
    """The embedded store's messages."""

    def __init__(self, db: Database, sessions: SessionTable):
        self._db = db
        self._sessions = sessions

    # ----------------------------------------------------------------- write

    def post(self, scope: str, sender: str, recipient: str, content: str, told: bool = False, file: str = "") -> int:
        """Inside a transaction: add one message and its event; the message's id. `sender` may be ``system``.

        `told`, `file`: as for ``Notices.post``, which matters where the recipient is on another machine.
        """
        message_id = self._insert(scope, sender, recipient, content, told, file)
        payload = {"content": content, "length": events.length(content)}
        events.add(self._db, scope, "message.sent", sender, recipient, payload)
        return message_id

    def send(self, sender: Session, recipient_id: str, content: str) -> int:
        _require_words(content)
        with self._db.writing():
            self._sessions.require(sender.id)
            recipient = self._sessions.live(recipient_id)
            if recipient is None or recipient.scope != sender.scope:
                raise UnknownInstance(f"Instance {recipient_id} is not active in this scope")
            if not may_meet(sender.label, recipient.label):
                raise Refused(
                    f"Cross-identity coordination blocked: session {recipient_id} works under another identity;"
                    " only a shell with SWARM_MCP_ALLOW_CROSS_IDENTITY=1 may write to it"
                )
            return self.post(sender.scope, sender.id, recipient_id, content)

    def broadcast(self, sender: Session, content: str) -> list[str]:
        _require_words(content)
        with self._db.writing():
            self._sessions.require(sender.id)
            return self.announce(sender, content)

    def announce(self, sender: Session, content: str) -> list[str]:
        """Inside a transaction: the same, of what `sender` has just done."""
        peers = [
            row.id
            for row in self._sessions.on_all_machines(sender.scope)
            if row.id != sender.id and may_meet(sender.label, row.label)
        ]
        for peer in peers:
            self._insert(sender.scope, sender.id, peer, content)
        if peers:
            payload = {"content": content, "recipients": len(peers), "length": events.length(content)}
            events.add(self._db, sender.scope, "message.broadcast", sender.id, None, payload)
        return peers

    def announce_removal(self, session: Session, by: Session) -> None:
        """Inside a transaction: tell the peers of session `by` that it has removed `session`, which has gone by now."""
        theirs, own = (token(one or "", "identity") for one in (session.label, by.label))
        known = theirs in ("", own)  # its peers may be of other identities than the removed one
        name = known_as(session) if known and session.label else f"instance {session.id}"
        self.announce(by, f"[auto] {name} was removed by {known_as(by)}: its locks are free and its tasks open again.")

    def hand_over(self, sender: Session, recipient_id: str, content: str, same: str, read_too: bool) -> None:
        with self._db.writing():
            there = self._db.row(
                "SELECT 1 FROM messages WHERE scope = ? AND recipient = ? AND read <= ? AND sender = ?"
                " AND content IN (?, ?)",
                (sender.scope, recipient_id, int(read_too), sender.id, content, same),
            )
            if not there and recipient_id != sender.id:
                self.post(sender.scope, sender.id, recipient_id, content)

    def write_down(self, scope: str, sender_id: str, recipient_id: str, content: str) -> int:
        with self._db.writing():
            posted = self.post(scope, sender_id, recipient_id, content)
            self._db.change("UPDATE messages SET read = 1 WHERE id = ?", (posted,))
        return posted

    def forget_of(self, session: Session) -> None:
        """Inside a transaction: drop the mail of a session that has gone."""
        self._db.change("DELETE FROM messages WHERE scope = ? AND recipient = ?", (session.scope, session.id))

    def forget_lost_deliveries(self, after: str, limit: int) -> str:
        """Inside a transaction: forget deliveries of messages that are gone, among the next `limit` behind `after`.

        Return the last one looked at, empty at the end.
        """
        rows = self._db.rows(
            "SELECT message_id, EXISTS (SELECT 1 FROM messages m WHERE m.id = d.message_id) AS known"
            f" FROM swarm_deliveries d WHERE message_id > ? ORDER BY message_id LIMIT {limit}",
            (int(after or 0),),
        )
        for row in rows:
            if not row.known:
                self._db.change("DELETE FROM swarm_deliveries WHERE message_id = ?", (row.message_id,))
        return str(rows[-1].message_id) if len(rows) == limit else ""

    # --------------------------------------------------------------- deliver

    def take(self, instance: Session, limit: int = 50, about: str = "") -> list[Message]:
        if not self._unread(instance, 1, about):
            return []  # nothing to claim: the common case needs no write lock
        with self._db.writing():
            return self._claimed(self._unread(instance, limit, about))

    def claim(self, instance: Session, ids: list[int]) -> list[Message]:
        """Inside a transaction: as `take`, of these messages alone; without those that are not there to be had."""
        wanted = ", ".join(str(int(message_id)) for message_id in ids)
        condition, values = self._waiting(instance)
        rows = self._db.rows(f"SELECT {_COLUMNS} FROM messages WHERE {condition} AND id IN ({wanted})", values, Message)
        return self._claimed(sorted(rows, key=lambda row: row.id))

    def acknowledge(self, ids: list[int]) -> None:
        if not ids:
            return
        with self._db.writing():
            for message_id in ids:
                self._db.change("UPDATE messages SET read = 1 WHERE id = ?", (message_id,))
                self._db.change("DELETE FROM swarm_deliveries WHERE message_id = ?", (message_id,))

    def put_back(self, ids: list[int]) -> None:
        if not ids:
            return
        with self._db.writing():
            for message_id in ids:
                self._db.change("DELETE FROM swarm_deliveries WHERE message_id = ?", (message_id,))

    def peek(self, instance: Session, limit: int = 50) -> list[Message]:
        return self._unread(instance, limit)

    def walk_unread(self, instance: Session, after: str = "") -> Iterator[tuple[str, Message]]:
        from swarm_mcp.paging import walk

        condition, values = self._waiting(instance)

        def read(place: list | None, number: int) -> list[Message]:
            behind = "AND id > ?" if place else ""
            sql = f"SELECT {_COLUMNS} FROM messages WHERE {condition} {behind} ORDER BY id LIMIT {number}"
            return self._db.rows(sql, (*values, *(place or ())), Message)

        yield from walk(after, (int,), read, lambda row: [row.id])

    def unread_count(self, instance: Session) -> int:
        condition, values = self._waiting(instance)
        row = self._db.row(f"SELECT count(*) AS n FROM messages WHERE {condition}", values)
        return row.n if row else 0

    # --------------------------------------------------------------- look on

    def walk(
        self, scope: str, to: str = "", sender: str = "", viewer: str = "", after: str = ""
    ) -> Iterator[tuple[str, Message]]:
        from swarm_mcp.paging import walk

        condition, values = self._seen_in(scope, viewer, to, sender)

        def read(place: list | None, number: int) -> list[Message]:
            behind = "AND id < ?" if place else ""
            sql = f"SELECT {_ALL_COLUMNS} FROM messages WHERE {condition} {behind} ORDER BY id DESC LIMIT {number}"
            return self._db.rows(sql, (*values, *(place or ())), Message)

        yield from walk(after, (int,), read, lambda row: [row.id])

    def count(self, scope: str, to: str = "", sender: str = "", viewer: str = "") -> int:
        condition, values = self._seen_in(scope, viewer, to, sender)
        row = self._db.row(f"SELECT count(*) AS n FROM messages WHERE {condition}", values)
        return row.n if row else 0

    def get(self, instance: Session, message_id: int) -> Message | None:
        sql = f"SELECT {_COLUMNS} FROM messages WHERE id = ? AND scope = ? AND recipient = ?"
        return self._db.row(sql, (message_id, instance.scope, instance.id), Message)

    def counts(self, scope: str, since: int, viewer: str = "") -> dict[str, int]:
        condition, values = self._seen_in(scope, viewer)
        row = self._db.row(
            "SELECT coalesce(sum(read = 0 AND recipient IS NOT NULL), 0) AS unread,"
            f" coalesce(sum(created_at >= ?), 0) AS recent FROM messages WHERE {condition}",
            (since, *values),
        )
        return row or {"unread": 0, "recent": 0}

    # --------------------------------------------------------------- innards

    def _seen_in(self, scope: str, viewer: str, to: str = "", sender: str = "") -> tuple[str, list]:
        """Return the condition, and its values, that picks a scope's messages that identity `viewer` may see.

        `to` and `sender` pick those of one recipient and one sender, where they are given.
        """
        condition, values = "scope = ?", [scope]
        for column, wanted in (("recipient", to), ("sender", sender)):
            if wanted:
                condition += f" AND {column} = ?"
                values.append(wanted)
        strangers = self._strangers(scope, viewer) if viewer else []
        if strangers:
            # As one value: there may be more of them than SQLite takes values.
            among = "(SELECT value FROM json_each(?))"
            condition += f" AND sender NOT IN {among} AND coalesce(recipient, '') NOT IN {among}"
            values += [dumps(strangers)] * 2
        return condition, values

    def _insert(self, scope: str, sender: str, recipient: str, content: str, told: bool = False, file: str = "") -> int:
        there = self._db.row("SELECT 1 FROM swarm_team_trees LIMIT 1")
        is_away = there is not None and self._send_away(sender, recipient, content, told, file)
        self._db.change(
            "INSERT INTO messages (scope, sender, recipient, content, created_at, read) VALUES (?, ?, ?, ?, ?, ?)",
            (scope, sender, recipient, content, self._db.now(), int(is_away)),
        )
        row = self._db.row("SELECT last_insert_rowid() AS id")
        return row.id if row else 0

    def _send_away(self, sender: str, recipient: str, content: str, told: bool, file: str) -> bool:
        """Have a message posted whose recipient works on another machine; whether it does."""
        from swarm_mcp.store.team_outbox import repository_of, send_away

        repository = repository_of(self._db, recipient)
        if repository is None:
            return False
        send_away(self._db, repository, sender, recipient, content, told, file)
        return True

    def _claimed(self, rows: list[Message]) -> list[Message]:
        """Return those `rows`, which are now this process's to hand out."""
        now = self._db.now()
        self._db.change(
            "DELETE FROM swarm_deliveries WHERE taken_at NOT BETWEEN ? AND ?",
            (now - CLAIM_SECONDS, now + CLAIM_SECONDS),
        )
        pid, started = _this_process()
        for row in rows:
            self._db.change(
                "INSERT OR REPLACE INTO swarm_deliveries (message_id, host, pid, start, taken_at)"
                " VALUES (?, ?, ?, ?, ?)",
                (row.id, self._db.here, pid, started, now),
            )
        return rows

    def _unread(self, instance: Session, limit: int, about: str = "") -> list[Message]:
        condition, values = self._waiting(instance)
        if about:
            mark = task_mark(about)
            condition, values = f"{condition} AND substr(content, 1, {len(mark)}) = ?", (*values, mark)
        return self._db.rows(
            f"SELECT {_COLUMNS} FROM messages WHERE {condition} ORDER BY id LIMIT ?", (*values, limit), Message
        )

    def _waiting(self, instance: Session) -> tuple[str, tuple]:
        condition, values = "scope = ? AND recipient = ? AND read = 0", (instance.scope, instance.id)
        claimed = ", ".join(str(message_id) for message_id in self._on_their_way(instance))
        return (f"{condition} AND id NOT IN ({claimed})" if claimed else condition), values

    def _strangers(self, scope: str, viewer: str) -> list[str]:
        """Return the ids of the scope's sessions, gone or not, whose mail identity `viewer` may not read."""
        sql = "SELECT id, label FROM instances WHERE scope = ? AND instr(label, 'identity:')"
        return [row.id for row in self._db.rows(sql, (scope,)) if not may_meet(f"identity:{viewer}", row.label)]

    def _on_their_way(self, instance: Session) -> list[int]:
        """Return the ids of this session's messages under a claim that stands."""
        # From the claims to the messages, not the other way: claims are few, whatever the inbox holds.
        rows = self._db.rows(
            "SELECT d.message_id, d.host, d.pid, d.start, d.taken_at FROM swarm_deliveries d"
            " CROSS JOIN messages m ON m.id = d.message_id WHERE m.recipient = ? AND m.scope = ? AND m.read = 0",
            (instance.id, instance.scope),
        )
        now, here, mine = self._db.now(), self._db.here, (self._db.here, *_this_process())
        standing: dict[tuple, bool] = {}
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


def _require_words(content: str) -> None:
    if not content.strip():
        raise Refused("an empty message cannot be sent")
    size = len(content.encode("utf-8", "surrogatepass"))
    if size > LONGEST:
        raise SwarmError(f"a message has at most {LONGEST} bytes, not {size}: put the rest into a file and name that")
