"""Uncommitted changes of other live sessions that a commit would include."""

from __future__ import annotations

import os
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, NamedTuple

from swarm_hook_core.budget import Budget
from swarm_hook_core.environment import identity
from swarm_hook_core.labels import token
from swarm_hook_core.state import store_path
from swarm_hook_core.traces import OFF, TURN, level
from swarm_hook_core.traces.meetings import Meetings
from swarm_hook_core.traces.quiet_trails import OnlookersTrail
from swarm_mcp.guard.check import BUSY_SECONDS, committer
from swarm_mcp.guard.repository import Repository
from swarm_mcp.store import Store

if TYPE_CHECKING:
    from swarm_hook_core.traces.others import Trace

SECONDS = 0.5  # of processor time, to read commands of others
PREFIX = "MCP"  # of variables that are about no client


class Changes(NamedTuple):
    """Changes of other sessions to the staged files (`traces`), and True if the level in force refuses the commit.

    `top`: the work tree. `identity`: the identity of the session that reads the words.
    """

    traces: list[Trace]
    refused: bool
    top: str
    identity: str


def changed_by_others(folder: str, who: str = "") -> Changes:
    """Return the changes of others in the commit in `folder`, for the session `who` as in ``check.refusals``.

    Later writes by the committer's own session make a file its own. Raises SwarmError.
    """
    chosen = level(PREFIX, folder)
    nothing = Changes([], False, folder, "")
    if chosen == OFF or not os.path.isfile(store_path()):
        return nothing
    me_is_nobody = SimpleNamespace(runtime=None, session_id=None, label=None)
    repository = Repository(folder)
    with Store(read_only=True, busy_seconds=BUSY_SECONDS) as store:
        me = committer(store, who) or me_is_nobody
        session = me.runtime or "", me.session_id or ""
        trail = OnlookersTrail("guard", "pre-commit", repository.top, chosen, *session)
        if trail.is_alone():
            return nothing
        meetings = Meetings(trail, store.as_hooks_read_it(), time.time(), Budget(SECONDS))
        staged = {os.path.join(repository.top, file) for file in repository.staged()}
        traces = [trace for trace in meetings.fresh_below(repository.top) if trace.path in staged]
        traces = [trace for trace in traces if not meetings.went_on_with(trace)]
    if me is not me_is_nobody:
        viewer = token(me.label or "", "identity")
    else:
        viewer = identity(PREFIX)
    return Changes(traces, bool(traces) and chosen == TURN, repository.top, viewer)
