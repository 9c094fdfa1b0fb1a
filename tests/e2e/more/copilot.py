"""GitHub Copilot CLI as the tests use it."""

import json
from typing import Any

from support.command_line import option

from ..client import Call
from ..models import ModelServer, play
from . import OtherClient

MODEL = "claude-sonnet-4.5"
PATCHING_MODEL = "gpt-5.4"  # its tool for changes is apply_patch, and its API the Responses


class Copilot(OtherClient):
    name = harness = executable = "copilot"
    prefix = "COPILOT"
    requests = "/chat/completions"
    settings = (".copilot/settings.json", ".copilot/mcp-config.json")
    fixed_model = ""  # else each call chooses the model that has its tool

    def prepare(self) -> None:
        self.ground.env.update(
            COPILOT_OFFLINE="true",
            COPILOT_AUTO_UPDATE="false",
            COPILOT_PROVIDER_BASE_URL=f"http://127.0.0.1:{self.models.port}/v1",
            COPILOT_PROVIDER_TYPE="openai",
            COPILOT_PROVIDER_API_KEY="dummy-key-for-loopback",
        )
        self._use(MODEL)
        folder = self.ground.home / ".copilot"
        folder.mkdir()
        (folder / "settings.json").write_text('// a person\'s own\n{\n    "theme": "dark", // kept\n}\n')

    def command(self, prompt: str, resume: str | None, fork: str | None, extra: tuple[str, ...]) -> list[str]:
        which = option("--resume", resume)
        return ["copilot", "--allow-all-tools", "--output-format", "json", *which, *extra, "-p", prompt]

    def create(self, path: str, text: str) -> Call:
        self._use(MODEL)
        return {"name": "create", "input": {"path": self.absolute(path), "file_text": text}}

    def replace(self, path: str, old: str, new: str) -> Call:
        self._use(MODEL)
        return {"name": "edit", "input": {"path": self.absolute(path), "old_str": old, "new_str": new}}

    def patch(self, body: str) -> list[Call]:
        self._use(PATCHING_MODEL)
        return [{"name": "apply_patch", "input": f"*** Begin Patch\n{body}\n*** End Patch"}]

    def shell(self, command: str) -> Call:
        self._use(MODEL)
        return self._function("bash", {"command": command, "description": "As scripted"})

    def sub_agent(self, script: str, name: str = "errand") -> list[Call]:
        task = {"description": f"one {name}", "prompt": play(script), "agent_type": "general-purpose"}
        return [self._function("task", {**task, "name": name, "mode": "sync"})]

    def add_server(self, name: str, command: str, arguments: list[str]) -> None:
        server = {"type": "local", "command": command, "args": arguments, "tools": ["*"]}
        (self.ground.home / ".copilot" / "mcp-config.json").write_text(json.dumps({"mcpServers": {name: server}}))

    def server_tool(self, server: str, tool: str, arguments: dict[str, Any]) -> list[Call]:
        self._use(MODEL)
        return [self._function(f"{server}-{tool}", arguments)]

    def _function(self, name: str, given: dict[str, Any]) -> Call:
        """Return a call of a tool with JSON for its input, as the API in use has it."""
        return {"name": name, "arguments" if self.requests == "/responses" else "input": given}

    def _use(self, model: str) -> None:
        """Play with this model from now on, or with the fixed one."""
        model = self.fixed_model or model
        self.requests = "/responses" if model == PATCHING_MODEL else "/chat/completions"  # type: ignore[misc]
        self.dialect = ModelServer.dialects[self.requests]
        wire = "responses" if model == PATCHING_MODEL else "completions"
        self.ground.env.update(COPILOT_MODEL=model, COPILOT_PROVIDER_WIRE_API=wire)
