"""The second layer on macOS, by ``sandbox-exec``. Not yet tried there: `swarm-mcp doctor` calls it unverified.

A profile holds until the command ends: a lock that ends meanwhile keeps its file read-only for the command.
"""

from __future__ import annotations

from swarm_hook_core.kernel.plans import Plan

PROGRAM = "/usr/bin/sandbox-exec"


def wrapped(plan: Plan, command: list[str]) -> list[str]:
    """Return the command line that runs `command` with the paths of `plan` closed to writing."""
    rules = " ".join(f"(subpath {_quoted(path)})" for path in plan.paths)
    return [PROGRAM, "-p", f"(version 1)(allow default)(deny file-write* {rules})", *command]


def _quoted(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
