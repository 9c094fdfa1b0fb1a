"""The cost of a store after a burst: ``--part burst``.

Many events, messages, ended tasks, refusals, breaches and departed sessions, all of them due; then passes of cleaning,
each as soon as it is due by a clock that is set ahead, until nothing is left. Meanwhile, and some seconds before,
another process writes (a lock and its release) and checks (the questions of a hook) all the time: its times beside the
cleaning, and alone.

Goals: the file and its log back to their sizes before, within `SPARE_PAGES`; so few passes that a server, with one
every 2 to 3 s then, is through within the hour; no transaction of a pass takes more than 20 ms of processor time.
"""

import gc
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from swarm_hook_core.process import start_time
from swarm_mcp.store import Store, cleanup, database
from swarm_mcp.store.database import Database
from swarm_mcp.store.schema import PAGE_BYTES
from swarm_mcp.store.sessions import Registration

ROWS = (16_224, 100_000)
SESSIONS = 1_000
SPARE_PAGES = 64  # 256 KiB: for free pages, the cleaning's own records, and the filling of pages
HOUR = 3600
QUIET_SECONDS = 3.0  # before the cleaning begins
TRANSACTION_MS = 20.0
MOST_PASSES = 60  # that are really made; the rows of the others go at once, and of these they tell how many there were
DAY = 86_400

_KINDS = (
    "INSERT INTO events (scope, type, actor, subject, payload, created_at) SELECT '/w', 'context.lock_acquired', 'x',"
    ' \'/w/file\' || n, \'{"id": "\' || hex(randomblob(16)) || \'", "note": "careful surgery", "fence": 1}\', ? FROM number',
    "INSERT INTO messages (scope, sender, recipient, content, created_at) SELECT '/w', 'x', 'y',"
    " 'words of a message of ordinary length, number ' || n, ? FROM number",
    "INSERT INTO tasks (id, scope, type, title, requester, status, updated_at) SELECT hex(randomblob(16)), '/w', 'fix',"
    " 'task ' || n, 'x', CASE n % 3 WHEN 0 THEN 'failed' ELSE 'done' END, ? FROM number",
    "INSERT INTO swarm_denials (instance_id, path_key, scope, file, holder_id, denied_at)"
    " SELECT 'i' || n, '/w/f' || n, '/w', '/w/f' || n, 'x', ? FROM number",
    "INSERT INTO swarm_alterations (scope, file, path_key, holder_id, kind, altered_at)"
    " SELECT '/w', '/w/f' || n, '/w/f' || n, 'x', 'changed', ? FROM number",
)
_SESSIONS = (
    "INSERT INTO instances (id, scope, directory, root, file_root, pid, label, registered_at, heartbeat)"
    " SELECT hex(randomblob(16)), '/w', '/w', '/w', '/w', 999999, 'gone ' || n, ?1, ?1 FROM number"
)
_OTHER = """\
import json, sys, time
sys.path[:0] = json.loads(sys.argv[1])
from swarm_mcp.store import Store
from swarm_mcp.store.sessions import Registration
path, client = json.loads(sys.argv[2])
store = Store(path)
facts = {"runtime": "codex", "session_id": "other", "client": tuple(client), "lease_seconds": 86400}
me = store.instances.register(Registration("/w", label="other", **facts))
reader = store.as_hooks_read_it()
print("ready", flush=True)
writes, checks, number = [], [], 0
import threading
stop = threading.Event()
threading.Thread(target=lambda: (sys.stdin.readline(), stop.set()), daemon=True).start()
while not stop.is_set():
    began = time.perf_counter()
    row = store.locks.acquire(me, f"own/{number}")
    store.locks.release(me, f"own/{number}")
    had = time.perf_counter()
    reader.session("codex", "other")
    reader.locks_on([f"/w/own/{number}", "/w/own", "/w"])
    checks.append([had, time.perf_counter() - had])
    writes.append([began, had - began])
    number += 1
    time.sleep(0.002)
print(json.dumps([writes, checks]), flush=True)
"""


