"""What happens in the store: rows of the audit trail, and signals between parts that do not know each other.

An event is a row written in the same transaction as the change that it tells of. A signal is a call; ``store.Store``
says who hears of what.
"""

from __future__ import annotations

from swarm_hook_core.json_text import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.domain.lock import Lock
    from swarm_mcp.domain.session import Session
    from swarm_mcp.store.database import Database


def add(
    db: Database, scope: str, kind: str, actor: str | None, subject: str | None, payload: dict | str | None
) -> None:
    """Append one event. `kind` as in the contract, ``instance.registered`` for one; a text as `payload` is JSON."""
    text = dumps(payload) if isinstance(payload, dict) else payload
    db.change(
        "INSERT INTO events (scope, type, actor, subject, payload, created_at) VALUES (?, ?, ?, ?, ?, ?)",
        (scope, kind, actor, subject, text, db.now()),
    )


def registered(db: Database, row: Session, adopted: bool, by: str = "") -> None:
    """An instance joined, or an existing one was taken over (`adopted`). `by`: as in ``sessions.Registration``."""
    payload = {"label": row.label, "adopted": adopted, "pid": row.pid, "directory": row.directory}
    payload.update(root=row.root, file_root=row.file_root)
    if row.lease_until is not None:
        payload["lease_until"] = row.lease_until
    if by:
        payload["by"] = by
    add(db, row.scope, "instance.registered", row.id, row.id, payload)


def length(text: str) -> int:
    """Return how long a payload says that `text` is: in UTF-16 units, as the contract counts."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


class Signals:
    """What one part of a store lets the others know. Nobody hears of it here; a store overrides what it hands on.

    All but the last are called inside a transaction, and what follows from them is part of it.
    """

    def session_alive(self, instance_id: str) -> None:
        """A session has shown life."""

    def turn_ended(self, session: Session, over_ns: int) -> None:
        """A turn of this session was over at that moment (ns)."""

    def session_settled(self, session: Session, before: Session | None) -> None:
        """A session has joined, or was renewed; `before` is what it was until then."""

    def session_moved(self, session: Session) -> None:
        """A session has left the scope of `session`, its row until now, for another one."""

    def session_gone(self, session: Session, reason: str) -> None:
        """A session leaves (``deregistered``) or was found to have gone (``reclaimed``): remove all that it has."""

    def session_removed(self, session: Session, by: Session) -> None:
        """Session `by` has removed another one, which has gone by now."""

    def pane_seen(self, session: Session, pane: dict[str, str]) -> None:
        """A session has been seen in this pane of a workspace."""

    def locks_granted(self, session: Session, locks: list[Lock]) -> None:
        """A session has just been given these locks."""

    def locks_freed(self, locks: list[Lock], reason: str) -> None:
        """These locks have just been deleted; `reason` as in their events, empty for an ordinary release."""

    def locks_lapsed(self, locks: list[Lock]) -> None:
        """The leases of these locks are over, and they have just been deleted."""

    def place_left(self) -> None:
        """Somebody has left the line for a lock without having got it."""

    def registered(self) -> None:
        """Outside of a transaction: a session has registered, and what is due may be cleaned up beside it."""
