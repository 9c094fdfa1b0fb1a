"""Hermes as the tests use it: how it is set up, started, and told to write."""

import json
import re
from typing import Any

from swarm_mcp.play.models import play

from ..client import Call
from . import OtherClient

_ADDED = re.compile(r"^\*\*\* Add File: .+(?:\n\+.*)*", re.MULTILINE)
_MOVE = re.compile(r"^\*\*\* Update File: (.+)\n\*\*\* Move to: (.+)\n(?:(?!\*\*\*).*\n?)*", re.MULTILINE)


class Hermes(OtherClient):
    name = executable = harness = "hermes"
    prefix = "HERMES"
    requests = "/chat/completions"
    settings = (".hermes/config.yaml",)

    def prepare(self) -> None:
        folder = self.ground.home / ".hermes"
        folder.mkdir()
        (folder / "config.yaml").write_text(
            f"""\
# A person's own settings, with what they thought about them.
model:
  default: scripted  # one that does as it is told
  provider: custom
  base_url: "http://127.0.0.1:{self.models.port}/v1"
  api_key: dummy-key-for-loopback
  context_length: 100000

approvals: {{mode: "off"}}
compression:
    enabled: false   # the scripts are short
memory: {{memory_enabled: false, user_profile_enabled: false}}

plugins:
  # none of mine yet
  enabled: []
mcp_servers: {{}}
"""
        )
        self.ground.env["OPENAI_API_KEY"] = "dummy-key-for-loopback"

    def command(self, prompt: str, resume: str | None, fork: str | None, extra: tuple[str, ...]) -> list[str]:
        return ["hermes", *extra, "-z", prompt]

    def create(self, path: str, text: str) -> Call:
        return {"name": "write_file", "input": {"path": path, "content": text}}

    def replace(self, path: str, old: str, new: str) -> Call:
        return {"name": "patch", "input": {"mode": "replace", "path": path, "old_string": old, "new_string": new}}

    def patch(self, body: str) -> list[Call]:
        """In Hermes a move is a line of its own, and a file that is added ends where its last line does."""
        body = _ADDED.sub(r"\g<0>\n+", _MOVE.sub(r"*** Move File: \1 -> \2\n", body))
        return [{"name": "patch", "input": {"mode": "patch", "patch": f"*** Begin Patch\n{body}\n*** End Patch\n"}}]

    def shell(self, command: str) -> Call:
        return {"name": "terminal", "input": {"command": command}}

    def sub_agent(self, script: str, name: str = "errand") -> list[Call]:
        return [{"name": "delegate_task", "input": {"goal": play(script), "context": name}}]

    def add_server(self, name: str, command: str, arguments: list[str]) -> None:
        path = self.ground.home / ".hermes" / "config.yaml"
        entry = json.dumps({"command": command, "args": arguments})
        text = path.read_text().replace("mcp_servers: {}", "mcp_servers:")
        path.write_text(re.sub(r"(?m)^mcp_servers:.*\n", rf"\g<0>  {name}: {entry}\n", text, count=1))

    def server_tool(self, server: str, tool: str, arguments: dict[str, Any]) -> list[Call]:
        """Return the call of a server's tool. With far more such tools than ours Hermes has them called through one."""
        return [{"name": f"mcp__{server.replace('-', '_')}__{tool}", "input": arguments}]

    def session_in(self, stream: str) -> str:
        return ""  # not in its output
