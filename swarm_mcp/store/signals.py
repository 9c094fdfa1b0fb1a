"""What one part of the store lets the others know, without knowing them. ``store.Store`` says who hears of what.

All but the last are called inside a transaction, and what follows from them is part of it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.domain.lock import Lock
    from swarm_mcp.domain.session import Session


class Signals:
    """Nobody hears of anything; a store overrides what concerns its parts."""

    def session_alive(self, instance_id: str) -> None:
        """A session has shown life."""

    def session_settled(self, session: Session, before: Session | None) -> None:
        """A session has joined, or was renewed; `before` is what it was until then."""

    def session_moved(self, session: Session) -> None:
        """A session has left the scope of `session`, its row until now, for another one."""

    def session_gone(self, session: Session, reason: str) -> None:
        """A session leaves (``deregistered``) or was found to have gone (``reclaimed``): remove all that it has."""

    def session_removed(self, session: Session, by: Session) -> None:
        """Session `by` has removed another one, which has gone by now."""

    def pane_seen(self, session: Session, pane: dict[str, str]) -> None:
        """A session has been seen in this pane of a workspace."""

    def locks_freed(self, locks: list[Lock], reason: str) -> None:
        """These locks have just been deleted; `reason` as in their events, empty for an ordinary release."""

    def locks_lapsed(self, locks: list[Lock]) -> None:
        """The leases of these locks are over, and they have just been deleted."""

    def place_left(self) -> None:
        """Somebody has left the line for a lock without having got it."""

    def registered(self) -> None:
        """Outside of a transaction: a session has registered, and what is due may be cleaned up beside it."""
