"""Locks as callers ask about them, and as answers show them."""

from __future__ import annotations

from swarm_hook_core.labels import same_circle, token
from swarm_hook_core.lookup import GLOB, plain
from swarm_mcp.domain.lock import MUTEX_PREFIX, Lock
from swarm_mcp.domain.record import Record
from swarm_mcp.domain.session import STALE_SECONDS, Session
from swarm_mcp.folders import file_of
from swarm_mcp.store.lock_finder import ON_FILES, OWN
from swarm_mcp.store.lock_request import Reach, checked
from swarm_mcp.views import seconds_since

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from swarm_mcp.store.database import Database
    from swarm_mcp.store.lock_finder import LockFinder
    from swarm_mcp.store.lock_pages import LockPages
    from swarm_mcp.store.user_interface import Panes

NAMES = 300  # in one question, which has each of them three times; old releases of SQLite take 999 values
_MORE = ("mode", "agent", "pattern", "fence", "expected_end", "repository", "machine", "team_fence")


class LockListing:
    """The questions of ``api.Locks``, which change nothing."""

    def __init__(self, db: Database, finder: LockFinder, panes: Callable[[], Panes]):
        self._db = db
        self._finder = finder
        self._panes = panes

    def _pages(self) -> LockPages:
        from swarm_mcp.store.lock_pages import LockPages

        return LockPages(self._db, self._asked())

    def _asked(self) -> LockFinder:
        """Return what finds locks, those among them that writes have just claimed."""
        self._finder.adopt()
        return self._finder

    def on(self, file: str) -> list[Lock]:
        return self._asked().on(file)

    def of(self, instance_id: str) -> list[Lock]:
        return self._asked().of(instance_id)

    def by_name(self, names: Iterable[str]) -> list[Lock]:
        asked, finder = list(dict.fromkeys(names)), self._asked()
        found = [row for at in range(0, len(asked), NAMES) for row in finder.named(asked[at : at + NAMES])]
        found += finder.select("AND c.path_key >= ? AND c.path_key < ?", (GLOB, GLOB[:-1] + ";"))
        found += finder.select("AND c.repository IS NOT NULL", ())
        unique = {row.id: row for row in found}.values()
        return finder.live(sorted(unique, key=lambda row: (row.created_at, row.fence or 0)))

    def meeting(self, reach: Reach) -> list[Lock]:
        return self._finder.live(self._asked().meeting(reach))

    def covering(self, reach: Reach) -> list[Lock]:
        return self._finder.live(self._asked().covering(reach))

    def exactly(self, reach: Reach) -> list[Lock]:
        return self._finder.live(self._asked().same(reach))

    def seen_in(self, folder: str) -> dict[str, str]:
        return self._finder.worktrees.seen_in(folder)

    def spread(self, folder: str) -> int:
        return self._finder.worktrees.spread(folder)

    def own(self, instance: Session, reach: Reach, agent: str = "") -> list[Lock]:
        """Return this session's live locks on that very path or pattern, of one `agent` where given."""
        return self._asked().own(instance, reach, agent)

    def left(self, lock: Lock) -> float | None:
        return self._finder.left(lock)

    def is_held(self, lock_id: str, instance_id: str) -> bool:
        sql = "SELECT 1 FROM context WHERE id = ? AND instance_id = ?"
        return self._db.row(sql, (lock_id, instance_id)) is not None

    def fences_held(self, instance_id: str, fences: list[int]) -> set[int]:
        condition = f"AND c.instance_id = ? AND c.fence IN ({','.join('?' * len(fences))})"
        found = self._finder.live(self._asked().select(condition, (instance_id, *fences)))
        return {lock.fence for lock in found if lock.fence is not None}

    def path_of(self, instance: Session, file: str) -> str:
        return file_of(instance, checked(file))

    def held(self, scope: str | None, viewer_identity: str = "") -> Iterator[dict]:
        return (self.listed(row, viewer_identity) for row in self._pages().each(scope))

    def walk(self, scope: str | None, viewer_identity: str = "", after: str = "") -> Iterator[tuple[str, dict]]:
        from swarm_mcp.paging import cursor, place_of

        place = place_of(after, (int,)) or [0]
        for row in self._pages().each(scope, place[0]):
            yield cursor(row["place"]), self.listed(row, viewer_identity)

    def walk_of(self, instance_id: str, after: str = "") -> Iterator[tuple[str, Lock]]:
        from swarm_mcp.paging import walk

        self._finder.adopt()

        def read(place: list | None, number: int) -> list[Lock]:
            sql = (
                f"SELECT rowid AS place, {', '.join(OWN)} FROM context WHERE {ON_FILES} AND instance_id = ?"
                f" AND rowid > ? ORDER BY rowid LIMIT {number}"
            )
            return self._db.rows(sql, (instance_id, *(place or (-1,))), Lock)

        yield from walk(after, (int,), read, lambda row: [row["place"]])

    def count_of(self, instance_id: str) -> int:
        self._finder.adopt()
        # From indexes alone: all of them, without the few that are on no file.
        end = MUTEX_PREFIX[:-1] + "0"
        row = self._db.row(
            "SELECT (SELECT count(*) FROM context WHERE type = 'lock' AND instance_id = ?1) - (SELECT count(*) FROM"
            " context WHERE type = 'lock' AND file >= ?2 AND file < ?3 AND +instance_id = ?1) AS n",
            (instance_id, MUTEX_PREFIX, end),
        )
        return row.n if row else 0

    def counts(self, scope: str | None) -> dict[str, int]:
        return self._pages().counts(scope)

    def foremost(
        self, scope: str, viewer_identity: str, limit: int, own_id: str, waited_for: Iterable[str]
    ) -> tuple[int, list[dict]]:
        live, found = self._pages().foremost(scope, limit, own_id, waited_for)
        return live, [self.listed(row, viewer_identity) for row in found]

    def recent_of(self, holders: list[str], viewer_identity: str, limit: int, first: Iterable[str] = ()) -> list[dict]:
        return [self.listed(row, viewer_identity) for row in self._pages().recent_of(holders, limit, first)]

    def counts_of(self, holders: list[str], most: int) -> dict[str, int]:
        self._finder.adopt()
        return self._pages().counts_of(holders, most)

    def active_on(self, file: str, viewer_identity: str) -> dict | None:
        held = self._asked().on(file)
        return self.describe(held[0], viewer_identity) if held else None

    def listed(self, row: Lock, viewer_identity: str) -> dict:
        shown = self._shown(row)
        shown["owner_label"] = row["owner_label"]
        self._add_more(shown, row)
        if viewer_identity and not same_circle(viewer_identity, token(row["owner_label"] or "", "identity")):
            shown.update(content="", owner_label=None, hidden=True)
            shown.pop("machine", None)
        return shown

    def describe(self, row: Lock, viewer_identity: str) -> dict:
        if not same_circle(viewer_identity, token(row.owner_label or "", "identity")):
            return {"hidden": True, "reason": "cross_identity", "file": plain(row.file)}
        age = seconds_since(row.heartbeat, self._db.now())
        # A live session that is merely quiet is not stale: its client is there, or its lease runs.
        quiet = row.last_seen is None and age > STALE_SECONDS
        owner = {"id": row.instance_id, "label": row.owner_label, "heartbeat": row.heartbeat}
        owner.update(heartbeat_age_seconds=age, stale=quiet, reclaimable=False, active=not quiet)
        tasks = self._db.rows(
            "SELECT id, type, title, status, requester, assignee FROM tasks"
            " WHERE scope = ? AND assignee = ? AND status IN ('claimed', 'in_progress')"
            " ORDER BY priority DESC, created_at, id LIMIT 5",
            (row.scope, row.instance_id),
        )
        active = _shown_to(self._db, viewer_identity, tasks) if tasks else []
        shown = self._shown(row)
        from swarm_mcp.store.user_interface import PANE_COLUMNS

        place = self._panes().with_lock({"instance_id": row.instance_id})
        owner.update((name, place[name]) for name in PANE_COLUMNS if place.get(name))
        workspace = {"workspace": place["workspace"]} if "workspace" in place else {}
        answer = {**shown, "owner": owner, **workspace, "active_tasks": active}
        self._add_more(answer, row)
        return answer

    # -------------------------------------------------------------- innards

    def _shown(self, row: Lock) -> dict:
        """Return a lock in the contract's words."""
        return {
            "id": row["id"],
            "instance_id": row["instance_id"],
            "file": plain(row["file"]),
            "type": "lock",
            "content": row["content"],
            "created_at": row["created_at"],
        }

    def _add_more(self, shown: dict, row: Lock) -> None:
        """Add what there is to say of a lock beyond the contract's words."""
        for name in _MORE:
            value = row.get(name)
            if value:
                shown[name] = value
        left = self._finder.left(row)
        if left is not None:
            shown.update(ttl=row.ttl, lapses_in=round(max(0.0, left), 1))


def _shown_to(db: Database, viewer: str, tasks: list[Record]) -> list[dict]:
    """Return ``{id, type, title, status}`` of those tasks that identity `viewer` may see."""
    from swarm_mcp.domain.session import onlooker
    from swarm_mcp.store.task_reading import Sight

    sight = Sight(db, onlooker(viewer))
    names = ("id", "type", "title", "status")
    return [{name: task[name] for name in names} for task in tasks if sight.sees(task)]
