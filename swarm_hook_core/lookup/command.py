"""Asking the coordinator's command for the locks, where its store is no local SQLite file."""

import os

from swarm_hook_core.coordinator import command
from swarm_hook_core.json_text import loads
from swarm_hook_core.lookup.sqlite import Held, ascii_lower
from swarm_hook_core.paths import key_of
from swarm_hook_core.spawn import run


class CoordinatorUnavailable(Exception):
    """The command gave no usable list in time; the message says why."""


class CommandReader:
    """Answers like ``StoreReader.locks_on``, from one ``swarm-mcp locks --json`` of the session's `scope`.

    The contract's command lists one scope, so locks of other scopes are not seen this way.
    """

    def __init__(self, seconds: float, scope: str):
        argv = command()
        if not argv:
            raise CoordinatorUnavailable("swarm-mcp was not found")
        done = run([*argv, "locks", "--json", *(["--scope", scope] if scope else [])], seconds)
        if done.code != 0:
            raise CoordinatorUnavailable(f"swarm-mcp locks: {done.stderr.strip()[:200]}")
        try:
            rows = loads(done.stdout)
        except (ValueError, RecursionError):
            rows = None
        if not isinstance(rows, list):
            raise CoordinatorUnavailable("swarm-mcp locks gave no list")
        self.rows = [row for row in rows if isinstance(row, dict) and isinstance(row.get("file"), str)]

    def locks_on(self, keys: list[str]) -> list[Held]:
        """Locks that name one of `keys` by any spelling. `since` is 0 where the row has no time."""
        names = {ascii_lower(os.path.basename(key)) for key in keys}
        found = []
        for row in self.rows:
            file = row["file"]
            if row.get("type", "lock") != "lock" or row.get("pattern"):
                continue
            if file not in keys and ascii_lower(os.path.basename(file)) not in names:
                continue
            key = file if file in keys else key_of(file)
            if key in keys:
                found.append(self._held(row, key))
        return found

    def patterns_over(self, keys: list[str]) -> list[Held]:
        """Locks on patterns that cover any of these paths, where the command lists such (ours does)."""
        found = []
        for held in self._patterns():
            from swarm_hook_core.pattern_match import Cover

            cover = Cover(held)
            names = tuple(key for key in keys if cover.has(key))
            if names:
                held.names = names
                found.append(held)
        return found

    def logical_over(self, keys: list[str]) -> list[Held]:
        """Nothing: what other work trees share is only asked of a file that is here."""
        return []

    def logical_under(self, folders: list[str], own_id: str, limit: int) -> list[Held]:
        """Nothing, for the same reason."""
        return []

    def patterns_near(self, folders: list[str], own_id: str) -> list[Held]:
        """As ``StoreReader.patterns_near``."""
        found = [held for held in self._patterns() if held.instance_id != own_id or held.agent]
        if not found:
            return found
        from swarm_hook_core.pattern_match import Cover

        return [held for held in found if (cover := Cover(held)) and any(map(cover.leads_to, folders))]

    def _patterns(self) -> list[Held]:
        return [self._held(row, row["file"]) for row in self.rows if isinstance(row.get("pattern"), str)]

    def _held(self, row: dict, key: str) -> Held:
        owner = "identity:?" if row.get("hidden") else row.get("owner_label")
        facts = (row.get("instance_id"), owner, row.get("content"), row.get("created_at"))
        pattern, base, lease = row.get("pattern"), None, (None,) * 4
        if isinstance(pattern, str):
            place = row["file"].removesuffix(pattern.lstrip("/"))
            base = key_of(place) if place != row["file"] else None
        if isinstance(row.get("lapses_in"), (int, float)):
            from swarm_hook_core.clock import boot, now
            from swarm_hook_core.process import host_id

            lease = (row["lapses_in"], now(), boot(host_id()), None)
        more = (row.get("mode"), row.get("agent"), pattern, base, row.get("fence"), row.get("expected_end"), *lease)
        return Held(row["file"], *facts, names=(key,), more=more)

    def others_hold(self, own_id: str) -> bool:
        """Whether anybody but this session has a lock in the scope."""
        return any(row.get("instance_id") != own_id or row.get("agent") for row in self.rows)

    def locks_under(self, folders: list[str], own_id: str, limit: int, own_agent: str = "") -> list[Held]:
        """Locks of others on what lies below any of these folders, by their spelling, at most `limit`."""
        roots = tuple(folder.rstrip("/") + "/" for folder in folders)
        agents = (None, own_agent)
        others = [row for row in self.rows if row.get("instance_id") != own_id or row.get("agent") not in agents]
        rows = [row for row in others if row["file"].startswith(roots) and not row.get("pattern")]
        return [self._held(row, row["file"]) for row in rows[:limit] if row.get("type", "lock") == "lock"]

    def waiting_for(self, path: str) -> int:
        """How many wait for a lock on `path`: not told by the contract's command."""
        return 0

    def leases_and_news(self, instance_id: str) -> tuple[list[tuple], bool]:
        """Nothing: leases are ours alone."""
        return [], False

    def was_denied(self, instance_id: str, held: Held, since: float, path: str = "") -> bool:
        """Whether a denial is noted already: that is the coordinator's to know."""
        return False
