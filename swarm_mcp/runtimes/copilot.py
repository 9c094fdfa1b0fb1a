"""GitHub Copilot CLI: a plugin of a marketplace in a local folder runs in place, so upgrading the folder upgrades it.

Its own `plugin install` writes the person's settings anew, without their comments, and leaves keys behind.
"""

from __future__ import annotations

import os
from pathlib import Path

from swarm_mcp import __version__
from swarm_mcp.errors import ClientFailed, SwarmError
from swarm_mcp.installation import marketplace_folder
from swarm_mcp.runtimes.base import MARKETPLACE, PLUGIN, PLUGIN_ID, Finding, Look, Runtime, starts_our_hooks
from swarm_mcp.runtimes.coverage import YES, Coverage, Verified
from swarm_mcp.runtimes.edited_json import EditedJson, Entry, tree_in
from swarm_mcp.runtimes.installed import Installed
from swarm_mcp.runtimes.owned_folder import read_record
from swarm_mcp.runtimes.steps import Steps

MANIFEST = ".github/plugin/plugin.json"  # which Copilot prefers to that of Claude Code in the same folder
MEND = "swarm-mcp install --client copilot"
SOURCES, ENABLED = "extraKnownMarketplaces", "enabledPlugins"
# Files from which Copilot takes hooks besides: of the person, and (where the folder is trusted) of a project.
_HOOKS_OF_PROJECT = (".claude/settings.json", ".claude/settings.local.json", ".github/hooks/*.json")


class Copilot(Runtime):
    """The ``copilot`` command."""

    name = executable = harness = "copilot"
    title = "GitHub Copilot CLI"
    coverage = Coverage(
        edits=YES, patches=YES, shell=YES, other_tools=YES, subagents=YES, told_before=YES, told_after=YES, ends=YES,
        verified=Verified("1.0.102", "2026-11-23"),
    )  # fmt: skip
    manifests = (".github/plugin",)
    shell_tool = "Bash"
    has_subagents = True
    # As of release 1.0.102. The shells and servers of its agents have the first; its hooks alone the last.
    session_variables = (
        "COPILOT_AGENT_SESSION_ID", "COPILOT_CLI", "COPILOT_CLI_BINARY_VERSION", "COPILOT_CLI_RESOLVED_DIST_DIR",
        "COPILOT_PLUGIN_*", "COPILOT_HOOK_DIR", "COPILOT_PROJECT_DIR",
    )  # fmt: skip

    def install(self, marketplace: Path, steps: Steps) -> Installed:
        doing = f"putting the plugin in {marketplace} into {_settings()}"
        steps.begin(doing)
        try:
            if _entries(marketplace).put():
                steps.add(doing.replace("putting", "put", 1))
        except SwarmError as error:
            raise ClientFailed(str(error)) from error
        return self.installed_at(marketplace)

    def uninstall(self, steps: Steps) -> None:
        try:
            if _entries(marketplace_folder()).take_out():
                steps.add(f"took the plugin out of {_settings()}")
        except SwarmError as error:
            raise ClientFailed(str(error)) from error

    def traces(self) -> bool:
        return _entries(marketplace_folder()).is_there()

    def version(self) -> str:
        root = _root()
        return str(read_record(root).get("version") or "") if root else ""

    def look(self, marketplace: Path, steps: Steps) -> Look:
        root, tree = _root(), _settings_now()
        if root is None:
            return Look([Finding("copilot plugin", "warn", "not installed", MEND), *_others(None)], None)
        found = [self._finding(root, tree), *_others(root)]
        if tree.get("disableAllHooks") is True:
            text = f"all hooks are switched off ({_settings()})"
            found.append(Finding("copilot hooks", "fail", text, "remove disableAllHooks"))
        return Look(found, self.installed_at(root))

    def _finding(self, root: Path, tree: dict) -> Finding:
        if _member(tree, ENABLED).get(PLUGIN_ID) is not True:
            return Finding("copilot plugin", "fail", "installed but disabled", MEND)
        if not (root / MANIFEST).is_file():
            return Finding("copilot plugin", "fail", f"{root} has no {MANIFEST}", MEND)
        version = self.version()
        if version != __version__:
            text = f"version {version} at {root}; this swarm-mcp is {__version__}"
            return Finding("copilot plugin", "warn", text, MEND)
        return Finding("copilot plugin", "ok", f"version {version}, at {root}")

    def write_payload(self, session_id: str, cwd: str, file: str) -> dict:
        return {
            "hook_event_name": "PreToolUse", "session_id": session_id, "timestamp": "2026-01-01T00:00:00.000Z",
            "cwd": cwd, "tool_name": "Write", "tool_input": {"path": file, "file_text": "x"},
        }  # fmt: skip


def _entries(marketplace: Path) -> EditedJson:
    """What is ours in the person's settings; whatever has our names in there is."""
    source = {"source": {"source": "directory", "path": str(marketplace)}}
    wanted = [Entry((SOURCES, MARKETPLACE), source), Entry((ENABLED, PLUGIN_ID), True)]
    return EditedJson(_settings(), wanted, is_ours=lambda value: True)


def _root() -> Path | None:
    """The folder that Copilot runs the plugin from; None where it has none, or not from a folder."""
    source = _member(_member(_settings_now(), SOURCES), MARKETPLACE).get("source")
    path = source.get("path") if isinstance(source, dict) else None
    return Path(path) if isinstance(path, str) else None


def _others(root: Path | None) -> list[Finding]:
    """What else of ours Copilot would run beside the plugin in `root`: it stands back there, if `root` is a folder."""
    plugins = [name for name, on in _member(_settings_now(), ENABLED).items() if on is True]
    also = [f"the plugin {name}" for name in plugins if name.startswith(f"{PLUGIN}@") and name != PLUGIN_ID]
    files = [*sorted((home() / "hooks").glob("*.json"))]
    files += [file for pattern in _HOOKS_OF_PROJECT for file in sorted(Path.cwd().glob(pattern))]
    also += [f"hooks in {file}" for file in files if starts_our_hooks(file)]
    if not also:
        return []
    what = "stand back, so that no write is checked twice" if root else "act as this client's"
    return [Finding("copilot, more than one", "info", f"{', '.join(also)}: they {what}")]


def _settings_now() -> dict:
    """The person's settings, a file with comments; empty where there are none that can be read."""
    try:
        tree = tree_in(_settings())
    except SwarmError:
        return {}
    return tree if isinstance(tree, dict) else {}


def _member(tree: dict, name: str) -> dict:
    found = tree.get(name)
    return found if isinstance(found, dict) else {}


def _settings() -> Path:
    return home() / "settings.json"


def home() -> Path:
    """Return Copilot's folder, which need not exist."""
    return Path(os.environ.get("COPILOT_HOME") or os.path.join(os.path.expanduser("~"), ".copilot"))
