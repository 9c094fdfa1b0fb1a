"""Qwen Code as the tests use it."""

import json

from swarm_mcp.play import makers
from swarm_mcp.play.models import play

from ..client import Call
from . import OtherClient


class Qwen(makers.Qwen, OtherClient):
    executable = harness = "qwen"
    prefix = "QWEN"
    settings = (".qwen/settings.json", ".qwen/QWEN.md")

    def prepare(self) -> None:
        self.point_at_model()
        folder = self.ground.home / ".qwen"
        folder.mkdir()
        (folder / "settings.json").write_text(
            f"// a person's own\n{json.dumps(self.settings_for_loopback, indent=2)}\n"
        )

    def command(self, prompt: str, resume: str | None, fork: str | None, extra: tuple[str, ...]) -> list[str]:
        which = ["--resume", resume] if resume else []
        return self.started(prompt, "-y", *which, *extra)

    def typed(self, words: str) -> list[str]:
        return self.command(f"/swarm:swarm {words}", None, None, ())

    def sub_agent(self, script: str, name: str = "errand") -> list[Call]:
        task = {"description": f"one {name}", "prompt": play(script), "subagent_type": "general-purpose"}
        return [{"name": "agent", "input": task}]
