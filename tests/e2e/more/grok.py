"""Grok Build as the tests use it: how it is set up, started, and told to write."""

import json
from typing import Any

from support.command_line import option

from ..client import Call
from ..models import play
from . import OtherClient


class Grok(OtherClient):
    name = harness = executable = "grok"
    prefix = "GROK"
    requests = "/chat/completions"
    settings = (".grok/config.toml",)

    def prepare(self) -> None:
        base = f"http://127.0.0.1:{self.models.port}/v1"
        self.ground.env.update(
            XAI_API_KEY="dummy-key-for-loopback",
            GROK_XAI_API_BASE_URL=base,
            GROK_MODELS_BASE_URL=base,
            GROK_CLI_CHAT_PROXY_BASE_URL=base,
            GROK_TELEMETRY_ENABLED="0",
        )
        folder = self.ground.home / ".grok"
        folder.mkdir()
        (folder / "config.toml").write_text(
            f"""\
# One model, on loopback.
[models]
default = "scripted"

[model.scripted]
model = "scripted"
base_url = "{base}"
env_key = "XAI_API_KEY"
api_backend = "chat_completions"
context_window = 100000
"""
        )

    def command(self, prompt: str, resume: str | None, fork: str | None, extra: tuple[str, ...]) -> list[str]:
        which = option("--resume", resume or fork)
        which += ["--fork-session"] if fork else []
        return ["grok", "-p", prompt, "--always-approve", "--output-format", "streaming-messages-json", *which, *extra]

    def typed(self, words: str) -> list[str]:
        return self.command(f"/swarm {words}", None, None, ())

    def create(self, path: str, text: str) -> Call:
        return {"name": "write", "input": {"file_path": self.absolute(path), "content": text}}

    def replace(self, path: str, old: str, new: str) -> Call:
        change = {"file_path": self.absolute(path), "old_string": old, "new_string": new}
        return {"name": "search_replace", "input": change}

    def shell(self, command: str) -> Call:
        return {"name": "run_terminal_command", "input": {"command": command, "description": "As scripted"}}

    def add_server(self, name: str, command: str, arguments: list[str]) -> None:
        with open(self.ground.home / ".grok" / "config.toml", "a") as file:
            file.write(f"\n[mcp_servers.{name}]\ncommand = {json.dumps(command)}\nargs = {json.dumps(arguments)}\n")

    def server_tool(self, server: str, tool: str, arguments: dict[str, Any]) -> list[Call]:
        return [{"name": "use_tool", "input": {"tool_name": f"{server}__{tool}", "tool_input": arguments}}]

    def sub_agent(self, script: str, name: str = "errand") -> list[Call]:
        task = {"description": f"one {name}", "prompt": play(script), "background": False}
        return [{"name": "spawn_subagent", "input": task}]
