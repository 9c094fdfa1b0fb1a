"""The version of the schema: most commands read it, and few need the tables of ``schema``."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# 2: deliveries, denials, upkeep times; the queue's indexes. 3: alterations. 4: runs, more columns of locks. 5: sessions
# with several clients. 6: when a waiter last showed life. 7: listings in pages; locks by spelling, and of folders. 8:
# storms of denials. 9: locks and places of other machines. 10: messages, tasks and values of theirs. 11: an index less
# for locks. 12: questions to a person. 13: facts of events. A change of the tables that packages contribute counts too.
OUR_VERSION = 13


def is_current(connection: Any) -> bool:
    """Return True if the file has all of this release's schema, told by one read."""
    table = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'swarm_schema'").fetchone()
    if not table:
        return False
    row = connection.execute("SELECT max(version) FROM swarm_schema").fetchone()
    return bool(row) and row[0] is not None and row[0] >= OUR_VERSION
