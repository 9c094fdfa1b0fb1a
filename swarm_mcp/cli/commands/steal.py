"""steal: take a lock from a holder that is gone, or by force from one that is not

Without --force only what is proved dead or has lapsed is taken, in turn with those who wait. With it every lock on
the file goes, on folders over it and patterns that cover it too, whole; what is locked below a folder is not taken
with it. The holder is told with its next hook. Exit 1 where somebody else keeps the file.

example: swarm-mcp steal src/schema.sql --force --reason "session hangs in a dialog, release is today"
"""

from __future__ import annotations

from swarm_hook_core.untrusted_text import label
from swarm_mcp.acting_session import acting_session, is_person
from swarm_mcp.cli.arguments import ACTING, Arguments, Option, Usage, Word
from swarm_mcp.cli.output import refused, say, show
from swarm_mcp.domain.lock import granted
from swarm_mcp.errors import LockRefused, Refused, UsageError
from swarm_mcp.store import Store
from swarm_mcp.views import short

USAGES = (
    Usage(
        Word("FILE", "the file"),
        Option("--force", "also from a live holder: for a person at a terminal, who says why with --reason"),
        Option("--reason TEXT", "why; told to the holder, kept in the history, and the note of the new lock"),
        Option("--ttl SECONDS", "a lease for the new lock"),
        *ACTING,
    ),
)


def run(args: Arguments) -> int:
    """Take it."""
    file = args.words[0]
    force, reason = args.given("--force"), args.value("--reason").strip()
    if force and not reason:
        raise UsageError("--force wants --reason TEXT: whoever loses the lock is told why")
    ttl = args.seconds_if_given("--ttl")
    with Store() as store:
        if force and not is_person(store):
            error = "only a person may take a lock from a live session: at a terminal, outside of any agent's shell"
            return refused(args, "steal", {"error": f"{error}. request-lock asks its holder"})
        try:
            done = store.transfers.steal(acting_session(store, args), file, reason, force, ttl)
        except LockRefused as refusal:
            active = refusal.active
            owner = active.get("owner") or {}
            name = owner.get("label") or (short(owner["id"]) if owner.get("id") else "")
            who = label(name) if name else "a session of another identity"
            return refused(args, "steal", refusal.answer, f"{active['file']} is held by {who}, which is alive")
        except Refused as refusal:
            return refused(args, "steal", refusal.answer)
    if args.json:
        taken = [{"file": row["file"], "holder": row["instance_id"], "fence": row["fence"]} for row in done["taken"]]
        show({"ok": True, **granted(done["lock"]), "taken": taken})
    else:
        for row in done["taken"]:
            say(f"taken from {label(row['owner_label'] or short(row['instance_id']))}: {row['file']}")
        say(f"locked {done['lock']['file']}")
    return 0
