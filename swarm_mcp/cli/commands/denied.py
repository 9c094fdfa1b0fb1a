"""denied: note that a session was kept from a file (hooks call this)

FILE is what was held. For the record (swarm-mcp log): --target, the path that would have been written where that
is another one; --directory, from where; --agent, by which subagent; --fence, the number of the lock in the way.

The session gets one message when the file is free, and at once where it has gone already. A session that is
not registered is no error: there is nobody to tell.

example: swarm-mcp denied ~/src/shop/schema.sql --runtime codex --session-id 0199-5c --holder 41d2 --tool apply_patch
"""

from __future__ import annotations

import os

from swarm_mcp.cli.arguments import FOLDERS, JSON, PATIENCE, RUNTIME, SESSION_ID, Arguments, Option, Usage, Word
from swarm_mcp.cli.output import say, show
from swarm_mcp.scope import clean
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import Attempt

USAGES = (
    Usage(
        Word("FILE", "the file that was held"),
        RUNTIME,
        SESSION_ID,
        Option("--holder INSTANCE", "who held it", required=True),
        Option("--tool NAME", "the tool that was to write"),
        Option("--target PATH", "the path that would have been written, where that is another one"),
        Option("--directory DIR", "from where", source=FOLDERS),
        Option("--agent ID", "by which subagent"),
        Option("--fence N", "the number of the lock in the way"),
        PATIENCE,
        JSON,
    ),
)


def run(args: Arguments) -> int:
    """Write the denial down."""
    word = args.words[0]
    file = word if os.path.isabs(word) else clean(word)
    runtime, session_id, holder = (args.value(flag) for flag in ("--runtime", "--session-id", "--holder"))
    with Store(busy_seconds=args.patience) as store:
        row = store.instances.of_session(runtime, session_id)
        held = store.denials.report(row, file, holder, _attempt(args, file)) if row else None
    if args.json:
        show({"ok": row is not None, "id": row and row.id, "file": file, "held": held})
    elif row is None:
        say("no such session")
    else:
        say(f"noted: {file}" if held else f"free already: {file}")
    return 0


def _attempt(args, file: str) -> Attempt:
    path, fence = args.value("--target"), args.number("--fence")
    path = (path if os.path.isabs(path) else clean(path)) if path else file
    return Attempt(args.value("--tool"), path, args.value("--directory"), args.value("--agent"), fence or None)
