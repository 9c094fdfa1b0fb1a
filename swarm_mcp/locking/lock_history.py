"""The history of a file's locks, and the last refusals and notices about it."""

from __future__ import annotations

from swarm_hook_core import repeated_denials, repository
from swarm_hook_core.lookup import GLOB, plain
from swarm_hook_core.lookup.pattern_locks import covered
from swarm_hook_core.paths import above
from swarm_hook_core.wildmatch import literal_prefix
from swarm_mcp.answers.incidents import Group, grouped, incident_of
from swarm_mcp.answers.lock_events import event_shown, learn_labels
from swarm_mcp.answers.paging import cursor, page, place_of
from swarm_mcp.answers.people import People
from swarm_mcp.answers.size import sent
from swarm_mcp.answers.timeline import happening
from swarm_mcp.domain.message import Event
from swarm_mcp.domain.session import Session
from swarm_mcp.store import Store
from swarm_mcp.store.activity import payload_of
from swarm_mcp.store.denials import KNOWN_SECONDS
from swarm_mcp.store.lock_request import Reach, reach_of, tree_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from swarm_mcp.answers.size import Measure

AT_ONCE = 1000  # events that are read together, the newest first
MOST_READ = 20_000  # events that one answer looks through; the cursor behind them goes on
HOUR_SECONDS, INCIDENTS = 3600, 5
FEW_EVENTS, FEW_READ = 100, 2000  # events of one path, and those looked through for them, for its last incidents
# Kinds that are about one file alone: a lock on a folder over it is no part of them.
_OF_ONE_FILE = ("lock_denied", "write_denied", "write_noticed", "lock_breached", "restored")


def history(
    store: Store,
    place: Session,
    word: str,
    viewer: str,
    limit: int,
    after: str = "",
    measure: Measure = sent,
    most_read: int = MOST_READ,
) -> dict[str, Any]:
    """Return ``{file, events}`` for `word` in `place` (as for ``explanation``): the newest `limit`, oldest first.

    An event is ``{id, at, what, rule, file, instance_id, label, details}``. `rule` says how it concerns the path, as in
    ``lock_request.rule``. Names and notes of sessions with another identity than `viewer` are left out. At most
    `most_read` events are read; ``next`` is then the cursor for `after`, to read the earlier ones. Raises SwarmError.
    """
    reach = reach_of(place, word)
    names, known = _Names(reach), store.activity.acquaintance(f"identity:{viewer}" if viewer else None)
    found: list[tuple[Any, ...]] = []
    begin = place_of(after, (int,))
    before, read = begin[0] if begin else None, 0
    while len(found) < limit and read < most_read:
        rows = store.activity.of_locks(before, AT_ONCE)
        found += [(row, payload, how) for row in rows if (how := names.concern(row, payload := payload_of(row)))]
        before, read = rows[-1].id if rows else before, read + AT_ONCE
        if len(rows) < AT_ONCE:
            read = 0
            break
    cut = len(found) > limit
    found = found[:limit]
    learn_labels(store, known, [(row, payload) for row, payload, _how in found])
    shown = [event_shown(known, *one) for one in reversed(found)]
    _count(shown, found)
    fits = page((("", one) for one in reversed(shown)), dict, lambda: 0, measure=measure).rows
    last = None  # event that was read
    if len(fits) < len(shown) or cut:
        last = fits[-1]["id"]
    elif read:
        last = before
    answer = {"file": reach.file, "events": fits[::-1]}
    if last is not None and store.activity.of_locks(last, 1):
        answer["next"] = cursor(last)
    return answer


def incidents_about(store: Store, place: Session, word: str, people: People) -> list[Group]:
    """Return the last refusals and notices of the past hour about `word` in `place` (as for `history`)."""
    if not store.exists():
        return []
    events = history(store, place, word, people.viewer, FEW_EVENTS, most_read=FEW_READ)["events"]
    found = [incident_of(happening(one, people, place.scope), one.get("repeated", 0)) for one in reversed(events)]
    return grouped([one for one in found if one and one.at > store.now() - HOUR_SECONDS], INCIDENTS)


class _Names:
    """All that a path is called in events."""

    def __init__(self, reach: Reach):
        self.reach = reach
        self.own = {*reach.keys, reach.file, *([reach.key] if reach.key else [])}
        self.over = {folder for name in self.own for folder in above(name)}
        self.in_repository: set[str] = set()
        if reach.key is not None and not reach.pattern and (tree := tree_of(reach)):
            self.in_repository = {name for key in (*self.own, *self.over) for name in repository.names_of(key, tree)}

    def concern(self, row: Event, payload: dict[str, Any]) -> str:
        """Return the rule by which an event concerns the path, or an empty text."""
        kind, subject, key = row.type.partition(".")[2], plain(row.subject or ""), payload.get("key")
        if self.reach.pattern:
            same = (payload.get("pattern"), payload.get("base")) == (self.reach.pattern, self.reach.base)
            if same or subject == self.reach.file:
                return "pattern"
            return ""
        if kind == "lock_denied" and (payload.get("path") in self.own or payload.get("path_key") in self.own):
            return payload.get("rule") or "file"
        if kind in ("write_denied", "write_noticed") and self.own.intersection(_texts(payload.get("also"))):
            return "file"
        if subject in self.own or (isinstance(key, str) and key in self.own):
            return "file"
        if kind in _OF_ONE_FILE:
            return ""
        if subject in self.over or (isinstance(key, str) and key in self.over):
            if not payload.get("pattern"):
                return "folder"
            return ""
        pattern, base = payload.get("pattern"), payload.get("base")
        if isinstance(pattern, str) and isinstance(base, str) and self._covers(pattern, base):
            return "pattern"
        if payload.get("repository") in self.in_repository:
            return "repository"
        return ""

    def _covers(self, pattern: str, base: str) -> bool:
        prefix, folder = literal_prefix(pattern), base
        if prefix:
            folder = f"{base.rstrip('/')}/{prefix}"
        return bool(covered(pattern, base, GLOB + folder, list(self.own)))


def _texts(value: object) -> list[str]:
    if isinstance(value, list):
        return [one for one in value if isinstance(one, str)]
    return []


def _count(shown: list[dict[str, Any]], found: list[tuple[Any, ...]]) -> None:
    """Count how often each denial was repeated within its pause (``repeats``); a repeat adds no event."""
    if not any(one["what"] == "denied" for one in shown):
        return
    known = repeated_denials.known()
    events = [(one, row, payload) for one, (row, payload, _how) in zip(shown, reversed(found))]
    for at, (one, row, payload) in enumerate(events):
        if one["what"] != "denied":
            continue
        same = [
            later["at"] for later, other, told in events[at + 1 :]
            if later["what"] == "denied" and (other["actor"], told.get("key")) == (row["actor"], payload.get("key"))
        ]  # fmt: skip
        end = min([*same, one["at"] + KNOWN_SECONDS + 1])
        again = repeated_denials.counted(
            known, row["actor"], payload.get("holder") or "", payload.get("key"), one["at"], end
        )
        if again:
            one["repeated"] = again
