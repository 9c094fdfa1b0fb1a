"""Shared values that the store itself understands: the owner of a scope's plan, and the work tracker.

``owner/planner`` names the session that plans a scope: one at a time. ``config/work_tracker/<identity>`` (else
``/default``) names the work tracker, ``tracker/<provider>/<identity>/<task>`` a task's entry in it.
"""

from __future__ import annotations

from swarm_hook_core.environment import is_word
from swarm_hook_core.json_text import dumps, loads, quote
from swarm_hook_core.labels import token
from swarm_mcp.domain.session import Session
from swarm_mcp.errors import SwarmError
from swarm_mcp.store import session_table, values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from swarm_mcp.store.database import Database, Transaction

PLANNER_KEY = "owner/planner"
PLANNER_WORD = "role:planner"
TRACKER_KEY = "config/work_tracker/"
DEFAULT_TRACKER = "default"
# The name of a tracker's entry: only an explicit one, ``linear:ABC-1``, or the address of an issue on linear.app. A
# word with a dash and digits does not count; titles are full of UTF-8, SHA-256, ISO-8601 and GPT-4.
_ENTRY_KEY = r"[A-Za-z][A-Za-z0-9]*-[0-9]+"
_ENTRY = rf"(?<![\w.-])(?:linear:|(?:https?://)?(?:www\.)?linear\.app/[^\s/]+/issue/)({_ENTRY_KEY})(?![\w-])"


def plan_owner(tx: Transaction, scope: str) -> dict[str, Any] | None:
    """Return the plan's value; None if its owner has gone or plans no more, or there never was one."""
    value, before = _recorded(tx, scope), None
    while value and value != before:  # a session that has left just now has also handed the plan over
        row = session_table.live(tx, value["instance_id"])
        if row and row.scope == scope and plans(row.label):
            return value
        value, before = _recorded(tx, scope), value
    return None


def settle_plan(tx: Transaction, row: Session, before: Session | None = None) -> None:
    """Inside a transaction: a session joined or was renewed as `row`; `before` is its row until then.

    A planner takes a plan without an owner. A session that has stopped planning here leaves its plan to the next.
    """
    if before and plans(before.label) and (before.scope != row.scope or not plans(row.label)):
        leave_plan(tx, before)
    if plans(row.label) and not plan_owner(tx, row.scope):
        _assign(tx, row)


def leave_plan(tx: Transaction, row: Session) -> None:
    """Inside a transaction: session `row` has left its scope; where it owned the plan, the eldest planner does now.

    With no planner left, the key goes.
    """
    scope = row.scope
    value = _recorded(tx, scope)
    if not value or value["instance_id"] != row.id:
        return
    others = [peer for peer in session_table.in_scope(tx, scope) if peer.id != row.id]
    planners = [peer for peer in others if plans(peer.label)]
    if planners:
        _assign(tx, min(planners, key=lambda peer: (peer.registered_at, peer.id)))
    else:
        values.withdraw(tx, scope, PLANNER_KEY)


def _assign(tx: Transaction, row: Session) -> None:
    who = f'"instance_id":{quote(row.id)},"label":{quote(row.label or "")}'
    values.declare(tx, row.scope, PLANNER_KEY, f'{{{who},"assigned_at":{tx.now_ms()}}}')


def _recorded(tx: Transaction, scope: str) -> dict[str, Any] | None:
    row = tx.row("SELECT value FROM kv WHERE scope = ? AND key = ?", (scope, PLANNER_KEY))
    try:
        if row:
            value = loads(row.value)
        else:
            value = None
    except (ValueError, TypeError, RecursionError):  # another program's value: no owner
        return None
    if isinstance(value, dict) and isinstance(value.get("instance_id"), str):
        return value
    return None


def tracker_of(tx: Transaction, instance: Session) -> dict[str, Any] | None:
    """Return the tracker for this session's work, ``{key, value, updated_at}``, or None.

    `value` is the parsed JSON, or the text itself if it is not JSON. An identity may read its tracker whoever owns the
    key: it is configuration, not a secret.
    """
    identity = token(instance.label or "", "identity")
    for name in (identity, DEFAULT_TRACKER):
        if name:
            row = values.get(tx, instance.scope, TRACKER_KEY + name)
        else:
            row = None
        if row:
            return {"key": TRACKER_KEY + name, "value": _parsed(row.value), "updated_at": row.updated_at}
    return None


def link_entry(
    db: Database, instance: Session, provider: str, task_id: str, identifier: str, url: str = ""
) -> dict[str, Any]:
    """Note that a task is entry `identifier` of the tracker; return the stored value.

    ``{identifier, [url], linked_at}``, `linked_at` in ms. Raises SwarmError for a session without an identity: the
    tracker belongs to an identity.
    """
    entry: dict[str, Any] = {"identifier": identifier}
    if url:
        entry["url"] = url
    entry["linked_at"] = db.now_ms()
    values.put(db, instance, _entry_key(instance, provider, task_id), dumps(entry))
    return entry


def entry_of(tx: Transaction, instance: Session, provider: str, task_id: str) -> dict[str, Any] | None:
    """Return the value that `link_entry` has stored for a task, or None."""
    if not token(instance.label or "", "identity") or not is_word(provider):
        return None
    row = values.get(tx, instance.scope, _entry_key(instance, provider, task_id))
    if row:
        value = _parsed(row.value)
    else:
        value = None
    if isinstance(value, dict) and isinstance(value.get("identifier"), str):
        return value
    return None


def _entry_key(instance: Session, provider: str, task_id: str) -> str:
    identity = token(instance.label or "", "identity")
    if not identity:
        raise SwarmError("a session without an identity has no tracker to link a task to")
    if not is_word(provider):
        raise SwarmError(f"{provider[:40]!r} is not the name of a tracker (letters, digits, _ . -)")
    return f"tracker/{provider}/{identity}/{task_id}"


def plans(label: str | None) -> bool:
    """Return True if a label marks its session as a planner."""
    return PLANNER_WORD in (label or "").split()


def names_entry(text: str | None) -> bool:
    """Return True if `text` names an entry."""
    return bool(entry_in(text))


def entry_in(text: str | None) -> str:
    """Return the first entry that `text` names, such as ``ABC-1``; else an empty text."""
    # Most texts are told apart by this alone, and `re` costs commands a few milliseconds.
    if not text or "linear" not in text.lower():
        return ""
    import re

    found = re.search(_ENTRY, text, re.IGNORECASE)
    if found:
        return found[1].upper()
    return ""


def _parsed(text: str) -> Any:
    try:
        return loads(text)
    except (ValueError, RecursionError):  # plain text, and no JSON
        return text
