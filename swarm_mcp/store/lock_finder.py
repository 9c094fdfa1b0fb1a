"""Finding locks by their reach: in their own work tree, and through others of the same repository."""

from __future__ import annotations

from swarm_hook_core.lookup import GLOB
from swarm_hook_core.paths import NO_CASE, above, key_of
from swarm_hook_core.state import has_turn_files
from swarm_mcp.domain.lock import Lock
from swarm_mcp.domain.session import Session, anywhere
from swarm_mcp.errors import Refused
from swarm_mcp.store import lock_rows
from swarm_mcp.store.lock_candidates import Asking
from swarm_mcp.store.lock_request import Reach, meet, reach_in, reach_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.store.database import Transaction


def on(tx: Transaction, file: str) -> list[Lock]:
    """Return live locks that keep absolute `file` still: itself, a folder over it, a pattern; in any scope."""
    return lock_rows.live(tx, covering(tx, reach_of(anywhere(), file, as_pattern=False)))


def covering(tx: Transaction, reach: Reach) -> list[Lock]:
    """Return locks that keep the path of `reach` still: itself, a folder over it, a pattern, another tree's."""
    from swarm_mcp.store import worktree_locks

    if reach.key is None:
        return lock_rows.named(tx, reach.keys)
    names = list(dict.fromkeys(name for key in reach.keys for name in (key, *above(key))))
    found = {row.id: row for row in lock_rows.named(tx, names)}
    exact = reach._replace(segments=tuple(part for part in reach.segments if part is not None))
    tops = (*(GLOB + name for name in names), GLOB + "/", GLOB + NO_CASE + "/")
    for row in lock_rows.select(tx, f"AND c.path_key IN ({','.join('?' * len(tops))})", tops):
        there = reach_in(row)
        if there and meet(exact, there):
            found[row.id] = row
    found.update((row.id, row) for row in worktree_locks.covering_elsewhere(tx, reach))
    found.update((row.id, row) for row in _of_turns(tx, exact))
    return sorted(found.values(), key=lambda row: (row.created_at, row.id))


def meeting(tx: Transaction, reach: Reach, asking: Asking | None = None) -> list[Lock]:
    """Return locks that meet `reach`, here or in another work tree, live or not.

    With `asking`, locks that never keep it out may be left out, except its own lock on that very path or pattern. If a
    live lock keeps it out, other locks may be left out too.
    """
    from swarm_mcp.store import worktree_locks

    here, elsewhere = lock_rows.in_place(tx, reach, asking), worktree_locks.meeting_elsewhere(tx, reach)
    elsewhere = [*elsewhere, *_of_turns(tx, reach)]
    if not elsewhere:
        return here
    found = {row.id: row for row in (*here, *elsewhere)}
    return sorted(found.values(), key=lambda row: (row.created_at, row.id))


def same(tx: Transaction, reach: Reach) -> list[Lock]:
    """Return every lock on that very path or pattern, live or not."""
    if reach.pattern:
        rows = lock_rows.select(tx, "AND c.path_key = ?", (reach.key,))
        return [row for row in rows if (row.pattern, row.base) == (reach.pattern, reach.base)]
    found = [row for row in lock_rows.named(tx, reach.keys) if not row.pattern]
    return [*found, *(row for row in _of_turns(tx, reach) if is_same(row, reach))]


def of_turns(tx: Transaction, scope: str | None = None, holder: str = "") -> list[Lock]:
    """Return ``turn_locks.standing``; mostly there are none."""
    if not has_turn_files():
        return []
    from swarm_mcp.store import turn_locks

    return turn_locks.standing(tx, scope, holder)


def _of_turns(tx: Transaction, reach: Reach) -> list[Lock]:
    """Return the files that sessions have for their turns and that meet `reach`."""
    if not has_turn_files() or reach.key is None:
        return []
    from swarm_mcp.store import turn_locks

    return turn_locks.meeting(tx, reach)


def is_same(row: Lock, reach: Reach) -> bool:
    """Return True if a lock is on that very path, by any name, or on that very pattern."""
    if reach.pattern or row.pattern:
        return (row.pattern, row.base) == (reach.pattern, reach.base)
    return row.file in reach.keys or (row.path_key or key_of(row.file)) in reach.keys


def own(
    tx: Transaction,
    instance: Session,
    reach: Reach,
    agent: str = "",
) -> list[Lock]:
    """Return this session's live locks on that very path or pattern, of one `agent` where given."""
    return own_among(lock_rows.live(tx, same(tx, reach)), instance, agent)


def own_among(locks: list[Lock], instance: Session, agent: str = "") -> list[Lock]:
    """Return the locks that this session holds, of one `agent` where given."""
    return [lock for lock in locks if lock.instance_id == instance.id and agent in ("", lock.agent or "")]


def unfit(reach: Reach, mine: list[Lock], fence: int | None) -> Refused | None:
    """Return the refusal if `mine`, the result of `own`, is not the grant with this `fence`; else None."""
    if fence is not None and [row.fence for row in mine] != [fence]:
        if mine:
            held = f"; it is held with fence {mine[0].fence}"
        else:
            held = ""
        return Refused(f"fence {fence} is no longer good for {reach.file}{held}")
    if mine:
        return None
    return Refused(f"this session holds no lock on {reach.file}")
