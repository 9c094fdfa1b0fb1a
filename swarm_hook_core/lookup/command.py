"""Asking the coordinator's command for the locks, where its store is no local SQLite file."""

from __future__ import annotations

import os
from typing import Any

from swarm_hook_core import clock
from swarm_hook_core.coordinator import command
from swarm_hook_core.json_text import loads
from swarm_hook_core.lookup import Held, LockReader, ascii_lower
from swarm_hook_core.paths import key_of
from swarm_hook_core.process import host_id, run
from swarm_hook_core.wildcards import Cover


class CoordinatorUnavailable(Exception):
    """The command gave no usable list in time; the message says why."""


class CommandReader(LockReader):
    """The answers of one ``swarm-mcp locks --json`` of the session's `scope`.

    The contract's command lists one scope, so locks of other scopes are not seen this way. Nor are facts that only the
    store knows: work trees, waiting sessions, denials, leases of one's own.
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
        names = {ascii_lower(os.path.basename(key)) for key in keys}
        found = []
        for row in self.rows:
            file = row["file"]
            if row.get("type", "lock") != "lock" or row.get("pattern"):
                continue
            if file not in keys and ascii_lower(os.path.basename(file)) not in names:
                continue
            if file in keys:
                key = file
            else:
                key = key_of(file)
            if key in keys:
                found.append(self._held(row, key))
        return found

    def patterns_over(self, keys: list[str]) -> list[Held]:
        found = []
        for held in self._patterns():
            cover = Cover(held)
            names = tuple(key for key in keys if cover.has(key))
            if names:
                held.names = names
                found.append(held)
        return found

    def patterns_near(self, folders: list[str], own_id: str) -> list[Held]:
        found = [held for held in self._patterns() if held.instance_id != own_id or held.agent]
        if not found:
            return found

        return [held for held in found if (cover := Cover(held)) and any(map(cover.leads_to, folders))]

    def _patterns(self) -> list[Held]:
        return [self._held(row, row["file"]) for row in self.rows if isinstance(row.get("pattern"), str)]

    def _held(self, row: dict[str, Any], key: str) -> Held:
        pattern, base = row.get("pattern"), None
        lease: tuple[Any, ...] = (None,) * 4
        if isinstance(pattern, str):
            place = row["file"].removesuffix(pattern.lstrip("/"))
            if place != row["file"]:
                base = key_of(place)
        if isinstance(row.get("lapses_in"), (int, float)):
            lease = (row["lapses_in"], clock.now(), clock.boot(host_id()), None)
        holder: Any = row.get("instance_id")
        return Held(
            row["file"], holder, "identity:?" if row.get("hidden") else row.get("owner_label"),
            row.get("content"), row.get("created_at"), names=(key,), agent=row.get("agent"), mode=row.get("mode"),
            expected_end=row.get("expected_end"), pattern=pattern, base=base, fence=row.get("fence"), lease=lease,
        )  # fmt: skip

    def others_hold(self, own_id: str) -> bool:
        return any(row.get("instance_id") != own_id or row.get("agent") for row in self.rows)

    def locks_under(self, folders: list[str], own_id: str, limit: int, own_agent: str = "") -> list[Held]:
        roots = tuple(folder.rstrip("/") + "/" for folder in folders)
        agents = (None, own_agent)
        others = [row for row in self.rows if row.get("instance_id") != own_id or row.get("agent") not in agents]
        rows = [row for row in others if row["file"].startswith(roots) and not row.get("pattern")]
        return [self._held(row, row["file"]) for row in rows[:limit] if row.get("type", "lock") == "lock"]
