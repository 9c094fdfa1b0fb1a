"""SQLite's plans for the statements of a deed: the cost of a question, independent of the machine."""

import re
from collections.abc import Callable

import pytest

from swarm_mcp.store import Store
from swarm_mcp.store.database import Database

_LARGE = re.compile(r"SCAN (m|messages|events|tasks|context|kv|swarm_denials)\b")


def scans(store: Store, deed: Callable[[], object]) -> set[tuple[str, str]]:
    """Do `deed`; return the steps of its plans that walk through a whole table or index, each with its statement."""
    found: set[tuple[str, str]] = set()
    execute = Database._execute

    def explained(self: Database, sql: str, values: object) -> object:
        if sql.startswith(("SELECT", "DELETE", "UPDATE", "WITH")):
            plan = self.connection.execute(f"EXPLAIN QUERY PLAN {sql}", values).fetchall()
            found.update((row[3], sql) for row in plan if _LARGE.match(row[3]))
        return execute(self, sql, values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Database, "_execute", explained)
        deed()
    return found
