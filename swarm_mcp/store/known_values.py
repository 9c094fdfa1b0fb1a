"""Shared values that the store itself understands: who owns a scope's plan, and where work is tracked.

``owner/planner`` says which session plans a scope: one at a time. ``config/work_tracker/<identity>`` (else
``/default``) says which work tracker there is, ``tracker/<provider>/<identity>/<task>`` names a task's entry in it.
"""

from __future__ import annotations

from swarm_hook_core.environment import is_word
from swarm_hook_core.json_text import dumps, loads, quote
from swarm_hook_core.labels import token
from swarm_mcp.domain.session import Session
from swarm_mcp.errors import SwarmError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.store.database import Database
    from swarm_mcp.store.sessions import Sessions
    from swarm_mcp.store.values import KeyValues

PLANNER_KEY = "owner/planner"
PLANNER_WORD = "role:planner"
TRACKER_KEY = "config/work_tracker/"
DEFAULT_TRACKER = "default"
# What names an entry of a tracker: only what says so itself, ``linear:ABC-1``, or the address of an issue on
# linear.app. A word with a dash and digits is no such thing; titles are full of UTF-8, SHA-256, ISO-8601 and GPT-4.
_ENTRY_KEY = r"[A-Za-z][A-Za-z0-9]*-[0-9]+"
_ENTRY = rf"(?<![\w.-])(?:linear:|(?:https?://)?(?:www\.)?linear\.app/[^\s/]+/issue/)({_ENTRY_KEY})(?![\w-])"


def plans(label: str | None) -> bool:
    """Tell whether a label says that its session is a planner."""
    return PLANNER_WORD in (label or "").split()


class Planner:
    """The embedded store's planner ownership.

    The value is ``{instance_id, label, assigned_at}``, the time in milliseconds. It belongs to no
    identity, so that every session of the scope can read who plans.
    """

    def __init__(self, db: Database, sessions: Sessions, values: KeyValues):
        self._db = db
        self._sessions = sessions
        self._values = values

    def owner(self, scope: str) -> dict | None:
        value, before = self._recorded(scope), None
        while value and value != before:  # who has left just now has also handed the plan over
            row = self._sessions.live(value["instance_id"])
            if row and row.scope == scope and plans(row.label):
                return value
            value, before = self._recorded(scope), value
        return None

    def settle(self, row: Session, before: Session | None = None) -> None:
        """Inside a transaction: a session joined or was renewed as `row`; `before` is its row until then.

        A planner takes a plan that nobody owns. One that has stopped planning here leaves it to the next.
        """
        if before and plans(before.label) and (before.scope != row.scope or not plans(row.label)):
            self.leave(before)
        if plans(row.label) and not self.owner(row.scope):
            self._assign(row)

    def leave(self, row: Session) -> None:
        """Inside a transaction: session `row` has left its scope; where it owned the plan, the eldest planner does now.

        With no planner left, the key goes.
        """
        scope = row.scope
        value = self._recorded(scope)
        if not value or value["instance_id"] != row.id:
            return
        others = [peer for peer in self._sessions.in_scope(scope) if peer.id != row.id]
        planners = [peer for peer in others if plans(peer.label)]
        if planners:
            self._assign(min(planners, key=lambda peer: (peer.registered_at, peer.id)))
        else:
            self._values.withdraw(scope, PLANNER_KEY)

    def _assign(self, row: Session) -> None:
        who = f'"instance_id":{quote(row.id)},"label":{quote(row.label or "")}'
        self._values.declare(row.scope, PLANNER_KEY, f'{{{who},"assigned_at":{self._db.now_ms()}}}')

    def _recorded(self, scope: str) -> dict | None:
        row = self._db.row("SELECT value FROM kv WHERE scope = ? AND key = ?", (scope, PLANNER_KEY))
        try:
            value = loads(row.value) if row else None
        except (ValueError, TypeError, RecursionError):
            return None
        return value if isinstance(value, dict) and isinstance(value.get("instance_id"), str) else None


class Tracker:
    """The embedded store's knowledge of work trackers."""

    def __init__(self, db: Database, values: KeyValues):
        self._db = db
        self._values = values

    def of(self, instance: Session) -> dict | None:
        identity = token(instance.label or "", "identity")
        for name in (identity, DEFAULT_TRACKER):
            row = self._values.get(instance.scope, TRACKER_KEY + name) if name else None
            if row:
                return {"key": TRACKER_KEY + name, "value": _parsed(row.value), "updated_at": row.updated_at}
        return None

    def link(self, instance: Session, provider: str, task_id: str, identifier: str, url: str = "") -> dict:
        entry: dict = {"identifier": identifier}
        if url:
            entry["url"] = url
        entry["linked_at"] = self._db.now_ms()
        self._values.put(instance, self._key(instance, provider, task_id), dumps(entry))
        return entry

    def entry(self, instance: Session, provider: str, task_id: str) -> dict | None:
        if not token(instance.label or "", "identity") or not is_word(provider):
            return None
        row = self._values.get(instance.scope, self._key(instance, provider, task_id))
        value = _parsed(row.value) if row else None
        return value if isinstance(value, dict) and isinstance(value.get("identifier"), str) else None

    def _key(self, instance: Session, provider: str, task_id: str) -> str:
        identity = token(instance.label or "", "identity")
        if not identity:
            raise SwarmError("a session without an identity has no tracker to link a task to")
        if not is_word(provider):
            raise SwarmError(f"{provider[:40]!r} is not the name of a tracker (letters, digits, _ . -)")
        return f"tracker/{provider}/{identity}/{task_id}"


def names_entry(text: str | None) -> bool:
    """Tell whether `text` names an entry."""
    return bool(entry_in(text))


def entry_in(text: str | None) -> str:
    """Return the first entry that `text` names, ``ABC-1`` for one; empty where it names none."""
    # Most texts are told apart by this alone, and `re` costs commands a few milliseconds.
    if not text or "linear" not in text.lower():
        return ""
    import re

    found = re.search(_ENTRY, text, re.IGNORECASE)
    return found[1].upper() if found else ""


def _parsed(text: str):
    try:
        return loads(text)
    except (ValueError, RecursionError):
        return text