class Burst:
    """The measurements; missed goals are in `missed`."""

    def __init__(self, root: Path, env: dict[str, str]):
        self.root = root
        self.env = env
        self.client = (os.getpid(), start_time(os.getpid()))
        self.missed: list[str] = []

    def measure(self) -> None:
        """Measure everything and print it."""
        print("rows of each of  pages of the file (log)                    longest transaction,")
        print("5 kinds          before           full      after   passes  ms of processor time")
        gc.disable()  # of this process, after many measurements: a pass through all of that takes 50 ms
        try:
            for rows in ROWS:
                self._after(rows)
        finally:
            gc.enable()
        print(flush=True)

    def _after(self, rows: int) -> None:
        path, now = str(self.root / f"burst-{rows}.db"), Database.now
        ahead, held = [0.0], _Held()
        Database.now = lambda self: int(time.time() + ahead[0])  # type: ignore[method-assign]
        other = None
        try:
            with Store(path) as store, held:
                facts = {"runtime": "codex", "session_id": "one", "client": self.client, "lease_seconds": 10 * DAY}
                store.instances.register(Registration("/w", label="one", **facts))
                before = _pages(path)
                self._pile_up(store, rows)
                other = self._other(path)
                time.sleep(QUIET_SECONDS)
                held.longest, began = 0.0, time.perf_counter()
                full, made, saved = _pages(path), 0, 0
                while True:
                    if not _passed(store, ahead):
                        continue  # the other one had the store
                    made += 1
                    if _is_done(store):
                        break
                    if made == MOST_PASSES and rows > ROWS[0]:
                        longest = held.longest
                        saved = self._hasten(store)
                        held.longest = longest
                told, longest = self._end(other), held.longest
                needed = made + saved
                ahead[0] += 2 * DAY  # the other process's rows, and the cleaning's own records, are old by then
                while not (_passed(store, ahead) and _is_done(store)):
                    pass
                after = _pages(path)
        finally:
            Database.now = now  # type: ignore[method-assign]
            if other is not None and other.poll() is None:
                other.kill()
                other.wait()
        longest *= 1000
        print(
            f"{rows:<12,} {before[0]:6} ({before[1]:3}) {full[0]:8} ({full[1]:5}) {after[0]:5} ({after[1]:3})"
            f" {needed:7} {longest:12.1f}"
        )
        for name, samples in zip(("lock and release", "check"), told):
            alone = sorted(took for at, took in samples if at < began)
            beside = sorted(took for at, took in samples if at >= began)
            print(f"    {name:17} p50, p99, most, ms: alone {_figures(alone)}; beside the cleaning {_figures(beside)}")
        if sum(after) > sum(before) + SPARE_PAGES:
            self.missed.append(f"after {rows:,} rows: {after} pages, {before} before")
        if needed * (cleanup.BACKLOG_SECONDS + 1) > HOUR:
            self.missed.append(f"{rows:,} rows take {needed} passes, more than an hour has")
        if longest > TRANSACTION_MS:
            self.missed.append(f"{rows:,} rows: a transaction of {longest:.1f} ms, goal {TRANSACTION_MS}")

    def _pile_up(self, store: Store, rows: int) -> None:
        numbers = "WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {})"
        old = int(time.time()) - 9 * DAY
        for sql in _KINDS:
            for _ in range(0, rows, 10_000):  # a burst is no single transaction either
                with store.database.writing():
                    store.database.change(f"{numbers.format(min(rows, 10_000))} {sql.replace('/w/f', _own())}", (old,))
        with store.database.writing():
            store.database.change(f"{numbers.format(SESSIONS)} {_SESSIONS}", (old,))

    def _hasten(self, store: Store) -> int:
        """Remove most of the rest, as quickly as the other process can bear. Returns the number of saved passes."""
        most = 0
        for table, time_of in (
            ("events", "created_at"), ("messages", "created_at"), ("tasks", "updated_at"),
            ("swarm_denials", "denied_at"), ("swarm_alterations", "altered_at"),
        ):  # fmt: skip
            old = time.time() - 8 * DAY
            due = store.database.row(f"SELECT count(*) AS n FROM {table} WHERE {time_of} < ?", (old,))
            gone = max(0, due.n - 10 * cleanup.AT_ONCE) // 1000 * 1000
            for _ in range(0, gone, 1000):
                with store.database.writing():
                    store.database.change(
                        f"DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} WHERE {time_of} < ? LIMIT 1000)",
                        (old,),
                    )
            most = max(most, gone // cleanup.AT_ONCE)
        return most

    def _other(self, path: str) -> subprocess.Popen:
        folders = json.dumps([folder for folder in map(os.path.abspath, sys.path) if os.path.isdir(folder)])
        argv = [sys.executable, "-I", "-S", "-B", "-c", _OTHER, folders, json.dumps([path, self.client])]
        other = subprocess.Popen(argv, env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if other.stdout.readline() != "ready\n":  # type: ignore[union-attr]
            raise RuntimeError("a process could not register")
        return other

    def _end(self, other: subprocess.Popen) -> list:
        told, _ = other.communicate("\n", timeout=60)
        return json.loads(told)


class _Held:
    """While it is entered: the most processor time that a transaction of this process took, from BEGIN to COMMIT."""

    def __init__(self) -> None:
        self.longest = 0.0

    def __enter__(self) -> "_Held":
        kind, held = database.Turn, self
        self._kept = kind.__enter__, kind.__exit__

        def enter(one):
            result = held._kept[0](one)
            held._began = time.thread_time()
            return result

        def leave(one, *given):
            held.longest = max(held.longest, time.thread_time() - held._began)
            return held._kept[1](one, *given)

        kind.__enter__, kind.__exit__ = enter, leave
        return self

    def __exit__(self, *_exception: object) -> None:
        database.Turn.__enter__, database.Turn.__exit__ = self._kept


def _passed(store: Store, ahead: list[float]) -> bool:
    """Make the next pass, as soon as it is due. Returns True if it could be made."""
    ahead[0] += max(1.0, store.cleanup.due_in())
    return store.cleanup.some()


def _is_done(store: Store) -> bool:
    """Return True if the last pass has left nothing."""
    return store.cleanup.due_in() > cleanup.BACKLOG_SECONDS + 1


def _pages(path: str) -> tuple[int, int]:
    def of(name: str) -> int:
        return os.path.getsize(name) // PAGE_BYTES if os.path.exists(name) else 0

    return of(path), of(path + "-wal")


def _figures(took: list[float]) -> str:
    return ", ".join(f"{1000 * took[int((len(took) - 1) * part)]:.1f}" for part in (0.5, 0.99, 1)) if took else "-"


def _own() -> str:
    return f"/w/{os.urandom(4).hex()}-"
