"""Events: the audit trail. Each is a row, written in the same transaction as the change that it records."""

from __future__ import annotations

from swarm_hook_core.json_text import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.domain.session import Session
    from swarm_mcp.store.database import Transaction


def add(
    tx: Transaction, scope: str, kind: str, actor: str | None, subject: str | None, payload: dict | str | None
) -> None:
    """Append one event. `kind` as in the contract, ``instance.registered`` for one; a text as `payload` is JSON."""
    text = dumps(payload) if isinstance(payload, dict) else payload
    tx.change(
        "INSERT INTO events (scope, type, actor, subject, payload, created_at) VALUES (?, ?, ?, ?, ?, ?)",
        (scope, kind, actor, subject, text, tx.now()),
    )


def registered(tx: Transaction, row: Session, adopted: bool, by: str = "") -> None:
    """An instance joined, or an existing one was taken over (`adopted`). `by`: as in ``sessions.Registration``."""
    payload = {"label": row.label, "adopted": adopted, "pid": row.pid, "directory": row.directory}
    payload.update(root=row.root, file_root=row.file_root)
    if row.lease_until is not None:
        payload["lease_until"] = row.lease_until
    if by:
        payload["by"] = by
    add(tx, row.scope, "instance.registered", row.id, row.id, payload)


def length(text: str) -> int:
    """Return how long a payload says that `text` is: in UTF-16 units, as the contract counts."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
