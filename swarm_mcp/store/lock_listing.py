"""Locks as callers ask about them, and as answers show them."""

from __future__ import annotations

from swarm_hook_core.labels import same_circle, token
from swarm_hook_core.lookup import GLOB, plain
from swarm_mcp.domain.lock import MUTEX_PREFIX, Lock
from swarm_mcp.domain.session import STALE_SECONDS, Session, onlooker
from swarm_mcp.folders import file_of
from swarm_mcp.store import cursors, lock_finder, lock_pages, lock_rows
from swarm_mcp.store.database import range_end
from swarm_mcp.store.lock_request import Reach, checked
from swarm_mcp.store.lock_rows import ON_FILES, OWN
from swarm_mcp.store.naming import seconds_since

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from swarm_mcp.store.database import Transaction

NAMES = 300  # names in one question, which has each of them three times; old releases of SQLite take 999 values
_MORE = ("mode", "agent", "pattern", "fence", "expected_end", "repository", "machine", "team_fence")


def by_name(tx: Transaction, names: Iterable[str]) -> list[Lock]:
    """Return the live locks with one of these names (paths, and keys of ``paths``), in any scope, oldest first.

    With them all that may hold by another name: those on patterns, and those of every work tree.
    """
    asked = list(dict.fromkeys(names))
    found = [row for at in range(0, len(asked), NAMES) for row in lock_rows.named(tx, asked[at : at + NAMES])]
    found += lock_rows.select(tx, "AND c.path_key >= ? AND c.path_key < ?", (GLOB, range_end(GLOB)))
    found += lock_rows.select(tx, "AND c.repository IS NOT NULL", ())
    found += [row for row in lock_finder.of_turns(tx) if not {row.file, row.path_key}.isdisjoint(asked)]
    unique = {row.id: row for row in found}.values()
    return lock_rows.live(tx, sorted(unique, key=lambda row: (row.created_at, row.fence or 0)))


def meeting(tx: Transaction, reach: Reach) -> list[Lock]:
    """Return live locks of any mode that meet `reach`, here or in another work tree."""
    return lock_rows.live(tx, lock_finder.meeting(tx, reach))


def covering(tx: Transaction, reach: Reach) -> list[Lock]:
    """Return live locks that keep the path of `reach` still, also those on the same path of another work tree."""
    return lock_rows.live(tx, lock_finder.covering(tx, reach))


def exactly(tx: Transaction, reach: Reach) -> list[Lock]:
    """Return live locks of any session on that very path or pattern."""
    return lock_rows.live(tx, lock_finder.same(tx, reach))


def is_held(tx: Transaction, lock_id: str, instance_id: str) -> bool:
    """Return True if the grant with this id is there and still this session's, lapsed or not."""
    sql = "SELECT 1 FROM context WHERE id = ? AND instance_id = ?"
    if tx.row(sql, (lock_id, instance_id)) is not None:
        return True
    return any(row.id == lock_id for row in lock_finder.of_turns(tx, holder=instance_id))


def fences_held(tx: Transaction, instance_id: str, fences: list[int]) -> set[int]:
    """Return those of these grants that this session still holds."""
    condition = f"AND c.instance_id = ? AND c.fence IN ({','.join('?' * len(fences))})"
    found = lock_rows.live(tx, lock_rows.select(tx, condition, (instance_id, *fences)))
    return {lock.fence for lock in found if lock.fence is not None}


def path_of(tx: Transaction, instance: Session, file: str) -> str:
    """Return the file that `file` means for a session. Raises SwarmError where it cannot name one."""
    return file_of(instance, checked(file))


def held(tx: Transaction, scope: str | None, viewer_identity: str = "") -> Iterator[dict[str, Any]]:
    """Yield live locks of a scope (None: all), in the order of their first grant, with ``owner_label``.

    Locks of another identity are listed without names and notes. Rows are read as they are asked for: each at most
    once, and locks taken after the first read may be missing.
    """
    return (listed(tx, row, viewer_identity) for row in lock_pages.each(tx, scope))


