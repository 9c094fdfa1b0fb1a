"""Letta Code: hooks in its settings, by files of the bundle, which run in place, and links to the skills.

It takes the exit status 2 for a denial, and gives its model the error output then.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from swarm_mcp.runtimes.base import Finding, as_failure, object_in
from swarm_mcp.runtimes.bundle import SKILLS
from swarm_mcp.runtimes.coverage import YES, Coverage, Verified
from swarm_mcp.runtimes.in_users_file import InUsersFile
from swarm_mcp.runtimes.installed import Installed
from swarm_mcp.runtimes.json_editor import object_of
from swarm_mcp.runtimes.links import leads_to, put_links, take_link
from swarm_mcp.runtimes.steps import Steps

# Around the check: any other status than 2 lets the call pass, and no process that hangs may hold its error output.
_SAID_TWICE = (
    """said=$({{ {0}; }} 2>/dev/null); case $said in '{{"denied"'*) echo "$said"; echo "$said" >&2; exit 2;; esac; """
    "exit 0"
)


class Letta(InUsersFile):
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

    def file(self) -> Path:
        return home() / "settings.json"

    def hook(self, command: str, matcher: str, seconds: float) -> dict[str, Any]:
        if " letta pre_tool_use" in command:
            command = _SAID_TWICE.format(command)
        hook = {"type": "command", "command": command, "timeout": int(seconds * 1000), "quiet": True}
        return {**({"matcher": matcher} if matcher else {}), "hooks": [hook]}

    def install(self, marketplace: Path, steps: Steps) -> Installed:
        steps.begin(f"adding the hooks to {self.file()}")
        with as_failure():
            if self.edited(marketplace).put():
                steps.add(f"added the hooks to {self.file()}")
        put_links(_links(), marketplace.resolve(), steps)
        return self.installed_at(marketplace)

    def uninstall(self, steps: Steps) -> None:
        for link, name in _links().items():
            if leads_to(link, name):
                take_link(link, steps)
                if not any(link.parent.iterdir()):
                    link.parent.rmdir()
        root = self.root()
        with as_failure():
            if root and self.edited(root).take_out():
                steps.add(f"took the hooks out of {self.file()}")

    def traces(self) -> bool:
        return self.root() is not None or any(leads_to(link, name) for link, name in _links().items())

    def fault(self, root: Path) -> Finding | None:
        if object_of(object_in(self.file()).get("hooks")).get("disabled") is True:
            return self.said("fail", f"all hooks are switched off ({self.file()})", "/hooks in a session")
        return super().fault(root)

    def write_payload(self, session_id: str, cwd: str, file: str) -> dict[str, Any]:
        return {
            "event_type": "PreToolUse", "working_directory": cwd, "tool_name": "Write",
            "tool_input": {"file_path": file, "content": "x"}, "tool_call_id": "call_doctor", "agent_id": session_id,
        }  # fmt: skip

    def _command_in(self, hook: object) -> str:
        hooks = object_of(hook).get("hooks")
        found = [super(Letta, self)._command_in(one) for one in hooks] if isinstance(hooks, list) else []
        return next(filter(None, found), "")


def home() -> Path:
    """Return the client's folder. It need not exist."""
    return Path(os.path.expanduser("~/.letta"))


def _links() -> dict[Path, str]:
    """Each link to a skill -> the bundle's folder that it leads to."""
    return {home() / "skills" / name: f"skills/{name}" for name in SKILLS}
