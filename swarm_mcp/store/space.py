"""The size of a store's file: free pages are given back a little at a time, so that no process waits for it.

SQLite keeps the pages of deleted rows for later rows. In a file made by us they are moved to its end, some at a time,
and cut off. A file made by another implementation is not laid out for that, and is written anew once, while it is
small. The write-ahead log keeps the length of its longest day; it is cut when the file has all of it and no process
reads it.
"""

from __future__ import annotations

import os
import time

from swarm_mcp.errors import SwarmError
from swarm_mcp.store.driver import version, wal_is_safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.store.database import Database

SPARE_PAGES = 16  # that may be free: the next rows take them
PAGES_AT_ONCE = 8  # between two looks at the clock
SECONDS = 0.005  # the longest wait for others
REWRITTEN_PAGES = 256  # a file with no more in use is written anew in about the same time
LOG_BYTES = 256 * 1024  # of a log that stays as it is
LONG_LOG_BYTES = 8 * 1024 * 1024  # the same while there is more to clean up, since that goes through the log

_INCREMENTAL = 2


class Space:
    """The size of an open store's file and of its log."""

    def __init__(self, db: Database):
        self._db = db

    def give_back(self) -> bool:
        """Outside a transaction: make the file a little shorter, if it can be; return True if more is possible."""
        free = self._pragma("freelist_count")
        if free <= SPARE_PAGES:
            return False
        if self._pragma("auto_vacuum") != _INCREMENTAL:
            # Lay the file out so that it can be made shorter, if that takes no noticeable time
            if self._pragma("page_count") - free <= REWRITTEN_PAGES:
                self._db.rows(f"PRAGMA auto_vacuum = {_INCREMENTAL}")
                try:
                    self._db.rows("VACUUM")
                except SwarmError:
                    return False  # no room, or another process writes: another time
            return False
        with self._db.writing():
            end = time.monotonic() + SECONDS
            while free > SPARE_PAGES and time.monotonic() < end:
                self._db.rows(f"PRAGMA incremental_vacuum({PAGES_AT_ONCE})")
                free = self._pragma("freelist_count")
        return free > SPARE_PAGES

    def shorten_log(self, more_to_come: bool) -> None:
        """Outside a transaction: take the write-ahead log into the file, and cut the log.

        If another process reads or writes right now, the log stays for another time.
        """
        try:
            size = os.stat(self._db.path + "-wal").st_size
        except OSError:
            return  # there is no log
        if size <= (LONG_LOG_BYTES if more_to_come else LOG_BYTES) or not wal_is_safe(version(self._db.driver)):
            return
        # The first needs no lock and does the work. After it the second has nothing to write while others wait.
        (busy, pages, folded) = self._db.rows("PRAGMA wal_checkpoint(PASSIVE)")[0].values()
        if not busy and pages == folded:
            self._db.rows("PRAGMA wal_checkpoint(TRUNCATE)")

    def _pragma(self, name: str) -> int:
        return int(self._db.rows(f"PRAGMA {name}")[0][name])
