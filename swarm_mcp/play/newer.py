"""Cline, Hermes and Kimi Code in a play."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, ClassVar

from swarm_mcp.errors import ClientFailed
from swarm_mcp.folders import here
from swarm_mcp.play.clients import FILES, KEY, Call, Seen
from swarm_mcp.play.others import OneShot
from swarm_mcp.play.scene import copy
from swarm_mcp.runtimes import cline, hermes, kimi, runtime


class Cline(OneShot):
    """Cline."""

    name = "cline"
    requests = "/chat/completions"
    modes = ("auto-approve", "plan")
    whole, changes = "editor", "editor of a line"
    new_files_only = True
    provider: ClassVar[str] = "openai-compatible"
    plain_model: ClassVar[str] = "scripted"  # gets `editor`
    patch_model = "gpt-5"  # gets `apply_patch` in its place
    models_played = (plain_model, patch_model)
    model = plain_model

    def login(self) -> list[str]:
        """Return the command that makes the model on loopback the only one."""
        address = f"http://127.0.0.1:{self.models.port}/v1"
        return ["cline", "auth", "-p", self.provider, "-b", address, "-k", KEY, "-m", self.plain_model]

    def point_at_model(self) -> None:
        # It goes on without a plugin that a busy machine has not loaded within 4 seconds.
        self.ground.env["CLINE_PLUGIN_IMPORT_TIMEOUT_MS"] = "60000"

    def bring(self) -> None:
        users, place = cline.home(), self.ground.home / ".cline"
        copy(users / "plugins", place / "plugins")
        copy(users / "hooks", place / "hooks")
        settings = place / "data" / "settings"
        settings.mkdir(parents=True)
        copy(cline.settings_file(), settings / "global-settings.json")
        (settings / "cline_mcp_settings.json").write_text(json.dumps({"mcpServers": {FILES: self.server}}))
        copy(Path(here(), ".cline"), self.ground.checkout / ".cline")
        self.point_at_model()
        _name, *words = self.login()
        trouble = self.ground.run([runtime(self.name).program(), *words])
        if trouble:
            raise ClientFailed(f"it takes no model: {trouble}")

    def started(self, prompt: str, *words: str) -> list[str]:
        return ["cline", "--json", "-P", self.provider, "-m", self.model, *words, prompt]

    def in_mode(self, mode: str) -> list[str]:
        return {"plan": ["--plan"]}.get(mode, [])

    def create(self, path: str, text: str) -> Call:
        return {"name": "editor", "input": {"path": self.absolute(path), "new_text": text}}

    def replace(self, path: str, old: str, new: str) -> Call:
        return {"name": "editor", "input": {"path": self.absolute(path), "old_text": old, "new_text": new}}

    def patch(self, body: str) -> list[Call]:
        return [{"name": "apply_patch", "input": {"input": f"*** Begin Patch\n{body}\n*** End Patch"}}]

    def shell(self, command: str) -> Call:
        return {"name": "run_commands", "input": {"commands": [command]}}

    def server_tool(self, server: str, tool: str, arguments: dict[str, Any]) -> list[Call]:
        return [{"name": f"{server}__{tool}", "input": arguments}]


_ADDED = re.compile(r"^\*\*\* Add File: .+(?:\n\+.*)*", re.MULTILINE)
_MOVE = re.compile(r"^\*\*\* Update File: (.+)\n\*\*\* Move to: (.+)\n(?:(?!\*\*\*).*\n?)*", re.MULTILINE)


class Hermes(OneShot):
    """Hermes Agent. A policy in a folder of the play leads it to the model on loopback."""

    name = "hermes"
    requests = "/chat/completions"
    modes = ("off",)
    whole, changes = "write_file", "patch"

    def settings_on_loopback(self) -> dict[str, Any]:
        """Return the settings that lead it to the model on loopback, and let all calls pass."""
        model = {
            "default": "scripted", "provider": "custom", "base_url": f"http://127.0.0.1:{self.models.port}/v1",
            "api_key": KEY, "context_length": 100_000,
        }  # fmt: skip
        return {
            "model": model, "approvals": {"mode": "off"}, "compression": {"enabled": False},
            "memory": {"memory_enabled": False, "user_profile_enabled": False},
        }  # fmt: skip

    def point_at_model(self) -> None:
        self.ground.env["OPENAI_API_KEY"] = KEY

    def bring(self) -> None:
        policy = hermes.policy()
        if policy.exists():
            raise ClientFailed(f"{policy}, a policy, may lead it to a real service, and cannot be overridden")
        users, place = hermes.home(), self.ground.home / ".hermes"
        copy(users / "config.yaml", place / "config.yaml")
        copy(users / "plugins", place / "plugins")
        managed = self.ground.root / "managed"
        managed.mkdir()
        settings = {**self.settings_on_loopback(), "mcp_servers": {FILES: self.server}}
        (managed / "config.yaml").write_text(json.dumps(settings))
        self.ground.env["HERMES_MANAGED_DIR"] = str(managed)
        self.point_at_model()

    def started(self, prompt: str, *words: str) -> list[str]:
        return ["hermes", *words, "-z", prompt]

    def in_mode(self, mode: str) -> list[str]:
        return []

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

    def server_tool(self, server: str, tool: str, arguments: dict[str, Any]) -> list[Call]:
        """Return the call of a server's tool. With far more such tools than ours Hermes has them called through one."""
        return [{"name": f"mcp__{server.replace('-', '_')}__{tool}", "input": arguments}]


