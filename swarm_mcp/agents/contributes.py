"""The verbs and tools about workers; see ``contributions``."""

from __future__ import annotations

VERBS = {
    "task": "swarm_mcp.cli.commands.task",
    "dispatch": "swarm_mcp.cli.commands.dispatch",
    "cancel": "swarm_mcp.cli.commands.workers",
    "pause": "swarm_mcp.cli.commands.workers",
    "resume": "swarm_mcp.cli.commands.workers",
    "merge": "swarm_mcp.cli.commands.merge",
    "run": "swarm_mcp.cli.commands.run",
    "runs": "swarm_mcp.cli.commands.runs",
    "logs": "swarm_mcp.cli.commands.runs",
    "harness": "swarm_mcp.cli.commands.harness",
    "roles": "swarm_mcp.cli.commands.roles",
    "loop": "swarm_mcp.cli.commands.loop",
    "work": "swarm_mcp.cli.commands.workers",
}
PLACES = {"work": "hook"}
OTHER_WORDS = {
    "ps": "runs", "kill": "cancel", "stop": "cancel", "abort": "cancel", "start": "dispatch", "spawn": "dispatch",
    "work-on": "dispatch",
}  # fmt: skip
TOOLS = ("swarm_mcp.server.tools.dispatch",)
