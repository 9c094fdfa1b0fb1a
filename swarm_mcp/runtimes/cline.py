"""Cline: a folder in its plugin folder names the plugin in the bundle, run in place, with its skills.

Cline has its MCP servers in a settings file of the user.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from swarm_mcp import __version__
from swarm_mcp.runtimes.base import PLUGIN, Finding, InPlace, Steps, as_failure, as_json, root_of
from swarm_mcp.runtimes.bundle import PACKAGE, add_to_package
from swarm_mcp.runtimes.client_settings import NAME, in_bundle, servers_in_json
from swarm_mcp.runtimes.installed import YES, Coverage, Installed, Verified
from swarm_mcp.runtimes.json_editor import object_of
from swarm_mcp.runtimes.users_file import RECORD, EditedJson, Entry, object_in, put_folder, read_record, remove_folder

PLUGIN_FILE = "integrations/cline/index.ts"
_RUNTIME_VARIABLES = ("CLINE_JS_RUNTIME_PATH", "BUN_EXEC_PATH", "npm_node_execpath", "NODE")


class Cline(InPlace):
    """The ``cline`` command."""

    name = executable = harness = "cline"
    title = "Cline"
    oldest = "3.0.64"
    coverage = Coverage(
        edits=YES, patches=YES, shell=YES, other_tools=YES, subagents=YES, told_before=YES, told_after=YES, ends=YES,
        verified=Verified("3.0.65", "2026-11-29"),
    )  # fmt: skip
    shell_tool = "run_commands"
    needed = PLUGIN_FILE
    has_subagents = True
    session_variables = ("CLINE_CONNECTOR_CLI_LAUNCH",)

    def finish_bundle(self, files: dict[str, bytes], place: Path | None) -> None:
        """Make the folder a package of Cline's as well: it takes the skills beside the manifest that names a plugin."""
        add_to_package(files, {"cline": _named(f"./{PLUGIN_FILE}")})

    @as_failure()
    def install(self, marketplace: Path, steps: Steps) -> Installed:
        root = marketplace.resolve()
        steps.begin(f"naming the plugin in {folder()}")
        if put_folder(folder(), _package(root)):
            steps.add(f"named the plugin in {folder()}")
        steps.begin(f"adding the MCP server to {servers_file()}")
        if _server_in(root).put():
            steps.add(f"added the MCP server to {servers_file()}")
        return self.installed_at(root)

    @as_failure()
    def uninstall(self, steps: Steps) -> None:
        root = self.root() or Path()
        steps.begin(f"removing the plugin from {folder()}")
        if remove_folder(folder()):
            with suppress(OSError):  # other plugins are beside it
                folder().parent.rmdir()
            steps.add(f"removed the plugin from {folder()}")
        steps.begin(f"taking the MCP server out of {servers_file()}")
        if _server_in(root).take_out():
            steps.add(f"took the MCP server out of {servers_file()}")
        with suppress(OSError):  # Cline has been started since
            home().rmdir()

    def traces(self) -> bool:
        return self.root() is not None or _server_in(Path()).is_there()

    def root(self) -> Path | None:
        if not read_record(folder()):
            return None
        try:
            (plugin,) = object_in(folder() / PACKAGE)["cline"]["plugins"]
            return root_of(str(plugin["paths"][0]), PLUGIN_FILE)
        except (LookupError, TypeError, ValueError):  # a manifest of another form is not ours
            return None

    def fault(self, root: Path) -> Finding | None:
        settings = object_in(settings_file())
        if str(root / PLUGIN_FILE) in (settings.get("disabledPlugins") or []):
            return self.said("fail", f"installed, but switched off in {settings_file()}", "cline config")
        if not shutil.which("node") and not any(map(os.environ.get, _RUNTIME_VARIABLES)):
            wrong = "Cline runs plugins with Node.js, and that is not on PATH: without it nothing is checked"
            return self.said("fail", wrong, "install Node.js")
        return None

    def beside(self, root: Path | None) -> list[Finding]:
        if root is None or _server_in(root).is_current():
            return []
        text = f"{servers_file()} does not name it as it is installed"
        return [Finding("cline MCP server", "warn", text, self.mend)]

    def users_servers(self) -> dict[str, Path]:
        return servers_in_json("mcpServers", servers_file(), is_ours=_is_ours)

    def write_payload(self, session_id: str, cwd: str, file: str) -> dict[str, Any]:
        return {
            "session_id": session_id, "cwd": cwd, "hook_event_name": "PreToolUse", "tool_name": "editor",
            "tool_input": {"path": file, "new_text": "x"}, "tool_use_id": "call_doctor",
        }  # fmt: skip

    def shell_payload(self, session_id: str, cwd: str, command: str) -> dict[str, Any]:
        payload = self.write_payload(session_id, cwd, cwd)
        return {**payload, "tool_name": self.shell_tool, "tool_input": {"commands": ["pwd", command]}}


def home() -> Path:
    """Return Cline's folder. It need not exist."""
    return Path(os.environ.get("CLINE_DIR", "").strip() or os.path.expanduser("~/.cline"))


def folder() -> Path:
    """Return the folder that Cline finds the plugin by."""
    return home() / "plugins" / PLUGIN


def servers_file() -> Path:
    """Return the settings file that names the user's MCP servers; it need not exist."""
    chosen = os.environ.get("CLINE_MCP_SETTINGS_PATH", "").strip()
    if chosen:
        return Path(chosen)
    return _data_folder() / "settings" / "cline_mcp_settings.json"


def settings_file() -> Path:
    """Return the user's settings, with the plugins that are switched off. They need not exist."""
    chosen = os.environ.get("CLINE_GLOBAL_SETTINGS_PATH", "").strip()
    return Path(chosen or _data_folder() / "settings" / "global-settings.json")


def _data_folder() -> Path:
    return Path(os.environ.get("CLINE_DATA_DIR", "").strip() or home() / "data")


def _named(file: str) -> dict[str, Any]:
    return {"plugins": [{"paths": [file]}]}


def _package(root: Path) -> dict[str, bytes]:
    """Return the files of `folder`: a package with the plugin in `root`, and the record that marks it as ours."""
    package = {"name": "swarm-mcp", "version": __version__, "private": True, "cline": _named(str(root / PLUGIN_FILE))}
    record = {"name": "swarm", "version": __version__, "files": [PACKAGE]}
    return {PACKAGE: as_json(package), RECORD: as_json(record)}


def _server_in(root: Path) -> EditedJson:
    """The settings file with the server of the plugin in `root`, as its own mcp.json has it."""
    name = in_bundle(root).get("cline", NAME)
    own = object_in(root / "integrations/cline/mcp.json").get("mcpServers", {}).get(name)
    return EditedJson(servers_file(), [Entry(("mcpServers", name), own)], is_ours=_is_ours)


def _is_ours(server: object) -> bool:
    words = object_of(server).get("args")
    return isinstance(words, list) and words[-1:] == ["serve"] and "swarm_mcp" in str(words)
