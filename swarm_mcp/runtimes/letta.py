"""Letta Code: hooks in its settings, by files of the bundle, which run in place, and links to the skills.

It takes the exit status 2 for a denial, and gives its model the error output then.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from swarm_mcp.runtimes.base import Finding, object_in
from swarm_mcp.runtimes.coverage import YES, Coverage, Verified
from swarm_mcp.runtimes.in_users_file import WithSkills
from swarm_mcp.runtimes.json_editor import object_of

# Around the check: any other status than 2 lets the call pass, and no process that hangs may hold its error output.
_SAID_TWICE = (
    """said=$({{ {0}; }} 2>/dev/null); case $said in '{{"denied"'*) echo "$said"; echo "$said" >&2; exit 2;; esac; """
    "exit 0"
)


class Letta(WithSkills):
    """The ``letta`` command."""

    name = executable = harness = "letta"
    title = "Letta Code"
    coverage = Coverage(
        edits=YES, patches="partly: not tried", shell=YES, other_tools="no: it has none", subagents=YES,
        told_before="partly: with results alone", told_after=YES, ends="partly: not with -p",
        verified=Verified("0.32.18", "2026-11-28"),
    )  # fmt: skip
    needed = "integrations/letta/runtime.py"
    session_variables = (
        "LETTA_AGENT_ID", "AGENT_ID", "LETTA_CONVERSATION_ID", "LETTA_PARENT_AGENT_ID", "LETTA_PARENT_CONVERSATION_ID",
        "LETTA_CODE_AGENT_ROLE", "LETTA_HOOK_EVENT", "LETTA_WORKING_DIR", "LETTA_MEMORY_DIR", "AGENT_NAME",
    )  # fmt: skip

    def home(self) -> Path:
        return Path(os.path.expanduser("~/.letta"))

    def hook(self, command: str, matcher: str, seconds: float) -> dict[str, Any]:
        if " letta pre_tool_use" in command:
            command = _SAID_TWICE.format(command)
        group = super().hook(command, matcher, seconds)
        group["hooks"][0]["quiet"] = True
        return group

    def fault(self, root: Path) -> Finding | None:
        if object_of(object_in(self.file()).get("hooks")).get("disabled") is True:
            return self.said("fail", f"all hooks are switched off ({self.file()})", "/hooks in a session")
        return super().fault(root)

    def write_payload(self, session_id: str, cwd: str, file: str) -> dict[str, Any]:
        return {
            "event_type": "PreToolUse", "working_directory": cwd, "tool_name": "Write",
            "tool_input": {"file_path": file, "content": "x"}, "tool_call_id": "call_doctor", "agent_id": session_id,
        }  # fmt: skip
