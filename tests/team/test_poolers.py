"""A pooler before a team's server: one that keeps sessions serves it, another one is refused, and nothing is joined."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from team.history.engine import Engine, free_port
from team.homes import Home, wait_for

pytestmark = pytest.mark.skipif(not shutil.which("pgbouncer"), reason="no pgbouncer on this machine")


@contextmanager
def pooler(folder: Path, engine: Engine, mode: str, more: str) -> Iterator[str]:
    """Run pgbouncer before a server, and yield its address."""
    port = free_port()
    folder.chmod(0o777)
    (folder / "users").write_text('"postgres" ""\n')
    (folder / "ini").write_text(
        f"[databases]\npostgres = host=127.0.0.1 port={engine.port} dbname=postgres user=postgres\n[pgbouncer]\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = any\nauth_file = {folder}/users\n"
        f"pool_mode = {mode}\nunix_socket_dir =\n{more}"
    )
    as_somebody = ["-u", "nobody"] if os.geteuid() == 0 else []
    running = subprocess.Popen(["pgbouncer", *as_somebody, folder / "ini"], stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: Engine(engine.data, port).is_ready())
        yield f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
    finally:
        running.terminate()
        running.wait()


IGNORES = "ignore_startup_parameters = options\n"


@pytest.mark.parametrize(("mode", "more", "is_refused"), [
    ("transaction", "", True),
    ("transaction", IGNORES, True),
    ("transaction", IGNORES + "default_pool_size = 1\n", True),
    ("statement", IGNORES, True),
    ("session", IGNORES, False),
])  # fmt: skip
def test_a_pooler_without_sessions_is_refused_in_one_line(
    mode: str, more: str, is_refused: bool, tmp_path: Path, engine: Engine, team: str, repository: str
) -> None:
    north = Home(tmp_path, "north")
    with tempfile.TemporaryDirectory() as folder, pooler(Path(folder), engine, mode, more) as address:
        done = north.run("team", "join", address, "--repository", repository, code=int(is_refused))
        assert north.json("team", "status", code=None)["repositories"] == [] or not is_refused
        if is_refused:
            assert done.stdout == "" and len(done.stderr.splitlines()) == 1 and "LISTEN" in done.stderr
        north.end()
