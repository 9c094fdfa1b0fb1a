"""Qwen Code as the tests use it."""

import json
from typing import Any

from support.command_line import option

from ..client import Call
from ..models import play
from . import OtherClient


class Qwen(OtherClient):
    name = executable = harness = "qwen"
    prefix = "QWEN"
    requests = "/chat/completions"
    settings = (".qwen/settings.json", ".qwen/QWEN.md")

    def prepare(self) -> None:
        self.ground.env.update(
            OPENAI_API_KEY="dummy-key-for-loopback",
            OPENAI_BASE_URL=f"http://127.0.0.1:{self.models.port}/v1",
            OPENAI_MODEL="scripted",
            QWEN_CODE_SUPPRESS_YOLO_WARNING="1",
        )
        settings = {
            "security": {"auth": {"selectedType": "openai"}},
            "general": {"enableAutoUpdate": False},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
        }
        folder = self.ground.home / ".qwen"
        folder.mkdir()
        (folder / "settings.json").write_text(f"// a person's own\n{json.dumps(settings, indent=2)}\n")

    def command(self, prompt: str, resume: str | None, fork: str | None, extra: tuple[str, ...]) -> list[str]:
        which = option("--resume", resume)
        return ["qwen", "-m", "scripted", "-y", "-o", "stream-json", *which, *extra, "-p", prompt]

    def typed(self, words: str) -> list[str]:
        return self.command(f"/swarm:swarm {words}", None, None, ())

    def create(self, path: str, text: str) -> Call:
        return {"name": "write_file", "input": {"file_path": self.absolute(path), "content": text}}

    def look(self, path: str) -> list[Call]:
        # It changes only files that this tool has read.
        return [{"name": "read_file", "input": {"file_path": self.absolute(path)}}]

    def change(self, path: str, old: str, new: str) -> list[Call]:
        return [*self.look(path), self.replace(path, old, new)]

    def replace(self, path: str, old: str, new: str) -> Call:
        return {"name": "edit", "input": {"file_path": self.absolute(path), "old_string": old, "new_string": new}}

    def shell(self, command: str) -> Call:
        return {"name": "run_shell_command", "input": {"command": command, "description": "As scripted"}}

    def sub_agent(self, script: str, name: str = "errand") -> list[Call]:
        task = {"description": f"one {name}", "prompt": play(script), "subagent_type": "general-purpose"}
        return [{"name": "agent", "input": task}]

    def server_tool(self, server: str, tool: str, arguments: dict[str, Any]) -> list[Call]:
        return [{"name": f"mcp__{server}__{tool}", "input": arguments}]

    def absolute(self, path: str) -> str:
        return str(self.ground.checkout / path)  # its tools refuse relative ones
