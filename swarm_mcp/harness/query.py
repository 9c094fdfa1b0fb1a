"""What a run is asked to do, in words that every harness understands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from swarm_mcp.errors import Refused

READ_ONLY, EDIT, YOLO = "read-only", "edit", "yolo"
MODES = (READ_ONLY, EDIT, YOLO)
EFFORTS = ("", "low", "medium", "high", "max")
GRACE_SECONDS = 15.0


class McpServer(NamedTuple):
    """An MCP server that the child is to have: a command, or an address.

    command, args, env, cwd   of a server that speaks on its standard streams
    url, headers              of one behind HTTP
    Values of `env` and `headers` are secrets: they reach the child by its environment, never in argv.
    """

    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = {}


class HarnessQuery(NamedTuple):
    """One run. Empty values count as not given.

    prompt             what the agent is told; it goes to the child's standard input wherever that can take it
    cwd                absolute folder that it works in
    mode               ``read-only``: may write no file; ``edit`` (default): files of its folder; ``yolo``: whatever
                       the harness's own checks would forbid. Locks hold in all three
    model, effort      as the harness names them; a short name is expanded by the adapter
    system_prompt      instead of the harness's own, where it can; `append_system_prompt`: behind it
    resume_session_id  continue that session; with `fork_session` in a copy
    output_schema      JSON schema that the answer is to follow
    mcp_servers        name -> server, beside those of the user; `client_tools`: Python functions to be served
    skills             absolute folders, each with a SKILL.md, to be found without a file in `cwd`
    additional_args    appended to argv as they stand; `env`: added to the child's environment
    command            argv of the harness ``process``; of others, words that start it instead of its own name
    timeout_seconds    0 for none; `grace_seconds` from TERM to KILL; `max_cost_usd`, `max_turns`: 0 for none
    instance_id, scope, label, role, task_id, requester_id, run_id   who the child is in the swarm
    """

    prompt: str
    cwd: str
    mode: str = EDIT
    model: str = ""
    effort: str = ""
    system_prompt: str = ""
    append_system_prompt: str = ""
    additional_directories: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    resume_session_id: str = ""
    fork_session: bool = False
    output_schema: dict | None = None
    mcp_servers: Mapping[str, McpServer] = {}
    client_tools: tuple[Callable, ...] = ()
    skills: tuple[str, ...] = ()
    additional_args: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    timeout_seconds: float = 0.0
    grace_seconds: float = GRACE_SECONDS
    max_cost_usd: float = 0.0
    max_turns: int = 0
    instance_id: str = ""
    scope: str = ""
    label: str = ""
    role: str = ""
    task_id: str = ""
    requester_id: str = ""
    run_id: str = ""


def checked(query: HarnessQuery) -> HarnessQuery:
    """Return the query. Raises Refused for one that makes no sense."""
    import os

    if not query.prompt.strip() and not query.command:
        raise Refused("a run needs a prompt")
    if query.mode not in MODES:
        raise Refused(f"unknown mode {query.mode[:40]!r}; choose from {', '.join(MODES)}")
    if query.effort not in EFFORTS:
        raise Refused(f"unknown effort {query.effort[:40]!r}; choose from {', '.join(EFFORTS[1:])}")
    if not os.path.isdir(query.cwd):
        raise Refused(f"a worker cannot be started in {query.cwd}: there is no such folder")
    if query.timeout_seconds < 0 or query.grace_seconds < 0:
        raise Refused("a timeout cannot be negative")
    if query.max_cost_usd < 0 or query.max_turns < 0:
        raise Refused("a limit cannot be negative")
    return query
