"""pi as the tests use it: how it is set up, started, and told to write. Not among CLIENTS: see test_harness_pi."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

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
    compacted = r"[Cc]ompact"
    leave = "/quit"

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
        which = ["--session", resume] if resume else ["--fork", fork] if fork else []
        return ["pi", "-p", "--mode", "json", "--model", MODEL, *which, *extra, prompt]

    def interactive_command(self) -> list[str]:
        return ["pi", "--model", MODEL]

    def create(self, path: str, text: str) -> Call:
        return {"name": "write", "input": {"path": path, "content": text}}

    def replace(self, path: str, old: str, new: str) -> Call:
        return {"name": "edit", "input": {"path": path, "edits": [{"oldText": old, "newText": new}]}}

    def shell(self, command: str) -> Call:
        return {"name": "bash", "input": {"command": command}}

    def swarm_tools(self, *calls: tuple[str, dict[str, Any]]) -> list[Call]:
        return [{"name": f"mcp__swarm__{tool}", "input": given} for tool, given in calls]
