"""The tool that commits the calling session's changes alone."""

from __future__ import annotations

import os

from swarm_mcp.changes.commit import Commit
from swarm_mcp.changes.commit.answer import described
from swarm_mcp.changes.commit.authors import Authorship
from swarm_mcp.server.tool import Answer, Call, Tool, flag, text, texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _commit(call: Call, arguments: dict[str, Any]) -> Answer:
    me = call.member()
    author = Authorship(call.store, me)
    folder = arguments["folder"] or me.directory
    folder = os.path.join(me.directory, folder)
    files = [os.path.join(folder, file) for file in arguments.get("files") or []]
    one = Commit(folder, author.is_own, author.named, [arguments["message"]], files)
    done = one.plan() if arguments["dry_run"] else one.make()
    return Answer({**described(one, done), "dry_run": arguments["dry_run"]})


TOOLS = (
    Tool(
        "commit",
        "Commit this session's own uncommitted lines to git, and nobody else's. Use it instead of `git commit` where"
        " other sessions or a person have uncommitted work in the same checkout, above all in the same file. Runs the"
        " repository's hooks; leaves the work tree and others' staged work alone; names what it leaves out. Refused"
        " where the same lines may be yours and another's.",
        {
            "message": text("The commit message."),
            "files": texts("Only these files and folders. Default: all of your changes."),
            "folder": text("A folder in the work tree. Default: the folder where this session works.", default=""),
            "dry_run": flag("Answer what would be committed, and do nothing."),
        },
        _commit,
        required=("message",),
    ),
)
