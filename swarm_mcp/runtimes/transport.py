"""How a plugin's PreToolUse hook asks: a command of its own, or a tool of the session's MCP server.

A tool starts no interpreter, but it is there only while the server is. A client whose server is
missing or dead lets the write pass without a word, so a stand-in is wired beside it: a shell that looks
whether the session's server lives, which costs a millisecond or two, and starts the command if not.
"""

from __future__ import annotations

from swarm_mcp.errors import UsageError

COMMAND, MCP_TOOL = "command", "mcp_tool"
TRANSPORTS = (COMMAND, MCP_TOOL)
SECONDS = 5
STAND_IN = "integrations/stand-in.sh"  # arguments: scratch folder, session id (empty: in the payload), the command
_EVENT = "PreToolUse"

# As each client calls the plugin's server in a hook; where its hooks find the session's id without reading their
# input; the runtime's scratch folder. A variable that a payload lacks makes Codex drop the whole hook.
_SERVERS = {"claude-code": "plugin:swarm:swarm", "codex": "swarm"}
_SESSIONS = {"claude-code": '"$CLAUDE_CODE_SESSION_ID"', "codex": '""'}
_SCRATCH = {"claude-code": "swarm-cc", "codex": "swarm-codex"}
CLIENTS = tuple(_SERVERS)
_ASKED = ("session_id", "cwd", "tool_name", "tool_input")
_AGENT = {"claude-code": ("agent_id",), "codex": ()}  # there empty in a session's main thread, here absent


def known(name: str) -> str:
    """`name`, where it is a transport. Raises UsageError."""
    if name not in TRANSPORTS:
        raise UsageError(f"--transport wants one of {', '.join(TRANSPORTS)}, not {name!r}")
    return name


def wired(tree: dict, client: str) -> dict:
    """The hooks file `tree` of `client` with its check asked of the server, and the command standing in."""
    groups = []
    for group in tree["hooks"][_EVENT]:
        hooks = [entry for hook in group["hooks"] for entry in (_tool(client), _stand_in(hook, client))]
        groups.append({**group, "hooks": hooks})
    return {**tree, "hooks": {**tree["hooks"], _EVENT: groups}}


def serving(tree: dict) -> dict:
    """The server file `tree` with a server that answers hooks."""
    servers = {
        name: {**server, "args": [*server["args"], "--transport", MCP_TOOL]}
        for name, server in tree["mcpServers"].items()
    }
    return {**tree, "mcpServers": servers}


def _tool(client: str) -> dict:
    asked = {"runtime": client, **{name: f"${{{name}}}" for name in (*_ASKED, *_AGENT[client])}}
    return {
        "type": "mcp_tool", "server": _SERVERS[client], "tool": "check_write", "input": asked, "timeout": SECONDS,
    }  # fmt: skip


def _stand_in(hook: dict, client: str) -> dict:
    script = f'/bin/sh "${{CLAUDE_PLUGIN_ROOT}}/{STAND_IN}" {_SCRATCH[client]} {_SESSIONS[client]}'
    return {**hook, "command": f"{script} {hook['command']}"}
