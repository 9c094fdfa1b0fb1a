"""Codex's app-server (``codex app-server``): the supported way to list and trust hooks without a terminal."""

from __future__ import annotations

from swarm_mcp.errors import ClientFailed
from swarm_mcp.runtimes.rpc_child import ANSWER_SECONDS, RpcChild


class AppServer(RpcChild):
    """One running app-server, ended on exit of the ``with`` block."""

    def __init__(
        self,
        program: str,
        *words: str,
        env: dict[str, str] | None = None,
        cwd: str | None = None,
        seconds: float = ANSWER_SECONDS,
    ):
        """`words` follow the command's name."""
        super().__init__("codex app-server", [program, "app-server", *words], env, cwd, seconds)

    def __enter__(self) -> AppServer:
        about = {"clientInfo": {"name": "swarm-mcp", "version": "0"}, "capabilities": {"experimentalApi": True}}
        try:
            self.call("initialize", about)
            self.tell("initialized", {})
        except ClientFailed:
            self.__exit__()
            raise
        return self

    def hooks(self, plugin_id: str) -> tuple[list[dict], list[str]]:
        """Return the hooks of one plugin, and what the client has to say against any."""
        data = self.call("hooks/list", {}).get("data", [])
        hooks = {hook["key"]: hook for entry in data for hook in entry.get("hooks", [])}
        complaints = [str(text) for entry in data for text in [*entry.get("warnings", []), *entry.get("errors", [])]]
        return [hook for hook in hooks.values() if hook.get("pluginId") == plugin_id], complaints

    def trusted(self) -> list[str]:
        """Return the keys of all hooks that the user's configuration has a word on, there or not."""
        config = self.call("config/read", {}).get("config") or {}
        return list((config.get("hooks") or {}).get("state") or {})

    def edit(self, *edits: tuple[str, object, str]) -> None:
        """Change the user's configuration: ``(key path, value, upsert or replace)`` each."""
        changes = [{"keyPath": path, "value": value, "mergeStrategy": how} for path, value, how in edits]
        self.call("config/batchWrite", {"edits": changes, "reloadUserConfig": True})
