"""Grok Build as the tests use it: how it is set up, started, and told to write."""

from support.command_line import option

from swarm_mcp.play import makers
from swarm_mcp.play.models import play

from ..client import Call
from . import OtherClient


class Grok(makers.Grok, OtherClient):
    harness = executable = "grok"
    prefix = "GROK"
    model = "scripted"
    settings = (".grok/config.toml",)

    def prepare(self) -> None:
        self.point_at_model()
        folder = self.ground.home / ".grok"
        folder.mkdir()
        (folder / "config.toml").write_text(
            f'# One model, on loopback.\n[models]\ndefault = "scripted"\n{self.table()}'
        )

    def command(self, prompt: str, resume: str | None, fork: str | None, extra: tuple[str, ...]) -> list[str]:
        which = option("--resume", resume or fork)
        which += ["--fork-session"] if fork else []
        return self.started(prompt, "--always-approve", *which, *extra)

    def typed(self, words: str) -> list[str]:
        return self.command(f"/swarm {words}", None, None, ())

    def add_server(self, name: str, command: str, arguments: list[str]) -> None:
        with open(self.ground.home / ".grok" / "config.toml", "a") as file:
            file.write(makers.toml(f"mcp_servers.{name}", {"command": command, "args": arguments}))

    def sub_agent(self, script: str, name: str = "errand") -> list[Call]:
        task = {"description": f"one {name}", "prompt": play(script), "background": False}
        return [{"name": "spawn_subagent", "input": task}]
