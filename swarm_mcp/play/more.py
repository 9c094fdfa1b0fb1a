"""Further clients that play one prompt and end, each with a model on loopback beside those of the user."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, ClassVar

from swarm_mcp.errors import ClientFailed
from swarm_mcp.folders import here
from swarm_mcp.play.clients import FILES, KEY, Call
from swarm_mcp.play.models import ModelServer
from swarm_mcp.play.others import OneShot
from swarm_mcp.play.scene import MODULES, copy, sealed
from swarm_mcp.runtimes import copilot, grok, opencode, runtime


class OpenCode(OneShot):
    """OpenCode, and its forks."""

    name = "opencode"
    requests = "/chat/completions"
    modes = ("default", "auto")  # without a terminal both ask nobody, and the first denies where it would ask
    whole, changes = "write", "edit"
    prefix: ClassVar[str] = "OPENCODE"
    plugin: ClassVar[str] = "@opencode-ai/plugin"  # it fetches this from npm into a home without it, for a minute
    plain_model: ClassVar[str] = "scripted"  # gets `write` and `edit`
    patch_model = "gpt-5-scripted"  # gets `apply_patch` in their place
    models_played = (plain_model, patch_model)
    model = plain_model

    def settings_on_loopback(self) -> dict[str, Any]:
        """Return the settings that have the model on loopback."""
        limits = {"limit": {"context": 100_000, "output": 8_000}}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"http://127.0.0.1:{self.models.port}", "apiKey": KEY},
            "models": dict.fromkeys((self.plain_model, self.patch_model), limits),
        }
        model = f"loopback/{self.plain_model}"
        return {
            "$schema": "https://opencode.ai/config.json", "autoupdate": False, "share": "disabled", "model": model,
            "small_model": model, "provider": {"loopback": provider},
        }  # fmt: skip

    def point_at_model(self) -> None:
        """Fetch nothing: the package for plugins counts as fetched."""
        folder = self.ground.home / ".config" / self.name
        if not (folder / MODULES).exists():
            (folder / MODULES).mkdir(parents=True)
            wanted = {"dependencies": {self.plugin: "*"}}
            (folder / "package.json").write_text(json.dumps(wanted))
            (folder / "package-lock.json").write_text(json.dumps({"packages": {"": wanted}}))
        for thing in ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD"):
            self.ground.env[f"{self.prefix}_DISABLE_{thing}"] = "1"

    def bring(self) -> None:
        client = runtime(self.name)
        assert isinstance(client, opencode.OpenCode)
        users, place = client.link().parent.parent, self.ground.home / ".config" / self.name
        copy(users, place)
        for folder in (place, self.ground.checkout):
            for name in client.settings_files:
                source = users / name if folder == place else Path(here(), name)
                copy(source, folder / name, sealed)
        servers = {FILES: {"type": "local", "command": [self.server["command"], *self.server["args"]]}}
        settings, file = {**self.settings_on_loopback(), "mcp": servers}, place / f"{self.name}.json"
        text = sealed(file.read_text(encoding="utf-8") if file.exists() else "{}", **settings)
        file.write_text(text, encoding="utf-8")
        self.point_at_model()

    def started(self, prompt: str, *words: str) -> list[str]:
        return [self.name, "run", "--format", "json", "-m", f"loopback/{self.model}", *words, prompt]

    def in_mode(self, mode: str) -> list[str]:
        return {"auto": ["--auto"]}.get(mode, [])

    def create(self, path: str, text: str) -> Call:
        return {"name": "write", "input": {"filePath": self.absolute(path), "content": text}}

    def replace(self, path: str, old: str, new: str) -> Call:
        change = {"filePath": self.absolute(path), "oldString": old, "newString": new}
        return {"name": "edit", "input": change}

    def patch(self, body: str) -> list[Call]:
        return [{"name": "apply_patch", "input": {"patchText": f"*** Begin Patch\n{body}\n*** End Patch"}}]

    def shell(self, command: str) -> Call:
        return {"name": "bash", "input": {"command": command, "description": "As scripted"}}

    def server_tool(self, server: str, tool: str, arguments: dict[str, Any]) -> list[Call]:
        return [{"name": f"{server}_{tool}", "input": arguments}]


class Kilo(OpenCode):
    """Kilo, a fork of OpenCode."""

    name = "kilo"
    prefix = "KILO"
    plugin = "@kilocode/plugin"


class Copilot(OneShot):
    """GitHub Copilot CLI, offline."""

    name = "copilot"
    requests = "/chat/completions"
    modes = ("default", "allow-all-tools", "allow-all")
    asking = modes[:1]
    questions = {"1. Yes": "\r"}
    whole, changes = "create", "edit"
    new_files_only = True
    plain_model: ClassVar[str] = "claude-sonnet-4.5"
    patch_model = "gpt-5.4"  # its tool for changes is apply_patch, and its API the Responses
    models_played = (plain_model, patch_model)
    model = plain_model

    def point_at_model(self) -> None:
        self.ground.env.update(
            COPILOT_OFFLINE="true", COPILOT_AUTO_UPDATE="false", COPILOT_PROVIDER_TYPE="openai",
            COPILOT_PROVIDER_BASE_URL=f"http://127.0.0.1:{self.models.port}/v1", COPILOT_PROVIDER_API_KEY=KEY,
        )  # fmt: skip

    def choose(self, model: str) -> None:
        self.model, api, wire = model, "/chat/completions", "completions"
        if model == self.patch_model:
            api, wire = "/responses", "responses"
        self.requests = api  # type: ignore[misc]
        self.dialect = ModelServer.dialects[api]
        self.ground.env.update(COPILOT_MODEL=model, COPILOT_PROVIDER_WIRE_API=wire)

    def bring(self) -> None:
        place = self.ground.home / ".copilot"
        copy(copilot.home() / "settings.json", place / "settings.json", sealed)
        copy(copilot.home() / "hooks", place / "hooks")
        server = {"type": "local", "tools": ["*"], **self.server}
        (place / "mcp-config.json").write_text(json.dumps({"mcpServers": {FILES: server}}))
        # Else it asks at a terminal, and without one it passes over the settings of the project.
        (place / "config.json").write_text(json.dumps({"trustedFolders": [str(self.ground.checkout)]}))
        for folder, names in ((".github", ["hooks", "copilot"]), (".claude", ["settings.json", "settings.local.json"])):
            for name in names:
                copy(Path(here(), folder, name), self.ground.checkout / folder / name, sealed)
        self.point_at_model()

    def started(self, prompt: str, *words: str) -> list[str]:
        return ["copilot", "--output-format", "json", *words, "-p", prompt]

    def opened(self, prompt: str, *words: str) -> list[str]:
        return ["copilot", *words, "-i", prompt]

    def in_mode(self, mode: str) -> list[str]:
        return {"default": []}.get(mode, [f"--{mode}"])

    def create(self, path: str, text: str) -> Call:
        return self._function("create", {"path": self.absolute(path), "file_text": text})

    def replace(self, path: str, old: str, new: str) -> Call:
        return self._function("edit", {"path": self.absolute(path), "old_str": old, "new_str": new})

    def patch(self, body: str) -> list[Call]:
        return [{"name": "apply_patch", "input": f"*** Begin Patch\n{body}\n*** End Patch"}]

    def shell(self, command: str) -> Call:
        return self._function("bash", {"command": command, "description": "As scripted"})

    def server_tool(self, server: str, tool: str, arguments: dict[str, Any]) -> list[Call]:
        return [self._function(f"{server}-{tool}", arguments)]

    def _function(self, name: str, given: dict[str, Any]) -> Call:
        """Return a call of a tool with JSON for its input, as the API in use has it."""
        return {"name": name, "arguments" if self.requests == "/responses" else "input": given}


_SERVICE = re.compile(r"url|endpoint|proxy", re.IGNORECASE)  # in the keys of a policy


class Grok(OneShot):
    """Grok Build."""

    name = "grok"
    requests = "/chat/completions"
    modes = ("default", "acceptEdits", "auto", "dontAsk", "bypassPermissions", "plan")
    asking = modes[:3]
    # About a command, a file, and the tool of a server.
    questions = {"Yes, proceed": "2", "Yes, allow all edits during this session": "3", "Always allow:": "3"}
    model = "doctor-play"
    whole, changes = "write", "search_replace"

    def point_at_model(self) -> None:
        base = f"http://127.0.0.1:{self.models.port}/v1"
        self.ground.env.update(
            XAI_API_KEY=KEY, GROK_XAI_API_BASE_URL=base, GROK_MODELS_BASE_URL=base, GROK_CLI_CHAT_PROXY_BASE_URL=base,
            GROK_TELEMETRY_ENABLED="0",
        )  # fmt: skip

    def table(self) -> str:
        """Return the table of the model on loopback, for the settings."""
        model = {"model": self.model, "base_url": f"http://127.0.0.1:{self.models.port}/v1", "env_key": "XAI_API_KEY",
                 "api_backend": "chat_completions", "context_window": 100000}  # fmt: skip
        return toml(f"model.{self.model}", model)

    def bring(self) -> None:
        place = self.ground.home / ".grok"
        for policy in grok.policy_files():
            if policy.exists() and _SERVICE.search(policy.read_text(encoding="utf-8", errors="replace")):
                raise ClientFailed(f"{policy}, a policy, may lead it to a real service, and cannot be overridden")
        for name in ("config.toml", "hooks", "disabled-hooks", "skills", *grok.POLICY_NAMES):
            copy(grok.home() / name, place / name)
        with open(place / "config.toml", "a", encoding="utf-8") as file:
            file.write(self.table() + toml(f"mcp_servers.{FILES}", self.server))
        copy(Path(here(), ".grok"), self.ground.checkout / ".grok")
        self.point_at_model()

    def started(self, prompt: str, *words: str) -> list[str]:
        return ["grok", "-p", prompt, "--output-format", "streaming-messages-json", *words]

    def opened(self, prompt: str, *words: str) -> list[str]:
        return ["grok", *words, prompt]

    def in_mode(self, mode: str) -> list[str]:
        return ["--permission-mode", mode, "-m", self.model]

    def create(self, path: str, text: str) -> Call:
        return {"name": "write", "input": {"file_path": self.absolute(path), "content": text}}

    def replace(self, path: str, old: str, new: str) -> Call:
        change = {"file_path": self.absolute(path), "old_string": old, "new_string": new}
        return {"name": "search_replace", "input": change}

    def shell(self, command: str) -> Call:
        return {"name": "run_terminal_command", "input": {"command": command, "description": "As scripted"}}

    def server_tool(self, server: str, tool: str, arguments: dict[str, Any]) -> list[Call]:
        return [{"name": "use_tool", "input": {"tool_name": f"{server}__{tool}", "tool_input": arguments}}]


def toml(table: str, values: dict[str, Any]) -> str:
    """Return a table of a TOML file."""
    return "".join([f"\n[{table}]\n", *(f"{key} = {json.dumps(value)}\n" for key, value in values.items())])
