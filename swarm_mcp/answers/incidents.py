"""Refusals and notices: one model for all that kept a session from a write, or warned its model of one.

Each is one event of the store (``timeline.Happening``), for any reason. ``incident_words`` puts it into words.
"""

from __future__ import annotations

from swarm_hook_core.lookup import plain
from swarm_mcp.answers.incident_words import REASONS, why
from swarm_mcp.answers.people import People
from swarm_mcp.answers.timeline import ALTERED, ATTEMPTED, DEADLOCK, DENIED, MOST, NOTICED, Happening, newest
from swarm_mcp.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NamedTuple
else:
    from swarm_mcp.domain.record import NamedValues as NamedTuple

REFUSED, NOTICE = "refused", "notice"
LEVELS = {DENIED: REFUSED, DEADLOCK: REFUSED, ATTEMPTED: REFUSED, NOTICED: NOTICE, ALTERED: NOTICE}
_REASONS = {DEADLOCK: "circle", ATTEMPTED: "reserved", ALTERED: "altered"}  # of events that have one reason alone


class Incident(NamedTuple):
    """A refusal or a notice.

    id, at, scope  of its event: number, Unix seconds, checkout
    level          `REFUSED`, or `NOTICE`: the call went ahead, and its model was told
    reason         the obstacle, a key of ``incident_words.REASONS``
    who, name      id and name of the session that made the call; `agent`: its subagent
    file           absolute path of the write; empty if it is about no file
    tool, command  the call, and the part of a command that is meant
    deed           the call's effect on the obstacle, as a verb
    other          id of the session behind the obstacle, `other_name` its name; both may be empty
    lock, rule     the locked path, and the rule by which the lock holds (``lock_request.rule``)
    changed_at     Unix seconds of the other session's change, 0 if not known
    also           number of further files
    note           the holder's words about its lock
    repeated       number of the same incidents within the minute after it: they have no events
    """

    id: int
    at: int
    scope: str
    level: str
    reason: str
    who: str
    name: str
    agent: str
    file: str
    tool: str
    command: str
    deed: str
    other: str
    other_name: str
    lock: str
    rule: str
    changed_at: int
    also: int
    note: str
    repeated: int


class Group(NamedTuple):
    """The `last` of the incidents alike, and their number `times`."""

    last: Incident
    times: int


def incident_of(one: Happening, repeated: int = 0) -> Incident | None:
    """Return an event as an Incident, if it is one."""
    level, told = LEVELS.get(one.what), one.details
    if level is None:
        return None
    texts = {name: _text(told, name) for name in ("path", "tool", "command", "deed", "rule", "denied_agent", "reason")}
    file, command, note, rule = texts["path"] or one.file, texts["command"], one.note, texts["rule"]
    reason = _REASONS.get(one.what) or texts["reason"]
    if not reason and rule == "queue":
        reason = "queue"
    if reason not in REASONS:
        reason = "lock"
    if reason == "reserved":
        command, note = texts["deed"] or one.note, ""
        if command == file or (not file and command.startswith("/") and " " not in command):
            file, command = command, ""
    elif reason == "altered":
        note = ""
    also, changed = told.get("also"), told.get("changed_at")
    return Incident(
        one.id, one.at, one.scope, level, reason, one.instance_id, one.name, texts["denied_agent"], plain(file),
        texts["tool"], command, texts["deed"], one.other, one.other_name, one.file, rule,
        int(changed) if isinstance(changed, (int, float)) else 0, len(also) if isinstance(also, list) else 0,
        note, repeated,
    )  # fmt: skip


def _text(details: dict[str, Any], name: str) -> str:
    """Return a text of an event; another program may have written any value."""
    value = details.get(name)
    if isinstance(value, str):
        return value
    return ""


def incidents(store: Store, scope: str, people: People, since: int, limit: int, level: str = "") -> list[Incident]:
    """Return the newest incidents since then, newest first; those of one `level` where given."""
    kinds = tuple(what for what in LEVELS if level in ("", LEVELS[what]))
    found = (incident_of(one) for one in newest(store, scope, people, since, limit, *kinds))
    return [one for one in found if one is not None]


def grouped(found: list[Incident], limit: int) -> list[Group]:
    """Return incidents of one session about one file for one reason as one, the last one first."""
    alike: dict[tuple[object, ...], list[Incident]] = {}
    for one in found:
        alike.setdefault((one.level, one.who, one.file, one.other, one.reason), []).append(one)
    return [Group(some[0], len(some)) for some in list(alike.values())[:limit]]


def lately(store: Store, scope: str, people: People, since: int, limit: int, level: str = "") -> list[Group]:
    """Return the newest groups of incidents since then."""
    return grouped(incidents(store, scope, people, since, MOST, level), limit)


def as_json(group: Group) -> dict[str, Any]:
    """Return the incidents of a group as JSON shows them."""
    last = group.last
    shown = {"file": last.file, "events": group.times, "at": last.at, "instance_id": last.who, "name": last.name}
    shown.update(holder_id=last.other, holder_name=last.other_name, reason=why(last))
    return {**shown, "level": last.level, "kind": last.reason, "tool": last.tool, "command": last.command}


def keys_of(one: Incident | None) -> dict[str, str]:
    """Return the keys that an event of JSON has besides if it is an incident."""
    if one is None:
        return {}
    return {"level": one.level, "kind": one.reason, "reason": why(one)}
