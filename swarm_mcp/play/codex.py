"""Codex in a play."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from swarm_hook_core.paths import git_root
from swarm_mcp.errors import ClientFailed
from swarm_mcp.folders import here
from swarm_mcp.play.clients import FILES, KEY, SPOILT, TEXT, Call, Client, Seen, Way
from swarm_mcp.play.scene import copy
from swarm_mcp.runtimes import runtime
from swarm_mcp.runtimes.codex import AppServer, home, setting_file
from swarm_mcp.runtimes.json_editor import object_of

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
        users, place = Path(home()), self.ground.home / ".codex"
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
        with AppServer(program, *self.options, env=self.ground.env, cwd=folder) as server:
            read = server.call("config/read", {"cwd": folder})
        config, origins = object_of(read.get("config")), object_of(read.get("origins"))
        for key, value in settings.items():
            found: Any = config
            for word in key.split("."):
                found = object_of(found).get(word)
            if found != value:
                layer = setting_file(origins.get(key)) or "a policy"
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
