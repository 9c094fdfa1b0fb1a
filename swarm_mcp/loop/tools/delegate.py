"""Handing a task to an agent of its own: a session below this one, in a process of its own."""

from __future__ import annotations

import os

from swarm_mcp.loop import running
from swarm_mcp.loop.settings import AGENT_SECONDS, number

# What names the parent in the swarm: the child is an instance of its own.
_PARENTS_OWN = ("SWARM_MCP_INSTANCE_ID", "SWARM_MCP_LABEL", "SWARM_TASK_ID", "SWARM_AGENT_ROLE",
                "HARNESS_SESSION", "HARNESS_SOURCES", "HARNESS_STAGE", "HARNESS_TOOL_FIFO", "HARNESS_MODEL",
                "HARNESS_PROVIDER")  # fmt: skip


def agent(loop, given: dict) -> tuple[str, bool]:
    """Run it to its end; what it answered."""
    from swarm_mcp.loop.tools import deepest
    from swarm_mcp.runtimes.bundle import coordinator_command

    prompt = given.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        return "error: prompt must be a text", True
    if loop.settings.depth >= deepest():
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
    ran = running.run(
        [*coordinator_command(), "loop", "agent"], prompt, env=env, cwd=loop.cwd, seconds=seconds,
        reaper=loop.reaper,
    )  # fmt: skip
    last = next((line for line in reversed(ran.err.split("\n")) if line.strip()), "")
    if ran.timed_out:
        return f"error: the agent took longer than {seconds:.0f} s and was ended", True
    if ran.code:
        return f"error: the agent failed (exit {ran.code}): {last}", True
    return ran.out.rstrip("\n") or "(it answered nothing)", False
