"""pi as the tests use it: how it is set up, started, and told to write. Not among CLIENTS: see test_harness_pi."""

import json
import os
from pathlib import Path
from typing import Any

from support.command_line import option

from .client import Call, Client
from .ground import Lacking

MODEL = "loopback/scripted"
UNPRICED = "loopback/unpriced"


def alone(folder: Path) -> Path:
    """`folder` with the executable `pi` in it and no other client."""
    program = Path(os.environ.get("SWARM_E2E_CLIENTS") or ".").absolute() / ".bin" / "pi"
    if not program.exists():
        raise Lacking("pi is not in SWARM_E2E_CLIENTS: npm install @earendil-works/pi-coding-agent@0.74.2 there")
    (folder / "pi").symlink_to(program)
    return folder


class Pi(Client):
    name = harness = "pi"
    prefix = "PI"
    requests = "/messages"
    ready = r"scripted"
    compacted = r"Compacted from"
    leave = "/quit"
    scripting = ("-t", "+codemode")  # has releases since 0.99 offer a tool for scripts that call the others

    def prepare(self) -> None:
        cost = {"input": 10, "output": 20, "cacheRead": 1, "cacheWrite": 0}
        provider = {
            "baseUrl": f"http://127.0.0.1:{self.models.port}",
            "api": "anthropic-messages",
            "apiKey": "dummy-key-for-loopback",
            "models": [{"id": "scripted", "contextWindow": 100_000, "cost": cost}, {"id": "unpriced"}],
        }
        folder = self.ground.home / ".pi" / "agent"
        folder.mkdir(parents=True)
        (folder / "models.json").write_text(json.dumps({"providers": {"loopback": provider}}))
        self.ground.env["PI_OFFLINE"] = "1"

    def command(self, prompt: str, resume: str | None, fork: str | None, extra: tuple[str, ...]) -> list[str]:
        which = option("--session", resume) or option("--fork", fork)
        return ["pi", "-p", "--mode", "json", "--model", MODEL, *which, *extra, prompt]

    def interactive_command(self) -> list[str]:
        return ["pi", "--model", MODEL]

    def create(self, path: str, text: str) -> Call:
        return {"name": "write", "input": {"path": path, "content": text}}

    def replace(self, path: str, old: str, new: str) -> Call:
        return {"name": "edit", "input": {"path": path, "edits": [{"oldText": old, "newText": new}]}}

    def shell(self, command: str) -> Call:
        return {"name": "bash", "input": {"command": command}}

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

    def server_tool(self, server: str, tool: str, given: dict[str, Any]) -> list[Call]:
        return [{"name": f"mcp__{server}__{tool}", "input": given}]
