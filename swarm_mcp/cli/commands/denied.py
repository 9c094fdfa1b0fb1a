"""denied: note that a session was kept from a file (hooks call this)

usage: swarm-mcp denied FILE --runtime NAME --session-id ID --holder INSTANCE --tool NAME [--json]

The session gets one message when the file is free, and at once where it has gone already. A session that is
not registered is no error: there is nobody to tell.

example: swarm-mcp denied ~/src/shop/schema.sql --runtime codex --session-id 0199-5c --holder 41d2 --tool apply_patch
"""

from __future__ import annotations

import os

from swarm_mcp.cli.output import say, show
from swarm_mcp.errors import UsageError
from swarm_mcp.scope import clean
from swarm_mcp.store import Store

WORDS = 1


def run(args) -> int:
    """Write the denial down."""
    word = args.word(0, "the file that was denied: swarm-mcp denied FILE")
    file = word if os.path.isabs(word) else clean(word)
    runtime, session_id, holder = (args.value(flag) for flag in ("--runtime", "--session-id", "--holder"))
    if not (runtime and session_id and holder):
        raise UsageError("--runtime, --session-id and --holder are all needed")
    with Store(busy_seconds=args.patience) as store:
        row = store.instances.of_session(runtime, session_id)
        held = store.denials.report(row, file, holder, args.value("--tool")) if row else None
    if args.json:
        show({"ok": row is not None, "id": row and row["id"], "file": file, "held": held})
    elif row is None:
        say("no such session")
    else:
        say(f"noted: {file}" if held else f"free already: {file}")
    return 0
