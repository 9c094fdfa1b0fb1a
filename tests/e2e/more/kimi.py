"""Kimi Code as the tests use it."""

from support.command_line import option

from swarm_mcp.play import makers
from swarm_mcp.play.models import play

from ..client import Call
from . import OtherClient


class Kimi(makers.Kimi, OtherClient):
    harness = executable = "kimi"
    prefix = "KIMI"
    settings = (".kimi-code/mcp.json", ".kimi-code/plugins/installed.json")

    def prepare(self) -> None:
        self.point_at_model()
        folder = self.ground.home / ".kimi-code"
        folder.mkdir()
        (folder / "mcp.json").write_text('{"mcpServers": {}}\n')

    def command(self, prompt: str, resume: str | None, fork: str | None, extra: tuple[str, ...]) -> list[str]:
        return self.started(prompt, *option("--session", resume), *extra)

    def sub_agent(self, script: str, name: str = "errand") -> list[Call]:
        return [{"name": "Agent", "input": {"prompt": play(script), "description": f"one {name}"}}]
