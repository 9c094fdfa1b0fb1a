"""The folder of a local bundle that Codex installs as the plugin. It holds the files that Codex reads, and no code.

Before it starts a hook, Codex reads all files of its copy of the plugin to compare them with the trusted ones. The
whole plugin would cost each call several milliseconds. So the copy is small, and its hooks name the bundle's own
folder. The code runs in place there, as it does for Claude Code.
"""

from __future__ import annotations

import json
from pathlib import Path

from swarm_mcp.runtimes.base import as_json
from swarm_mcp.runtimes.installed import in_quotes
from swarm_mcp.runtimes.owned_folder import read_files

_FOLDER = "codex/"
_MARKETPLACE = ".agents/plugins/marketplace.json"
_HOOKS = "integrations/codex/hooks.json"
_READ_BY_CODEX = (".codex-plugin/", _HOOKS, "integrations/codex/mcp.json", "skills/")
_ROOT = "${CLAUDE_PLUGIN_ROOT}"


def add(files: dict[str, bytes], place: Path) -> None:
    """Add the folder to the `files` of a bundle that is to lie in `place`, and have Codex's marketplace name it."""
    small = {name: content for name, content in files.items() if name.startswith(_READ_BY_CODEX)}
    root = json.dumps(in_quotes(place))[1:-1]  # within a JSON string
    small[_HOOKS] = small[_HOOKS].replace(_ROOT.encode(), root.encode())
    files.update({_FOLDER + name: content for name, content in small.items()})
    marketplace = json.loads(files[_MARKETPLACE])
    for plugin in marketplace["plugins"]:
        plugin["source"]["path"] = f"./{_FOLDER}"
    files[_MARKETPLACE] = as_json(marketplace)


def files_of(marketplace: Path) -> dict[str, bytes]:
    """Return the files of Codex's plugin in a marketplace folder, by their names in its copy. Empty if the folder is
    not whole.
    """
    whole = read_files(marketplace)
    return {name.removeprefix(_FOLDER): content for name, content in whole.items() if name.startswith(_FOLDER)}


def earlier_folder(marketplace: Path) -> Path:
    """Return the folder of an earlier release. Its files now lie in the marketplace folder itself."""
    return marketplace.with_name("codex-plugin")
