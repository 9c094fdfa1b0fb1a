"""What sessions on other machines of a team have written and not pushed, where a call is to write the same file.

Nothing of theirs can be lost here: the call goes ahead, and its session hears of it once. The team agent keeps their
journals (``swarm_mcp.team.traces``), in which these writes are entries of the kind ``far``.
"""

import os

from swarm_hook_core.labels import token
from swarm_hook_core.traces import journal

AGAIN_SECONDS = 600  # until a session is told anew of somebody who goes on writing the same file


def words(traces, session, meetings, trail, now: float) -> str:
    """What the model of `session` is told of these Traces, of files that its call writes; each is noted in `trail`."""
    from swarm_hook_core.traces.wording import were_written_elsewhere

    untold = [trace for trace in traces if _is_untold(trace, meetings, now)]
    for trace in untold:
        trail.note("heard", trace.path, trace.held.instance_id)
    return were_written_elsewhere(untold, token(session.label, "identity"), now) if untold else ""


def _is_untold(trace, meetings, now: float) -> bool:
    """Whether this session was not told lately that this one of another machine writes the file."""
    own = meetings.own_entries(os.path.dirname(trace.path))
    heard = journal.newest_first(own, trace.path, ("heard",))
    last = next((entry for entry in heard if entry.text == trace.held.instance_id), None)
    return last is None or (trace.at_ns > last.at_ns and now - last.at_ns / 1e9 > AGAIN_SECONDS)
