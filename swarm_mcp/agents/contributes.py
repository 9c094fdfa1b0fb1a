"""The verbs and tools about workers; see ``contributions``."""

from __future__ import annotations

VERBS = {
    "task": "swarm_mcp.agents.commands.runs",
    "dispatch": "swarm_mcp.agents.commands.dispatch",
    "poll": "swarm_mcp.agents.commands.workers",
    "cancel": "swarm_mcp.agents.commands.workers",
    "pause": "swarm_mcp.agents.commands.workers",
    "resume": "swarm_mcp.agents.commands.workers",
    "run": "swarm_mcp.agents.commands.run",
    "runs": "swarm_mcp.agents.commands.runs",
    "logs": "swarm_mcp.agents.commands.runs",
    "harness": "swarm_mcp.agents.commands.runs",
    "roles": "swarm_mcp.agents.commands.runs",
    "loop": "swarm_mcp.agents.commands.workers",
    "work": "swarm_mcp.agents.commands.workers",
    "acp": "swarm_mcp.agents.commands.acp",
}
PLACES = {"work": "hook"}
NOUNS = {
    "task": {"show": "task"},
    "worker": {
        "dispatch": "dispatch", "poll": "poll", "run": "run", "runs": "runs", "logs": "logs", "cancel": "cancel",
        "pause": "pause", "resume": "resume", "harness": "harness", "roles": "roles", "loop": "loop",
    },
}  # fmt: skip
OTHER_WORDS = {
    "ps": "runs", "kill": "cancel", "stop": "cancel", "abort": "cancel", "start": "dispatch", "spawn": "dispatch",
    "work-on": "dispatch",
}  # fmt: skip
RETIRED = {
    "merge": "tasks have no work trees any more: `git worktree list` names those left, `git merge` takes one in",
    "dispatch --all": "`swarm-mcp worker poll` has all open tasks done, as they become ready",
    "dispatch --worktree": "make one with `git worktree add`, and name it with --directory",
    "loop auth": "the key stands in the provider's variable; `swarm-mcp worker loop help` names it",
    "loop --variant": "say its role in the prompt, and --mode read-only where it is to write nothing",
    "cancel --discard": "`git worktree remove` takes a task's work tree away",
}
TOOLS = ("swarm_mcp.agents.tools",)
