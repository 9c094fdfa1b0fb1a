"""Finding locks by what they reach."""

from __future__ import annotations

from swarm_hook_core.lookup import GLOB
from swarm_hook_core.paths import above
from swarm_mcp.domain.lock import Lock
from swarm_mcp.domain.session import anywhere
from swarm_mcp.store.lock_reach import Reach, meet, reach_in, reach_of
from swarm_mcp.store.lock_table import LockTable
from swarm_mcp.store.made_once import made_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.store.worktree_locks import WorktreeLocks


class LockFinder(LockTable):
    """Finding locks by what they reach, in their own work tree and through others of the same repository."""

    @made_once
    def worktrees(self) -> WorktreeLocks:
        """Locks that hold in every work tree: loaded where one is asked for, not by those that only list."""
        from swarm_mcp.store.worktree_locks import WorktreeLocks

        return WorktreeLocks(self._db, LockTable(self._db))

    def on(self, file: str) -> list[Lock]:
        """Live locks that keep absolute `file` still: on itself, on a folder over it, by a pattern; in any scope."""
        return self.live(self.covering(reach_of(anywhere(), file, as_pattern=False)))

    def covering(self, reach: Reach) -> list[Lock]:
        """Locks that keep the path of `reach` still: on itself, on a folder over it, by a pattern; or on the same
        path of another work tree.
        """
        if reach.key is None:
            return self.named(reach.keys)
        names = [name for key in reach.keys for name in (key, *above(key))]
        found = {row["id"]: row for row in self.named(list(dict.fromkeys(names)))}
        exact = reach._replace(segments=tuple(part for part in reach.segments if part is not None))
        for row in self.select("AND c.path_key >= ? AND c.path_key < ?", (GLOB, GLOB[:-1] + ";")):
            there = reach_in(row)
            if there and meet(exact, there):
                found[row["id"]] = row
        found.update((row["id"], row) for row in self.worktrees.covering(reach))
        return sorted(found.values(), key=lambda row: (row["created_at"], row["id"]))

    def meeting(self, reach: Reach) -> list[Lock]:
        """Locks whose reach meets `reach`, here or in another work tree, whoever holds them, in whatever mode."""
        here, elsewhere = self.in_place(reach), self.worktrees.meeting(reach)
        if not elsewhere:
            return here
        found = {row["id"]: row for row in (*here, *elsewhere)}
        return sorted(found.values(), key=lambda row: (row["created_at"], row["id"]))
