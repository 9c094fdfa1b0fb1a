"""Kimi Code as the tests use it: how it is set up, started, and told to write."""

from typing import Any

from support.command_line import option

from swarm_mcp.play.models import play

from ..client import Call
from . import OtherClient


class Kimi(OtherClient):
    name = harness = executable = "kimi"
    prefix = "KIMI"
    requests = "/chat/completions"
    settings = (".kimi-code/mcp.json", ".kimi-code/plugins/installed.json")

    def prepare(self) -> None:
        self.ground.env.update(
            KIMI_MODEL_NAME="scripted",
            KIMI_MODEL_API_KEY="dummy-key-for-loopback",
            KIMI_MODEL_BASE_URL=f"http://127.0.0.1:{self.models.port}/v1",
            KIMI_MODEL_PROVIDER_TYPE="openai",
            KIMI_CODE_NO_AUTO_UPDATE="1",
        )
        folder = self.ground.home / ".kimi-code"
        folder.mkdir()
        (folder / "mcp.json").write_text('{"mcpServers": {}}\n')

    def command(self, prompt: str, resume: str | None, fork: str | None, extra: tuple[str, ...]) -> list[str]:
        which = option("--session", resume)
        return ["kimi", *which, *extra, "-p", prompt, "--output-format", "stream-json"]

    def create(self, path: str, text: str) -> Call:
        return {"name": "Write", "input": {"path": self.absolute(path), "content": text}}

    def replace(self, path: str, old: str, new: str) -> Call:
        return {"name": "Edit", "input": {"path": self.absolute(path), "old_string": old, "new_string": new}}

    def shell(self, command: str) -> Call:
        return {"name": "Bash", "input": {"command": command}}

    def sub_agent(self, script: str, name: str = "errand") -> list[Call]:
        return [{"name": "Agent", "input": {"prompt": play(script), "description": f"one {name}"}}]

    def server_tool(self, server: str, tool: str, arguments: dict[str, Any]) -> list[Call]:
        """Return the call of a server's tool. Ours is that of a plugin, which its names tell."""
        named = "plugin-swarm_swarm" if server == "swarm" else server
        return [{"name": f"mcp__{named}__{tool}", "input": arguments}]
