"""The writes of sessions as events of a timeline: writes of one file in quick succession are one event."""

from __future__ import annotations

from swarm_hook_core.naming import UNNAMED, session_name
from swarm_mcp.answers.people import People
from swarm_mcp.answers.timeline import Happening
from swarm_mcp.store import Store
from swarm_mcp.view.overview.work import Written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Session = tuple[str, str]

EDITED = "edited"  # the kind of such an event
TOGETHER = 60  # seconds between two writes of one event


class Names:
    """The instance ids and names of sessions by the client's own ids, for one viewer."""

    def __init__(self, store: Store, people: People):
        self._store, self._people = store, people
        self._found: dict[Session, tuple[str, str]] = {}

    def of(self, session: Session) -> tuple[str, str]:
        """Return ``(instance id, name)``; the id is empty for a session that has gone.

        A viewer with an identity is told no name of a session that has gone: its identity is unknown.
        """
        if session not in self._found:
            row = self._store.instances.of_session(*session) if self._store.exists() else None
            if row:
                self._found[session] = row.id, self._people.name(row)
            elif self._people.viewer:
                self._found[session] = "", UNNAMED
            else:
                self._found[session] = "", session_name(*session)
        return self._found[session]


def edit_events(
    names: Names, scope: str, written: Iterable[Written], since: float, until: float, known: Sequence[Happening] = ()
) -> list[Happening]:
    """Return the writes between the two times as events, newest first. `written` is newest first.

    `known`: other events of this time; they have the ids of sessions that have gone.
    """
    ids = {one.name: one.instance_id for one in known if one.instance_id}
    found: list[Happening] = []
    last: dict[tuple[Session, str], int] = {}  # index of the event in `found`
    for one in written:
        if not since <= one.at <= until:
            continue
        key = (one.session, one.path)
        at = last.get(key)
        if at is not None and found[at].details["first"] - one.at <= TOGETHER:
            details = found[at].details
            details["first"], details["times"] = one.at, details["times"] + 1
            continue
        instance_id, name = names.of(one.session)
        last[key] = len(found)
        details = {"tool": one.tool, "first": one.at, "times": 1}
        found.append(Happening(0, scope, int(one.at), EDITED, instance_id or ids.get(name, ""), name, one.path, "", "",
                               0.0, "", details))  # fmt: skip
    return found
