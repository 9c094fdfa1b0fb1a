"""oh-my-pi: the tools that write files, and the forms of their input."""

from __future__ import annotations

import os
from typing import Any

from swarm_hook_core import EDIT, REMOVE, REPLACE
from swarm_hook_core.config import Dialect, RuntimeConfig, in_own_folder, paths_under_keys

_named = paths_under_keys("path", "_path")
_HOWS = {"create": REPLACE, "delete": REMOVE}


def extract_changes(tool_input: Any) -> list[tuple[str, str]]:
    """Return ``(path, how)`` of each file of a call. Its keys tell its form."""
    text = None
    if isinstance(tool_input, dict):
        text = tool_input.get("input", tool_input.get("_input"))
    if isinstance(text, str):
        from swarm_hook_core.patch import changes_by_headers, changes_in_sections

        changes = changes_in_sections(text)
        if not changes:
            changes = dict(changes_by_headers(text))
        return [(os.path.expanduser(path), how) for path, how in changes.items()]
    if isinstance(tool_input, dict) and isinstance(tool_input.get("paths"), list) and "ops" in tool_input:
        return [(os.path.expanduser(path), EDIT) for path in tool_input["paths"] if isinstance(path, str)]
    path = _named(tool_input)[0]
    if "content" in tool_input:
        return [(os.path.expanduser(one), REPLACE) for one in _containers(path)]
    changes = {path: EDIT}
    for entry in tool_input.get("edits") or ():
        if isinstance(entry, dict):
            changes[path] = _HOWS.get(str(entry.get("op")), EDIT)
            if isinstance(entry.get("rename"), str):
                changes.update({path: REMOVE, entry["rename"]: REPLACE})
    return [(os.path.expanduser(one), how) for one, how in changes.items()]


def _containers(path: str) -> list[str]:
    """The files that a write to `path` may change: no file for a device, also ``a.zip`` for ``a.zip:b``."""
    scheme, is_address, _ = path.partition("://")
    if is_address and scheme[:1].isalpha() and scheme == scheme.lower() and not set(scheme) & set("/ :"):
        return []
    return [path, *(path[:at] for at, letter in enumerate(path) if letter == ":" and at)]


def _mcp_tool(name: str) -> str:
    """``mcp__server_tool`` as the core has it; the tools of our own server have such a name."""
    server, line, tool = name[5:].partition("_")
    if name.startswith("mcp__") and line and "__" not in name[5:]:
        return f"mcp__{server}__{tool}"
    return ""


RUNTIME = RuntimeConfig(
    runtime_name="omp",
    env_prefix="OMP",
    scratch_dir_name="swarm-omp",
    write_tools={"write", "edit", "ast_edit"},
    extract_changes=extract_changes,
    # Scripts, and changes that a language server makes: compared afterwards.
    dialect=Dialect(
        tools={"bash": "Bash", "eval": "PowerShell", "lsp": "PowerShell"},
        mcp_tool=_mcp_tool,
        amend=in_own_folder,
    ),
)
