"""Gemini CLI as the tests use it."""

import json
from typing import Any

from support.command_line import option

from ..client import Call
from ..models import play
from . import OtherClient

MODEL = "gemini-2.5-pro"


class Gemini(OtherClient):
    name = executable = harness = "gemini"
    prefix = "GEMINI"
    model = MODEL
    requests = ":streamGenerateContent"
    settings = (".gemini/settings.json", ".gemini/extensions/extension-enablement.json", ".gemini/trustedFolders.json")

    def prepare(self) -> None:
        self.ground.env.update(
            GEMINI_API_KEY="dummy-key-for-loopback", GOOGLE_GEMINI_BASE_URL=f"http://127.0.0.1:{self.models.port}"
        )
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
            "privacy": {"usageStatisticsEnabled": False},
        }
        folder = self.ground.home / ".gemini"
        folder.mkdir()
        (folder / "settings.json").write_text(f"// a person's own\n{json.dumps(settings, indent=2)}\n")

    def command(self, prompt: str, resume: str | None, fork: str | None, extra: tuple[str, ...]) -> list[str]:
        which = option("--resume", resume)
        said = ["-m", self.model, "-o", "stream-json", "-p", prompt]
        return ["gemini", "--yolo", "--skip-trust", *which, *extra, *said]

    def typed(self, words: str) -> list[str]:
        return self.command(f"/swarm {words}", None, None, ())

    def create(self, path: str, text: str) -> Call:
        return {"name": "write_file", "input": {"file_path": path, "content": text}}

    def replace(self, path: str, old: str, new: str) -> Call:
        change = {"file_path": path, "old_string": old, "new_string": new, "instruction": "As scripted"}
        return {"name": "replace", "input": change}

    def shell(self, command: str) -> Call:
        return {"name": "run_shell_command", "input": {"command": command, "description": "As scripted"}}

    def sub_agent(self, script: str, name: str = "errand") -> list[Call]:
        return [{"name": "invoke_agent", "input": {"agent_name": "generalist", "prompt": play(script)}}]

    def server_tool(self, server: str, tool: str, arguments: dict[str, Any]) -> list[Call]:
        return [{"name": f"mcp_{server}_{tool}", "input": arguments}]
