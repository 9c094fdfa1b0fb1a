"""Tools that explain a file's locks, and tell their history."""

from __future__ import annotations

from swarm_hook_core.labels import token
from swarm_mcp.answers.incidents import as_json
from swarm_mcp.answers.people import People
from swarm_mcp.answers.views import may_meet
from swarm_mcp.errors import UnknownInstance
from swarm_mcp.locking.explaining import explanation
from swarm_mcp.locking.lock_history import history, incidents_about
from swarm_mcp.server.tool import AFTER, Answer, Call, Tool, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from swarm_mcp.domain.session import Session

PATH = text("A file, folder or pattern, absolute or relative to this session's folder. It need not exist.")


def _why(call: Call, arguments: dict[str, Any]) -> Answer:
    row = call.member()
    session: Session | None = row
    if arguments.get("instance_id"):
        session = call.store.instances.live(arguments["instance_id"])
        if session is None or not may_meet(row.label, session.label):
            raise UnknownInstance(f"Instance {arguments['instance_id']} is not active")
    viewer = token(row.label or "", "identity")
    found = explanation(
        call.store,
        row,
        arguments["file"],
        session,
        arguments.get("agent_id", ""),
        viewer,
        reader_folder=row.directory,
    )
    lately = incidents_about(call.store, row, arguments["file"], People(call.store, viewer, row.id))
    return Answer({**found, "incidents": [as_json(one) for one in lately]})


def _log(call: Call, arguments: dict[str, Any]) -> Answer:
    row = call.member()
    viewer = token(row.label or "", "identity")
    after = arguments.get("after", "")
    return Answer(history(call.store, row, arguments["file"], viewer, arguments["limit"], after))


TOOLS = (
    Tool(
        "explain_lock",
        "Why a file can or cannot be written: every lock over it (`held`, each with its `rule`: file, folder, pattern,"
        " or repository for the same file of another work tree; mode, fence, since, lease), the line for it (`waiting`,"
        " first come first), and the verdict on a write now (`write.allowed`, `write.reason`, and in `write.kinds` for"
        " edit, overwrite and remove). The verdict is that of the hook's own check, and includes uncommitted changes of"
        " others. Takes and changes nothing.",
        {
            "file": PATH,
            "instance_id": text("The session of the write. Default: this one."),
            "agent_id": text("The subagent that writes."),
        },
        _why,
        required=("file",),
        reads=True,
    ),
    Tool(
        "lock_history",
        "The history of a file's locks in the last day, oldest first: acquired, released, lapsed, transferred, stolen,"
        " denied (with path, tool, rule and fence), deadlocks, alterations; through folders, patterns and other work"
        " trees as well. `next` is the cursor for earlier rows (`after`).",
        {
            "file": PATH,
            "after": AFTER,
            "limit": {
                "type": "integer", "minimum": 1, "maximum": 200, "default": 20, "description": "The newest so many.",
            },
        },
        _log,
        required=("file",),
        reads=True,
        is_listed=False,
    ),
)  # fmt: skip
