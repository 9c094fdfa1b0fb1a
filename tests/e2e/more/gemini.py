"""Gemini CLI as the tests use it."""

import json

from swarm_mcp.play import makers
from swarm_mcp.play.models import play

from ..client import Call
from . import OtherClient

MODEL = makers.Gemini.model


class Gemini(makers.Gemini, OtherClient):
    executable = harness = "gemini"
    prefix = "GEMINI"
    settings = (".gemini/settings.json", ".gemini/extensions/extension-enablement.json", ".gemini/trustedFolders.json")

    def prepare(self) -> None:
        self.point_at_model()
        folder = self.ground.home / ".gemini"
        folder.mkdir()
        (folder / "settings.json").write_text(
            f"// a person's own\n{json.dumps(self.settings_for_loopback, indent=2)}\n"
        )

    def command(self, prompt: str, resume: str | None, fork: str | None, extra: tuple[str, ...]) -> list[str]:
        which = ["--resume", resume] if resume else []
        return self.started(prompt, "--yolo", *which, *extra)

    def typed(self, words: str) -> list[str]:
        return self.command(f"/swarm {words}", None, None, ())

    def sub_agent(self, script: str, name: str = "errand") -> list[Call]:
        return [{"name": "invoke_agent", "input": {"agent_name": "generalist", "prompt": play(script)}}]
