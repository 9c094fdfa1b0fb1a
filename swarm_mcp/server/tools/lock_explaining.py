"""Tools that explain locks: why a write would be refused, and what has happened to a file."""

from __future__ import annotations

from swarm_hook_core.labels import token
from swarm_mcp.domain.session import Session
from swarm_mcp.errors import UnknownInstance
from swarm_mcp.server.tool import Answer, Call, Tool, text
from swarm_mcp.visibility import may_meet

FILE = text("A file, folder or pattern, absolute or relative to this session's folder. It need not exist.")


def _why(call: Call, arguments: dict) -> Answer:
    from swarm_mcp.explain import explanation

    row = call.member()
    session: Session | None = row
    if arguments.get("instance_id"):
        session = call.store.instances.live(arguments["instance_id"])
        if session is None or not may_meet(row.label, session.label):
            raise UnknownInstance(f"Instance {arguments['instance_id']} is not active")
    viewer = token(row.label or "", "identity")
    return Answer(explanation(call.store, row, arguments["file"], session, arguments.get("agent_id", ""), viewer))


def _log(call: Call, arguments: dict) -> Answer:
    from swarm_mcp.lock_history import history

    row = call.member()
    viewer = token(row.label or "", "identity")
    return Answer(history(call.store, row, arguments["file"], viewer, arguments["limit"]))


TOOLS = (
    Tool(
        "explain_lock",
        "Why a file can or cannot be written: every lock over it (`held`, each with the `rule` through which it"
        " holds: file, folder, pattern, or repository for the same file of another work tree; mode, fence, since,"
        " lease), who is in line for it (`waiting`, first come first), and what would happen to a write now"
        " (`write.allowed`, `write.reason`), by the very rules of the hook. Takes and changes nothing.",
        {
            "file": FILE,
            "instance_id": text("Whose write to judge. Default: this session's."),
            "agent_id": text("Which of that session's subagents writes."),
        },
        _why,
        required=("file",),
        reads=True,
    ),
    Tool(
        "lock_history",
        "What has happened to a file's locks in the last day, oldest first: acquired, released, lapsed, transferred,"
        " stolen, denied (with path, tool, rule and fence), deadlocks, alterations; through folders, patterns and"
        " other work trees as well.",
        {
            "file": FILE,
            "limit": {
                "type": "integer", "minimum": 1, "maximum": 200, "default": 20, "description": "The newest so many.",
            },
        },
        _log,
        required=("file",),
        reads=True,
    ),
)  # fmt: skip
