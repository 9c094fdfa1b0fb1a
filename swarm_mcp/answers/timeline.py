"""The events in a scope: locks taken, awaited, refused and handed over, sessions that came and went; writes refused.

Events are kept for about a day.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from swarm_hook_core.lookup import plain
from swarm_hook_core.naming import UNNAMED, agent_name
from swarm_hook_core.untrusted_text import cut, named, quoted
from swarm_hook_core.wording import duration
from swarm_mcp.answers.people import People
from swarm_mcp.domain import AUTO, Event, onlooker
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
# kinds that are refusals or notices (`Incident`)
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


# Refusals and notices: one model for all that kept a session from a write, or warned its model of one.
#
# Each is one event of the store (`Happening`), for any reason. `Incident` has the words.


# The words for a refusal or a notice, alike on every screen: its reason, and the whole of it in one line.

LONGEST = 120  # characters of a command, of a note
_CHANGED = " changed{before} and has not committed"

# The reason of an incident -> the words before and after the name of the other session; one text without such a name.
REASONS: dict[str, tuple[str, str | None]] = {
    # locks
    "lock": ("held by ", "{through}"),
    "queue": ("", " waits for it, and is first in line"),
    "circle": ("it would have waited in a circle", None),
    "lapsed": ("its lock has lapsed, and ", " has locked it since"),
    "possible": ("{by} may write what ", " holds"),
    "kernel": ("the kernel kept it from writing what ", " holds"),
    "altered": ("{by} changed what ", " holds"),
    # uncommitted work of another session
    "uncommitted": ("it would {deed} what ", _CHANGED),
    "moment": ("", " was writing it at that moment"),
    "sweep": ("{by} would {deed} what ", f"{_CHANGED}{{more}}"),
    "tenant": ("it would {deed} the folder in which ", " works{more}"),
    "process": ("{by} would {deed} a process of ", ""),
    "stash": ("{by} would {deed} what ", " put into the stash{before}"),
    "passed": ("it was let {deed} what ", _CHANGED),
    "merged": ("its text was merged with what ", _CHANGED),
    "elsewhere": ("", " has changed it on another machine, and not pushed"),
    # no session's
    "person": ("{by} would {deed} a person's uncommitted work{more}", None),
    "merged-person": ("its text was merged with a person's uncommitted work", None),
    "fence": ("{by} would write in another work tree", None),
    "head": ("{by} would change the HEAD, index or stash that sessions share here", None),
    "team": ("locks of other machines may be unknown here", None),
    "unchecked": ("it could not be checked{detail}", None),
    "reserved": ("only a person may do that{detail}", None),
}
OWNERLESS = tuple(reason for reason, (_before, after) in REASONS.items() if after is None)


_THROUGH = {
    "file": "", "folder": ", by the locked folder {file}", "pattern": ", by the pattern {file}",
    "repository": ", as {file} of another work tree", "overlap": ": {file}",
}  # fmt: skip


def through(lock: dict[str, Any], path: Callable[[str], str]) -> str:
    """Return the rule by which a lock of ``explaining.explanation`` holds; empty for a lock on the very file.

    `path` returns a path's name for the reader.
    """
    return _THROUGH.get(lock["rule"], "").format(file=named(path(lock["file"])))


def around_name(one: Incident, path: Callable[[str], str] = str) -> tuple[str, str | None]:
    """Return the words before and after the name of the other session; the whole text first, without one.

    `path` returns a path's name for the reader.
    """
    first, last = REASONS.get(one.reason, ("it was in the way of ", ""))
    command, before, more, note = cut(" ".join(one.command.split()), LONGEST), "", "", ""
    by, detail = "it", ""
    if command:
        by, detail = f"`{command}`", f": {command}"
    if one.changed_at:
        before = f" {duration(max(0, one.at - one.changed_at))} before"
    if one.also:
        more = f", and {one.also} more file{'s' * (one.also > 1)}"
    if one.note.strip():
        note = f": {quoted(one.note, LONGEST)}"
    lock = through({"rule": one.rule, "file": one.lock}, path)
    words = {"by": by, "deed": one.deed or "change", "before": before, "more": more, "detail": detail, "through": lock}
    if last is None:
        return first.format(**words) + note, None
    return first.format(**words), last.format(**words) + note


def why(one: Incident, path: Callable[[str], str] = str) -> str:
    """Return the reason: the short form."""
    before, after = around_name(one, path)
    if after is None:
        return before
    return f"{before}{one.other_name or UNNAMED}{after}"


def sentence(one: Incident, path: Callable[[str], str] = str, times: int = 1) -> str:
    """Return all of it but its time and level: the long form. `times`: the number of incidents like it."""
    file, who, often, by, again = "", one.name, f" ({times} times)" * (times > 1), "", ""
    if one.file:
        file = f"{path(one.file)} "
    if one.agent:
        who = f"{agent_name(one.agent)} of {who}"
    if one.tool:
        by = f", by {cut(one.tool, LONGEST)}"
    if one.repeated:
        again = f", and {one.repeated} more within the minute"
    return f"{file}to {who}{often}{by}: {why(one, path)}{again}"


REFUSED, NOTICE = "refused", "notice"
LEVELS = {DENIED: REFUSED, DEADLOCK: REFUSED, ATTEMPTED: REFUSED, NOTICED: NOTICE, ALTERED: NOTICE}
_REASONS = {DEADLOCK: "circle", ATTEMPTED: "reserved", ALTERED: "altered"}  # of events that have one reason alone


class Incident(NamedTuple):
    """A refusal or a notice.

    id, at, scope  of its event: number, Unix seconds, checkout
    level          `REFUSED`, or `NOTICE`: the call went ahead, and its model was told
    reason         the obstacle, a key of `REASONS`
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
    """Return incidents of one session as one, the last one first: the same call on the same file for one reason."""
    alike: dict[tuple[object, ...], list[Incident]] = {}
    for one in found:
        alike.setdefault((one.level, one.who, one.file, one.other, one.reason, one.tool, one.command), []).append(one)
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


# The words that tell people about the end of a lock.


def until(lock: dict[str, Any], now: float) -> str:
    """Return the words for the end of a lock, as listings show it."""
    words = "until it is released"
    if "lapses_in" in lock:
        left = duration(lock["lapses_in"])
        words = f"lapses in {left} unless renewed"
        if lock.get("mode") == AUTO:
            words = f"until its turn ends, or in {left} without a further write"
    if lock.get("expected_end"):
        away = lock["expected_end"] - now
        words += f", expected to end {f'in {duration(away)}' if away > 0 else f'{duration(-away)} ago'}"
    return words
