"""oh-my-pi, a fork of pi: links from its folders to files of the bundle, which run in place."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from swarm_mcp.runtimes.bundle import SKILLS
from swarm_mcp.runtimes.coverage import YES, Coverage, Verified
from swarm_mcp.runtimes.in_place import InPlace
from swarm_mcp.runtimes.installed import Installed
from swarm_mcp.runtimes.links import leads_to, put_links, take_link
from swarm_mcp.runtimes.steps import Steps

EXTENSION = "integrations/omp/index.ts"


class Omp(InPlace):
    """The ``omp`` command."""

    name = executable = harness = "omp"
    title = "oh-my-pi"
    coverage = Coverage(
        edits="partly: not where `ast_edit` is given a pattern of files", patches=YES, shell=YES, other_tools=YES,
        subagents=YES, told_before=YES, told_after=YES, ends=YES,
        verified=Verified("18.2.3", "2026-11-28"),
    )  # fmt: skip
    thing = "extension"
    needed = EXTENSION
    shell_tool = "bash"
    has_subagents = True
    session_variables = ("OMPCODE", "CLAUDECODE", "AGENT")

    def install(self, marketplace: Path, steps: Steps) -> Installed:
        put_links(_links(), marketplace.resolve(), steps)
        return self.installed_at(marketplace.resolve())

    def uninstall(self, steps: Steps) -> None:
        for link, name in _links().items():
            if leads_to(link, name):
                take_link(link, steps)

    def traces(self) -> bool:
        return any(leads_to(link, name) for link, name in _links().items())

    def root(self) -> Path | None:
        link, name = next(iter(_links().items()))
        return leads_to(link, name)

    def write_payload(self, session_id: str, cwd: str, file: str) -> dict[str, Any]:
        return {
            "session_id": session_id, "cwd": cwd, "hook_event_name": "PreToolUse", "tool_name": "write",
            "tool_input": {"path": file, "content": "x"}, "tool_use_id": "call_doctor",
        }  # fmt: skip


def home() -> Path:
    """Return the client's configuration folder. It need not exist."""
    chosen = os.environ.get("PI_CODING_AGENT_DIR", "").strip()
    return Path(os.path.expanduser(chosen or "~/.omp/agent"))


def _links() -> dict[Path, str]:
    """Each of our links -> the bundle's file or folder that it leads to. The first has the hooks."""
    skills = {home() / "skills" / name: f"skills/{name}" for name in SKILLS}
    return {home() / "extensions" / "swarm-mcp.ts": EXTENSION, **skills}
