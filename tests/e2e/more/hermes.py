"""Hermes as the tests use it."""

import json
import re

from swarm_mcp.play import open_clients
from swarm_mcp.play.models import play

from ..client import Call
from . import OtherClient

OWN = """\
# A person's own settings, with what they thought about them.
plugins:
  # none of mine yet
  enabled: []
mcp_servers: {}
"""


class Hermes(open_clients.Hermes, OtherClient):
    executable = harness = "hermes"
    prefix = "HERMES"
    settings = (".hermes/config.yaml",)

    def prepare(self) -> None:
        folder = self.ground.home / ".hermes"
        folder.mkdir()
        settings = [f"{name}: {json.dumps(value)}\n" for name, value in self.settings_on_loopback().items()]
        (folder / "config.yaml").write_text("".join([OWN, *settings]))
        self.point_at_model()

    def command(self, prompt: str, resume: str | None, fork: str | None, extra: tuple[str, ...]) -> list[str]:
        return self.started(prompt, *extra)

    def sub_agent(self, script: str, name: str = "errand") -> list[Call]:
        return [{"name": "delegate_task", "input": {"goal": play(script), "context": name}}]

    def add_server(self, name: str, command: str, arguments: list[str]) -> None:
        path = self.ground.home / ".hermes" / "config.yaml"
        entry = json.dumps({"command": command, "args": arguments})
        text = path.read_text().replace("mcp_servers: {}", "mcp_servers:")
        path.write_text(re.sub(r"(?m)^mcp_servers:.*\n", rf"\g<0>  {name}: {entry}\n", text, count=1))

    def session_in(self, stream: str) -> str:
        return ""  # not in its output
