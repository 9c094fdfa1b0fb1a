"""OpenCode, and its fork Kilo: a link in the plugin folder to the bundle's plugin, run in place.

The plugin itself tells OpenCode of the MCP server and the skills, so that no file of the user changes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from swarm_mcp.errors import ClientFailed
from swarm_mcp.runtimes.base import Finding, InPlace, Steps, leads_to, put_link, take_link
from swarm_mcp.runtimes.client_settings import (
    NAME,
    OTHER_NAME,
    environment_layer,
    servers_in_json,
    switched_off,
    variable_on,
)
from swarm_mcp.runtimes.installed import YES, Coverage, Installed, Verified

PLUGIN_FILE = "integrations/opencode/index.ts"


class OpenCode(InPlace):
    """The ``opencode`` command. A fork of it has another `needed`, and a folder of its own for `settings_files`."""

    name = executable = harness = "opencode"
    title = "OpenCode"
    oldest = "1.1.53"
    coverage = Coverage(
        edits=YES, patches=YES, shell=YES, other_tools=YES, subagents=YES, told_before=YES, told_after=YES, ends=YES,
        verified=Verified("1.18.33", "2026-11-29"),
    )  # fmt: skip
    needed = PLUGIN_FILE
    shell_tool = "bash"
    has_subagents = True
    npm_package = "@opencode-ai/plugin"  # which the client fetches for any plugin
    settings_files: tuple[str, ...] = ("config.json", "opencode.json", "opencode.jsonc")
    session_variables: tuple[str, ...] = ("OPENCODE", "OPENCODE_PID", "OPENCODE_SESSION_ID")

    def install(self, marketplace: Path, steps: Steps) -> Installed:
        root, link = marketplace.resolve(), self.link()
        if self.root() != root:
            if self.root() is None and os.path.lexists(link):
                raise ClientFailed(f"{link} is not ours; move it away and try again")
            put_link(link, root / self.needed, steps)
            for text in self._slow_start():
                steps.add(text)
        return self.installed_at(root)

    def uninstall(self, steps: Steps) -> None:
        if self.root() is None:
            return
        take_link(self.link(), steps)

    def root(self) -> Path | None:
        root = leads_to(self.link(), self.needed)
        if root:
            return Path(os.path.realpath(root))
        return None

    def beside(self, root: Path | None) -> list[Finding]:
        found = []
        if root:
            found = [Finding(f"{self.name} start", "info", text) for text in self._slow_start()]
            bare = variable_on([f"{self.name.upper()}_PURE"], [environment_layer()])
            if bare:
                found.append(switched_off(self.name, bare[1], bare[0]))
        files = [self.link().parent.parent / name for name in self.settings_files]
        theirs = [file for file in files if NAME in servers_in_json("mcp", file)]
        if root and theirs:  # the plugin sees all servers, and takes the name that is free
            text = f"swarm's MCP server is called {OTHER_NAME!r} here: {theirs[0]} has a {NAME!r} of yours, which stays"
            found.append(Finding(f"{self.name} server name", "ok", text))
        return found

    def write_payload(self, session_id: str, cwd: str, file: str) -> dict[str, Any]:
        return {
            "session_id": session_id, "cwd": cwd, "hook_event_name": "PreToolUse", "tool_name": "write",
            "tool_input": {"filePath": file, "content": "x"}, "tool_use_id": "call_doctor",
        }  # fmt: skip

    def link(self) -> Path:
        """Return the link that the client finds the plugin by. It need not exist."""
        base = os.environ.get("XDG_CONFIG_HOME", "").strip() or os.path.expanduser("~/.config")
        return Path(base) / self.name / "plugin" / "swarm-mcp.ts"

    def _slow_start(self) -> list[str]:
        """Return words about a slow first start, if the client has yet to fetch its package for plugins."""
        if (self.link().parent.parent / "node_modules").is_dir():
            return []
        return [
            f"{self.title} has yet to fetch {self.npm_package} from npm, as it does for any plugin, and waits for that:"
            " its first start may take minutes, and without a network every start"
        ]


# Kilo CLI, a fork of OpenCode: its plugin, in a folder of its own.


class Kilo(OpenCode):
    """The ``kilo`` command."""

    name = executable = harness = "kilo"
    title = "Kilo"
    oldest = "7.0.33"
    coverage = Coverage(
        edits=YES, patches=YES, shell=YES, other_tools=YES, subagents=YES, told_before=YES, told_after=YES, ends=YES,
        verified=Verified("7.7.7", "2026-11-29"),
    )  # fmt: skip
    needed = "integrations/kilo/index.ts"
    npm_package = "@kilocode/plugin"
    settings_files = ("config.json", "kilo.json", "kilo.jsonc", "opencode.json", "opencode.jsonc")
    session_variables = ("KILO", "KILO_PID", "KILO_SESSION_ID", "OPENCODE", "AGENT")
