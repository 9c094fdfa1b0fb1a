"""The plugin as a client has it installed: the folder that sessions run it from, and the hooks that they would run."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swarm_hook_core.faults import describe
from swarm_mcp.errors import ClientFailed

# The errors of reading a JSON file that has changed its form.
_NOT_AS_WRITTEN = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
ROOT_VARIABLES = ("CLAUDE_PLUGIN_ROOT", "SWARM_PLUGIN_ROOT")  # commands find the plugin by them


@dataclass(frozen=True)
class HookCommand:
    """A hook as the client would run it: a shell command line, and the variables that the client adds."""

    event: str
    command: str
    environment: dict[str, str]


@dataclass(frozen=True)
class Installed:
    """One client's installed plugin.

    `root`: the folder that its sessions run it from. `folder`: the client's own files in there. `told`: the hook
    commands if it is known that the client would run them; else they are read from `folder`.
    """

    root: Path
    folder: str
    told: list[HookCommand] | None = None

    def commands(self) -> list[HookCommand]:
        """Return the hooks that are commands, as the client would run them. Raises ClientFailed."""
        if self.told is not None:
            return self.told
        environment = {variable: str(self.root) for variable in ROOT_VARIABLES}
        return [HookCommand(event, str(hook.get("command")), environment) for event, hook in self._wired("command")]

    def asks_a_server(self) -> bool:
        """Return True for a plugin of an earlier release in which the MCP server checked writes."""
        try:
            return '"mcp_tool"' in (self.root / self.folder / "hooks.json").read_text(encoding="utf-8")
        except (OSError, ValueError):  # this client has its hooks elsewhere
            return False

    def _wired(self, kind: str) -> list[tuple[str, dict[str, Any]]]:
        """``(event, hook)`` of each hook of this kind that the plugin wires. Raises ClientFailed."""
        path = self.root / self.folder / "hooks.json"
        try:
            tree = json.loads(path.read_text(encoding="utf-8"))
            hooks = [(event, dict(hook)) for event, _group, hook in hooks_in(tree)]
            return [(event, hook) for event, hook in hooks if hook["type"] == kind]
        except _NOT_AS_WRITTEN as error:
            raise ClientFailed(f"{path} cannot be understood ({describe(error)})") from error


def hooks_in(tree: dict[str, Any]) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """``(event, group, hook)`` of each hook in a ``hooks.json`` of ours."""
    return [
        (event, group, hook) for event, groups in tree["hooks"].items() for group in groups for hook in group["hooks"]
    ]


def in_quotes(place: Path) -> str:
    """A path as it stands between the double quotes of a shell's command."""
    return re.sub(r'([\\"$`])', r"\\\1", str(place))
