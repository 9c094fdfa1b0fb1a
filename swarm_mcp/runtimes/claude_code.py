"""Claude Code: a directory marketplace runs in place, so upgrading the folder upgrades the plugin.

Releases such as 2.1.197, which npm picks for Node.js 20, run a copy. They know ``--json`` for lists alone.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from swarm_hook_core.repository import tree_over
from swarm_mcp.errors import ClientFailed, SwarmError
from swarm_mcp.folders import here
from swarm_mcp.runtimes.base import MARKETPLACE, PLUGIN, PLUGIN_ID, Finding, Look, Runtime, StatusLine, Steps, says
from swarm_mcp.runtimes.client_settings import (
    environment_layer,
    last_of,
    read_layer,
    switched_off,
    unread,
    variable_layers,
    variable_on,
)
from swarm_mcp.runtimes.installed import YES, Coverage, Installed, Verified
from swarm_mcp.runtimes.json_editor import list_of
from swarm_mcp.runtimes.users_file import differing, object_in, read_files, read_record, write_whole

# The settings of Claude Code that keep it from running hooks or the plugin (as of release 2.1.332).
#
# Settings given with `claude --settings` cannot be seen from outside.

CLIENT = "claude-code"
# The folder of the machine's policies.
POLICIES = Path("/Library/Application Support/ClaudeCode" if sys.platform == "darwin" else "/etc/claude-code")
PREFERENCES = Path("/Library/Managed Preferences/com.anthropic.claudecode.plist")  # those of a managed Mac
_FETCHED = "remote-settings.json"  # an organization's, as the client has fetched them
_PROJECT, _LOCAL = ".claude/settings.json", ".claude/settings.local.json"
_ALL_OFF, _MANAGED_ONLY = "disableAllHooks", "allowManagedHooksOnly"
_MARKETPLACES = ("strictKnownMarketplaces", "blockedMarketplaces")
_BARE = ("CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE")  # also from the settings, but not from those of a project
_RESTRICTED = ("CLAUDE_CODE_RESTRICTED",)  # of the environment alone


class ClaudeSettings:
    """The layers of settings for a session that starts in this folder. `home`: the client's folder of the user.

    `own`: the user's file, then the project's. `policies`: those of the machine.
    """

    def __init__(self, home: Path):
        folder, self._fetched = here(), home / _FETCHED
        files = [home / "settings.json", Path(folder, _PROJECT), Path(folder, _LOCAL)]
        tree = tree_over(os.path.realpath(folder))
        if tree:
            # Linked work trees have those of the main one, whose folder has the repository's.
            is_beside = os.path.basename(tree.common) == ".git"
            files.append(Path(os.path.dirname(tree.common) if is_beside else tree.top, _LOCAL))
        self.own = [read_layer(file) for file in dict.fromkeys(files)]
        added = sorted(file for file in (POLICIES / "managed-settings.d").glob("*.json") if file.name[0] != ".")
        self.policies = [read_layer(file, is_policy=True) for file in (POLICIES / "managed-settings.json", *added)]
        self._layers = [*self.own, *self.policies]

    def findings(self) -> list[Finding]:
        """Return the finding that no hook of the plugin runs, and one for each layer that is not known."""
        off = self._all_off() or self._managed_only() or self._disabled_by_policy() or self._bare()
        return [*([off] if off else []), *unread(CLIENT, self._layers), *self._unknown()]

    def disabled_in(self) -> str:
        """Return the file that disables the plugin, or an empty text."""
        found = last_of(self._layers, "enabledPlugins", PLUGIN_ID)
        if found and not found[0]:
            return found[1].file
        return ""

    def policy_on_marketplaces(self) -> str:
        """Return the policy that restricts marketplaces, or an empty text."""
        return next((one.file for one in self.policies if any(key in one.settings for key in _MARKETPLACES)), "")

    def _all_off(self) -> Finding | None:
        found = last_of(self._layers, _ALL_OFF)
        if not found or not found[0]:
            return None
        layer, mend = found[1], ""
        if layer.file == str(Path(here(), _PROJECT)):  # others may share it
            mend = f"take {_ALL_OFF} out of {layer.file}, or set it to false in {_LOCAL}"
        return switched_off(CLIENT, layer, _ALL_OFF, mend)

    def _managed_only(self) -> Finding | None:
        """Return the finding that hooks of plugins run only if a policy enables them, and ours is not."""
        found, enabled = last_of(self.policies, _MANAGED_ONLY), last_of(self.policies, "enabledPlugins", PLUGIN_ID)
        if not found or not found[0] or (enabled and enabled[0]):
            return None
        text = f"only hooks of policies run: {_MANAGED_ONLY} in {found[1].file}. An administrator can add ours there:"
        return Finding(f"{CLIENT} hooks", "fail", f'{text} "enabledPlugins": {{"{PLUGIN_ID}": true}}')

    def _disabled_by_policy(self) -> Finding | None:
        found = last_of(self.policies, "enabledPlugins", PLUGIN_ID)
        if not found or found[0]:
            return None
        text = f"the plugin is disabled in {found[1].file}, a policy that only an administrator can change"
        return Finding(f"{CLIENT} hooks", "fail", text)

    def _bare(self) -> Finding | None:
        process = environment_layer()
        sources = [*variable_layers(reversed(self.policies)), *variable_layers(self.own[:1]), process]
        found = variable_on(_BARE, sources) or variable_on(_RESTRICTED, [process])
        if found:
            return switched_off(CLIENT, found[1], found[0])
        return None

    def _unknown(self) -> list[Finding]:
        """Return findings about policies whose effect cannot be told from here."""
        told, fetched = [], read_layer(self._fetched, is_policy=True)
        if fetched.fault or any(fetched.settings.get(key) is True for key in (_ALL_OFF, _MANAGED_ONLY)):
            told.append(f"{self._fetched}: while you are signed in to that organization, it may switch hooks off")
        if PREFERENCES.exists():
            told.append(f"{PREFERENCES} is not read here, and may switch hooks off")
        return [Finding(f"{CLIENT} settings", "warn", text) for text in told]


SERVER = "plugin:swarm:swarm"  # as Claude Code names the plugin's server


class ClaudeCode(Runtime):
    """The ``claude`` command."""

    name = "claude-code"
    title = "Claude Code"
    executable = harness = "claude"
    oldest = "2.1.100"
    coverage = Coverage(
        edits=YES, patches="no: its models have no tool for them", shell=YES, other_tools=YES, subagents=YES,
        told_before=YES, told_after=YES, ends=YES, verified=Verified("2.1.332", "2026-11-29"),
    )  # fmt: skip
    manifests = (".claude-plugin",)
    has_subagents = True
    # The agent's id is there, empty, in a session's main thread as well.
    # As of release 2.1.330.
    session_variables = (
        "CLAUDECODE", "CLAUDE_PID", "CLAUDE_ENV_FILE", "CLAUDE_PROJECT_DIR", "CLAUDE_SESSION_ID", "CLAUDE_EFFORT",
        "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_EXECPATH", "CLAUDE_CODE_CHILD_NOTES_DIR",
        "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_RESUME_FROM_SESSION", "CLAUDE_CODE_TMUX_SESSION", "AI_AGENT",
        "CLAUDE_BG_DISPATCH_ENTRYPOINT", "CLAUDE_PLUGIN_*", "CLAUDE_CODE_SESSION_*", "CLAUDE_CODE_MESSAGING_*",
        "CLAUDE_CODE_BRIDGE_*", "CLAUDE_CODE_REMOTE_*",
    )  # fmt: skip
    kept_variables = ("CLAUDE_CODE_SESSION_ACCESS_TOKEN", "CLAUDE_CODE_SESSION_LOG")

    def install(self, marketplace: Path, steps: Steps) -> Installed:
        # Every question starts the client anew and takes longer than the answer. None is asked twice.
        if self.traces():
            plugin = self._plugin(steps)
        else:
            plugin = self._installed_at_once(marketplace, steps)
        if plugin is None or plugin.get("readFromFolder") != str(marketplace):
            source = self._marketplace(steps)
            self._point_to(marketplace, source, steps)
            if plugin and source != str(marketplace):
                plugin = self._plugin(steps)  # it went with the marketplace that it was from
        current = plugin
        if plugin is None:
            with steps.step(f"installing {PLUGIN_ID}", f"installed {PLUGIN_ID}"):
                self._call("plugin", "install", PLUGIN_ID)
            current = self._plugin(steps)
        elif plugin.get("version") != read_record(marketplace).get("version"):
            with steps.step(f"updating {PLUGIN_ID}", f"updated {PLUGIN_ID}"):
                self._call("plugin", "update", PLUGIN_ID)
            current = self._plugin(steps)
        elif self._is_outdated_copy(plugin, marketplace):
            with steps.step(f"installing {PLUGIN_ID} anew", f"installed {PLUGIN_ID} anew"):
                self._call("plugin", "uninstall", PLUGIN_ID)
                self._call("plugin", "install", PLUGIN_ID)
            current = self._plugin(steps)
        if current is None:
            raise ClientFailed("Claude Code does not list the plugin after installing it")
        if not current.get("enabled"):
            with steps.step(f"enabling {PLUGIN_ID}", f"enabled {PLUGIN_ID}"):
                self._call("plugin", "enable", PLUGIN_ID, accept=(0, 1))
        if forget_failed_server():
            steps.add("cleared the client's memory of a server that could not be started")
        return self.installed_at(self._root(current))

    def uninstall(self, steps: Steps) -> None:
        had = self.traces()
        steps.begin(f"removing the marketplace, and {PLUGIN_ID} with it")
        removed, _, _ = self._call("plugin", "marketplace", "remove", MARKETPLACE, accept=(0, 1))
        if self.traces():  # its marketplace was not there, or the client has let it stay
            steps.begin(f"uninstalling {PLUGIN_ID}")
            code, _, _ = self._call("plugin", "uninstall", PLUGIN_ID, accept=(0, 1))
            had = code == 0
        if had:
            steps.add(f"uninstalled {PLUGIN_ID}")
        if removed == 0:
            steps.add("removed the marketplace")
        for left in ("cache/swarm", "data/swarm-swarm"):
            # The client only marks its copies as orphaned.
            shutil.rmtree(home() / "plugins" / left, ignore_errors=True)

    def status_line(self) -> StatusLine:
        return StatusLine(home() / "settings.json", ("statusLine",))

    def traces(self) -> bool:
        return any(says(home() / name, PLUGIN_ID) for name in ("settings.json", "plugins/installed_plugins.json"))

    def version(self) -> str:
        try:
            entries = object_in(home() / "plugins" / "installed_plugins.json")["plugins"][PLUGIN_ID]
            return str(next((one for one in entries if one["scope"] == "user"), entries[0])["version"])
        except (LookupError, TypeError):
            return ""  # it has no list, or keeps it in another form

    def hooks_off(self) -> str:
        settings = ClaudeSettings(home())
        found = [finding.message for finding in settings.findings() if finding.status == "fail"]
        file = settings.disabled_in()
        if file:
            found.append(f"the plugin is disabled in {file}")
        return "; ".join(found)

    def look(self, marketplace: Path, steps: Steps) -> Look:
        plugin = self._plugin(steps)
        mend = "swarm-mcp install --client claude-code"
        if plugin is None:
            return Look([Finding("claude-code plugin", "warn", "not installed", mend)], None)
        root, found, settings = self._root(plugin), [], ClaudeSettings(home())
        if plugin.get("errors"):
            text, policy = f"cannot be loaded: {plugin['errors'][0]}", settings.policy_on_marketplaces()
            if policy:
                text, mend = f"{text} ({policy}, a policy that only an administrator can change)", ""
            found.append(Finding("claude-code plugin", "fail", text, mend))
        elif not plugin.get("enabled"):
            enable, file = f"claude plugin enable {PLUGIN_ID}", settings.disabled_in()
            text = "installed but disabled"
            if file:
                text += f" in {file}"
            found.append(Finding("claude-code plugin", "fail", text, enable))
        else:
            found.append(Finding("claude-code plugin", "ok", f"version {plugin.get('version')}, enabled, at {root}"))
            if self._is_outdated_copy(plugin, marketplace):
                text = f"{root} differs from the files of this swarm-mcp"
                found = [Finding("claude-code plugin", "warn", text, mend)]
        return Look([*found, *settings.findings()], self.installed_at(root))

    def write_payload(self, session_id: str, cwd: str, file: str) -> dict[str, Any]:
        return {
            "session_id": session_id, "transcript_path": "", "cwd": cwd, "permission_mode": "acceptEdits",
            "hook_event_name": "PreToolUse", "tool_name": "Write",
            "tool_input": {"file_path": file, "content": "x"}, "tool_use_id": "toolu_doctor",
        }  # fmt: skip

    # ---------------------------------------------------------------- innards

    def _installed_at_once(self, marketplace: Path, steps: Steps) -> dict[str, Any] | None:
        """Add the marketplace and install from it in one call. Return the plugin, or None if that fails.

        Earlier releases have no such option. All releases refuse it if another marketplace has the name.
        """
        steps.begin(f"adding the marketplace {marketplace} and installing {PLUGIN_ID}")
        place = ("--marketplace", str(marketplace))
        code, _, _ = self._call("plugin", "install", PLUGIN, *place, accept=(0, 1))
        if code:
            return None
        steps.add(f"added the marketplace {marketplace}")
        steps.add(f"installed {PLUGIN_ID}")
        return self._plugin(steps)

    def _marketplace(self, steps: Steps) -> str:
        """Return the source of the client's marketplace of our name, or an empty text."""
        steps.begin("asking which marketplaces it has")
        _, listed, _ = self._call("plugin", "marketplace", "list", "--json")
        for entry in list_of(listed):
            if isinstance(entry, dict) and entry.get("name") == MARKETPLACE:
                source = entry.get("path") or entry.get("url") or entry.get("repo") or entry.get("source")
                return str(source)
        return ""

    def _plugin(self, steps: Steps) -> dict[str, Any] | None:
        steps.begin("asking which plugins it has")
        _, listed, _ = self._call("plugin", "list", "--json")
        for entry in list_of(listed):
            if isinstance(entry, dict) and entry.get("id") == PLUGIN_ID:
                return entry
        return None

    def _is_outdated_copy(self, plugin: dict[str, Any], marketplace: Path) -> bool:
        """Return True if the client runs a copy of the local bundle that differs from the marketplace by now."""
        root = self._root(plugin)
        is_copy = root != marketplace and "coordinator" in read_record(root)
        return is_copy and bool(differing(root, read_files(marketplace)))

    def _root(self, plugin: dict[str, Any]) -> Path:
        return Path(plugin.get("readFromFolder") or plugin.get("installPath") or "")


def forget_failed_server() -> bool:
    """Remove the client's note that our MCP server failed, so that it is tried again. Return True if there was one."""
    path = home() / "mcp-needs-auth-cache.json"
    known = object_in(path)
    if SERVER not in known:
        return False
    del known[SERVER]
    try:
        write_whole(path, json.dumps(known).encode())
    except (OSError, SwarmError):
        return False  # the client forgets by itself in time
    return True


def home(env: Mapping[str, str] = os.environ) -> Path:
    """Return the folder where Claude Code keeps settings and transcripts."""
    return Path(env.get("CLAUDE_CONFIG_DIR") or os.path.join(env.get("HOME") or os.path.expanduser("~"), ".claude"))
