"""The decision to continue an earlier session, and the record that makes it possible.

Claude Code and Codex silently continue a session from any folder; its files are then others. Codex begins a new session
under an unknown name. So all of that is checked here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from swarm_hook_core import faults
from swarm_mcp.agents.harness.adapter import HarnessAdapter
from swarm_mcp.agents.harness.outcome import Cost, RunResult, cost_of
from swarm_mcp.agents.harness.query import Query, parse_json
from swarm_mcp.agents.harness.record import RUNTIME
from swarm_mcp.errors import Refused

LONGEST_ID = 200


class ResumableSession(NamedTuple):
    """The facts for resuming a session. `cost` is its harness's count at that time."""

    harness: str
    session_id: str
    cwd: str = ""
    cost: Cost = Cost()


class Resumption(NamedTuple):
    """`session_id` to continue, empty for a new session; `refused` is the reason against a requested one; `forget`: it
    can never be continued; `before`: its cost so far.
    """

    session_id: str = ""
    refused: str = ""
    forget: bool = False
    before: Cost = Cost()


def serialize(session: ResumableSession) -> dict[str, Any]:
    """Return a session as a JSON object."""
    return {**session._asdict(), "cost": session.cost.to_dict()}


def deserialize(found: object) -> ResumableSession | None:
    """Return the session that a JSON object, or its text, describes; None for anything else."""
    if isinstance(found, (str, bytes)):
        found = parse_json(found)
    if isinstance(found, ResumableSession):
        return found
    if not isinstance(found, Mapping):
        return None
    harness, session_id, cwd = found.get("harness"), found.get("session_id"), found.get("cwd") or ""
    if not (isinstance(harness, str) and isinstance(session_id, str) and isinstance(cwd, str)):
        return None
    if not harness or not 0 < len(session_id) <= LONGEST_ID or "\0" in session_id + cwd:
        return None
    return ResumableSession(harness, session_id, cwd, cost_of(found.get("cost")))


def session_given(adapter: HarnessAdapter, previous: object) -> ResumableSession | None:
    """Return the session that a caller means: by a result, its ``session_params``, or the harness's own id.

    None without one, and for an invalid object. Raises Refused for a wrong type.
    """
    if isinstance(previous, RunResult):
        previous = previous.session_params
    if previous is None or isinstance(previous, (Mapping, bytes, ResumableSession)):
        return deserialize(previous)
    if not isinstance(previous, str):
        raise Refused(
            f"previous wants a result, its session_params, or the id of a session, not {type(previous).__name__}"
        )
    if fits(adapter, previous):
        return ResumableSession(adapter.name, previous)
    return deserialize(previous)


def fits(adapter: HarnessAdapter, session_id: str) -> bool:
    """Return True if this can be an id of that harness. It must never be taken for an option."""
    return (
        0 < len(session_id) <= LONGEST_ID
        and not session_id.startswith("-")
        and re.fullmatch(adapter.session_pattern, session_id) is not None
    )


def decide(adapter: HarnessAdapter, query: Query, previous: object = None) -> Resumption:
    """Decide if `query.resume_session_id`, else the session of `previous`, is continued."""
    known = deserialize(previous)
    wanted = query.resume_session_id or (known.session_id if known else "")
    if not wanted:
        return Resumption()
    if known and known.session_id != wanted:
        known = None  # it speaks of another one
    if known and known.harness != adapter.name:
        return Resumption(refused=f"session {wanted[:60]} is one of {known.harness}, not of {adapter.name}")
    if not adapter.capabilities.resume:
        return Resumption(refused=f"{adapter.name} cannot continue a session")
    if not fits(adapter, wanted):
        return Resumption(refused=f"{wanted[:60]!r} is no session id of {adapter.name}", forget=True)
    if known and known.cwd and not _same_folder(known.cwd, query.cwd):
        return Resumption(refused=f"session {wanted} worked in {known.cwd}, this run works in {query.cwd}")
    if _can(adapter, wanted, query) is False:
        if _can(adapter, wanted, query._replace(cwd="")) is not False:
            return Resumption(refused=f"session {wanted} worked in another folder than {query.cwd}")
        return Resumption(refused=f"session {wanted} does not exist any more", forget=True)
    return Resumption(wanted, before=_cost_before(adapter, wanted, query, known))


def _cost_before(adapter: HarnessAdapter, session_id: str, query: Query, known: ResumableSession | None) -> Cost:
    """Return the session's cost so far: from its own record, including a person's part, else from ours."""
    before = Cost()
    if adapter.cumulative and not _is_elsewhere(query):
        try:
            before = adapter.session_cost(session_id)
        except Exception as error:
            faults.record(RUNTIME, adapter.name, faults.describe(error))
    if before != Cost():
        return before
    if known:
        return known.cost
    return Cost()


def _is_elsewhere(query: Query) -> bool:
    """Return True if the child may keep its sessions in another place than this process would look at."""
    return any(name == "HOME" or name.endswith(("_HOME", "_DIR", "_SESSIONS")) for name in query.env)


def _can(adapter: HarnessAdapter, session_id: str, query: Query) -> bool | None:
    if _is_elsewhere(query):
        return None
    try:
        return adapter.can_resume(session_id, query.cwd)
    except Exception as error:
        faults.record(RUNTIME, adapter.name, faults.describe(error))
        return None  # only trying tells


def _same_folder(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
