"""Clients that play one prompt and end. In a mode that asks a person they are played at a terminal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from swarm_mcp.folders import here
from swarm_mcp.play.clients import FILES, KEY, NEW, SPOILT, TEXT, Call, Client, Seen, Way
from swarm_mcp.play.scene import copy, refuse_services, sealed
from swarm_mcp.runtimes import gemini, qwen, runtime
from swarm_mcp.runtimes.settings_layers import Layer, last_of


class OneShot(Client):
    """A client that takes its prompt as a word of its command. It has one tool for whole files, and one for changes."""

    whole: ClassVar[str]  # the name of the tool for whole files
    changes: ClassVar[str]
    new_files_only: ClassVar[bool] = False  # its tool for whole files refuses one that is there
    patch_model: ClassVar[str] = ""  # has apply_patch in the place of both
    settings_for_loopback: ClassVar[dict[str, Any]]
    asking: ClassVar[tuple[str, ...]] = ()  # the modes in which it asks

    def point_at_model(self) -> None:
        """Set the variables that point sessions at the model on loopback."""
        raise NotImplementedError

    def started(self, prompt: str, *words: str) -> list[str]:
        """Return the command that plays a prompt; `words`: more options."""
        raise NotImplementedError

    def opened(self, prompt: str, *words: str) -> list[str]:
        """Return the command that plays a prompt at a terminal; `words` as above."""
        raise NotImplementedError

    def in_mode(self, mode: str) -> list[str]:
        """Return the options for a permission mode."""
        raise NotImplementedError

    def usual_mode(self) -> str:
        """Return the mode that it starts in here."""
        return next(iter(self.modes), "")

    def _chosen_mode(self, layers: Sequence[Layer], *place: str) -> str:
        """Return the mode that these settings choose; without one, the first of its modes."""
        found = last_of(layers, *place, kind=str)
        if found and found[0].replace("_", "-") in [mode.replace("_", "-") for mode in self.modes]:
            return str(found[0])
        return self.modes[0]

    def patch(self, body: str) -> list[Call]:
        """Return the calls that apply a patch with `body` between the markers."""
        raise NotImplementedError

    def ways(self) -> list[Way]:
        whole = Way(self.whole, "whole.md", [*self.look("whole.md"), self.create("whole.md", SPOILT)])
        if self.new_files_only:
            whole = Way(self.whole, NEW, [self.create(NEW, SPOILT)])
        found = [whole, Way(self.changes, "edit.md", self.change("edit.md", TEXT.strip(), SPOILT.strip()))]
        if self.model and self.model == self.patch_model:
            body = f"*** Update File: edit.md\n@@\n-{TEXT.strip()}\n+{SPOILT.strip()}"
            found = [Way("apply_patch", "edit.md", self.patch(body))]
        shell = Way("the shell", "shell.md", [self.shell("echo spoilt > shell.md")])
        return [*found, shell, self._written_by_server("server.md")]

    def session(self, prompt: str, mode: str) -> Seen:
        mode, program = mode or self.usual_mode(), runtime(self.name).program()
        if mode in self.asking:
            _name, *words = self.opened(prompt, *self.in_mode(mode))
            return self.at_terminal(mode, [program, *words])
        _name, *words = self.started(prompt, *self.in_mode(mode))
        return self.without_terminal(mode, [program, *words])

    def _bring_settings(self, users: Path, layers: Sequence[Layer]) -> None:
        """Copy settings and extensions from the user's folder `users`, and the settings of the project here."""
        refuse_services([layer for layer in layers if layer.is_policy])
        place, projects = self.ground.home / users.name, Path(layers[2].file)
        more = {**self.settings_for_loopback, "mcpServers": {FILES: {**self.server, "trust": True}}}
        place.mkdir()
        (place / "settings.json").write_text(json.dumps(more))
        copy(users / "settings.json", place / "settings.json", lambda text: sealed(text, **more))
        copy(users / "extensions", place / "extensions")
        copy(projects, self.ground.checkout / users.name / "settings.json", sealed)
        self.point_at_model()


