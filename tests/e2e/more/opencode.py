"""OpenCode as the tests use it: how it is set up, started, and told to write."""

import json

from swarm_mcp.play import open_clients
from swarm_mcp.play.models import play

from ..client import Call
from . import OtherClient


class OpenCode(open_clients.OpenCode, OtherClient):
    harness = executable = "opencode"
    ready = r"Ask anything"
    compacted = r"[Cc]ompact"
    leave = "/exit"
    settings = (".config/opencode/opencode.json",)

    model = open_clients.OpenCode.plain_model  # of the next session

    def prepare(self) -> None:
        folder = self.ground.home / ".config" / self.name
        folder.mkdir(parents=True)
        (folder / f"{self.name}.json").write_text(
            json.dumps({**self.settings_on_loopback(), "permission": "allow"}, indent=2)
        )
        self.point_at_model()

    def command(self, prompt: str, resume: str | None, fork: str | None, extra: tuple[str, ...]) -> list[str]:
        which = ["--session", str(resume or fork)] if resume or fork else []
        which += ["--fork"] if fork else []
        argv = self.started(prompt, *which, *extra)
        self.model = self.plain_model
        return argv

    def interactive_command(self) -> list[str]:
        return [self.executable, "-m", f"loopback/{self.model}"]

    def typed(self, words: str) -> list[str]:
        return self.command(words, None, None, ("--command", "swarm"))

    def patch(self, body: str) -> list[Call]:
        self.model = self.patch_model
        return super().patch(body)

    def add_server(self, name: str, command: str, arguments: list[str]) -> None:
        self.add_entry("mcp", name, {"type": "local", "command": [command, *arguments]})

    def sub_agent(self, script: str, name: str = "errand") -> list[Call]:
        task = {"description": f"one {name}", "prompt": play(script), "subagent_type": "general"}
        return [{"name": "task", "input": task}]

    def session_in(self, stream: str) -> str:
        return str(json.loads(stream.splitlines()[0])["sessionID"])
