"""Changed and uncommitted files, from the sessions' traces (``swarm_hook_core.traces``).

Traces are in no store: their journals are read, and git is asked, for about 10 ms if there are any. `journal_marks`
tells if a new look is worthwhile.
"""

from __future__ import annotations

import time
from contextlib import closing
from typing import NamedTuple

from swarm_hook_core.budget import Budget
from swarm_hook_core.traces import level, others_in, place_of
from swarm_hook_core.traces.file_changes import Patience
from swarm_hook_core.traces.meetings import Meetings
from swarm_hook_core.traces.quiet_trails import OnlookersTrail
from swarm_mcp.answers.file_marks import Marks, file_marks
from swarm_mcp.answers.people import People
from swarm_mcp.store import Store

SECONDS = 0.3  # seconds of processor time for commands that have not been analysed yet
MOST = 100  # files
PREFIX = "MCP"  # of variables that are about no client


class Edit(NamedTuple):
    """One uncommitted change of the file at `path`: its author, its time in Unix seconds, and the tool.

    The tool of a change on another machine is unknown: ``-``.
    """

    path: str
    instance_id: str
    name: str
    at: int
    tool: str


def journal_marks(scope: str) -> Marks:
    """The marks of the journals that `edits` of a scope reads: they differ once one has grown."""
    return file_marks(_journals(scope))


def edits(store: Store, scope: str, people: People, limit: int = MOST) -> list[Edit]:
    """Return the newest uncommitted changes in a scope by sessions that are still there, newest first.

    A session that has taken its change back has none, as `blame` says.

    For sessions on other machines these are their unpushed changes. Raises nothing: unreadable journals or
    folders count as empty.
    """
    if not store.exists() or not _journals(scope):
        return []
    trail = OnlookersTrail("swarm", "edits", scope, level(PREFIX, scope))
    try:
        with closing(store.as_hooks_read_it()) as reader:
            meetings = Meetings(trail, reader, time.time(), Budget(SECONDS))
            patience = Patience(trail.changes)
            fresh = meetings.fresh_of_each_below(scope)
            trail.changes.prepare(dict.fromkeys(one.path for one in fresh), patience.left())
            traces = [one for one in fresh if patience.has_part(one.path, one.journal) is not False]
            traces += meetings.on_other_machines_below(scope)
    except (OSError, ValueError):  # unreadable journals count as empty
        return []
    traces.sort(key=lambda trace: -trace.at_ns)
    shown = []
    for trace in traces[:limit]:
        people.learn(trace.held.instance_id, trace.held.label)
        name = people.called(trace.held.instance_id)
        shown.append(Edit(trace.path, trace.held.instance_id, name, int(trace.at_ns / 1e9), trace.tool))
    return shown


def _journals(scope: str) -> list[str]:
    try:
        return others_in(place_of(scope), "")
    except (OSError, ValueError):  # no journals
        return []
