"""Hermes Agent: a plugin is a folder in ``~/.hermes/plugins``; ours is a link, so upgrading the bundle upgrades it.

What else it has of us stands in its ``config.yaml``: that the plugin is enabled, the server, the folder of skills.
Its own commands for that write the file anew, and every comment in it is lost; so it is edited as text.
"""

from __future__ import annotations

import os
from pathlib import Path

from swarm_mcp import __version__
from swarm_mcp.errors import ClientFailed, SwarmError
from swarm_mcp.installation import marketplace_folder
from swarm_mcp.runtimes.base import PLUGIN, Finding, Look, Runtime, object_in
from swarm_mcp.runtimes.coverage import YES, Coverage, Verified
from swarm_mcp.runtimes.edited_yaml import YamlText
from swarm_mcp.runtimes.installed import Installed
from swarm_mcp.runtimes.mcp_file import write_whole
from swarm_mcp.runtimes.owned_folder import read_record
from swarm_mcp.runtimes.steps import Steps

FOLDER = "integrations/hermes"
LAUNCHER = "bin/swarm-mcp"
MEND = "swarm-mcp install --client hermes"


class Hermes(Runtime):
    """The ``hermes`` command."""

    name = executable = harness = "hermes"
    title = "Hermes"
    shell_tool = "terminal"
    has_subagents = True
    coverage = Coverage(
        edits=YES, patches=YES, shell=YES, other_tools=YES, subagents=YES, told_before=YES, told_after=YES, ends=YES,
        verified=Verified("0.19.0", "2026-11-23"),
    )  # fmt: skip
    session_variables = ("HERMES_SESSION_*", "TERMINAL_CWD")

    def install(self, marketplace: Path, steps: Steps) -> Installed:
        link, wanted = self._link(), marketplace / FOLDER
        if os.path.lexists(link) and not link.is_symlink():
            raise ClientFailed(f"{link} is a plugin of somebody else's")
        if not link.is_symlink() or os.readlink(link) != str(wanted):
            with steps.step(f"linking {link} to {wanted}", f"linked {link} to {wanted}"):
                self._relink(wanted)
        servers = object_in(wanted / "mcp.json").get("mcpServers")
        entry = servers.get(PLUGIN) if isinstance(servers, dict) else None
        if not isinstance(entry, dict):
            raise ClientFailed(f"{wanted}/mcp.json cannot be understood")
        settings = _Settings()
        before = settings.text
        settings.take(marketplace)
        settings.put(marketplace, {**entry, "command": str(marketplace / LAUNCHER), "args": ["serve"]})
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
        if self._root() is not None:
            with steps.step(f"removing {link}", f"removed {link}"):
                link.unlink()

    def traces(self) -> bool:
        return self._root() is not None

    def version(self) -> str:
        return _version_in(self._root() or Path())

    def look(self, marketplace: Path, steps: Steps) -> Look:
        root = self._root()
        if root is None:
            return Look([Finding("hermes plugin", "warn", "not installed", MEND)], None)
        version = _version_in(root)
        if not (root / FOLDER / "__init__.py").is_file():
            found = Finding("hermes plugin", "fail", f"{root} has no {FOLDER}/__init__.py", MEND)
        elif not self._is_enabled():
            found = Finding("hermes plugin", "fail", "installed but not enabled", MEND)
        elif version != __version__:
            text = f"version {version} at {root}; this swarm-mcp is {__version__}"
            found = Finding("hermes plugin", "warn", text, MEND)
        else:
            found = Finding("hermes plugin", "ok", f"version {version}, at {root}")
        return Look([found, *self._lacking()], self.installed_at(root))

    def write_payload(self, session_id: str, cwd: str, file: str) -> dict:
        return {
            "session_id": session_id, "agent_id": "", "cwd": cwd, "hook_event_name": "PreToolUse",
            "tool_name": "write_file", "tool_input": {"path": file, "content": "x"}, "tool_use_id": "call_doctor",
        }  # fmt: skip

    # ---------------------------------------------------------------- innards

    def _link(self) -> Path:
        return home() / "plugins" / PLUGIN

    def _root(self) -> Path | None:
        """The bundle that our link leads into, which need not be there any more; None without a link of ours."""
        try:
            target = os.readlink(self._link())
        except OSError:
            return None
        return Path(target.removesuffix(f"/{FOLDER}")) if target.endswith(f"/{FOLDER}") else None

    def _relink(self, wanted: Path) -> None:
        try:
            self._link().parent.mkdir(parents=True, exist_ok=True)
            self._link().unlink(missing_ok=True)
            self._link().symlink_to(wanted)
        except OSError as error:
            raise ClientFailed(f"{self._link()} could not be made: {error.strerror or error}") from error

    def _lacking(self) -> list[Finding]:
        """What an installation of Hermes lacks that does not have all its extras, as far as its files show it."""
        try:
            with open(self.program(), "rb") as script:
                python = script.readline().decode("utf-8", "replace").strip().removeprefix("#!")
        except OSError:
            return []
        folders = list(Path(python).parent.parent.glob("lib/python*/site-packages")) if "python" in python else []
        if not folders or any((folder / "mcp").is_dir() for folder in folders):
            return []
        text = "it has no support for MCP servers: its agents lock with `swarm-mcp` in the shell, not with tools"
        return [Finding("hermes tools", "info", text, f"{python} -m pip install 'hermes-agent[mcp]'")]

    def _is_enabled(self) -> bool:
        """Whether Hermes itself says that it loads the plugin."""
        _code, listed, _text = self._call("plugins", "list", "--json", "--user")
        plugins = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        return any(one.get("name") == PLUGIN and one.get("status") == "enabled" for one in plugins)


