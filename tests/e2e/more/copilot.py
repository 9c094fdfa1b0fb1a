"""GitHub Copilot CLI as the tests use it."""

import json
from typing import Any

from swarm_mcp.play import makers
from swarm_mcp.play.models import play

from ..client import Call
from . import OtherClient


class Copilot(makers.Copilot, OtherClient):
    harness = executable = "copilot"
    prefix = "COPILOT"
    settings = (".copilot/settings.json", ".copilot/mcp-config.json")
    fixed_model = ""  # else each call chooses the model that has its tool

    def prepare(self) -> None:
        self.point_at_model()
        self._use()
        folder = self.ground.home / ".copilot"
        folder.mkdir()
        (folder / "settings.json").write_text('// a person\'s own\n{\n    "theme": "dark", // kept\n}\n')

    def command(self, prompt: str, resume: str | None, fork: str | None, extra: tuple[str, ...]) -> list[str]:
        which = ["--resume", resume] if resume else []
        return self.started(prompt, *self.in_mode("allow-all-tools"), *which, *extra)

    def create(self, path: str, text: str) -> Call:
        self._use()
        return super().create(path, text)

    def replace(self, path: str, old: str, new: str) -> Call:
        self._use()
        return super().replace(path, old, new)

    def patch(self, body: str) -> list[Call]:
        self._use(self.patch_model)
        return super().patch(body)

    def shell(self, command: str) -> Call:
        self._use()
        return super().shell(command)

    def sub_agent(self, script: str, name: str = "errand") -> list[Call]:
        task = {"description": f"one {name}", "prompt": play(script), "agent_type": "general-purpose"}
        return [self._function("task", {**task, "name": name, "mode": "sync"})]

    def add_server(self, name: str, command: str, arguments: list[str]) -> None:
        server = {"type": "local", "command": command, "args": arguments, "tools": ["*"]}
        (self.ground.home / ".copilot" / "mcp-config.json").write_text(json.dumps({"mcpServers": {name: server}}))

    def server_tool(self, server: str, tool: str, arguments: dict[str, Any]) -> list[Call]:
        self._use()
        return super().server_tool(server, tool, arguments)

    def _use(self, model: str = makers.Copilot.plain_model) -> None:
        """Play with this model from now on, or with the fixed one."""
        self.choose(self.fixed_model or model)