def walk(
    tx: Transaction, scope: str | None, viewer_identity: str = "", after: str = ""
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the locks of `held`, in its order, each with its cursor."""
    place = cursors.place_of(after, (int,)) or [0]
    for row in lock_pages.each(tx, scope, place[0]):
        yield cursors.cursor(row["place"]), listed(tx, row, viewer_identity)


def walk_of(tx: Transaction, instance_id: str, after: str = "") -> Iterator[tuple[str, Lock]]:
    """Yield the locks on files that this session holds, in the order of their first grant."""

    def read(behind: str, place: list[Any], number: int) -> list[Lock]:
        sql = (
            f"SELECT rowid AS place, {', '.join(OWN)} FROM context WHERE {ON_FILES} AND instance_id = ?"
            f" {behind} ORDER BY rowid LIMIT {number}"
        )
        return tx.rows(sql, (instance_id, *place), Lock)

    yield from cursors.rows_after(after, (int,), "AND rowid > ?", read, lambda row: [row["place"]])
    place = cursors.place_of(after, (int,)) or [0]
    for row in lock_finder.of_turns(tx, holder=instance_id):
        if row["place"] > place[0]:
            yield cursors.cursor(row["place"]), row


def count_of(tx: Transaction, instance_id: str) -> int:
    """Return how many locks `walk_of` has."""
    # From indexes alone: all of them, without the few that are on no file.
    held = tx.count("context WHERE type = 'lock' AND instance_id = ?", instance_id)
    mutexes = "context WHERE type = 'lock' AND file >= ? AND file < ? AND +instance_id = ?"
    held -= tx.count(mutexes, MUTEX_PREFIX, range_end(MUTEX_PREFIX), instance_id)
    return held + len(lock_finder.of_turns(tx, holder=instance_id))


def foremost(
    tx: Transaction, scope: str, viewer_identity: str, limit: int, own_id: str, waited_for: Iterable[str]
) -> tuple[int, list[dict[str, Any]]]:
    """Return how many live locks a scope has, and `limit` of them, as `held` shows them, newest first.

    First those that session `own_id` holds, then those with the ids `waited_for` (``queue.lengths``), then others.
    """
    live, found = lock_pages.foremost(tx, scope, limit, own_id, waited_for)
    return live, [listed(tx, row, viewer_identity) for row in found]


def recent_of(
    tx: Transaction, holders: list[str], viewer_identity: str, limit: int, first: Iterable[str] = ()
) -> list[dict[str, Any]]:
    """Return up to `limit` live locks on files, as `held` shows them.

    Locks with the ids `first` come first, of any holder, then the newest of the sessions `holders`. The cost for a
    session does not depend on the number of its locks.
    """
    return [listed(tx, row, viewer_identity) for row in lock_pages.recent_of(tx, holders, limit, first)]


def active_on(tx: Transaction, file: str, viewer_identity: str) -> dict[str, Any] | None:
    """Return the holder of absolute `file`, in the shape of a refusal's ``active``; None for a free file."""
    held = lock_finder.on(tx, file)
    if held:
        return describe(tx, held[0], viewer_identity)
    return None


def listed(tx: Transaction, row: Lock, viewer_identity: str) -> dict[str, Any]:
    """Return a lock found by `on`, in the shape of a listing (`held`)."""
    shown = _shown(row)
    shown["owner_label"] = row["owner_label"]
    _add_more(tx, shown, row)
    if viewer_identity and not same_circle(viewer_identity, token(row["owner_label"] or "", "identity")):
        shown.update(content="", owner_label=None, hidden=True)
        shown.pop("machine", None)
    return shown


def describe(tx: Transaction, row: Lock, viewer_identity: str) -> dict[str, Any]:
    """Return a lock found by `on`, in the shape of a refusal's ``active``."""
    if not same_circle(viewer_identity, token(row.owner_label or "", "identity")):
        return {"hidden": True, "reason": "cross_identity", "file": plain(row.file)}
    age = seconds_since(row.heartbeat, tx.now())
    # A live session that is merely quiet is not stale: its client is there, or its lease runs.
    quiet = row.last_seen is None and age > STALE_SECONDS
    owner = {"id": row.instance_id, "label": row.owner_label, "heartbeat": row.heartbeat}
    owner.update(heartbeat_age_seconds=age, stale=quiet, reclaimable=False, active=not quiet)
    tasks = tx.rows(
        "SELECT id, type, title, status, requester, assignee FROM tasks"
        " WHERE scope = ? AND assignee = ? AND status IN ('claimed', 'in_progress')"
        " ORDER BY priority DESC, created_at, id LIMIT 5",
        (row.scope, row.instance_id),
    )
    if tasks:
        # ``{id, type, title, status}`` of those tasks that identity `viewer_identity` may see
        from swarm_mcp.store import task_reading  # of a refusal alone

        sight = task_reading.Sight(tx, onlooker(viewer_identity))
        names = ("id", "type", "title", "status")
        active = [{name: task[name] for name in names} for task in tasks if sight.sees(task)]
    else:
        active = []
    shown = _shown(row)
    from swarm_mcp.store import user_interface  # of a refusal alone: lists do without

    place = user_interface.with_lock(tx, {"instance_id": row.instance_id})
    owner.update((name, place[name]) for name in user_interface.PANE_COLUMNS if place.get(name))
    if "workspace" in place:
        workspace = {"workspace": place["workspace"]}
    else:
        workspace = {}
    answer = {**shown, "owner": owner, **workspace, "active_tasks": active}
    _add_more(tx, answer, row)
    return answer


def _shown(row: Lock) -> dict[str, Any]:
    """Return a lock in the contract's words."""
    return {
        "id": row["id"],
        "instance_id": row["instance_id"],
        "file": plain(row["file"]),
        "type": "lock",
        "content": row["content"],
        "created_at": row["created_at"],
    }


def _add_more(tx: Transaction, shown: dict[str, Any], row: Lock) -> None:
    """Add the facts about a lock that the contract does not name."""
    for name in _MORE:
        value = row.get(name)
        if value:
            shown[name] = value
    left = lock_rows.left(tx, row)
    if left is not None:
        shown.update(ttl=row.ttl, lapses_in=round(max(0.0, left), 1))
