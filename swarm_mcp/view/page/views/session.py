"""A session: its locks, waits and changes, its tasks and messages, and its events."""

from __future__ import annotations

from swarm_mcp.view.overview.now import COUNTED
from swarm_mcp.view.overview.owned import shares
from swarm_mcp.view.overview.session import session_whole
from swarm_mcp.view.page.view import Look, Page, View

SECONDS = 86400  # for as long events are kept


def _make(look: Look) -> Page:
    row = look.store.instances.with_evidence(look.asked.get("id"))
    if row:
        scope = row.scope
    else:
        scope = look.scope
    edited = look.edited.get(scope) or []
    found = session_whole(look.store, look.asked.get("id"), scope, look.people, look.now - SECONDS, edited)
    shown = {"whole": found, "counted": COUNTED, "shares": []}
    if row and row.runtime and row.session_id:
        paths = dict.fromkeys(one.path for one in edited if one.instance_id == row.id)
        shown["shares"] = shares(scope, (row.runtime, row.session_id), list(paths))
    return Page("session.html", f"Session {found.name.removeprefix('session ')}", shown)


SESSION = View("/session", "", _make, with_edits=True)
