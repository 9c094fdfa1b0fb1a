"""unlock: release locks of this session

Only one's own locks go, and whoever is first in line for them gets them at once. A file that somebody else holds, or
nobody, is left as it is and said to be so: exit 1, though the other FILEs are unlocked. With --json that is {"error",
"unlocked", "left"}; each of "left" has "file", "error" and, where somebody holds it, "active".

example: swarm-mcp unlock src/schema.sql
"""

from __future__ import annotations

from swarm_hook_core.labels import token
from swarm_hook_core.untrusted_text import label, named
from swarm_mcp.acting_session import acting_session
from swarm_mcp.cli.arguments import ACTING, AGENT, FENCE, Arguments, Option, Usage, Word
from swarm_mcp.cli.locking import repository_of
from swarm_mcp.cli.output import complain, refused, say, show
from swarm_mcp.domain.session import Session
from swarm_mcp.errors import Refused, UsageError
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import Reach, reach_of
from swarm_mcp.views import short

USAGES = (
    Usage(Word("FILE", "the file to unlock", repeated=True), FENCE, AGENT, *ACTING),
    Usage(
        Option("--git", "the git repository of this session's folder, as `lock --git` took it", required=True),
        FENCE,
        AGENT,
        *ACTING,
    ),
)


def run(args: Arguments) -> int:
    """Release the locks."""
    files = args.words
    agent = args.value("--agent").strip()
    fence = args.number_if_given("--fence")
    if fence is not None and len(files) > 1:
        raise UsageError("--fence is of one lock: give one FILE")
    with Store() as store:
        instance = acting_session(store, args)
        unlocked, left = [], []
        for file in files or [repository_of(instance)]:
            try:
                gone = store.locks.release(instance, file, agent, fence)
            except Refused as refusal:
                return refused(args, "unlock", refusal.answer)
            reach = reach_of(instance, file)
            if gone:
                unlocked.append(reach.file)
            else:
                left.append(_left(store, instance, reach, agent))
    if args.json:
        show(_answer(unlocked, left))
    else:
        for path in unlocked:
            say(f"unlocked {path}")
        for one in left:
            complain(f"unlock failed: {one['error']}")
    return 1 if left else 0


def _answer(unlocked: list[str], left: list[dict]) -> dict:
    if left:
        return {"error": "; ".join(one["error"] for one in left), "unlocked": unlocked, "left": left}
    return {"ok": True, "file": unlocked[0], **({"files": unlocked} if len(unlocked) > 1 else {})}


def _left(store: Store, instance: Session, reach: Reach, agent: str) -> dict:
    """What is said of a file on which this session, or its `agent`, holds no lock: ``{file, error, active?}``."""
    held = store.locks.exactly(reach) or ([] if reach.pattern else store.locks.covering(reach))
    if not held:
        return {"file": reach.file, "error": f"{reach.file} was not locked"}
    lock = next((row for row in held if row.instance_id != instance.id), held[0])
    active = store.locks.describe(lock, token(instance.label or "", "identity"))
    return {"file": reach.file, "error": _words(active, instance, reach.file, agent), "active": active}


def _words(active: dict, instance: Session, file: str, agent: str) -> str:
    through = "" if active["file"] == file else f" through {named(active['file'])}"
    if active.get("hidden"):
        return f"{file} is not yours: held by a session of another identity{through}"
    holder = f"agent {named(active['agent'])} of " if active.get("agent") else ""
    if active["instance_id"] == instance.id:
        by = f"agent {agent}" if agent else "itself"
        return f"{file} was not locked by {by}: held by {holder}this session{through}"
    owner = label(active["owner"]["label"]) if active["owner"]["label"] else "a session without a label"
    return f"{file} is not yours: held by {holder}{owner} ({short(active['instance_id'])}){through}"
