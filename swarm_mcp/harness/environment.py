"""The environment of a child: this process's, without what belongs to another session.

A worker that is started from inside a session would take that session for its own: its hooks would speak for the
parent, and its client would believe itself nested. Settings and credentials stay: they are the user's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from swarm_mcp.harness.leftover_processes import OUTLIVES, RUN_ID
from swarm_mcp.harness.query import HarnessQuery

# Of Claude Code 2.1.330 and Codex 0.169.0, as their hooks and shells were seen to have them, and of swarm itself.
FOREIGN = frozenset({
    "CLAUDECODE", "CLAUDE_PID", "CLAUDE_ENV_FILE", "CLAUDE_PROJECT_DIR", "CLAUDE_SESSION_ID", "CLAUDE_EFFORT",
    "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_EXECPATH", "CLAUDE_CODE_CHILD_NOTES_DIR",
    "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_RESUME_FROM_SESSION", "CLAUDE_CODE_TMUX_SESSION", "AI_AGENT",
    "CLAUDE_BG_DISPATCH_ENTRYPOINT",
    "CODEX_THREAD_ID", "CODEX_SESSION_ID", "CODEX_TURN_ID", "CODEX_TOOL_CALL_ID", "CODEX_CI", "CODEX_PLUGIN_ROOT",
    "CODEX_INTERNAL_ORIGINATOR_OVERRIDE", "CODEX_PERMISSION_PROFILE", "PLUGIN_ROOT", "PLUGIN_DATA",
    "PI_SESSION_ID", "HARNESS_SESSION", "HARNESS_STAGE", "HARNESS_SOURCES", "HARNESS_ROOT", "HARNESS_LOG",
    "SWARM_MCP_INSTANCE_ID", "SWARM_MCP_LABEL", "SWARM_AGENT_ROLE", "SWARM_TASK_ID", "SWARM_CC_LABEL",
    "SWARM_MCP_ALLOW_SPAWN", "SWARM_ALLOW_YOLO", "SWARM_PI_LABEL", "SWARM_PI_AGENT_ROLE", "SWARM_HS_LABEL",
    "SWARM_LOOP_LABEL",
    "SWARM_CODEX_LABEL", "SWARM_HERMES_LABEL", "SWARM_CC_AGENT_ROLE", "SWARM_CODEX_AGENT_ROLE",
    "HERDR_PANE_ID", "HERDR_PANE", RUN_ID, OUTLIVES,
})  # fmt: skip
FOREIGN_BEGINNINGS = (
    "CLAUDE_PLUGIN_", "CLAUDE_CODE_SESSION_", "CLAUDE_CODE_MESSAGING_", "CLAUDE_CODE_BRIDGE_", "CLAUDE_CODE_REMOTE_",
    "CODEX_SNAPSHOT_", "CODEX_SHELL_SNAPSHOT_",
)  # fmt: skip
# Credentials and settings that the beginnings above would take along.
KEPT = frozenset({"CLAUDE_CODE_SESSION_ACCESS_TOKEN", "CLAUDE_CODE_SESSION_LOG"})


def is_foreign(name: str) -> bool:
    """Return whether a variable says which session this process is part of."""
    return name in FOREIGN or (name.startswith(FOREIGN_BEGINNINGS) and name not in KEPT)


def without_session(environment: Mapping[str, str] | None = None, drop: Iterable[str] = ()) -> dict[str, str]:
    """Return `environment` (default: this process's) without foreign variables and without `drop`.

    Whatever is meant to live longer than the worker that starts it (another supervisor, a terminal server) has to be
    started with `independent`: what a run has started is ended with the run.
    """
    unwanted = frozenset(drop)
    source = os.environ if environment is None else environment
    return {name: value for name, value in source.items() if not is_foreign(name) and name not in unwanted}


def independent(drop: Iterable[str] = ()) -> dict[str, str]:
    """Return the environment for what is to live longer than the run that starts it."""
    return {**without_session(drop=drop), OUTLIVES: "1"}


def swarm_variables(query: HarnessQuery) -> dict[str, str]:
    """Return the variables that tell the child's hooks and MCP server who it is; unknown ones are left out."""
    known = {
        "SWARM_MCP_INSTANCE_ID": query.instance_id,
        "SWARM_MCP_SCOPE": query.scope,
        "SWARM_MCP_LABEL": query.label,
        "SWARM_AGENT_ROLE": query.role,
        "SWARM_TASK_ID": query.task_id,
        RUN_ID: query.run_id,
    }
    return {name: value for name, value in known.items() if value}


def added(query: HarnessQuery, own: Mapping[str, str]) -> dict[str, str]:
    """Return what a child of `query` has beside this process's environment; `own` is the adapter's and wins.

    The run's id cannot be set otherwise: it is how stray descendants are found.
    """
    return {**swarm_variables(query), **query.env, **own, RUN_ID: query.run_id}
