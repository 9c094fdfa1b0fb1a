"""Claude Code in a play."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from swarm_mcp.errors import ClientFailed
from swarm_mcp.folders import here
from swarm_mcp.play.clients import FILES, KEY, SPOILT, TEXT, Call, Client, Seen, Way
from swarm_mcp.play.scene import Scene, copy, refuse_services, sealed
from swarm_mcp.runtimes import runtime
from swarm_mcp.runtimes.claude_code import PREFERENCES, ClaudeSettings, home

_MODE = re.compile(r'"permissionMode":"(\w+)"')


class ClaudeCode(Client):
    """Claude Code at a terminal: its questions are answered with yes, but for the one about the person's line."""

    name = "claude-code"
    requests = "/messages"
    questions = {"Do you want to": "\r"}
    modes = ("default", "acceptEdits", "auto", "bypassPermissions", "dontAsk", "plan")

    def create(self, path: str, text: str) -> Call:
        return {"name": "Write", "input": {"file_path": self.absolute(path), "content": text}}

    def replace(self, path: str, old: str, new: str) -> Call:
        return {"name": "Edit", "input": {"file_path": self.absolute(path), "old_string": old, "new_string": new}}

    def read(self, path: str) -> Call:
        """Return the call that reads a file."""
        return {"name": "Read", "input": {"file_path": self.absolute(path)}}

    def look(self, path: str) -> list[Call]:
        return [self.read(path)]

    def change(self, path: str, old: str, new: str) -> list[Call]:
        return [self.read(path), self.replace(path, old, new)]

    def change_cell(self, path: str, cell: str, source: str) -> list[Call]:
        """The notebook tool is looked up before its first use, and wants the file to have been read."""
        change = {"notebook_path": self.absolute(path), "cell_id": cell, "new_source": source}
        search = {"name": "ToolSearch", "input": {"query": "select:NotebookEdit"}}
        return [search, self.read(path), {"name": "NotebookEdit", "input": change}]

    def shell(self, command: str) -> Call:
        return {"name": "Bash", "input": {"command": command, "description": "As scripted"}}

    def server_tool(self, server: str, tool: str, arguments: dict[str, Any]) -> list[Call]:
        name = f"mcp__{server}__{tool}"
        return [{"name": "ToolSearch", "input": {"query": f"select:{name}"}}, {"name": name, "input": arguments}]

    def reach_loopback(self) -> None:
        """Point sessions at the model on loopback, and let them start without questions."""
        self.ground.env.update(
            ANTHROPIC_BASE_URL=f"http://127.0.0.1:{self.models.port}",
            ANTHROPIC_API_KEY=KEY,
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
            DISABLE_AUTOUPDATER="1",
            DISABLE_TELEMETRY="1",
        )
        settings = {
            "hasCompletedOnboarding": True,
            "bypassPermissionsModeAccepted": True,
            "theme": "dark",
            "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
            "projects": {str(self.ground.checkout): {"hasTrustDialogAccepted": True}},
        }
        (self.ground.home / ".claude.json").write_text(json.dumps(settings))

    def bring(self) -> None:
        settings, place = ClaudeSettings(home()), self.ground.home / ".claude"
        refuse_services(settings.policies)
        if PREFERENCES.exists():
            raise ClientFailed(f"{PREFERENCES} is not read here, and may lead it to a real service")
        copy(home() / "settings.json", place / "settings.json", sealed)
        for entry in sorted((home() / "plugins").glob("*.json")):
            copy(entry, place / "plugins" / entry.name)
        copy(home() / "hooks", place / "hooks")
        for layer in settings.own[1:]:
            name = Path(layer.file).name
            if not (self.ground.checkout / ".claude" / name).exists():
                copy(Path(layer.file), self.ground.checkout / ".claude" / name, sealed)
        copy(Path(here(), ".claude", "hooks"), self.ground.checkout / ".claude" / "hooks")
        (self.ground.root / "servers.json").write_text(json.dumps({"mcpServers": {FILES: self.server}}))
        self.reach_loopback()

    def ways(self) -> list[Way]:
        return [
            Way("Write", "write.md", [self.read("write.md"), self.create("write.md", SPOILT)]),
            Way("Edit", "edit.md", self.change("edit.md", TEXT.strip(), SPOILT.strip())),
            Way("NotebookEdit", "notebook.ipynb", self.change_cell("notebook.ipynb", "cell-1", "2")),
            Way("Bash", "shell.md", [self.shell("echo spoilt > shell.md")]),
            self._written_by_server("server.md"),
        ]

    def session(self, prompt: str, mode: str) -> Seen:
        scene: Scene = self.ground
        argv = [runtime(self.name).program(), "--mcp-config", str(scene.root / "servers.json")]
        if mode:
            argv += ["--permission-mode", mode]
        if self.model:
            argv += ["--model", self.model]
        seen = self.at_terminal(mode, [*argv, "--", prompt])
        modes = [_MODE.findall(file.read_text()) for file in (scene.home / ".claude" / "projects").glob("*/*.jsonl")]
        return seen._replace(mode=mode or "".join(modes[0][:1] if modes else ""))
