"""Auggie: hooks and our server in its settings, by files of the bundle, which run in place, and links to the skills."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from swarm_mcp.runtimes.base import Finding
from swarm_mcp.runtimes.bundle import LAUNCHER
from swarm_mcp.runtimes.coverage import YES, Coverage, Verified
from swarm_mcp.runtimes.edited_json import Entry
from swarm_mcp.runtimes.in_users_file import WithSkills
from swarm_mcp.runtimes.json_editor import object_of
from swarm_mcp.runtimes.server_name import NAME, in_bundle, servers_in_json

# Its servers get hardly a variable, but it fills in those that are named. An empty one counts as missing.
_PASSED_ON = (
    "SWARM_DB_PATH", "SWARM_STATE_DIR", "SWARM_CONFIG_DIR", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME",
)  # fmt: skip


class Auggie(WithSkills):
    """The ``auggie`` command."""

    name = executable = harness = "auggie"
    title = "Auggie"
    coverage = Coverage(
        edits="partly: where its server sends `enable_hooks`", patches=YES,
        shell="partly: not where it starts below the repository's root", other_tools=YES,
        subagents="partly: each counts as a session of its own", told_before="partly: with results alone",
        told_after=YES, ends=YES, verified=Verified("0.36.0", "2026-11-28"),
    )  # fmt: skip
    needed = "integrations/auggie/runtime.py"
    shell_tool = "launch-process"
    session_variables = (
        "AUGMENT_CONVERSATION_ID", "AUGMENT_PROJECT_DIR", "AUGMENT_HOOK_EVENT", "AUGMENT_TOOL_NAME", "AUGMENT_AGENT",
    )  # fmt: skip

    def home(self) -> Path:
        return Path.home() / ".augment"

    def entries(self, root: Path) -> list[Entry]:
        env = {name: f"${{{name}:-}}" for name in _PASSED_ON}
        server = {"command": "/bin/sh", "args": [str(root / LAUNCHER), "serve"], "env": env}
        return [*super().entries(root), Entry(("mcpServers", in_bundle(root).get(self.name, NAME)), server)]

    def is_ours(self, value: object) -> bool:
        return super().is_ours(value) or _is_server(value)

    def beside(self, root: Path | None) -> list[Finding]:
        text = "Augment's server decides if they run (enable_hooks); swarm-mcp status lists a session that is checked"
        return [Finding(f"{self.name} switch", "info", text)] if root else []

    def users_servers(self) -> dict[str, Path]:
        return servers_in_json("mcpServers", self.file(), is_ours=_is_server)

    def write_payload(self, session_id: str, cwd: str, file: str) -> dict[str, Any]:
        return {
            "hook_event_name": "PreToolUse", "conversation_id": session_id, "workspace_roots": [cwd],
            "tool_name": "save-file", "tool_input": {"path": file, "file_content": "x"}, "tool_output": "[undefined]",
            "tool_error": None, "is_mcp_tool": False,
        }  # fmt: skip


def _is_server(value: object) -> bool:
    args = object_of(value).get("args")
    return isinstance(args, list) and args[1:] == ["serve"] and str(args[0]).endswith(f"/{LAUNCHER}")
