"""The fields of a ``Query`` as a Python caller may give them, for type checkers; ``query_types`` reads them."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypedDict

from swarm_mcp.agents.harness.permissions import PermissionRequest
from swarm_mcp.agents.harness.query import McpServer

PathLike = str | os.PathLike[str]
Word = str | os.PathLike[str] | int | float
Server = McpServer | Mapping[str, Any]


class Options(TypedDict, total=False):
    """All fields but the prompt and the folder."""

    mode: str
    model: str
    effort: str
    system_prompt: str
    append_system_prompt: str
    additional_directories: Iterable[PathLike]
    env: Mapping[str, Word]
    resume_session_id: str
    fork_session: bool
    output_schema: dict[str, Any] | type | None
    mcp_servers: Mapping[str, Server]
    client_tools: Iterable[Callable[..., Any]]
    skills: Iterable[PathLike]
    additional_args: Iterable[Word]
    command: Iterable[Word]
    timeout_seconds: float
    grace_seconds: float
    max_cost_usd: float
    max_turns: int
    instance_id: str
    scope: str
    label: str
    role: str
    task_id: str
    requester_id: str
    run_id: str
    iteration: int
    api_url: str
    api_key: str
    log_file: PathLike
    images: Iterable[PathLike]
    stream_text: bool
    on_permission: Callable[[PermissionRequest], bool | str | None | Awaitable[bool | str | None]] | None
