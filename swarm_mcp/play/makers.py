"""Clients of those who make models, in a play: Claude Code, Codex, Copilot, Gemini, Qwen, Grok and Kimi."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, ClassVar

from swarm_hook_core.paths import git_root
from swarm_mcp.errors import ClientFailed
from swarm_mcp.folders import here
from swarm_mcp.play.clients import FILES, KEY, SPOILT, TEXT, Call, Client, OneShot, Seen, Way
from swarm_mcp.play.models import ModelServer
from swarm_mcp.play.scene import Scene, copy, refuse_services, sealed
from swarm_mcp.runtimes import claude_code, codex, copilot, gemini, grok, kimi, runtime
from swarm_mcp.runtimes.json_editor import object_of

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
        settings, place = claude_code.ClaudeSettings(claude_code.home()), self.ground.home / ".claude"
        refuse_services(settings.policies)
        if claude_code.PREFERENCES.exists():
            raise ClientFailed(f"{claude_code.PREFERENCES} is not read here, and may lead it to a real service")
        copy(claude_code.home() / "settings.json", place / "settings.json", sealed)
        for entry in sorted((claude_code.home() / "plugins").glob("*.json")):
            copy(entry, place / "plugins" / entry.name)
        copy(claude_code.home() / "hooks", place / "hooks")
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


_BARE = re.compile(r"^[\w-]+$")


class Codex(Client):
    """Codex, by `codex exec`: it asks nothing, and its sandbox is the mode."""

    name = "codex"
    requests = "/responses"
    modes = ("workspace-write", "danger-full-access", "read-only")

    plain_model = "gpt-5.5"  # gets `apply_patch` and `exec_command` as tools of their own
    code_model = "gpt-6.1-sol"  # gets one tool that runs JavaScript, with the others inside
    models_played = (plain_model, code_model)
    model = plain_model

    def patch(self, body: str) -> Call:
        """A call of apply_patch with `body` between the markers."""
        text = f"*** Begin Patch\n{body}\n*** End Patch\n"
        if self.model == self.code_model:
            return self.script(f"text(await tools.apply_patch({json.dumps(text)}));")
        return {"name": "apply_patch", "input": text}

    def script(self, code: str) -> Call:
        """Return the call of a script (JavaScript, with the other tools in `tools`), as `code_model` makes it."""
        return {"name": "exec", "input": code}

    def create(self, path: str, text: str) -> Call:
        lines = "\n".join(f"+{line}" for line in text.splitlines())
        return self.patch(f"*** Add File: {path}\n{lines}")

    def replace(self, path: str, old: str, new: str) -> Call:
        return self.patch(f"*** Update File: {path}\n@@\n-{old}\n+{new}")

    def shell(self, command: str, workdir: Path | None = None) -> Call:
        arguments = {"cmd": command}
        if workdir:
            arguments["workdir"] = str(workdir)
        if self.model == self.code_model:
            return self.script(f"text(await tools.exec_command({json.dumps(arguments)}));")
        return {"name": "exec_command", "arguments": arguments}

    def server_tool(self, server: str, tool: str, arguments: dict[str, Any]) -> list[Call]:
        if self.model == self.code_model:
            call = f"tools.mcp__{server}__{tool}({json.dumps(arguments, ensure_ascii=False)})"
            return [self.script(f"text(JSON.stringify(await {call}));")]
        return [{"name": tool, "namespace": f"mcp__{server}", "arguments": arguments}]

    def settings_for_loopback(self) -> dict[str, Any]:
        """Return the settings that point sessions at the model on loopback, by their keys."""
        self.ground.env["LOOPBACK_MODEL_KEY"] = KEY
        provider = {
            "name": "loopback", "wire_api": "responses", "base_url": f"http://127.0.0.1:{self.models.port}/v1",
            "env_key": "LOOPBACK_MODEL_KEY", "request_max_retries": 0, "stream_max_retries": 0,
        }  # fmt: skip
        found = {f"model_providers.loopback.{name}": value for name, value in provider.items()}
        return {"model_provider": "loopback", "check_for_update_on_startup": False, **found}

    def bring(self) -> None:
        users, place = Path(codex.home()), self.ground.home / ".codex"
        place.mkdir()
        for name in ("config.toml", "hooks.json", "plugins"):
            copy(users / name, place / name)
        copy(Path(here(), ".codex"), self.ground.checkout / ".codex")
        config, root = place / "config.toml", re.escape(git_root(here()))
        text = config.read_text(encoding="utf-8") if config.exists() else ""
        if re.search(rf'^\[projects\."{root}"\]\s*trust_level\s*=\s*"trusted"', text, re.MULTILINE):
            text += f'\n[projects."{self.ground.checkout}"]\ntrust_level = "trusted"\n'
            config.write_text(text, encoding="utf-8")
        settings = self.settings_for_loopback()
        settings.update({f"otel.{kind}exporter": "none" for kind in ("", "trace_", "metrics_")})
        settings.update({f"mcp_servers.{FILES}.{name}": value for name, value in self.server.items()})
        settings.update({"analytics.enabled": False, "notify": [], "chatgpt_base_url": "http://127.0.0.1:9"})
        settings[f"mcp_servers.{FILES}.default_tools_approval_mode"] = "approve"
        self.options = _options(settings)
        program, folder = runtime(self.name).program(), str(self.ground.checkout)
        with codex.AppServer(program, *self.options, env=self.ground.env, cwd=folder) as server:
            read = server.call("config/read", {"cwd": folder})
        config, origins = object_of(read.get("config")), object_of(read.get("origins"))
        for key, value in settings.items():
            found: Any = config
            for word in key.split("."):
                found = object_of(found).get(word)
            if found != value:
                layer = codex.setting_file(origins.get(key)) or "a policy"
                raise ClientFailed(f"{key} is set by {layer}, may lead it to a real service, and cannot be overridden")
        others = [name for name in object_of(config.get("mcp_servers")) if name != FILES and _BARE.match(name)]
        self.options += _options({f"mcp_servers.{name}.enabled": False for name in others})

    def ways(self) -> list[Way]:
        return [
            Way("apply_patch", "edit.md", self.change("edit.md", TEXT.strip(), SPOILT.strip())),
            Way("apply_patch of a whole file", "whole.md", [self.create("whole.md", SPOILT)]),
            Way("the shell", "shell.md", [self.shell("echo spoilt > shell.md")]),
            self._written_by_server("server.md"),
        ]

    def session(self, prompt: str, mode: str) -> Seen:
        mode = mode or "workspace-write"
        argv = [runtime(self.name).program(), "exec", "--json", *self.options, "-m", self.model, "-s", mode, prompt]
        return self.without_terminal(mode, argv)


def _options(settings: dict[str, Any]) -> list[str]:
    return [word for key, value in settings.items() for word in ("-c", f"{key}={json.dumps(value)}")]


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
        self._bring_settings(gemini.qwen_home(), gemini.qwen_layers())

    def started(self, prompt: str, *words: str) -> list[str]:
        return ["qwen", "-m", "scripted", "-o", "stream-json", *words, "-p", prompt]

    def opened(self, prompt: str, *words: str) -> list[str]:
        return ["qwen", "-m", "scripted", *words, "-i", prompt]

    def in_mode(self, mode: str) -> list[str]:
        return ["--approval-mode", mode]

    def usual_mode(self) -> str:
        return self._chosen_mode(gemini.qwen_layers(), "tools", "approvalMode").replace("_", "-")

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
