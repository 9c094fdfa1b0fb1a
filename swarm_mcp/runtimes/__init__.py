"""Agent clients: putting the plugin into them by their own commands, and looking whether it holds."""

from __future__ import annotations

from swarm_mcp.errors import UsageError
from swarm_mcp.runtimes.base import Client, Finding

NAMES = ("claude-code", "codex", "pi", "hs")


def client(name: str) -> Client:
    """The client called `name`."""
    if name == "claude-code":
        from swarm_mcp.runtimes.claude_code import ClaudeCode

        return ClaudeCode()
    if name == "codex":
        from swarm_mcp.runtimes.codex import Codex

        return Codex()
    if name == "pi":
        from swarm_mcp.runtimes.pi import Pi

        return Pi()
    if name == "hs":
        from swarm_mcp.runtimes.hs import Hs

        return Hs()
    raise UsageError(f"unknown client {name!r}; choose from {', '.join(NAMES)}, all")


def chosen(names: str) -> list[Client]:
    """Clients by comma-separated names; ``all`` or nothing means every one that is installed here."""
    words = [word.strip() for word in names.split(",") if word.strip()]
    if not words or words == ["all"]:
        return [found for found in map(client, NAMES) if found.program()]
    return [client(word) for word in words]


__all__ = ["NAMES", "Client", "Finding", "chosen", "client"]
