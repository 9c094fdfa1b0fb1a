"""What goes with a session when it leaves, in one transaction with the row itself."""

from __future__ import annotations

from swarm_hook_core.labels import token
from swarm_hook_core.liveness import RECLAIM_SECONDS
from swarm_mcp.domain.session import STALE_SECONDS, Session
from swarm_mcp.store import events
from swarm_mcp.views import known_as

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from swarm_mcp.store.database import Database
    from swarm_mcp.store.denials import Denials
    from swarm_mcp.store.leases import Leases
    from swarm_mcp.store.lock_endings import LockEndings
    from swarm_mcp.store.lock_finder import LockFinder
    from swarm_mcp.store.messages import Messages, Notices
    from swarm_mcp.store.planner import Planner
    from swarm_mcp.store.tasks import Tasks
    from swarm_mcp.store.values import KeyValues


class Departures:
    """Takes leave of sessions. Few have tasks or plan: what that is is loaded for those alone."""

    def __init__(
        self,
        db: Database,
        finder: LockFinder,
        endings: LockEndings,
        denials: Denials,
        leases: Leases,
        messages: Messages,
        notices: Notices,
        values: KeyValues,
        tasks: Callable[[], Tasks],
        planner: Callable[[], Planner],
    ):
        self._db = db
        self._finder = finder
        self._endings = endings
        self._denials = denials
        self._leases = leases
        self._messages = messages
        self._notices = notices
        self._values = values
        self._tasks = tasks
        self._planner = planner

    def remove(self, session: Session, reason: str) -> None:
        """Inside a transaction: free the session's locks and tasks, drop its mail and published identity, and its row.

        `reason` is ``deregistered`` or ``reclaimed``.
        """
        db, gone = self._db, session.id
        self._denials.forget(gone)
        self._notices.forget_of(gone)
        self._leases.forget_lapses_of(gone)
        self._endings.drop(self._finder.of(gone), reason)
        if db.row("SELECT 1 FROM tasks LIMIT 1"):
            self._tasks().release_all(session, reason)
        self._messages.forget_of(session)
        for key in (f"identity/workspace/herdr/{gone}", f"identity/herdr/{gone}"):
            self._values.erase(key)
        db.change("DELETE FROM swarm_sessions WHERE instance_id = ?", (gone,))
        db.change("DELETE FROM instances WHERE id = ?", (gone,))
        payload = {"label": session.label, "pid": session.pid}
        if reason == "reclaimed":
            payload.update(last_heartbeat=session.heartbeat)
            payload.update(stale_threshold_secs=STALE_SECONDS, reclaim_threshold_secs=RECLAIM_SECONDS)
            events.add(db, session.scope, "instance.stale_reclaimed", "system", gone, payload)
        else:
            events.add(db, session.scope, "instance.deregistered", gone, gone, payload)
        if "role:planner" in (session.label or ""):
            self._planner().leave(session)

    def leave_scope(self, session: Session) -> None:
        """Inside a transaction: a session works elsewhere now: what it held in the scope of `session` is free."""
        held = self._finder.of(session.id)
        self._endings.drop([lock for lock in held if lock.scope == session.scope], "moved")
        self._tasks().vacate(session)

    def announce(self, session: Session, by: Session) -> None:
        """Inside that transaction: tell the peers of session `by` that it has removed another one."""
        theirs, own = (token(label or "", "identity") for label in (session.label, by.label))
        known = theirs in ("", own)  # its peers may be of other identities than the removed one
        name = known_as(session) if known and session.label else f"instance {session.id}"
        content = f"[auto] {name} was removed by {known_as(by)}: its locks are free and its tasks open again."
        self._messages.announce(by, content)
