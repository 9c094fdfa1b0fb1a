"""A session: its locks, waits and changes, its tasks and messages, and its events."""

from __future__ import annotations

from swarm_mcp.view.overview.now import COUNTED
from swarm_mcp.view.overview.session import session_whole
from swarm_mcp.view.page.view import Look, Page, View

SECONDS = 86400  # for as long events are kept


def _make(look: Look) -> Page:
    row = look.store.instances.with_evidence(look.asked.get("id"))
    if row:
        scope = row.scope
    else:
        scope = look.scope
    work = look.work_in(scope)
    found = session_whole(look.store, look.asked.get("id"), scope, look.people, look.now - SECONDS, work.edits)
    shown = {"whole": found, "counted": COUNTED, "shares": []}
    if row and row.runtime and row.session_id:
        shown["shares"] = work.shares.get((row.runtime, row.session_id), [])
    return Page("session.html", f"Session {found.name.removeprefix('session ')}", shown)


SESSION = View("/session", "", _make, with_work=True)
