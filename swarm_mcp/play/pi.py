"""pi in a play, and its fork oh-my-pi."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from swarm_mcp.folders import here
from swarm_mcp.play.clients import FILES, KEY, Call
from swarm_mcp.play.others import OneShot
from swarm_mcp.play.scene import copy
from swarm_mcp.runtimes import pi


class Pi(OneShot):
    """pi. It has no permission modes, and asks nothing."""

    name = "pi"
    requests = "/messages"
    model = "loopback/scripted"
    whole, changes = "write", "edit"

    def provider(self) -> dict[str, Any]:
        """Return the provider on loopback, as pi's list of models has it."""
        cost = {"input": 10, "output": 20, "cacheRead": 1, "cacheWrite": 0}
        models = [{"id": "scripted", "contextWindow": 100_000, "cost": cost}, {"id": "unpriced"}]
        return {
            "baseUrl": f"http://127.0.0.1:{self.models.port}", "api": "anthropic-messages", "apiKey": KEY,
            "models": models,
        }  # fmt: skip

    def point_at_model(self) -> None:
        folder = self.ground.home / ".pi" / "agent"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "models.json").write_text(json.dumps({"providers": {"loopback": self.provider()}}))
        self.ground.env["PI_OFFLINE"] = "1"

    def bring(self) -> None:
        place = self.ground.home / ".pi" / "agent"
        copy(pi.home() / "settings.json", place / "settings.json", _with_whole_paths)
        for name in ("extensions", "skills", "git"):
            copy(pi.home() / name, place / name)
        (place / "mcp.json").write_text(json.dumps({"mcpServers": {FILES: {**self.server, "exposure": "direct"}}}))
        copy(Path(here(), ".pi"), self.ground.checkout / ".pi")
        self.point_at_model()

    def started(self, prompt: str, *words: str) -> list[str]:
        return ["pi", "-p", "--mode", "json", "--model", self.model, *words, prompt]

    def in_mode(self, mode: str) -> list[str]:
        return []

    def create(self, path: str, text: str) -> Call:
        return {"name": "write", "input": {"path": path, "content": text}}

    def replace(self, path: str, old: str, new: str) -> Call:
        return {"name": "edit", "input": {"path": path, "edits": [{"oldText": old, "newText": new}]}}

    def shell(self, command: str) -> Call:
        return {"name": "bash", "input": {"command": command}}

    def server_tool(self, server: str, tool: str, arguments: dict[str, Any]) -> list[Call]:
        return [{"name": f"mcp__{server}__{tool}", "input": arguments}]


def _with_whole_paths(text: str) -> str:
    """Return pi's settings with whole paths of packages: short ones count from the folder of the settings."""

    def whole(source: str) -> str:
        if ":" in source:  # of npm or git
            return source
        return str(pi.home() / Path(source).expanduser())

    tree = json.loads(text)
    for number, entry in enumerate(tree.get("packages") or []):
        if isinstance(entry, dict):
            entry["source"] = whole(entry["source"])
        else:
            tree["packages"][number] = whole(entry)
    return json.dumps(tree)


class Omp(OneShot):
    """oh-my-pi, a fork of pi that runs in Bun."""

    name = "omp"
    requests = "/chat/completions"
    modes = ("yolo", "write", "always-ask")
    asking = modes[1:]
    questions = {"Approve": "\r"}
    whole, changes = "write", "edit"

    def point_at_model(self) -> None:
        """Write the list of models, with the one on loopback alone. JSON is YAML, too."""
        model = {"id": "scripted", "name": "scripted", "contextWindow": 100_000, "maxTokens": 8_000}
        provider = {
            "baseUrl": f"http://127.0.0.1:{self.models.port}/v1", "api": "openai-completions", "apiKey": KEY,
            "models": [model],
        }  # fmt: skip
        folder = self.ground.home / ".omp" / "agent"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "models.yml").write_text(json.dumps({"providers": {"loopback": provider}}))

    def bring(self) -> None:
        users, place = pi.omp_home(), self.ground.home / ".omp" / "agent"
        for name in ("config.yml", "extensions", "skills"):
            copy(users / name, place / name)
        copy(Path(here(), ".omp"), self.ground.checkout / ".omp")
        self.point_at_model()
        (place / "mcp.json").write_text(json.dumps({"mcpServers": {FILES: self.server}}))
        self.edit_by("replace")

    def edit_by(self, mode: str) -> None:
        """Have its `edit` take input of this form from the next session on; by default the model decides."""
        file = self.ground.home / ".omp" / "agent" / "config.yml"
        text = ""
        if file.exists():
            text = file.read_text(encoding="utf-8")
        text = re.sub(r"^edit:\n(?:[ \t].*\n?)*", "", text, flags=re.MULTILINE)
        if "setupVersion:" not in text:  # it would ask for a login first
            text = f"{text.rstrip()}\nsetupVersion: 99\n"
        file.write_text(f"{text.rstrip()}\nedit:\n  mode: {mode}\n".lstrip(), encoding="utf-8")

    def started(self, prompt: str, *words: str) -> list[str]:
        return ["omp", "-p", "--mode", "json", "--model", "loopback/scripted", *words, prompt]

    def opened(self, prompt: str, *words: str) -> list[str]:
        return ["omp", "--model", "loopback/scripted", *words, prompt]

    def in_mode(self, mode: str) -> list[str]:
        return ["--approval-mode", mode]

    def usual_mode(self) -> str:
        config = self.ground.home / ".omp" / "agent" / "config.yml"
        found = re.search(r"^ +approvalMode: *([\w-]+)", config.read_text(encoding="utf-8"), re.MULTILINE)
        if found and found[1] in self.modes:
            return found[1]
        return self.modes[0]

    def create(self, path: str, text: str) -> Call:
        return {"name": "write", "input": {"path": self.absolute(path), "content": text}}

    def replace(self, path: str, old: str, new: str) -> Call:
        return {"name": "edit", "input": {"path": self.absolute(path), "old_string": old, "new_string": new}}

    def patch(self, body: str) -> list[Call]:
        return [{"name": "edit", "input": {"input": f"*** Begin Patch\n{body}\n*** End Patch"}}]

    def shell(self, command: str) -> Call:
        return {"name": "bash", "input": {"command": command}}

    def server_tool(self, server: str, tool: str, arguments: dict[str, Any]) -> list[Call]:
        # Tools of servers are devices that its `write` calls; the plugin itself adds those of its own.
        name = f"mcp__{server}__{tool}" if server == "swarm" else f"mcp__{server}_{tool}"
        return [{"name": "write", "input": {"path": f"xd://{name}", "content": json.dumps(arguments)}}]
