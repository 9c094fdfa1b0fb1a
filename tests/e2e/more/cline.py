"""Cline as the tests use it: how it is set up, started, and told to write."""

from typing import Any

from swarm_mcp.play.models import play

from ..client import Call
from . import OtherClient

PROVIDER = "openai-compatible"


class Cline(OtherClient):
    name = harness = executable = "cline"
    prefix = "CLINE"
    requests = "/chat/completions"
    settings = (".cline/data/settings/cline_mcp_settings.json", ".cline/data/settings/global-settings.json")

    skills = ("Available skills: swarm-mcp, swarm",)  # it names them alone

    plain_model = "scripted"  # gets `editor`
    patch_model = "gpt-5"  # gets `apply_patch` in its place
    model = plain_model  # of the next session

    def prepare(self) -> None:
        servers, choices = (self.ground.home / name for name in self.settings)
        servers.parent.mkdir(parents=True)
        servers.write_text('{ "mcpServers" : {} }')
        choices.write_text('{"telemetryOptOut": true, "autoUpdateEnabled": false}')
        # It goes on without a plugin that a busy machine has not loaded within 4 seconds.
        self.ground.env["CLINE_PLUGIN_IMPORT_TIMEOUT_MS"] = "60000"
        provider = ["-p", PROVIDER, "-b", f"http://127.0.0.1:{self.models.port}/v1", "-k", "dummy-key-for-loopback"]
        done = self.ground.run(["cline", "auth", *provider, "-m", self.model])
        assert done.returncode == 0, done.stderr

    def command(self, prompt: str, resume: str | None, fork: str | None, extra: tuple[str, ...]) -> list[str]:
        model, self.model = self.model, self.plain_model
        return ["cline", "--json", "-P", PROVIDER, "-m", model, *extra, prompt]

    def create(self, path: str, text: str) -> Call:
        return {"name": "editor", "input": {"path": self.absolute(path), "new_text": text}}

    def replace(self, path: str, old: str, new: str) -> Call:
        change = {"path": self.absolute(path), "old_text": old, "new_text": new}
        return {"name": "editor", "input": change}

    def patch(self, body: str) -> list[Call]:
        self.model = self.patch_model
        return [{"name": "apply_patch", "input": {"input": f"*** Begin Patch\n{body}\n*** End Patch"}}]

    def shell(self, command: str) -> Call:
        return {"name": "run_commands", "input": {"commands": [command]}}

    def server_tool(self, server: str, tool: str, arguments: dict[str, Any]) -> list[Call]:
        return [{"name": f"{server}__{tool}", "input": arguments}]

    def sub_agent(self, script: str, name: str = "errand") -> list[Call]:
        return [{"name": "spawn_agent", "input": {"systemPrompt": f"You run an {name}.", "task": play(script)}}]

    def session_in(self, stream: str) -> str:
        return ""  # not in its output
