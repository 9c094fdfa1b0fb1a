"""Names for readers of text answers: sessions, files and times as a person at this place and time calls them.

JSON has labels, whole paths and Unix seconds instead, and uses nothing from here.
"""

from __future__ import annotations

from time import localtime, strftime

from swarm_hook_core.naming import UNNAMED
from swarm_hook_core.wording import ago
from swarm_mcp.answers.people import People
from swarm_mcp.answers.views import name_of
from swarm_mcp.cli.output import moment
from swarm_mcp.cli.words import near, places
from swarm_mcp.sessions.acting import surrounding_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from swarm_mcp.cli.arguments import Arguments
    from swarm_mcp.domain.session import Session
    from swarm_mcp.store import Store

HIDDEN = "another identity"


class Reader:
    """Names for one answer of this command. `viewer` is the identity of its reader, empty without one."""

    def __init__(self, args: Arguments, store: Store, viewer: str = ""):
        self.now = store.now()
        own = surrounding_session(store)
        self.own_id = ""
        if own:
            self.own_id = own.id
        self.people = People(store, viewer, self.own_id)
        self._absolute = args.given("--absolute")
        self._places: list[tuple[str, str]] = []
        if not self._absolute:
            self._places = places()

    def when(self, at: object) -> str:
        """The age of a time column; a date with --absolute, or if the value is not a time."""
        if self._absolute or not isinstance(at, (int, float)):
            return moment(at)
        return ago(self.now - at)

    def clock(self, at: object) -> str:
        """The local time of day of a time column, for lines that stay on a screen; otherwise as `when`."""
        if self._absolute or not isinstance(at, (int, float)):
            return moment(at)
        return strftime("%H:%M:%S", localtime(at))

    def path(self, path: str) -> str:
        """`path` as it is called from this folder, where it is in the same checkout; else as it is."""
        return near(path, self._places)

    def session(self, row: Session) -> str:
        """The name of a session; one without a label, as strangers are shown, is only a number."""
        return name_of(row, self.own_id)

    def holder(self, lock: dict[str, Any]) -> str:
        """The name of the session that has a lock as listings show it."""
        if lock.get("hidden"):
            return HIDDEN
        return self.known(lock["owner_label"], lock["instance_id"])

    def known(self, label: str | None, instance_id: str) -> str:
        """The name of a session whose label the answer has; None for an unknown label."""
        if label is not None:
            self.people.learn(instance_id, label)
        return self.called(instance_id)

    def called(self, instance_id: str | None) -> str:
        """The name of the session with this id, also of one that has gone."""
        name = self.people.called(instance_id)
        if name == UNNAMED:
            return HIDDEN
        return name
