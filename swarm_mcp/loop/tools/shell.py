"""Running commands."""

from __future__ import annotations

import shutil

from swarm_mcp.loop import running
from swarm_mcp.loop.settings import TOOL_SECONDS, number

LONGEST_SECONDS = 3600.0


def bash(loop, given: dict) -> tuple[str, bool]:
    """One command, in a process group of its own; its output, then what else is worth knowing."""
    command, wanted = given.get("command"), given.get("timeout")
    if not isinstance(command, str) or not command.strip() or "\0" in command:
        return "error: command must be a text", True
    seconds = number("HARNESS_TOOL_TIMEOUT", TOOL_SECONDS) or LONGEST_SECONDS
    if isinstance(wanted, (int, float)) and not isinstance(wanted, bool) and wanted > 0:
        seconds = min(float(wanted), LONGEST_SECONDS)
    program = shutil.which("bash") or "/bin/sh"
    ran = running.run(
        [program, "-c", command], env=loop.environment("tool_exec"), cwd=loop.cwd, seconds=seconds,
        reaper=loop.reaper, together=True,
    )  # fmt: skip
    parts = [ran.out.rstrip("\n")]
    if ran.timed_out:
        parts.append(f"[ended after {seconds:g} s: that was its time limit]")
    elif ran.code:
        parts.append(f"[exit code {ran.code}]")
    return "\n".join(part for part in parts if part) or "(no output)", bool(ran.code) or ran.timed_out
