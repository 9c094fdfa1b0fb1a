"""Stores of any size, made by the product's own schema and filled in bulk.

Filling through ``lock`` would take an hour for a million locks; the rows written here equal those of
``swarm_mcp.store.locks``.
"""

import os
import time

from swarm_hook_core import clock
from swarm_hook_core.paths import key_of
from swarm_hook_core.process import start_time
from swarm_mcp.store import Store

HOLDERS = 50
LEASE_SECONDS = 86400
LABEL = "claude-code platform:cli origin:claude-code session:holder"

_PATHS = "? || '/pkg' || (n / 1000) || '/module_' || n || '.py'"
_NAMESAKES = "? || '/pkg' || n || '/locked.py'"
PATTERNS = 200
LOCKED_PATTERN = "src/**/lock?d.py"


def fill(path: str, checkout: str, size: int, locked: str, foreign: bool = False, namesakes: bool = False) -> None:
    """Make the store at `path`: `size` locks on other files of `checkout`, and one on `locked` (none if empty).

    Fifty living sessions hold them: their client is this process. With `foreign`, rows are those of another
    implementation: no session rows, no ``path_key``, a running lease. With `namesakes`, all other locks are on files of
    the same last name as `locked`.
    """
    with Store(path) as store:
        _holders(store, checkout, foreign)
        expression = _NAMESAKES if namesakes else _PATHS
        with store.database.writing():
            store.database.change(
                "WITH RECURSIVE number(n) AS (SELECT 1 WHERE ? > 0 UNION ALL SELECT n + 1 FROM number WHERE n < ?)"
                " INSERT INTO context (id, scope, instance_id, file, type, content, created_at, path_key)"
                f" SELECT printf('%032x', n), ?, 'holder-' || (n % {HOLDERS}), {expression}, 'lock',"
                f" 'bulk ' || n, unixepoch(), {'NULL' if foreign else expression} FROM number",
                (size, size, checkout, checkout) + (() if foreign else (checkout,)),
            )
            if locked:
                key = None if foreign else key_of(locked)
                store.database.change(
                    "INSERT INTO context (id, scope, instance_id, file, type, content, created_at, path_key)"
                    " VALUES ('the-lock', ?, 'holder-0', ?, 'lock', 'careful surgery', unixepoch(), ?)",
                    (checkout, locked, key),
                )
        if key_of(checkout) != checkout:
            raise ValueError(f"{checkout} has links in it: keys written in bulk would be wrong")


def fill_three_kinds(path: str, checkout: str, size: int, locked: bool) -> None:
    """Make the store at `path`: `size` locks of files, folders (a tenth) and `PATTERNS` patterns, all in one folder.

    They begin and end like a file in ``src``, so that these parts cannot tell them apart; with `locked` one is
    `LOCKED_PATTERN`. Half of all rows have running leases.
    """
    fill(path, checkout, 0, "")
    place = "CASE n % 10 WHEN 0 THEN ? || '/pkg' || (n / 1000) || '/folder_' || n ELSE " + _PATHS + " END"
    pattern = f"CASE WHEN n = 1 AND {int(locked)} THEN '{LOCKED_PATTERN}' ELSE 'src/**/part_' || n || '_*.py' END"
    numbers = "WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ?)"
    lease = "CASE n % 2 WHEN 0 THEN 86400.0 END, CASE n % 2 WHEN 0 THEN ? END, CASE n % 2 WHEN 0 THEN ? END"
    columns = "id, scope, instance_id, file, type, content, created_at, path_key, pattern, base, ttl, renewed, booted"
    columns += ", mode"
    with Store(path) as store, store.database.writing():
        clocks = (clock.now(), clock.boot(store.here))
        for prefix, count, file, key, more in (
            ("p", size - PATTERNS, place, place, ("NULL", "NULL")),
            ("g", PATTERNS, f"? || '/' || {pattern}", "'glob:' || ? || '/src'", (pattern, "?")),
        ):
            paths = (checkout,) * (4 if prefix == "p" else 2)
            store.database.change(
                f"{numbers} INSERT INTO context ({columns}) SELECT '{prefix}' || n, ?, 'holder-' || (n % {HOLDERS}),"
                f" {file}, 'lock', 'careful surgery', unixepoch(), {key}, {', '.join(more)}, {lease},"
                " CASE n % 7 WHEN 0 THEN 'shared' END FROM number",
                (count, checkout, *paths, *((checkout,) if prefix == "g" else ()), *clocks),
            )


def fill_work(path: str, checkout: str, size: int, spare: int) -> None:
    """Add `size` tasks, two thirds of them ended, the rest with a holder, as many messages, and `spare` open tasks.

    The holders become sessions of another client than this process, whose servers are to be measured.
    """
    with Store(path) as store, store.database.writing():
        store.database.change("UPDATE swarm_sessions SET client_pid = 1, client_start = ?", (start_time(1),))
        numbers = "WITH RECURSIVE number(n) AS (SELECT 1 WHERE ? > 0 UNION ALL SELECT n + 1 FROM number WHERE n < ?)"
        store.database.change(
            f"{numbers} INSERT INTO tasks (id, scope, type, title, requester, assignee, status, changed_at)"
            f" SELECT printf('task-%032d', n), ?, 'implement', 'task ' || n, 'holder-0', 'holder-' || (n % {HOLDERS}),"
            " CASE n % 3 WHEN 0 THEN 'in_progress' WHEN 1 THEN 'done' ELSE 'cancelled' END, unixepoch() * 1000"
            " FROM number",
            (size, size, checkout),
        )
        store.database.change(
            f"{numbers} INSERT INTO tasks (id, scope, type, title, requester, status, changed_at)"
            " SELECT printf('spare-%032d', n), ?, 'fix', 'spare ' || n, 'holder-1', 'open', unixepoch() * 1000"
            " FROM number",
            (spare, spare, checkout),
        )
        store.database.change(
            f"{numbers} INSERT INTO messages (scope, sender, recipient, content)"
            f" SELECT ?, 'holder-0', 'holder-' || (n % {HOLDERS}), 'message ' || n FROM number",
            (size, size, checkout),
        )


def _holders(store: Store, checkout: str, foreign: bool) -> None:
    now, pid = int(time.time()), os.getpid()
    with store.database.writing():
        for number in range(HOLDERS):
            store.database.change(
                "INSERT INTO instances (id, scope, directory, root, file_root, pid, label, registered_at, heartbeat,"
                " adopted, lease_until) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?)",
                (f"holder-{number}", checkout, checkout, checkout, checkout, pid, LABEL, now, now, now + LEASE_SECONDS),
            )
            if not foreign:
                store.database.change(
                    "INSERT INTO swarm_sessions (runtime, session_id, instance_id, host, client_pid, client_start,"
                    " state, last_seen, lease_seconds) VALUES ('claude-code', ?, ?, ?, ?, ?, 'working', ?, ?)",
                    (f"held-{number}", f"holder-{number}", store.here, pid, start_time(pid), now, LEASE_SECONDS),
                )


def join(path: str, checkout: str, runtime: str, session_id: str) -> None:
    """Register a session of this process in the store at `path`, as its SessionStart would."""
    from swarm_mcp.store.sessions import Registration

    pid = os.getpid()
    with Store(path) as store:
        request = Registration(
            checkout,
            label=f"{runtime} platform:cli origin:{runtime}",
            lease_seconds=LEASE_SECONDS,
            runtime=runtime,
            session_id=session_id,
            client=(pid, start_time(pid)),
        )
        store.instances.register(request)
