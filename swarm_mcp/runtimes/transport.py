"""The way in which a plugin's PreToolUse hook asks: a command of its own, or a tool of the session's MCP server.

A tool starts no interpreter, but needs the server. If a server is missing or dead, its client lets the write pass
without a word. So a stand-in is wired beside it: a shell that checks in a millisecond or two that the session's server
lives, and starts the command if not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swarm_mcp.errors import UsageError

if TYPE_CHECKING:
    from swarm_mcp.runtimes.base import Runtime

COMMAND, MCP_TOOL = "command", "mcp_tool"
TRANSPORTS = (COMMAND, MCP_TOOL)
SECONDS = 5
STAND_IN = "integrations/stand-in.sh"  # arguments: scratch folder, session id (empty: in the payload), the command
_EVENT = "PreToolUse"
CHECK_TOOL = "check_write"  # of the server; it answers like a hook
_ASKED = ("session_id", "cwd", "tool_name", "tool_input", "tool_use_id")


def known(name: str) -> str:
    """`name`, where it is a transport. Raises UsageError."""
    if name not in TRANSPORTS:
        raise UsageError(f"--transport wants one of {', '.join(TRANSPORTS)}, not {name!r}")
    return name


def wired(tree: dict[str, Any], runtime: Runtime, scratch: str) -> dict[str, Any]:
    """The hooks file `tree` of `runtime` with its check asked of the server, and the command standing in.

    `scratch`: the runtime's folder in the state folder. Raises UsageError where the client cannot ask a server.
    """
    asking = runtime.check_tool
    if asking is None:
        raise UsageError(f"{runtime.title} has no transport {MCP_TOOL}")
    asked = {"runtime": runtime.name, **{name: f"${{{name}}}" for name in (*_ASKED, *asking.fields)}}
    tool = {"type": "mcp_tool", "server": asking.server, "tool": CHECK_TOOL, "input": asked, "timeout": SECONDS}
    script = f'"${{CLAUDE_PLUGIN_ROOT}}/{STAND_IN}"'
    standing_in = f" && [ -r {script} ] && exec /bin/sh {script} {scratch} {asking.session_id} "
    groups = []
    for group in tree["hooks"][_EVENT]:
        beside = [{**hook, "command": hook["command"].replace(" && exec ", standing_in, 1)} for hook in group["hooks"]]
        groups.append({**group, "hooks": [entry for hook in beside for entry in (tool, hook)]})
    return {**tree, "hooks": {**tree["hooks"], _EVENT: groups}}


def serving(tree: dict[str, Any]) -> dict[str, Any]:
    """The server file `tree` with a server that answers hooks."""
    servers = {
        name: {**server, "args": [*server["args"], "--transport", MCP_TOOL]}
        for name, server in tree["mcpServers"].items()
    }
    return {**tree, "mcpServers": servers}
