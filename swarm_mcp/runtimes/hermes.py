"""Hermes Agent: a plugin is a folder in ``~/.hermes/plugins``. Ours is a link, so upgrading the bundle upgrades it.

Its ``config.yaml`` names the enabled plugin, the server and the folder of skills. Commands of Hermes would write that
file anew without its comments, so it is edited as text.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from swarm_mcp.errors import ClientFailed, SwarmError
from swarm_mcp.installation import marketplace_folder
from swarm_mcp.runtimes.base import PLUGIN, Finding, Steps, as_failure, object_in, says
from swarm_mcp.runtimes.bundle import LAUNCHER
from swarm_mcp.runtimes.edited_yaml import YamlText
from swarm_mcp.runtimes.in_place import InPlace, leads_to, put_link, take_link
from swarm_mcp.runtimes.installed import YES, Coverage, Installed, Verified
from swarm_mcp.runtimes.json_editor import object_of
from swarm_mcp.runtimes.server_name import NAME, NAMES, in_bundle
from swarm_mcp.runtimes.users_file import delete, read_text, write_whole

FOLDER = "integrations/hermes"


class Hermes(InPlace):
    """The ``hermes`` command."""

    name = executable = harness = "hermes"
    title = "Hermes"
    oldest = "0.17.0"
    needed = f"{FOLDER}/__init__.py"
    shell_tool = "terminal"
    has_subagents = True
    coverage = Coverage(
        edits=YES, patches=YES, shell=YES, other_tools=YES, subagents=YES, told_before=YES, told_after=YES, ends=YES,
        verified=Verified("0.19.0", "2026-11-29"),
    )  # fmt: skip
    session_variables = ("HERMES_SESSION_*", "TERMINAL_CWD")

    def install(self, marketplace: Path, steps: Steps) -> Installed:
        link, wanted = self._link(), marketplace / FOLDER
        if os.path.lexists(link) and not link.is_symlink():
            raise ClientFailed(f"{link} is a plugin of another owner")
        if leads_to(link, FOLDER) != marketplace:
            put_link(link, wanted, steps)
        servers = object_in(wanted / "mcp.json").get("mcpServers")
        name = in_bundle(marketplace).get(self.name, NAME)
        entry = object_of(servers).get(name)
        if not isinstance(entry, dict):
            raise ClientFailed(f"{wanted}/mcp.json cannot be understood")
        settings = _Settings()
        before = settings.text
        settings.take(marketplace)
        settings.put(marketplace, name, {**entry, "command": str(marketplace / LAUNCHER), "args": ["serve"]})
        if settings.text != before:
            with steps.step(f"entering the plugin into {settings.path}", f"entered the plugin into {settings.path}"):
                settings.write()
                if not self._is_enabled():
                    settings.text = before
                    settings.write()
                    raise ClientFailed(f"Hermes does not list the plugin as enabled; {settings.path} is as it was")
        return self.installed_at(marketplace)

    def uninstall(self, steps: Steps) -> None:
        link, settings = self._link(), _Settings()
        before = settings.text
        settings.take(marketplace_folder())
        if settings.text != before:
            with steps.step(f"taking the plugin out of {settings.path}", f"took the plugin out of {settings.path}"):
                settings.write()
        if self.root() is not None:
            take_link(link, steps)

    def root(self) -> Path | None:
        return leads_to(self._link(), FOLDER)

    def fault(self, root: Path) -> Finding | None:
        if self._is_enabled():
            return None
        if says(policy(), "plugins:"):
            text = f"installed but not enabled; {policy()}, which only an administrator can change, has plugins"
            return self.said("fail", text)
        return self.said("fail", "installed but not enabled", self.mend)

    def beside(self, root: Path | None) -> list[Finding]:
        """Report extras that this installation of Hermes lacks, as far as its files show."""
        try:
            with open(self.program(), "rb") as script:
                python = script.readline().decode("utf-8", "replace").strip().removeprefix("#!")
        except OSError:  # unreadable: unknown extras
            return []
        folders = []
        if "python" in python:
            folders = list(Path(python).parent.parent.glob("lib/python*/site-packages"))
        if root is None or not folders or any((folder / "mcp").is_dir() for folder in folders):
            return []
        text = "it has no support for MCP servers: its agents lock with `swarm-mcp` in the shell, not with tools"
        return [Finding("hermes tools", "info", text, f"{python} -m pip install 'hermes-agent[mcp]'")]

    def users_servers(self) -> dict[str, Path]:
        try:
            settings = _Settings()
            settings.take(marketplace_folder())
            edited = YamlText(settings.text)
        except SwarmError:  # unreadable: no name is taken
            return {}
        return {name: settings.path for name in NAMES if edited.has("mcp_servers", name)}

    def write_payload(self, session_id: str, cwd: str, file: str) -> dict[str, Any]:
        return {
            "session_id": session_id, "agent_id": "", "cwd": cwd, "hook_event_name": "PreToolUse",
            "tool_name": "write_file", "tool_input": {"path": file, "content": "x"}, "tool_use_id": "call_doctor",
        }  # fmt: skip

    # ---------------------------------------------------------------- innards

    def _link(self) -> Path:
        return home() / "plugins" / PLUGIN

    def _is_enabled(self) -> bool:
        """Return True if Hermes itself says that it loads the plugin."""
        _code, listed, _text = self._call("plugins", "list", "--json", "--user")
        plugins = []
        if isinstance(listed, list):
            plugins = [one for one in listed if isinstance(one, dict)]
        return any(one.get("name") == PLUGIN and one.get("status") == "enabled" for one in plugins)


class _Settings:
    """The text of ``config.yaml``; raises ClientFailed where it cannot be read, edited or written."""

    @as_failure()
    def __init__(self) -> None:
        self.path = home() / "config.yaml"
        self.text = read_text(self.path) or ""

    def put(self, marketplace: Path, name: str, entry: dict[str, Any]) -> None:
        """Enter the plugin, the folder of skills, and the server `entry` under `name`."""
        with self._edited() as edited:
            edited.put_item("plugins", "enabled", PLUGIN)
            edited.put_item("skills", "external_dirs", str(marketplace / "skills"))
            edited.put_member("mcp_servers", name, entry)

    def take(self, marketplace: Path) -> None:
        """Take all that out again."""
        with self._edited() as edited:
            edited.take_item("plugins", "enabled", PLUGIN)
            edited.take_item("skills", "external_dirs", str(marketplace / "skills"))
            for name in NAMES:
                edited.take_member("mcp_servers", name, str(marketplace / LAUNCHER))

    @as_failure()
    def write(self) -> None:
        """Write the text; a file without any is removed."""
        if self.text:
            write_whole(self.path, self.text.encode("utf-8"))
        else:
            delete(self.path)

    @contextmanager
    def _edited(self) -> Iterator[YamlText]:
        try:
            edited = YamlText(self.text)
            yield edited
            self.text = edited.text
        except SwarmError as error:
            raise ClientFailed(f"{self.path} cannot be edited: {error}") from error


def home() -> Path:
    """Return Hermes' folder of settings and plugins. It need not exist."""
    return Path(os.path.expanduser(os.environ.get("HERMES_HOME", "").strip() or "~/.hermes"))


def policy() -> Path:
    """Return the file of the machine's policy, which goes before the user's settings. It need not exist."""
    return Path(os.environ.get("HERMES_MANAGED_DIR", "").strip() or "/etc/hermes") / "config.yaml"
