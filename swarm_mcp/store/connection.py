"""One open store: rows as dicts, and every read-then-write as one immediate transaction."""

from __future__ import annotations

import os
import sys
import time

from swarm_hook_core.process import host_id
from swarm_hook_core.reader import as_text, connect_read_only
from swarm_hook_core.state import make_private, store_path
from swarm_mcp.errors import StoreUnavailable, SwarmError
from swarm_mcp.store import driver as drivers

BUSY_SECONDS = 15.0
# Between two tries for a store that somebody else has. SQLite's own waiting starts at 1 ms and ends at 100,
# where whoever has waited longest asks least often and is starved by those that have just come.
SHORTEST_PAUSE, LONGEST_PAUSE = 0.0003, 0.005
CONTRACT_VERSION = 1

# What can be asked of a store: group -> (module here, class). See ``interface.py``.
GROUPS = {
    "instances": ("instances", "Instances"),  # sessions: register, renew, find, remove
    "locks": ("locks", "Locks"),  # acquire, release, list
    "denials": ("denials", "Denials"),  # who was kept from a file, to be told when it is free
    "messages": ("messages", "Messages"),  # mail between sessions
    "tasks": ("tasks", "Tasks"),  # work handed over: request, claim, complete
    "kv": ("kv", "KeyValues"),  # shared values
    "planner": ("planner", "Planner"),  # which planner owns the scope's plan
    "tracker": ("tracker", "Tracker"),  # the work tracker of an identity, and a task's entry in it
    "activity": ("activity", "Activity"),  # what has changed since when
    "ui_commands": ("ui_commands", "UiCommands"),  # the queue of an external user interface
    "records": ("records", "Records"),  # messages, tasks and events, for those who look on
    "upkeep": ("upkeep", "Upkeep"),  # what falls due with time
}


class Store:
    """The embedded store. Its groups say what can be asked of it; see ``interface.py``.

    A write store creates or migrates the file when needed. A read-only one works in a sandbox that
    cannot write the file's folder, and answers as an empty store where there is no file yet.
    """

    def __init__(self, path: str | None = None, read_only: bool = False, busy_seconds: float = BUSY_SECONDS):
        self.path = path or store_path()
        self.read_only = read_only
        self.busy_seconds = busy_seconds
        self.driver = drivers.load()
        self.here = host_id()
        self.connection = self._open_to_read() if read_only else self._open_to_write()

    def __getattr__(self, name: str):
        """A group of questions: ``store.locks``, ``store.tasks``, each loaded when first asked for."""
        if name not in GROUPS:
            raise AttributeError(f"a store has no group {name!r}")
        module, kind = GROUPS[name]
        full = f"swarm_mcp.store.{module}"
        __import__(full)
        group = getattr(sys.modules[full], kind)(self)
        setattr(self, name, group)
        return group

    # ------------------------------------------------------------------ access

    def rows(self, sql: str, values: tuple | list = ()) -> list[dict]:
        """All rows of a query."""
        cursor = self._execute(sql, values)
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row)) for row in cursor.fetchall()]

    def row(self, sql: str, values: tuple | list = ()) -> dict | None:
        """The first row of a query, or None."""
        found = self.rows(sql, values)
        return found[0] if found else None

    def change(self, sql: str, values: tuple | list = ()) -> int:
        """Run one statement inside `writing`; the number of rows it changed."""
        return self._execute(sql, values).rowcount

    def writing(self) -> Transaction:
        """A transaction that holds the write lock from its beginning, so nothing read in it is stale."""
        return Transaction(self)

    def now(self) -> int:
        """Unix seconds."""
        return int(time.time())

    def now_ms(self) -> int:
        """Unix milliseconds, the unit of ``changed_at`` columns."""
        return int(time.time() * 1000)

    def close(self) -> None:
        """Close the file. Safe to call twice."""
        self.connection.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_exception) -> None:
        self.close()

    # ----------------------------------------------------------------- opening

    def _execute(self, sql: str, values):
        try:
            return self.connection.execute(sql, values)
        except UnicodeEncodeError:
            raise SwarmError("text that is not valid UTF-8 cannot be stored") from None
        except (self.driver.Error, OverflowError) as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: BaseException) -> StoreUnavailable:
        return StoreUnavailable(f"the store {self.path} cannot be used: {error}")

    def _open_to_read(self):
        try:
            if not os.path.exists(self.path):
                return self._empty()
            connection = connect_read_only(self.driver, self.path, self.busy_seconds)
            self._refuse_newer(connection)
            from swarm_mcp.store.schema import is_current

            if is_current(connection):
                return connection
            connection.close()
        except self.driver.Error as error:
            raise self._unavailable(error) from error
        # Made by another implementation: our tables have to be added once, if the folder allows it.
        if os.access(self.path, os.W_OK):
            self._open_to_write().close()
            return connect_read_only(self.driver, self.path, self.busy_seconds)
        raise StoreUnavailable(f"the store {self.path} was made by another program and cannot be upgraded from here")

    def _empty(self):
        from swarm_mcp.store.schema import create

        connection = self.driver.connect(":memory:", isolation_level=None)
        create(connection, self.driver, in_memory=True)
        return connection

    def _open_to_write(self):
        try:
            if not os.path.isdir(os.path.dirname(self.path)):
                make_private(os.path.dirname(self.path))
            connection = self.driver.connect(
                self.path, timeout=self.busy_seconds, isolation_level=None, check_same_thread=False
            )
            connection.text_factory = as_text
        except (OSError, self.driver.Error) as error:
            raise self._unavailable(error) from error
        try:
            self._refuse_newer(connection)
            from swarm_mcp.store.schema import create, is_current

            if not is_current(connection):
                create(connection, self.driver)
            return connection
        except self.driver.Error as error:
            connection.close()
            raise self._unavailable(error) from error

    def _refuse_newer(self, connection) -> None:
        (found,) = connection.execute("PRAGMA user_version").fetchone()
        if found > CONTRACT_VERSION:
            connection.close()
            raise StoreUnavailable(
                f"the store {self.path} is of version {found}, newer than this swarm-mcp understands"
                f" ({CONTRACT_VERSION}); upgrade swarm-mcp"
            )


class Transaction:
    """``with store.writing():`` commits at the end, rolls back on any exception."""

    __slots__ = ("store",)

    def __init__(self, store: Store):
        self.store = store

    def __enter__(self) -> Store:
        self.store._execute("BEGIN IMMEDIATE", ())
        return self.store

    def __exit__(self, kind, _error, _trace) -> None:
        if kind is None:
            self.store._execute("COMMIT", ())
        elif self.store.connection.in_transaction:
            self.store.connection.execute("ROLLBACK")
