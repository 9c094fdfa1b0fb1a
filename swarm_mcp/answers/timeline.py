"""The events in a scope: locks taken, awaited, refused and handed over, sessions that came and went.

Events are kept for about a day.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from swarm_hook_core.lookup import plain
from swarm_mcp.answers.people import People
from swarm_mcp.domain import Event, onlooker
from swarm_mcp.store import Store
from swarm_mcp.store.activity import LOCKS_AND_SESSIONS, Acquaintance, payload_of

# Events about locks, as a viewer may see them: in a file's history, in a timeline.

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


MOST = 500  # events of one answer
KINDS = (
    "acquired", "released", "denied", "requested", "transferred", "lapsed", "stolen", "reclaimed", "deadlock",
    "altered", "restored", "renewed", "turn ended", "joined", "left", "attempted", "lowered", "noticed",
)  # fmt: skip
# kinds that are refusals or notices (``incidents``)
DENIED, DEADLOCK, ALTERED, NOTICED = "denied", "deadlock", "altered", "noticed"
# an agent's attempt at an action for persons; a lowered protection of the sessions there
ATTEMPTED, LOWERED = "attempted", "lowered"
TASK = "task"  # a task was created, claimed, ended ...: only where it is asked for
_TYPES = {
    DENIED: ("context.lock_denied", "context.write_denied"), NOTICED: ("context.write_noticed",),
    DEADLOCK: ("context.lock_deadlock",), ALTERED: ("context.lock_breached",), ATTEMPTED: ("protection.attempted",),
}  # fmt: skip
_OF_SESSIONS = {"registered": "joined", "deregistered": "left", "stale_reclaimed": "left"}


class Happening(NamedTuple):
    """One event: its kind `what` in a word (`KINDS`), its actor (`name`), its object; `at` in Unix seconds.

    `other` is the id of the other session and `other_name` its name: the holder of a refused or stolen lock, the
    receiver of a handed-over one. `waited`: the seconds that a granted lock was waited for. `note` is the session's own
    text.
    """

    id: int
    scope: str
    at: int
    what: str
    instance_id: str
    name: str
    file: str
    other: str
    other_name: str
    waited: float
    note: str
    details: dict[str, Any]


class Timeline(NamedTuple):
    """Happenings between two moments, oldest first; `is_cut` where there were more before the first of them."""

    since: int
    until: int
    happenings: list[Happening]
    is_cut: bool


def timeline(
    store: Store, scope: str, people: People, since: int, until: int, limit: int = MOST, with_tasks: bool = False
) -> Timeline:
    """Return the newest `limit` events in `scope` in these seconds; `with_tasks` adds tasks."""
    groups = (*LOCKS_AND_SESSIONS, *([TASK] if with_tasks else []))
    rows = store.activity.timeline(scope, since, until, limit + 1, groups)
    return Timeline(since, until, _told(store, rows[:limit], people)[::-1], len(rows) > limit)


def _told(store: Store, rows: list[Event], people: People) -> list[Happening]:
    known = store.activity.acquaintance(f"identity:{people.viewer}" if people.viewer else None)
    found = [(row, payload_of(row)) for row in rows]
    learn_labels(store, known, [one for one in found if not one[0].type.startswith("instance.")])
    known.learn([row for row, _payload in found])
    happenings = []
    for row, payload in found:
        if row.type.startswith("task."):
            happening = _of_task(store, row, payload, people)
        elif row.type.startswith("protection."):
            happening = _of_protection(row, payload if known.may_meet(row.actor) else {}, people)
        else:
            happening = _happening(row, event_shown(known, row, payload), people)
        if happening.what:
            happenings.append(happening)
    return happenings


def refusals(store: Store, scope: str, people: People, since: int, limit: int) -> list[Happening]:
    """Return the newest refusals since then, newest first, refused actions for persons (`ATTEMPTED`) included."""
    return newest(store, scope, people, since, limit, DENIED, DEADLOCK, ATTEMPTED)


def newest(store: Store, scope: str, people: People, since: int, limit: int, *kinds: str) -> list[Happening]:
    """Return the newest happenings of these `kinds` since then, newest first; ``waited``: locks that were waited for.

    They are looked for among the newest `MOST` of all.
    """
    rows = store.activity.timeline(scope, since, store.now(), MOST)
    wanted = {one for kind in kinds for one in _TYPES.get(kind, ())}
    rows = [
        row
        for row in rows
        if row.type in wanted
        or ("waited" in kinds and row.type == "context.lock_acquired" and bool(payload_of(row).get("waited")))
    ]
    return _told(store, rows[:limit], people)


def happening(shown: dict[str, Any], people: People, scope: str = "") -> Happening:
    """An event about locks, as `event_shown` has it."""
    who, details = shown["instance_id"] or "", shown["details"]
    people.learn(who, shown["label"])
    other = next((details[name] for name in ("holder", "to", "from", "by") if isinstance(details.get(name), str)), "")
    if other and details.get("holder_label"):
        people.learn(other, details["holder_label"])
    waited = details.get("waited")
    note = next((details[name] for name in ("why", "note", "content") if isinstance(details.get(name), str)), "")
    if who:
        name = people.called(who)
    else:
        name = "another identity" if shown.get("hidden") else "a person"
    return Happening(
        shown["id"], scope, shown["at"], shown["what"], who, name,
        shown["file"], other, people.called(other) if other else "",
        waited if isinstance(waited, (int, float)) else 0.0, note, details,
    )  # fmt: skip


def _of_task(store: Store, row: Event, payload: dict[str, Any], people: People) -> Happening:
    """Return a change of a task, its title as the note; `what` is empty if the viewer may not see that task."""
    task = store.tasks.seen(onlooker(people.viewer, row.scope), row.subject or "")
    change = row.type.partition(".")[2].rpartition(".")[2]
    if change == "updated":
        change = str(payload.get("status") or change).replace("_", " ")
    if task:
        details = {"task": row.subject, "change": change, "type": task.type}
    else:
        details = {}
    who, title = row.actor or "", task.title if task else ""
    if task:
        name = people.called(who)
    else:
        name = ""
    return Happening(
        row.id, row.scope, row.created_at, TASK if task else "", who, name, "", "", "", 0.0, title, details
    )


def of_feed(event: dict[str, Any], people: People) -> Happening | None:
    """Return the happening of an event of ``store.activity.Feed``; only for locks and protections."""
    payload, group = event["payload"] or {}, event["type"].partition(".")[0]
    if group == "protection":
        row = {
            "id": event["id"],
            "created_at": event["at"],
            "scope": "",
            "type": event["type"],
            "actor": event["actor"],
        }
        return _of_protection(Event(row), payload, people)
    if group != "context":
        return None
    shown = {"id": event["id"], "at": event["at"], "what": what_of(event["type"], payload), "details": payload}
    shown.update(file=plain(event["subject"] or ""), instance_id=event["actor"], label=event["actor_label"])
    return happening({**shown, "hidden": event["actor"] is None}, people)


def _of_protection(row: Event, payload: dict[str, Any], people: People) -> Happening:
    """Return an attempt at an action for persons, or a lowered protection, in words as the note."""
    what, who = row.type.partition(".")[2], row.actor or ""
    if what == ATTEMPTED:
        nobody = "an agent's shell"
    else:
        nobody = "a person or a program"
    path, deed = (str(payload.get(name) or "") for name in ("path", "deed"))
    if who:
        name = people.called(who)
    else:
        name = nobody
    return Happening(row.id, row.scope, row.created_at, what, who, name, path, "", "", 0.0, deed, payload)


def _happening(row: Event, shown: dict[str, Any], people: People) -> Happening:
    if not row.type.startswith("instance."):
        return happening(shown, people, row.scope)
    who = row.subject or ""
    people.learn(who, payload_of(row).get("label"))
    what = _OF_SESSIONS.get(row.type.partition(".")[2], "")
    return Happening(row.id, row.scope, row.created_at, what, who, people.called(who), "", "", "", 0.0, "", {})
