"""Auggie as the tests use it: with an account of a server on loopback that has hooks run."""

import json
from pathlib import Path
from typing import Any

from support.command_line import option

from ..client import Call
from . import OtherClient

MODEL = {"name": "scripted", "suggested_prefix_char_count": 1000, "suggested_suffix_char_count": 1000}


class Auggie(OtherClient):
    name = harness = executable = "auggie"
    prefix = "AUGGIE"
    requests = "/chat-stream"
    settings = (".augment/settings.json",)

    def prepare(self) -> None:
        account = {
            "accessToken": "dummy-token-for-loopback",
            "tenantURL": f"http://127.0.0.1:{self.models.port}/",
            "scopes": ["read", "write"],
        }
        self.ground.env.update(AUGMENT_SESSION_AUTH=json.dumps(account), AUGMENT_DISABLE_AUTO_UPDATE="1")
        self.models.told["/agents/list-remote-tools"] = {"tools": []}
        self.models.told["/get-models"] = {
            "default_model": "scripted",
            "models": [MODEL],
            "feature_flags": {"enable_hooks": True},
            "languages": [],
            "user_tier": "COMMUNITY_TIER",
            "user": {"id": "somebody", "email": "somebody@localhost"},
        }
        folder = self.ground.home / ".augment"
        folder.mkdir()
        (folder / "settings.json").write_text('{"mcpServers": {}}\n')

    def wired_in(self) -> list[Path]:
        return [self.ground.home / self.settings[0]]

    def command(self, prompt: str, resume: str | None, fork: str | None, extra: tuple[str, ...]) -> list[str]:
        which = option("--resume", resume)
        return ["auggie", "--print", prompt, "--output-format", "json", *which, *extra]

    def create(self, path: str, text: str) -> Call:
        return {"name": "save-file", "input": {"path": self.absolute(path), "file_content": text}}

    def replace(self, path: str, old: str, new: str) -> Call:
        entry = {"old_str": old, "new_str": new, "old_str_start_line_number": 1, "old_str_end_line_number": 1}
        given = {"command": "str_replace", "path": self.absolute(path), "str_replace_entries": [entry]}
        return {"name": "str-replace-editor", "input": given}

    def patch(self, body: str) -> list[Call]:
        return [{"name": "apply_patch", "input": {"input": f"*** Begin Patch\n{body}\n*** End Patch\n"}}]

    def shell(self, command: str) -> Call:
        return {"name": "launch-process", "input": {"command": command, "wait": True, "max_wait_seconds": 120}}

    def server_tool(self, server: str, tool: str, arguments: dict[str, Any]) -> list[Call]:
        return [{"name": f"{tool}_{server}", "input": arguments}]
