"""Cline as the tests use it."""

from swarm_mcp.play import open_clients
from swarm_mcp.play.models import play

from ..client import Call
from . import OtherClient


class Cline(open_clients.Cline, OtherClient):
    harness = executable = "cline"
    prefix = "CLINE"
    settings = (".cline/data/settings/cline_mcp_settings.json", ".cline/data/settings/global-settings.json")

    skills = ("Available skills: swarm-mcp, swarm",)  # it names them alone

    model = open_clients.Cline.plain_model  # of the next session

    def prepare(self) -> None:
        servers, choices = (self.ground.home / name for name in self.settings)
        servers.parent.mkdir(parents=True)
        servers.write_text('{ "mcpServers" : {} }')
        choices.write_text('{"telemetryOptOut": true, "autoUpdateEnabled": false}')
        self.point_at_model()
        done = self.ground.run(self.login())
        assert done.returncode == 0, done.stderr

    def command(self, prompt: str, resume: str | None, fork: str | None, extra: tuple[str, ...]) -> list[str]:
        argv = self.started(prompt, *extra)
        self.model = self.plain_model
        return argv

    def patch(self, body: str) -> list[Call]:
        self.model = self.patch_model
        return super().patch(body)

    def sub_agent(self, script: str, name: str = "errand") -> list[Call]:
        return [{"name": "spawn_agent", "input": {"systemPrompt": f"You run an {name}.", "task": play(script)}}]

    def session_in(self, stream: str) -> str:
        return ""  # not in its output
