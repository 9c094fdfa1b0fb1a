"""Events about locks, as a viewer may see them: in a file's history, in a timeline."""

from __future__ import annotations

from swarm_hook_core.lookup import plain
from swarm_mcp.domain.message import Event
from swarm_mcp.store import Store
from swarm_mcp.store.activity import Acquaintance

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Fields of a payload that name a session, and further fields to hide if that session is a stranger.
_SESSIONS = {
    "holder": ("holder_label", "note", "content", "why", "said"), "by": ("why",), "to": (), "from": ("content",),
}  # fmt: skip
# Fields about the session that caused the event.
_OF_THE_ACTOR = (
    "content", "why", "command", "cwd", "session", "denied_agent", "agent", "wanted",
    "writer_label", "said",
)  # fmt: skip
_ENDS = ("lapsed", "transferred", "stolen", "reclaimed", "turn_ended")  # reasons of a release that are its name
_WORDS = {
    "lock_released": "released", "lock_denied": "denied", "write_denied": "denied", "write_noticed": "noticed",
    "lock_breached": "altered", "restored": "restored",
    "lock_deadlock": "deadlock", "lock_renewed": "renewed", "lock_stolen": "stolen", "lock_requested": "requested",
    "lock_transferred": "transferred",
}  # fmt: skip


def learn_labels(store: Store, known: Acquaintance, found: list[tuple[Event, dict[str, Any]]]) -> None:
    """Let `known` learn the labels of departed sessions in these events. Each event comes with its payload."""
    named: set[str] = set()
    for row, payload in found:
        named.update(value for value in (row["actor"], *map(payload.get, _SESSIONS)) if isinstance(value, str))
        named.update(one[0] for one in payload.get("circle") or () if isinstance(one, list) and one)
    gone = [one for one in named if one != "system" and not store.instances.get(one)]
    if gone:
        known.learn(store.activity.of_sessions(gone))


def event_shown(known: Acquaintance, row: Event, payload: dict[str, Any], how: str = "") -> dict[str, Any]:
    """Return ``{id, at, what, rule, file, instance_id, label, details}`` of an event, as this viewer may see it.

    `how` is the rule by which the event concerns the viewer's question.
    """
    if isinstance(row.actor, str):
        actor = row.actor
    else:
        actor = None
    meets = known.may_meet(actor)
    if actor and meets:
        label = known.label_of(actor)
    else:
        label = None
    shown = {"id": row.id, "at": row.created_at, "what": what_of(row.type, payload), "rule": how}
    shown.update(file=plain(row.subject or ""), instance_id=actor if meets else None, label=label)
    if not meets:
        shown["hidden"] = True
    # The payload, as far as the viewer may know it
    hidden: set[str] = set() if meets else set(_OF_THE_ACTOR)
    for name, more in _SESSIONS.items():
        if payload.get(name) and not known.may_meet(payload[name]):
            hidden |= {name, *more}
    circle = payload.get("circle")
    if isinstance(circle, list):
        payload = {**payload, "circle": [_of_circle(known, one) for one in circle]}
    return {**shown, "details": {name: value for name, value in payload.items() if name not in hidden}}


def what_of(type: str, payload: dict[str, Any]) -> str:
    """Return an event of this `type` in a word."""
    kind = type.partition(".")[2]
    if kind == "lock_acquired":
        was = payload.get("was")
        if was is None:
            return "acquired"
        if was == (payload.get("mode") or "exclusive"):
            return "renewed"
        return f"now {payload.get('mode') or 'exclusive'}"
    if kind == "lock_released" and payload.get("reason") in _ENDS:
        return str(payload["reason"]).replace("_", " ")
    return _WORDS.get(kind, kind.replace("_", " "))


def _of_circle(known: Acquaintance, one: object) -> dict[str, Any]:
    if not isinstance(one, list):
        return {"hidden": True}
    holder, agent = (*one, "", "")[:2]
    if not known.may_meet(holder):
        return {"hidden": True}
    return {"instance_id": holder, "label": known.label_of(holder), "agent": agent or None}
