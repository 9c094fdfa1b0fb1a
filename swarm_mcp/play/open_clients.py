"""Clients for the models of any maker, in a play: OpenCode, Kilo, Cline, Hermes, pi and oh-my-pi."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, ClassVar

from swarm_mcp.errors import ClientFailed
from swarm_mcp.folders import here
from swarm_mcp.play.clients import FILES, KEY, Call, OneShot
from swarm_mcp.play.scene import MODULES, copy, sealed
from swarm_mcp.runtimes import cline, hermes, opencode, pi, runtime


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
