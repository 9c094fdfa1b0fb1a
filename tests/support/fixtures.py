"""The ground of a coordinator test: a checkout, a store, and the ``swarm-mcp`` command over both."""

import contextlib
import ctypes
import functools
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from swarm_hook_core.process import start_time
from swarm_mcp.cli.main import main
from swarm_mcp.domain import Session
from swarm_mcp.installation import interpreter
from swarm_mcp.store import Store, driver
from swarm_mcp.store.lock_request import request
from swarm_mcp.store.sessions import Registration

# The whole path, so that a worker without `site` finds this test run's packages; no bytecode into the checkout.
FOLDERS = [os.path.abspath(folder) for folder in sys.path if folder and os.path.exists(folder)]
BARE_PYTHON = [interpreter(), "-I", "-S", "-B"]
SWARM = [
    *BARE_PYTHON,
    "-c",
    f"import sys; sys.path[:0] = {FOLDERS!r}; from swarm_mcp.cli.main import main; sys.exit(main())",
]

PR_CAPBSET_DROP = 24
# Loaded here: between fork and exec a lock of another thread stays locked for ever.
LIBC = ctypes.CDLL(None, use_errno=True)
LAST_CAPABILITY = Path("/proc/sys/kernel/cap_last_cap")
CAPABILITIES = range(int(LAST_CAPABILITY.read_text()) + 1 if LAST_CAPABILITY.exists() else 0)


def without_privileges() -> None:
    """Between fork and exec: take the right to ignore file permissions from root's program; others never had it."""
    if os.geteuid() == 0:
        for capability in CAPABILITIES:
            if LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0):
                raise OSError(ctypes.get_errno(), "prctl")


@functools.cache
def _empty_store() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "swarm.db")
        Store(path).close()
        return Path(path).read_bytes()


def put_empty_store(path: str) -> None:
    """Copy an empty store to `path`: making one takes much longer."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(_empty_store())


class Done(NamedTuple):
    """The end of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        """Standard output as JSON."""
        return json.loads(self.out)


class Ground:
    """One checkout (`repo`, a git root) and one store (`database`, not there yet)."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.repo = folder / "repo"
        (self.repo / ".git").mkdir(parents=True, exist_ok=True)
        self.database = str(folder / "store" / "swarm.db")
        self.scope = str(self.repo)
        self.copies = True  # True if `store` may copy an empty store instead of making one

    def swarm(self, *argv: str, cwd: Path | None = None) -> Done:
        """Run the command inside this process, since that is fast, from `cwd` (default: the checkout)."""
        before, out, err = os.getcwd(), io.StringIO(), io.StringIO()
        os.chdir(cwd or self.repo)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = main(list(argv))
        finally:
            os.chdir(before)
        return Done(code, out.getvalue(), err.getvalue())

    def process(self, *argv: str, cwd: Path | None = None, program: list[str] = SWARM, **options) -> Done:
        """The command as a process of its own."""
        done = subprocess.run([*program, *argv], cwd=cwd or self.repo, capture_output=True, timeout=300, **options)
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode("utf-8", "backslashreplace"))

    def store(self, read_only: bool = False) -> Store:
        """The open store."""
        if self.copies and not read_only and not os.path.lexists(self.database):
            put_empty_store(self.database)
        return Store(self.database, read_only)

    def sql(self, statement: str, *values) -> list[dict]:
        """One statement past the store, as another implementation would run it; committed."""
        connection = driver.load().connect(self.database, timeout=10, isolation_level=None)
        try:
            cursor = connection.execute(statement, values)
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row)) for row in cursor.fetchall()]
        finally:
            connection.close()

    def add(self, table: str, **columns) -> None:
        """Insert one row, as another implementation would."""
        marks = ", ".join("?" * len(columns))
        self.sql(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", *columns.values())

    def stranger(self, instance_id: str, directory: str = "", **columns) -> str:
        """A session of another implementation, alive by its heartbeat; its id."""
        place = directory or self.scope
        row = {"scope": place, "directory": place, "root": place, "file_root": place, "pid": 1, "label": "stranger"}
        self.add("instances", **{"id": instance_id, **row, **columns})
        return instance_id

    def session(self, name: str, label: str = "", runtime: str = "claude-code", **given) -> dict:
        """A session as hooks register it, with a day's lease; its row."""
        given.setdefault("lease_seconds", 86400)
        request = Registration(
            given.pop("directory", self.scope), label=label, runtime=runtime, session_id=name, **given
        )
        with self.store() as store:
            return store.instances.register(request)

    def plain(self, label: str = "", **given) -> dict:
        """A session as the contract's own `register` makes it; its row."""
        with self.store() as store:
            return store.instances.register(Registration(given.pop("directory", self.scope), label=label, **given))

    def lock(self, instance: dict, file: str, *words) -> dict:
        """Take a lock."""
        with self.store() as store:
            return store.locks.acquire(Session(instance), str(file), *words)

    def mail(self, recipient: str) -> list[str]:
        """A session's inbox, read messages included."""
        return [
            row["content"]
            for row in self.sql("SELECT content FROM messages WHERE recipient = ? ORDER BY id", recipient)
        ]

    def integrity(self) -> str:
        """SQLite's own verdict on the file."""
        return self.sql("PRAGMA integrity_check")[0]["integrity_check"]

    def backdate(self, instance: dict, seconds: int) -> None:
        """Make this session's last sign of life `seconds` older."""
        self.sql(
            "UPDATE instances SET heartbeat = heartbeat - ?, lease_until = lease_until - ? WHERE id = ?",
            seconds, seconds, instance["id"],
        )  # fmt: skip
        self.sql("UPDATE swarm_sessions SET last_seen = last_seen - ? WHERE instance_id = ?", seconds, instance["id"])


def take(store: Store, row: dict, *files: str | Path, **given) -> list[dict]:
    """Take locks for a session, with a request's further words."""
    return store.locks.acquire_all(row, request(row, [str(file) for file in files], **given))


class Sleeper:
    """A process that only exists, to stand for an agent client: `pid`, `started`."""

    def __init__(self):
        self.process = subprocess.Popen(["sleep", "600"])
        self.pid = self.process.pid
        self.started = start_time(self.pid)

    @property
    def identity(self) -> tuple[int, str]:
        """Return its name in registrations."""
        return self.pid, self.started

    def end(self) -> None:
        """Kill it and see it buried."""
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> "Sleeper":
        return self

    def __exit__(self, *_exception) -> None:
        self.end()


def time_limit(seconds: float) -> float:
    """Return the time limit on this machine now for work of at most `seconds` on an idle one."""
    to_do = os.getloadavg()[0]
    with contextlib.suppress(OSError):  # the average lags behind; Linux counts the runnable processes of this moment
        to_do = max(to_do, int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0]))
    return seconds * (1 + to_do / (os.cpu_count() or 1))


# Limits in seconds for a program that is ended at its limit, to try in turn: a busy machine may end it before it has begun.
LONGER = (0.4, 4.0, 40.0)


def wait_for(condition, seconds: float = 60.0):
    """Return the first true value of `condition()`; fail without one in time. `seconds`: on an idle machine."""
    end = time.monotonic() + time_limit(seconds)
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds} s")
