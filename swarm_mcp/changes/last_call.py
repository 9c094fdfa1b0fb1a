"""The end of a session's last call, noted before a tool of this server looks for the authors of lines.

The hook after a call leaves its time in a mark, and the check of the next write or command notes it in the journal
(``Trail.leave``). Calls of this server's own tools have no such check.
"""

from __future__ import annotations

import os

from swarm_hook_core.state import ended_mark, open_private, write_all
from swarm_hook_core.traces import entry, journal, journal_name, place_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.domain.session import Session


def note_end(session: Session, folder: str) -> None:
    """Note the end of the session's last call in its journal for absolute `folder`, if a mark tells it."""
    mark = os.path.join(os.path.dirname(ended_mark()), str(session.client_pid or session.pid))
    path = os.path.join(place_of(folder), journal_name(session.runtime or "", session.session_id or ""))
    try:
        ended_ns = os.stat(mark).st_mtime_ns
        handle = open_private(path, os.O_WRONLY | os.O_APPEND)
    except OSError:
        return  # no hook has left a mark, or the session has written nothing here
    try:
        calls = [one for kind in ("wrote", "ran", "runs") for one in journal.newest_of(journal.read(path), kind)]
        last = max(calls, key=lambda one: one.at_ns, default=None)
        if last is not None and last.at_ns < ended_ns:
            write_all(handle, b"\n" + entry(ended_ns, "over", last.agent, last.tool, folder))
    finally:
        os.close(handle)