# Tables of Kimi's settings that lead to a service, and the key with the model that one of them has.
_OF_SERVICES = re.compile(
    r"^\[+(?:providers|models|services)\b.*\n(?:(?!\[).*\n?)*|^default_model\s*=.*\n?", re.MULTILINE
)


class Kimi(OneShot):
    """Kimi Code. Only sessions at a terminal have a mode; they take no prompt as a word."""

    name = "kimi"
    requests = "/chat/completions"
    modes = ("manual", "yolo", "auto", "plan")
    questions = {"Trust this folder?": "\r", "Approve once": "1"}
    types_at = "scripted thinking"
    whole, changes = "Write", "Edit"

    def point_at_model(self) -> None:
        self.ground.env.update(
            KIMI_MODEL_NAME="scripted", KIMI_MODEL_API_KEY=KEY, KIMI_MODEL_PROVIDER_TYPE="openai",
            KIMI_MODEL_BASE_URL=f"http://127.0.0.1:{self.models.port}/v1", KIMI_CODE_NO_AUTO_UPDATE="1",
        )  # fmt: skip

    def bring(self) -> None:
        users, place = kimi.home(), self.ground.home / ".kimi-code"
        copy(users / "config.toml", place / "config.toml", lambda text: _OF_SERVICES.sub("", text))
        copy(users / "plugins", place / "plugins")
        (place / "mcp.json").write_text(json.dumps({"mcpServers": {FILES: self.server}}))
        copy(Path(here(), ".kimi-code"), self.ground.checkout / ".kimi-code")
        self.point_at_model()

    def started(self, prompt: str, *words: str) -> list[str]:
        return ["kimi", *words, "-p", prompt, "--output-format", "stream-json"]

    def in_mode(self, mode: str) -> list[str]:
        return [f"--{mode}"] * (mode != self.usual_mode())

    def usual_mode(self) -> str:
        config = self.ground.home / ".kimi-code" / "config.toml"
        text = ""
        if config.exists():
            text = config.read_text(encoding="utf-8")
        found = re.search(r'^default_permission_mode\s*=\s*"(\w+)"', text, re.MULTILINE)
        if found and found[1] in self.modes:
            return found[1]
        return self.modes[0]

    def session(self, prompt: str, mode: str) -> Seen:
        mode = mode or self.usual_mode()
        return self.at_terminal(mode, [runtime(self.name).program(), *self.in_mode(mode)])

    def create(self, path: str, text: str) -> Call:
        return {"name": "Write", "input": {"path": self.absolute(path), "content": text}}

    def replace(self, path: str, old: str, new: str) -> Call:
        return {"name": "Edit", "input": {"path": self.absolute(path), "old_string": old, "new_string": new}}

    def shell(self, command: str) -> Call:
        return {"name": "Bash", "input": {"command": command}}

    def server_tool(self, server: str, tool: str, arguments: dict[str, Any]) -> list[Call]:
        """Return the call of a server's tool. Ours belongs to a plugin, as its names tell."""
        named = {"swarm": "plugin-swarm_swarm"}.get(server, server)
        return [{"name": f"mcp__{named}__{tool}", "input": arguments}]
