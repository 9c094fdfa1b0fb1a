"""GitHub Copilot CLI: a plugin of a marketplace in a local folder runs in place, so upgrading the folder upgrades it.

Its own `plugin install` writes the person's settings anew, without their comments, and leaves keys behind.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from swarm_mcp.errors import SwarmError
from swarm_mcp.folders import here
from swarm_mcp.installation import marketplace_folder
from swarm_mcp.runtimes.base import (
    MARKETPLACE,
    PLUGIN,
    PLUGIN_ID,
    Finding,
    InPlace,
    Steps,
    as_failure,
    starts_our_hooks,
)
from swarm_mcp.runtimes.client_settings import last_of, read_layer, servers_in_json, switched_off, unread, with_comments
from swarm_mcp.runtimes.installed import YES, Coverage, Installed, Verified
from swarm_mcp.runtimes.json_editor import object_of
from swarm_mcp.runtimes.users_file import EditedJson, Entry, tree_in

MANIFEST = ".github/plugin/plugin.json"  # Copilot prefers it to the manifest of Claude Code in the same folder
POLICY = Path("/etc/github-copilot/managed-settings.json")
SOURCES, ENABLED = "extraKnownMarketplaces", "enabledPlugins"
# Further files from which Copilot takes hooks: those of a project count only if its folder is trusted.
_HOOKS_OF_PROJECT = (".claude/settings.json", ".claude/settings.local.json", ".github/hooks/*.json")


class Copilot(InPlace):
    """The ``copilot`` command."""

    name = executable = harness = "copilot"
    title = "GitHub Copilot CLI"
    oldest = "1.0.81"
    coverage = Coverage(
        edits=YES, patches=YES, shell=YES, other_tools=YES, subagents=YES, told_before=YES, told_after=YES, ends=YES,
        verified=Verified("1.0.102", "2026-11-29"),
    )  # fmt: skip
    needed = MANIFEST
    manifests = (".github/plugin",)
    shell_tool = "Bash"
    has_subagents = True
    # As of release 1.0.102. The shells and servers of its agents have the first; its hooks alone the last.
    session_variables = (
        "COPILOT_AGENT_SESSION_ID", "COPILOT_CLI", "COPILOT_CLI_BINARY_VERSION", "COPILOT_CLI_RESOLVED_DIST_DIR",
        "COPILOT_PLUGIN_*", "COPILOT_HOOK_DIR", "COPILOT_PROJECT_DIR",
    )  # fmt: skip

    @as_failure()
    def install(self, marketplace: Path, steps: Steps) -> Installed:
        return self.put_entries(_entries(marketplace), marketplace, steps)

    @as_failure()
    def uninstall(self, steps: Steps) -> None:
        self.take_entries_out(_entries(marketplace_folder()), steps)

    def traces(self) -> bool:
        return _entries(marketplace_folder()).is_there()

    def root(self) -> Path | None:
        path = _member(_member(_member(_settings_now(), SOURCES), MARKETPLACE), "source").get("path")
        if isinstance(path, str):
            return Path(path)
        return None

    def fault(self, root: Path) -> Finding | None:
        if _member(_settings_now(), ENABLED).get(PLUGIN_ID) is True:
            return None
        return self.said("fail", "installed but disabled", self.mend)

    def beside(self, root: Path | None) -> list[Finding]:
        """Report other copies of our hooks that Copilot runs, and hooks that are switched off."""
        plugins = [name for name, on in _member(_settings_now(), ENABLED).items() if on is True]
        also = [f"the plugin {name}" for name in plugins if name.startswith(f"{PLUGIN}@") and name != PLUGIN_ID]
        files = [*sorted((home() / "hooks").glob("*.json"))]
        files += [file for pattern in _HOOKS_OF_PROJECT for file in sorted(Path.cwd().glob(pattern))]
        also += [f"hooks in {file}" for file in files if starts_our_hooks(file)]
        found = self.more_than_one(also, root)
        if root:
            found += [*_off_by_policy(), *_off_by_project()]
        if root and _settings_now().get("disableAllHooks") is True:
            text = f"disableAllHooks is in {_settings()}; release 1.0.102 runs the hooks of plugins all the same"
            found.append(Finding("copilot hooks", "warn", text, f"take disableAllHooks out of {_settings()}"))
        return found

    def users_servers(self) -> dict[str, Path]:
        return servers_in_json("mcpServers", home() / "mcp-config.json")

    def write_payload(self, session_id: str, cwd: str, file: str) -> dict[str, Any]:
        return {
            "hook_event_name": "PreToolUse", "session_id": session_id, "timestamp": "2026-01-01T00:00:00.000Z",
            "cwd": cwd, "tool_name": "Write", "tool_input": {"path": file, "file_text": "x"},
        }  # fmt: skip


def _entries(marketplace: Path) -> EditedJson:
    """Return our entries in the user's settings. Everything under our names is ours."""
    source = {"source": {"source": "directory", "path": str(marketplace)}}
    wanted = [Entry((SOURCES, MARKETPLACE), source), Entry((ENABLED, PLUGIN_ID), True)]
    return EditedJson(_settings(), wanted, is_ours=lambda value: True)


def _settings_now() -> dict[str, Any]:
    """Return the user's settings, a file with comments. Empty if they cannot be read."""
    try:
        return object_of(tree_in(_settings()))
    except SwarmError:  # unreadable: as without settings
        return {}


def _off_by_policy() -> list[Finding]:
    """Return the finding that the machine's policy keeps the plugin off, or that it cannot be read."""
    policy, name = read_layer(POLICY, is_policy=True), f"{Copilot.name} hooks"
    text = f"in {POLICY}, a policy that only an administrator can change"
    if _member(policy.settings, ENABLED).get(PLUGIN_ID) is False:
        return [Finding(name, "fail", f"the plugin is disabled {text}")]
    if policy.settings.get("allowManagedHooksOnly") is True:
        return [Finding(name, "fail", f"only hooks of policies run: allowManagedHooksOnly {text}")]
    known = policy.settings.get("strictKnownMarketplaces")
    if isinstance(known, list) and str(marketplace_folder()) not in json.dumps(known, ensure_ascii=False):
        return [Finding(name, "fail", f"the plugin's source is not among strictKnownMarketplaces {text}")]
    return unread(Copilot.name, [policy])


def _off_by_project() -> list[Finding]:
    """Return the finding that settings of the project keep the plugin off. Copilot reads them in a folder it trusts."""
    folder = Path(here(), ".github", "copilot")
    known = [read_layer(folder / name, parse=with_comments) for name in ("settings.json", "settings.local.json")]
    off, enabled = last_of(known, "disableAllHooks"), last_of(known, ENABLED, PLUGIN_ID)
    if off and off[0]:
        return [switched_off(Copilot.name, off[1], "disableAllHooks")]
    if enabled and not enabled[0]:
        text = f"the plugin is disabled in {enabled[1].file}"
        return [Finding(f"{Copilot.name} hooks", "fail", text, f"take {PLUGIN_ID} out of {enabled[1].file}")]
    return unread(Copilot.name, known)


def _member(tree: dict[str, Any], name: str) -> dict[str, Any]:
    return object_of(tree.get(name))


def _settings() -> Path:
    return home() / "settings.json"


def home() -> Path:
    """Return Copilot's folder. It need not exist."""
    return Path(os.environ.get("COPILOT_HOME") or os.path.join(os.path.expanduser("~"), ".copilot"))
