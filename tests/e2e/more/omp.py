"""oh-my-pi as the tests use it: a fork of pi that runs in Bun."""

import json
from typing import Any

from support.command_line import option

from swarm_mcp.play.models import play

from ..client import Call
from . import OtherClient


class Omp(OtherClient):
    name = executable = harness = "omp"
    prefix = "OMP"
    requests = "/chat/completions"
    settings = (".omp/agent/mcp.json",)

    def prepare(self) -> None:
        model = {"id": "scripted", "name": "scripted", "contextWindow": 100_000, "maxTokens": 8_000}
        provider = {
            "baseUrl": f"http://127.0.0.1:{self.models.port}/v1",
            "api": "openai-completions",
            "apiKey": "dummy-key-for-loopback",
            "models": [model],
        }
        folder = self.ground.home / ".omp" / "agent"
        folder.mkdir(parents=True)
        (folder / "models.yml").write_text(json.dumps({"providers": {"loopback": provider}}))  # which is YAML, too
        (folder / "mcp.json").write_text('{\n  "mcpServers": {}\n}\n')

    def command(self, prompt: str, resume: str | None, fork: str | None, extra: tuple[str, ...]) -> list[str]:
        which = option("--resume", resume)
        return ["omp", "-p", "--mode", "json", "--model", "loopback/scripted", "--auto-approve", *which, *extra, prompt]

    def create(self, path: str, text: str) -> Call:
        return {"name": "write", "input": {"path": self.absolute(path), "content": text}}

    def replace(self, path: str, old: str, new: str) -> Call:
        self._edit_by("replace")
        return {"name": "edit", "input": {"path": self.absolute(path), "old_string": old, "new_string": new}}

    def patch(self, body: str) -> list[Call]:
        self._edit_by("apply_patch")
        return [{"name": "edit", "input": {"input": f"*** Begin Patch\n{body}\n*** End Patch"}}]

    def shell(self, command: str) -> Call:
        return {"name": "bash", "input": {"command": command}}

    def server_tool(self, server: str, tool: str, arguments: dict[str, Any]) -> list[Call]:
        # Tools of servers are devices that its `write` calls; the plugin itself adds those of its own.
        name = f"mcp__{server}__{tool}" if server == "swarm" else f"mcp__{server}_{tool}"
        return [{"name": "write", "input": {"path": f"xd://{name}", "content": json.dumps(arguments)}}]

    def sub_agent(self, script: str, name: str = "errand") -> list[Call]:
        task = {"context": "As scripted", "tasks": [{"task": play(script), "name": name}]}
        return [{"name": "task", "input": task}, {"name": "hub", "input": {"op": "wait"}}]

    def _edit_by(self, mode: str) -> None:
        """Have its `edit` take input of this form from the next session on; by default the model decides."""
        (self.ground.home / ".omp" / "agent" / "config.yml").write_text(f"edit:\n  mode: {mode}\n")
