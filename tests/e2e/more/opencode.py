"""OpenCode as the tests use it: how it is set up, started, and told to write."""

import json
from typing import Any

from support.command_line import option

from ..client import Call
from ..models import play
from . import OtherClient


class OpenCode(OtherClient):
    name = harness = executable = "opencode"
    plugin = "@opencode-ai/plugin"  # it fetches this from npm into a home without it, for a minute
    prefix = "OPENCODE"
    requests = "/chat/completions"
    ready = r"Ask anything"
    compacted = r"[Cc]ompact"
    leave = "/exit"
    settings = (".config/opencode/opencode.json",)

    plain_model = "scripted"  # gets `write` and `edit`
    patch_model = "gpt-5-scripted"  # gets `apply_patch` in their place
    model = plain_model  # of the next session

    def prepare(self) -> None:
        models = {
            name: {"limit": {"context": 100_000, "output": 8_000}} for name in (self.plain_model, self.patch_model)
        }
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"http://127.0.0.1:{self.models.port}", "apiKey": "dummy-key-for-loopback"},
            "models": models,
        }
        settings = {
            "$schema": "https://opencode.ai/config.json",
            "autoupdate": False,
            "share": "disabled",
            "model": f"loopback/{self.model}",
            "small_model": f"loopback/{self.model}",
            "provider": {"loopback": provider},
            "permission": "allow",
        }
        folder = self.ground.home / ".config" / self.name
        (folder / "node_modules").mkdir(parents=True)
        (folder / f"{self.name}.json").write_text(json.dumps(settings, indent=2))
        wanted = {"dependencies": {self.plugin: "*"}}
        (folder / "package.json").write_text(json.dumps(wanted))
        (folder / "package-lock.json").write_text(json.dumps({"packages": {"": wanted}}))
        for what in ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD"):
            self.ground.env[f"{self.prefix}_DISABLE_{what}"] = "1"

    def command(self, prompt: str, resume: str | None, fork: str | None, extra: tuple[str, ...]) -> list[str]:
        model, self.model = self.model, self.plain_model
        which = option("--session", resume or fork)
        which += ["--fork"] if fork else []
        return [self.executable, "run", "--format", "json", "-m", f"loopback/{model}", *which, *extra, prompt]

    def interactive_command(self) -> list[str]:
        return [self.executable, "-m", f"loopback/{self.model}"]

    def typed(self, words: str) -> list[str]:
        return self.command(words, None, None, ("--command", "swarm"))

    def create(self, path: str, text: str) -> Call:
        return {"name": "write", "input": {"filePath": self.absolute(path), "content": text}}

    def replace(self, path: str, old: str, new: str) -> Call:
        change = {"filePath": self.absolute(path), "oldString": old, "newString": new}
        return {"name": "edit", "input": change}

    def patch(self, body: str) -> list[Call]:
        self.model = self.patch_model
        return [{"name": "apply_patch", "input": {"patchText": f"*** Begin Patch\n{body}\n*** End Patch"}}]

    def shell(self, command: str) -> Call:
        return {"name": "bash", "input": {"command": command, "description": "As scripted"}}

    def add_server(self, name: str, command: str, arguments: list[str]) -> None:
        self.add_entry("mcp", name, {"type": "local", "command": [command, *arguments]})

    def server_tool(self, server: str, tool: str, arguments: dict[str, Any]) -> list[Call]:
        return [{"name": f"{server}_{tool}", "input": arguments}]

    def sub_agent(self, script: str, name: str = "errand") -> list[Call]:
        task = {"description": f"one {name}", "prompt": play(script), "subagent_type": "general"}
        return [{"name": "task", "input": task}]

    def session_in(self, stream: str) -> str:
        return str(json.loads(stream.splitlines()[0])["sessionID"])
