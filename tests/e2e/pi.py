"""pi as the tests use it: how it is set up, started, and told to write. Not among CLIENTS: see test_harness_pi."""

import json
import os
from pathlib import Path
from typing import Any

from swarm_mcp.play import open_clients

from .client import Call, Client
from .ground import Lacking

MODEL = open_clients.Pi.model
UNPRICED = "loopback/unpriced"


def alone(folder: Path) -> Path:
    """`folder` with the executable `pi` in it and no other client."""
    program = Path(os.environ.get("SWARM_E2E_CLIENTS") or ".").absolute() / ".bin" / "pi"
    if not program.exists():
        raise Lacking("pi is not in SWARM_E2E_CLIENTS: npm install @earendil-works/pi-coding-agent@0.74.2 there")
    (folder / "pi").symlink_to(program)
    return folder


class Pi(open_clients.Pi, Client):
    harness = "pi"
    prefix = "PI"
    ready = r"scripted"
    compacted = r"Compacted from"
    leave = "/quit"
    scripting = ("-t", "+codemode")  # has releases since 0.99 offer a tool for scripts that call the others

    def prepare(self) -> None:
        self.point_at_model()

    def command(self, prompt: str, resume: str | None, fork: str | None, extra: tuple[str, ...]) -> list[str]:
        which = ["--session", resume] if resume else ["--fork", fork] if fork else []
        return self.started(prompt, *which, *extra)

    def interactive_command(self) -> list[str]:
        return ["pi", "--model", MODEL]

    def enough_to_compact(self) -> list[Call]:
        # It keeps some 20,000 tokens, and refuses where nothing is older.
        return [self.shell('yes "$(printf %99s x)" | head -450')] * 3

    def swarm_tools(self, *calls: tuple[str, dict[str, Any]]) -> list[Call]:
        return [{"name": f"mcp__swarm__{tool}", "input": given} for tool, given in calls]

    def script(self, code: str) -> Call:
        """Return the call of a script: JavaScript, with the other tools in `tools`."""
        return {"name": "codemode", "input": {"code": code}}

    def in_script(self, call: Call) -> str:
        """Return the expression that makes a call in a script."""
        return f"tools.{call['name']}({json.dumps(call['input'])})"

    def add_server(self, name: str, command: str, arguments: list[str]) -> None:
        """Have releases since 0.99 start an MCP server of a person's own, and declare its tools to the model."""
        server = {"command": command, "args": arguments, "exposure": "direct"}
        (self.ground.home / ".pi" / "agent" / "mcp.json").write_text(json.dumps({"mcpServers": {name: server}}))
