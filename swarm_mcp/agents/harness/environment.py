"""The environment of a child: this process's, without the variables of another session.

A worker started from inside a session would take that session for its own: its hooks would speak for the parent, and
its client would believe itself nested. Settings and credentials stay: they are the user's.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping

from swarm_mcp import runtimes
from swarm_mcp.agents.harness.query import Query
from swarm_mcp.processes.leftover_processes import OUTLIVES, RUN_ID

# Of swarm itself, and of the terminal that a session sits in; `_OWN_ENDS` are of every runtime's own (SWARM_CC_LABEL).
_OWN = frozenset({
    "SWARM_MCP_INSTANCE_ID", "SWARM_TASK_ID", "SWARM_MCP_ALLOW_SPAWN", "SWARM_ALLOW_YOLO", "HERDR_PANE_ID",
    "HERDR_PANE", "SWARM_LOOP_CONFIG", "SWARM_RUN_WORDS", "SWARM_MCP_SESSION_ARGUMENT", "SWARM_ITERATION",
    RUN_ID, OUTLIVES,
})  # fmt: skip
API_KEY = "SWARM_API_KEY"
_OWN_ENDS = ("_LABEL", "_AGENT_ROLE")


def is_foreign(name: str) -> bool:
    """Return True for a variable that names the session of this process."""
    names, beginnings, kept = _of_the_runtimes()
    if name in _OWN or (name.startswith("SWARM_") and name.endswith(_OWN_ENDS)) or name in names:
        return True
    return name.startswith(beginnings) and name not in kept


@functools.cache
def _of_the_runtimes() -> tuple[frozenset[str], tuple[str, ...], frozenset[str]]:
    """Return the variables of all runtimes' sessions, their prefixes, and exceptions from these prefixes."""
    everyone = [runtimes.runtime(name) for name in runtimes.NAMES]
    listed = [name for runtime in everyone for name in runtime.session_variables]
    beginnings = tuple(name.removesuffix("*") for name in listed if name.endswith("*"))
    return frozenset(listed), beginnings, frozenset(name for runtime in everyone for name in runtime.kept_variables)


def without_session(environment: Mapping[str, str] | None = None, drop: Iterable[str] = ()) -> dict[str, str]:
    """Return `environment` (default: this process's) without foreign variables and without `drop`.

    A process that is to outlive the worker that starts it (another supervisor, a terminal server) is started with
    `independent`: all other processes of a run end with it.
    """
    unwanted = frozenset(drop)
    if environment is None:
        environment = os.environ
    return {name: value for name, value in environment.items() if not is_foreign(name) and name not in unwanted}


def independent(drop: Iterable[str] = ()) -> dict[str, str]:
    """Return the environment of a process that is to outlive the run that starts it."""
    return {**without_session(drop=drop), OUTLIVES: "1"}


def swarm_variables(query: Query) -> dict[str, str]:
    """Return the variables that name the child for its hooks and its MCP server; unknown ones are left out."""
    known = {
        "SWARM_MCP_INSTANCE_ID": query.instance_id,
        "SWARM_MCP_SCOPE": query.scope,
        "SWARM_MCP_LABEL": query.label,
        "SWARM_AGENT_ROLE": query.role,
        "SWARM_TASK_ID": query.task_id,
        RUN_ID: query.run_id,
        "SWARM_ITERATION": str(query.iteration or ""),
        "SWARM_API_URL": query.api_url,
        API_KEY: query.api_key,
    }
    return {name: value for name, value in known.items() if value}


def added(query: Query, own: Mapping[str, str]) -> dict[str, str]:
    """Return the additions to this process's environment for a child of `query`; `own` is the adapter's and wins.

    The run's id cannot be overridden: stray descendants are found by it.
    """
    return {**swarm_variables(query), **query.env, **own, RUN_ID: query.run_id}
