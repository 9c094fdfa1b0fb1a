"""lock: keep other sessions from writing a file

usage: swarm-mcp lock FILE [--note TEXT] [--exclusive] [--task ID] [--as WHO] [--json]

  --note TEXT   why; shown to whoever is denied
  --exclusive   refuse also where this session holds the file already
  --task ID     the task this is for

The lock holds for every writer on this machine until it is released or the session ends. Exit 1 when
another session holds the file; with --json the refusal is {"error", "active"} on standard output.

example: swarm-mcp lock src/schema.sql --note "renumbering migrations"
"""

from __future__ import annotations

from swarm_hook_core.decision import duration
from swarm_mcp.actor import actor
from swarm_mcp.cli.output import refused, say, show
from swarm_mcp.errors import LockRefused
from swarm_mcp.shapes import seconds_since
from swarm_mcp.store import Store

WORDS = 1


def run(args) -> int:
    """Take the lock."""
    file = args.word(0, "the file to lock: swarm-mcp lock FILE")
    with Store() as store:
        instance = actor(store, args)
        try:
            lock = store.locks.acquire(
                instance, file, args.value("--note"), args.has("--exclusive"), args.value("--task") or None
            )
        except LockRefused as refusal:
            return _refused(refusal, args, store.now())
    if args.json:
        show({"ok": True, "id": lock["id"]})
    else:
        say(f"locked {lock['file']}")
    return 0


def _refused(refusal: LockRefused, args, now: int) -> int:
    active = refusal.active
    if active.get("hidden"):
        who = "a session of another identity"
    else:
        owner = active["owner"]["label"] or active["instance_id"]
        note = f": {active['content']}" if active["content"] else ""
        who = f"{owner}, for {duration(seconds_since(active['created_at'], now))}{note}"
    answer = {"error": str(refusal), "active": active}
    return refused(args, "lock", answer, f"{refusal} ({active['file']} by {who})")
