"""The SQLite in use, the meaning of its release for the store, and the version of a file's schema.

Releases 3.7.0 to 3.51.2 can, rarely, lose commits in write-ahead-log mode with several connections
(https://sqlite.org/wal.html#walresetbug); 3.44.6 and 3.50.7 carry the fix too. ``pysqlite3``
brings a current release with it and is preferred; where its wheels do not reach and the
interpreter's own library is affected, the store uses a rollback journal instead.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from swarm_hook_core.lookup.glance import sqlite_driver


def load() -> Any:
    """Return the C module to connect with: pysqlite3's where installed, else the interpreter's."""
    if "pysqlite3" in sys.modules:
        return sys.modules["pysqlite3._sqlite3"]
    loaded = sys.modules.get("pysqlite3._sqlite3") or _bundled()
    if loaded is not None:
        return loaded
    return sqlite_driver()


def version(driver: Any) -> tuple[int, int, int]:
    """Return the SQLite release behind `driver`."""
    numbers = [int(part) for part in driver.sqlite_version.split(".")[:3]]
    return (numbers + [0, 0, 0])[0], (numbers + [0, 0, 0])[1], (numbers + [0, 0, 0])[2]


def wal_is_safe(release: tuple[int, int, int]) -> bool:
    """Tell whether write-ahead-log mode keeps every commit in this SQLite release."""
    if release >= (3, 51, 3):
        return release[:2] != (3, 52)  # withdrawn
    return (3, 44, 6) <= release < (3, 45, 0) or (3, 50, 7) <= release < (3, 51, 0)


def _bundled() -> Any:
    """Return pysqlite3's C module without its Python layer, whose imports cost 5 ms on every command."""
    for folder in sys.path:
        package = os.path.join(folder, "pysqlite3")
        if os.path.isfile(os.path.join(package, "__init__.py")):
            break
    else:
        return None
    from _frozen_importlib_external import PathFinder  # what importlib.machinery shows, without its imports

    spec = PathFinder.find_spec("pysqlite3._sqlite3", [package])
    if spec is None or spec.loader is None:
        return None
    module: Any
    try:
        module = spec.loader.create_module(spec)
        spec.loader.exec_module(module)
    except ImportError:  # built for another Python
        return None
    sys.modules["pysqlite3._sqlite3"] = module
    return module


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
