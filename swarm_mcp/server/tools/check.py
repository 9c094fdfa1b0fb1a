"""The tool that hooks call. It is no part of the contract, and no model gets to see it."""

from __future__ import annotations

from swarm_mcp.server.tool import Answer, Tool, text
from swarm_mcp.server.write_check import TOOL, Check


def _check(_call, arguments: dict) -> Answer:
    check = Check(arguments)
    return Answer(text=check.text, on_sent=lambda _store: check.follow_up())


TOOLS = (
    Tool(
        TOOL,
        "Not for you: the client itself calls this before each write, to have writes to files that other sessions"
        " have locked refused. To ask who holds a file use get_file_lock.",
        {
            "runtime": text("The client."),
            "session_id": text("The session."),
            "cwd": text("Its folder."),
            "agent_id": {"description": "Which of its agents; empty for none."},
            "tool_name": text("The tool that is about to write."),
            "tool_input": {"description": "That tool's input, or the same as JSON text."},
        },
        _check,
        reads=True,
        hidden=True,
    ),
)
