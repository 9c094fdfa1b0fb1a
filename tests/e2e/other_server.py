"""An MCP server of a person's own in the two main clients: one that reads and writes files."""

import json
from typing import Any

from swarm_mcp.play.clients import SERVER

from .client import Call, Client
from .clients import ClaudeCode


def calls_of(client: Client, *used: tuple[str, dict[str, Any]]) -> tuple[list[Call], tuple[str, ...]]:
    """Return the calls of these tools (name, arguments), the last calls of the list, and the options of the client."""
    if isinstance(client, ClaudeCode):
        config = client.ground.root / "files.json"
        config.write_text(json.dumps({"mcpServers": {"files": SERVER}}))
        names = ",".join(f"mcp__files__{tool}" for tool, _given in used)
        calls: list[Call] = [{"name": "ToolSearch", "input": {"query": f"select:{names}"}}]
        calls += [{"name": f"mcp__files__{tool}", "input": given} for tool, given in used]
        return calls, ("--mcp-config", str(config), "--allowedTools", "mcp__files")
    calls = [client.shell("sleep 2")]  # Codex does not wait for servers
    calls += [call for tool, given in used for call in client.server_tool("files", tool, given)]
    settings = {f"mcp_servers.files.{name}": value for name, value in SERVER.items()}
    settings["mcp_servers.files.default_tools_approval_mode"] = "approve"
    return calls, tuple(word for name, value in settings.items() for word in ("-c", f"{name}={json.dumps(value)}"))
