"""The verbs and tools about workers; see ``contributions``."""

from __future__ import annotations

VERBS = {
    "task": "swarm_mcp.agents.commands.task",
    "dispatch": "swarm_mcp.agents.commands.dispatch",
    "poll": "swarm_mcp.agents.commands.poll",
    "cancel": "swarm_mcp.agents.commands.workers",
    "pause": "swarm_mcp.agents.commands.workers",
    "resume": "swarm_mcp.agents.commands.workers",
    "merge": "swarm_mcp.agents.commands.merge",
    "run": "swarm_mcp.agents.commands.run",
    "runs": "swarm_mcp.agents.commands.runs",
    "logs": "swarm_mcp.agents.commands.runs",
    "harness": "swarm_mcp.agents.commands.harness",
    "roles": "swarm_mcp.agents.commands.roles",
    "loop": "swarm_mcp.agents.commands.loop",
    "work": "swarm_mcp.agents.commands.workers",
    "acp": "swarm_mcp.agents.commands.acp",
}
PLACES = {"work": "hook"}
NOUNS = {
    "task": {"show": "task"},
    "worker": {
        "dispatch": "dispatch", "poll": "poll", "run": "run", "runs": "runs", "logs": "logs", "cancel": "cancel",
        "pause": "pause", "resume": "resume", "merge": "merge", "harness": "harness", "roles": "roles", "loop": "loop",
    },
}  # fmt: skip
OTHER_WORDS = {
    "ps": "runs", "kill": "cancel", "stop": "cancel", "abort": "cancel", "start": "dispatch", "spawn": "dispatch",
    "work-on": "dispatch",
}  # fmt: skip
TOOLS = ("swarm_mcp.agents.tools.dispatch",)
