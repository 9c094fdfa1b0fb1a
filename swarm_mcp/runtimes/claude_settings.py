"""The settings of Claude Code that keep it from running hooks or the plugin (as of release 2.1.332).

Settings given with `claude --settings` cannot be seen from outside.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from swarm_hook_core.repository import tree_over
from swarm_mcp.folders import here
from swarm_mcp.runtimes.base import PLUGIN_ID, Finding
from swarm_mcp.runtimes.settings_layers import (
    environment,
    last_of,
    read,
    switched_off,
    unread,
    variable_on,
    variables,
)

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
        self.own = [read(file) for file in dict.fromkeys(files)]
        added = sorted(file for file in (POLICIES / "managed-settings.d").glob("*.json") if file.name[0] != ".")
        self.policies = [read(file, is_policy=True) for file in (POLICIES / "managed-settings.json", *added)]
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
        process = environment()
        sources = [*variables(reversed(self.policies)), *variables(self.own[:1]), process]
        found = variable_on(_BARE, sources) or variable_on(_RESTRICTED, [process])
        if found:
            return switched_off(CLIENT, found[1], found[0])
        return None

    def _unknown(self) -> list[Finding]:
        """Return findings about policies whose effect cannot be told from here."""
        told, fetched = [], read(self._fetched, is_policy=True)
        if fetched.fault or any(fetched.settings.get(key) is True for key in (_ALL_OFF, _MANAGED_ONLY)):
            told.append(f"{self._fetched}: while you are signed in to that organization, it may switch hooks off")
        if PREFERENCES.exists():
            told.append(f"{PREFERENCES} is not read here, and may switch hooks off")
        return [Finding(f"{CLIENT} settings", "warn", text) for text in told]
