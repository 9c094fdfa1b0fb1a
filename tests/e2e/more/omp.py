"""oh-my-pi as the tests use it."""

from support.command_line import option

from swarm_mcp.play import open_clients
from swarm_mcp.play.models import play

from ..client import Call
from . import OtherClient


class Omp(open_clients.Omp, OtherClient):
    harness = executable = "omp"
    prefix = "OMP"
    settings = (".omp/agent/mcp.json",)

    def prepare(self) -> None:
        self.point_at_model()
        (self.ground.home / ".omp" / "agent" / "mcp.json").write_text('{\n  "mcpServers": {}\n}\n')

    def command(self, prompt: str, resume: str | None, fork: str | None, extra: tuple[str, ...]) -> list[str]:
        return self.started(prompt, "--auto-approve", *option("--resume", resume), *extra)

    def replace(self, path: str, old: str, new: str) -> Call:
        self.edit_by("replace")
        return super().replace(path, old, new)

    def patch(self, body: str) -> list[Call]:
        self.edit_by("apply_patch")
        return super().patch(body)

    def sub_agent(self, script: str, name: str = "errand") -> list[Call]:
        task = {"context": "As scripted", "tasks": [{"task": play(script), "name": name}]}
        return [{"name": "task", "input": task}, {"name": "hub", "input": {"op": "wait"}}]
