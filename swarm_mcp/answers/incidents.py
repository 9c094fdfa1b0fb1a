"""Refusals and notices: one model for all that kept a session from a write, or warned its model of one.

Each is one event of the store (``timeline.Happening``), for any reason. ``incidents`` puts it into words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from swarm_hook_core.lookup import plain
from swarm_hook_core.naming import UNNAMED, agent_name
from swarm_hook_core.untrusted_text import cut, named, quoted
from swarm_hook_core.wording import duration
from swarm_mcp.answers.people import People
from swarm_mcp.answers.timeline import ALTERED, ATTEMPTED, DEADLOCK, DENIED, MOST, NOTICED, Happening, newest
from swarm_mcp.domain import AUTO
from swarm_mcp.store import Store

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
