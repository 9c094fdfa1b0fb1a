"""The work tracker of an identity, and which of its entries a task belongs to.

Both are shared values: ``config/work_tracker/<identity>`` (else ``/default``) says which tracker there is,
``tracker/<provider>/<identity>/<task>`` names a task's entry in it.
"""

from __future__ import annotations

from swarm_hook_core.environment import is_word
from swarm_hook_core.json_text import dumps, loads
from swarm_hook_core.labels import token
from swarm_mcp.domain.session import Session
from swarm_mcp.errors import SwarmError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.store.database import Database
    from swarm_mcp.store.values import KeyValues

CONFIG = "config/work_tracker/"
DEFAULT = "default"


class Tracker:
    """The embedded store's knowledge of work trackers."""

    def __init__(self, db: Database, values: KeyValues):
        self._db = db
        self._values = values

    def of(self, instance: Session) -> dict | None:
        """``{key, value, updated_at}`` of the tracker that this session's work is tracked in, or None.

        `value` is the parsed JSON, or the text itself where that is none. Whoever owns the key, its own
        identity reads it: it is configuration, not a secret.
        """
        identity = token(instance["label"] or "", "identity")
        for name in (identity, DEFAULT):
            row = self._values.get(instance["scope"], CONFIG + name) if name else None
            if row:
                return {"key": CONFIG + name, "value": _parsed(row["value"]), "updated_at": row["updated_at"]}
        return None

    def link(self, instance: Session, provider: str, task_id: str, identifier: str, url: str = "") -> dict:
        """Remember that a task is entry `identifier` of the tracker; what was stored.

        ``{identifier, [url], linked_at}``, `linked_at` in ms. Raises SwarmError where the session has no
        identity, whose tracker it would be.
        """
        entry: dict = {"identifier": identifier}
        if url:
            entry["url"] = url
        entry["linked_at"] = self._db.now_ms()
        self._values.put(instance, self._key(instance, provider, task_id), dumps(entry))
        return entry

    def entry(self, instance: Session, provider: str, task_id: str) -> dict | None:
        """What `link` stored for a task, or None."""
        if not token(instance["label"] or "", "identity") or not is_word(provider):
            return None
        row = self._values.get(instance["scope"], self._key(instance, provider, task_id))
        value = _parsed(row["value"]) if row else None
        return value if isinstance(value, dict) and isinstance(value.get("identifier"), str) else None

    def _key(self, instance: Session, provider: str, task_id: str) -> str:
        identity = token(instance["label"] or "", "identity")
        if not identity:
            raise SwarmError("a session without an identity has no tracker to link a task to")
        if not is_word(provider):
            raise SwarmError(f"{provider[:40]!r} is not the name of a tracker (letters, digits, _ . -)")
        return f"tracker/{provider}/{identity}/{task_id}"


def _parsed(text: str):
    try:
        return loads(text)
    except (ValueError, RecursionError):
        return text
