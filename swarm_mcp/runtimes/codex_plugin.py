"""The folder that `install` hands to Codex: of the marketplace folder what Codex itself reads, and no code.

Before every hook that it starts, Codex reads all files of its copy of the plugin, to see whether they are still what
the user trusts. The whole plugin costs each call several milliseconds that way. So the copy is small, and its hooks
name the marketplace folder, where the code runs in place as it does for Claude Code.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from swarm_mcp.runtimes.owned_folder import RECORD, read_files, read_record

_READ_BY_CODEX = (
    ".agents/",
    ".codex-plugin/",
    "integrations/codex/hooks.json",
    "integrations/codex/mcp.json",
    "skills/",
)
_HOOKS = "integrations/codex/hooks.json"
_ROOT = "${CLAUDE_PLUGIN_ROOT}"


def folder_beside(marketplace: Path) -> Path:
    """Return the folder that Codex has for a marketplace of its own."""
    return marketplace.with_name("codex-plugin")


def files_of(marketplace: Path) -> dict[str, bytes]:
    """Return what belongs into that folder, by relative names; empty where the marketplace folder is not whole."""
    whole = read_files(marketplace)
    if not whole:
        return {}
    files = {name: content for name, content in whole.items() if name.startswith(_READ_BY_CODEX)}
    # Inside double quotes of a shell command line, which is inside a JSON string.
    place = json.dumps(re.sub(r'([\\"$`])', r"\\\1", str(marketplace)))[1:-1]
    files[_HOOKS] = files[_HOOKS].replace(_ROOT.encode(), place.encode())
    told = read_record(marketplace)
    record = {"name": told["name"], "version": told.get("version"), "files": sorted(files)}
    return {**files, RECORD: (json.dumps(record, indent=2) + "\n").encode()}
