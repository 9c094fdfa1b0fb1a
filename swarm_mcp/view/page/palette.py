"""A colour for each session of a checkout, the same on every page."""

from __future__ import annotations

from itertools import islice

from swarm_mcp.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Session = tuple[str, str]

COLOURS = 8  # `.c0` to `.c7` in the stylesheet
PERSON = "person"  # the class of lines that no session has written
SESSIONS = 100


def colours(store: Store, scope: str, others: Iterable[Session] = ()) -> dict[Session, str]:
    """Return the class of each session: live ones in the order of their registration, then `others`."""
    live = [(row.runtime or "", row.session_id or "") for _, row in islice(store.instances.walk(scope), SESSIONS)]
    return {**numbered([*live, *others]), ("", ""): PERSON}


def numbered(sessions: Iterable[Session]) -> dict[Session, str]:
    """Return ``{session: class}``. Further sessions have the first colours again."""
    return {session: f"c{at % COLOURS}" for at, session in enumerate(dict.fromkeys(sessions))}
