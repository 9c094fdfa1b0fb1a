"""The inside of the store's file: its pages, and its tables, columns and indexes beside those of this release."""

from __future__ import annotations

from typing import NamedTuple

from sqlite_utils import Database

from swarm_mcp.store import Store, schema

MOST_NAMED = 3


class Inside(NamedTuple):
    """The result of a look at a store's file.

    damage       SQLite's words about damaged pages, a few; empty for a sound file
    differences  tables, columns and indexes that the file lacks, in words
    """

    damage: list[str]
    differences: list[str]

    @property
    def words(self) -> str:
        """Return both in one line, empty if all is well."""
        more = len(self.differences) - MOST_NAMED
        rest = [f"and {more} more"] if more > 0 else []
        return "; ".join([*self.damage, *self.differences[:MOST_NAMED], *rest])


def inside(store: Store) -> Inside:
    """Look at the file of an open store. Reads every page of it. Raises StoreUnavailable if it cannot be read."""
    database = Database(store.database.connection, execute_plugins=False)
    damage = [str(row["quick_check"]) for row in database.query(f"PRAGMA quick_check({MOST_NAMED})")]
    if damage == ["ok"]:
        damage = []
    return Inside(damage, schema.differences(database))
