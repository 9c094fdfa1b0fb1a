"""agent-ended: release what a subagent held that has ended (hooks call this)

What its session holds stays. A session that is not registered is no error.

example: swarm-mcp agent-ended --runtime codex --session-id 0199-5c --agent 0199-77
"""

from __future__ import annotations

from swarm_mcp.cli.arguments import JSON, PATIENCE, RUNTIME, SESSION_ID, Arguments, Option, Usage
from swarm_mcp.cli.output import say, show
from swarm_mcp.store import Store

USAGES = (
    Usage(RUNTIME, SESSION_ID, Option("--agent ID", "the subagent that has ended", required=True), PATIENCE, JSON),
)


def run(args: Arguments) -> int:
    """Release the agent's locks."""
    runtime, session_id, agent = (args.value(flag) for flag in ("--runtime", "--session-id", "--agent"))
    with Store(busy_seconds=args.patience) as store:
        row = store.instances.of_session(runtime, session_id)
        files = store.locks.release_of_agent(row, agent) if row else []
    if args.json:
        show({"ok": row is not None, "id": row and row.id, "released": files})
    else:
        say(f"released {len(files)}" if row else "no such session")
    return 0
