"""Unpushed writes by sessions on other machines, to files that a call is about to write.

Their work is not endangered here: the call goes ahead, and its session is told once. Their machines' writes arrive in
journals of their own, as entries of the kind ``far``.
"""

from __future__ import annotations

import os

from swarm_hook_core.labels import token
from swarm_hook_core.lookup import Session
from swarm_hook_core.traces import journal
from swarm_hook_core.traces.meetings import Meetings
from swarm_hook_core.traces.others import Trace
from swarm_hook_core.traces.trail import Trail
from swarm_hook_core.traces.wording import were_written_elsewhere

AGAIN_SECONDS = 600  # after this time a session is told again of the same other session and file


def words(traces: list[Trace], session: Session, meetings: Meetings, trail: Trail, now: float) -> str:
    """Return the notice for the model of `session` about these Traces; each is noted in `trail` as told."""
    untold = [trace for trace in traces if _is_untold(trace, meetings, now)]
    for trace in untold:
        trail.note("heard", trace.path, trace.held.instance_id)
    if untold:
        return were_written_elsewhere(untold, token(session.label, "identity"), now)
    return ""


def _is_untold(trace: Trace, meetings: Meetings, now: float) -> bool:
    """Return True if this session was not told lately of the same session's writes to the file."""
    own = meetings.journals.own(os.path.dirname(trace.path))
    heard = journal.newest_first(own, trace.path, ("heard",))
    last = next((entry for entry in heard if entry.text == trace.held.instance_id), None)
    return last is None or (trace.at_ns > last.at_ns and now - last.at_ns / 1e9 > AGAIN_SECONDS)
