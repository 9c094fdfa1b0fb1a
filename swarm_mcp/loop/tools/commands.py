"""The tools that start a process: a shell command, and an agent below this one with a session of its own."""

from __future__ import annotations

import os
import shutil

from swarm_mcp.loop import subprocesses
from swarm_mcp.loop.settings import AGENT_SECONDS, TOOL_SECONDS, number

LONGEST_SECONDS = 3600.0


def bash(loop, given: dict) -> tuple[str, bool]:
    """Run a shell command in a process group of its own; return its output with what else is worth knowing, and whether
    it failed."""
    command, wanted = given.get("command"), given.get("timeout")
    if not isinstance(command, str) or not command.strip() or "\0" in command:
        return "error: command must be a text", True
    seconds = number("HARNESS_TOOL_TIMEOUT", TOOL_SECONDS) or LONGEST_SECONDS
    if isinstance(wanted, (int, float)) and not isinstance(wanted, bool) and wanted > 0:
        seconds = min(float(wanted), LONGEST_SECONDS)
    program = shutil.which("bash") or "/bin/sh"
    ran = subprocesses.run(
        [program, "-c", command], env=loop.environment("tool_exec"), cwd=loop.cwd, seconds=seconds,
        reaper=loop.reaper, together=True,
    )  # fmt: skip
    parts = [ran.out.rstrip("\n")]
    if ran.timed_out:
        parts.append(f"[ended after {seconds:g} s: that was its time limit]")
    elif ran.code:
        parts.append(f"[exit code {ran.code}]")
    return "\n".join(part for part in parts if part) or "(no output)", bool(ran.code) or ran.timed_out


# What names the parent in the swarm: the child is an instance of its own.
_PARENTS_OWN = ("SWARM_MCP_INSTANCE_ID", "SWARM_MCP_LABEL", "SWARM_TASK_ID", "SWARM_AGENT_ROLE",
                "HARNESS_SESSION", "HARNESS_SOURCES", "HARNESS_STAGE", "HARNESS_TOOL_FIFO", "HARNESS_MODEL",
                "HARNESS_PROVIDER")  # fmt: skip


def agent(loop, given: dict) -> tuple[str, bool]:
    """Run an agent below this one to its end; return its answer, and whether it failed."""
    from swarm_mcp.installation import coordinator_command

    prompt = given.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        return "error: prompt must be a text", True
    if loop.settings.depth >= loop.settings.max_depth:
        return f"error: agents {loop.settings.depth} deep start no further ones (RLM_MAX_DEPTH)", True
    env = {name: value for name, value in loop.environment().items() if name not in _PARENTS_OWN}
    env.update(
        HARNESS_SESSIONS=os.path.join(loop.session.path, ".harness", "sessions"),
        HARNESS_PARENT_SESSION=loop.session.id,
        HARNESS_DEPTH=str(loop.settings.depth + 1),
        HARNESS_PROVIDER=str(given.get("provider") or loop.settings.provider),
    )
    if given.get("model") or not given.get("provider"):
        env["HARNESS_MODEL"] = str(given.get("model") or loop.settings.model)
    seconds = number("HARNESS_AGENT_TIMEOUT", AGENT_SECONDS)
    ran = subprocesses.run(
        [*coordinator_command(), "loop", "agent"], prompt, env=env, cwd=loop.cwd, seconds=seconds,
        reaper=loop.reaper,
    )  # fmt: skip
    last = next((line for line in reversed(ran.err.split("\n")) if line.strip()), "")
    if ran.timed_out:
        return f"error: the agent took longer than {seconds:.0f} s and was ended", True
    if ran.code:
        return f"error: the agent failed (exit {ran.code}): {last}", True
    return ran.out.rstrip("\n") or "(it answered nothing)", False