class Qwen(OneShot):
    """Qwen Code."""

    name = "qwen"
    requests = "/chat/completions"
    modes = ("auto", "auto-edit", "default", "plan", "yolo")
    asking = modes[:-1]
    questions = {"Yes, allow once": "\r"}
    whole, changes = "write_file", "edit"
    settings_for_loopback = {
        "security": {"auth": {"selectedType": "openai"}},
        "general": {"enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
    }

    def point_at_model(self) -> None:
        self.ground.env.update(
            OPENAI_API_KEY=KEY, OPENAI_BASE_URL=f"http://127.0.0.1:{self.models.port}/v1", OPENAI_MODEL="scripted",
            QWEN_CODE_SUPPRESS_YOLO_WARNING="1",
        )  # fmt: skip

    def bring(self) -> None:
        self._bring_settings(qwen.home(), qwen.layers())

    def started(self, prompt: str, *words: str) -> list[str]:
        return ["qwen", "-m", "scripted", "-o", "stream-json", *words, "-p", prompt]

    def opened(self, prompt: str, *words: str) -> list[str]:
        return ["qwen", "-m", "scripted", *words, "-i", prompt]

    def in_mode(self, mode: str) -> list[str]:
        return ["--approval-mode", mode]

    def usual_mode(self) -> str:
        return self._chosen_mode(qwen.layers(), "tools", "approvalMode").replace("_", "-")

    def create(self, path: str, text: str) -> Call:
        return {"name": "write_file", "input": {"file_path": self.absolute(path), "content": text}}

    def look(self, path: str) -> list[Call]:
        # It changes only files that this tool has read.
        return [{"name": "read_file", "input": {"file_path": self.absolute(path)}}]

    def change(self, path: str, old: str, new: str) -> list[Call]:
        return [*self.look(path), self.replace(path, old, new)]

    def replace(self, path: str, old: str, new: str) -> Call:
        return {"name": "edit", "input": {"file_path": self.absolute(path), "old_string": old, "new_string": new}}

    def shell(self, command: str) -> Call:
        return {"name": "run_shell_command", "input": {"command": command, "description": "As scripted"}}

    def server_tool(self, server: str, tool: str, arguments: dict[str, Any]) -> list[Call]:
        return [{"name": f"mcp__{server}__{tool}", "input": arguments}]

    def absolute(self, path: str) -> str:
        return str(self.ground.checkout / path)  # its tools refuse relative ones


class Gemini(OneShot):
    """Gemini CLI."""

    name = "gemini"
    requests = ":streamGenerateContent"
    modes = ("default", "auto_edit", "plan", "yolo")
    asking = modes[:-1]
    questions = {"Allow once": "\r"}
    model = "gemini-2.5-pro"
    whole, changes = "write_file", "replace"
    settings_for_loopback = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        "privacy": {"usageStatisticsEnabled": False},
    }

    def point_at_model(self) -> None:
        self.ground.env.update(GEMINI_API_KEY=KEY, GOOGLE_GEMINI_BASE_URL=f"http://127.0.0.1:{self.models.port}")

    def bring(self) -> None:
        self._bring_settings(gemini.home(), gemini.layers())
        if gemini.trusts(here(), gemini.layers()):
            trust = {str(self.ground.checkout): "TRUST_FOLDER"}  # then it reads the settings of the project, too
            (self.ground.home / ".gemini" / "trustedFolders.json").write_text(json.dumps(trust))

    def started(self, prompt: str, *words: str) -> list[str]:
        return ["gemini", "--skip-trust", *words, "-m", self.model, "-o", "stream-json", "-p", prompt]

    def opened(self, prompt: str, *words: str) -> list[str]:
        return ["gemini", "--skip-trust", *words, "-m", self.model, "-i", prompt]

    def in_mode(self, mode: str) -> list[str]:
        return ["--approval-mode", mode]

    def usual_mode(self) -> str:
        mode = self._chosen_mode(gemini.layers(), "general", "defaultApprovalMode")
        if mode in self.asking:
            return mode
        return self.modes[0]  # its settings cannot choose yolo

    def create(self, path: str, text: str) -> Call:
        return {"name": "write_file", "input": {"file_path": path, "content": text}}

    def replace(self, path: str, old: str, new: str) -> Call:
        change = {"file_path": path, "old_string": old, "new_string": new, "instruction": "As scripted"}
        return {"name": "replace", "input": change}

    def shell(self, command: str) -> Call:
        return {"name": "run_shell_command", "input": {"command": command, "description": "As scripted"}}

    def server_tool(self, server: str, tool: str, arguments: dict[str, Any]) -> list[Call]:
        return [{"name": f"mcp_{server}_{tool}", "input": arguments}]