class _Settings:
    """The text of ``config.yaml``; raises ClientFailed where it cannot be read, edited or written."""

    def __init__(self) -> None:
        self.path = home() / "config.yaml"
        try:
            self.text = self.path.read_bytes().decode("utf-8") if self.path.exists() else ""
        except (OSError, ValueError) as error:
            raise ClientFailed(f"{self.path} cannot be read: {error}") from error

    def put(self, marketplace: Path, entry: dict) -> None:
        """Enter the plugin, the folder of skills and the server `entry`."""
        edited = self._edited()
        try:
            edited.put_item("plugins", "enabled", PLUGIN)
            edited.put_item("skills", "external_dirs", str(marketplace / "skills"))
            edited.put_member("mcp_servers", PLUGIN, entry)
        except SwarmError as error:
            raise ClientFailed(f"{self.path} cannot be edited: {error}") from error
        self.text = edited.text

    def take(self, marketplace: Path) -> None:
        """Take all that out again."""
        edited = self._edited()
        try:
            edited.take_item("plugins", "enabled", PLUGIN)
            edited.take_item("skills", "external_dirs", str(marketplace / "skills"))
            edited.take_member("mcp_servers", PLUGIN, str(marketplace / LAUNCHER))
        except SwarmError as error:
            raise ClientFailed(f"{self.path} cannot be edited: {error}") from error
        self.text = edited.text

    def write(self) -> None:
        """Write the text; a file without any is removed."""
        try:
            if self.text:
                write_whole(self.path.resolve(), self.text.encode("utf-8"))
            else:
                self.path.unlink(missing_ok=True)
        except (OSError, SwarmError) as error:
            raise ClientFailed(f"{self.path} cannot be written: {error}") from error

    def _edited(self) -> YamlText:
        try:
            return YamlText(self.text)
        except SwarmError as error:
            raise ClientFailed(f"{self.path} cannot be edited: {error}") from error


def _version_in(root: Path) -> str:
    return str(read_record(root).get("version") or "")


def home() -> Path:
    """Return the folder of Hermes' settings and plugins, which need not exist."""
    return Path(os.path.expanduser(os.environ.get("HERMES_HOME", "").strip() or "~/.hermes"))
