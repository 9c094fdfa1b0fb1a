"""alive: a sign of life of a session, which renews its locks (hooks call this)

Locks whose lease is over are not brought back: their session is told that they lapsed, and who has them now. A
session that is not registered is no error.

example: swarm-mcp alive --runtime codex --session-id 0199-5c
"""

from __future__ import annotations

from swarm_mcp.cli.arguments import JSON, PATIENCE, RUNTIME, SESSION_ID, Arguments, Option, Usage
from swarm_mcp.cli.output import flush, say_text, show
from swarm_mcp.domain.session import Session
from swarm_mcp.errors import SwarmError
from swarm_mcp.store import Store

USAGES = (
    Usage(
        RUNTIME,
        SESSION_ID,
        Option("--tell", "say what the session is to be told of its locks: each thing once"),
        PATIENCE,
        JSON,
    ),
)


def run(args: Arguments) -> int:
    """Renew, and tell."""
    runtime, session_id = args.value("--runtime"), args.value("--session-id")
    with Store(busy_seconds=args.patience) as store:
        row = store.instances.of_session(runtime, session_id)
        if row:
            store.instances.show_life(row.id)
        store.leases.some()
        with telling(store, row if args.given("--tell") else None) as notices:
            if args.json:
                show({"ok": row is not None, "id": row and row.id, "notices": notices})
            elif notices:
                say_text("\n".join(notices))
    return 0


class telling:
    """What `instance` (None for nobody) is to be told, for a block that writes it: told once that has been written."""

    def __init__(self, store: Store, instance: Session | None):
        self._store = store
        self._taken = store.notices.take(instance) if instance else []

    def __enter__(self) -> list[str]:
        return [notice.text for notice in self._taken]

    def __exit__(self, kind, _error, _trace) -> None:
        ids = [notice.id for notice in self._taken]
        if kind is not None:
            self._store.messages.put_back(ids)
            return
        try:
            written = flush()
        except (OSError, SwarmError):
            self._store.messages.put_back(ids)
            raise
        (self._store.messages.acknowledge if written else self._store.messages.put_back)(ids)
