"""The `swarm-mcp` command line as the tests use it: as a peer, and to look at the store."""

import json
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

PEER_LABEL = "identity:personal night-shift"
PEER_NAME = "night-shift"
# Verbs for persons, and the environment of one: a test has no person's terminal.
OF_PERSONS, PERSON = ("auto", "protect", "uninstall", "guard", "team"), {"SWARM_MCP_ALLOW_SPAWN": "1"}
PATIENCE = 300.0  # seconds: a command ends by itself, on a busy machine too; this is for one that hangs


class Coordinator:
    """Commands run in the checkout with the ground's environment. A failing command is an error."""

    def __init__(self, executable: Path, checkout: Path, env: dict[str, str]) -> None:
        self.executable, self.checkout, self.env = executable, checkout, env

    def text(self, *arguments: str, allowed: tuple[int, ...] = (0,)) -> str:
        done = subprocess.run(
            [str(self.executable), *arguments],
            cwd=self.checkout,
            env={**self.env, **(PERSON if arguments[0] in OF_PERSONS or arguments[:2] == ("task", "answer") else {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode in allowed, (
            f"swarm-mcp {arguments} exited {done.returncode}: {done.stderr or done.stdout}"
        )
        return done.stdout

    def json(self, *arguments: str, allowed: tuple[int, ...] = (0,)) -> Any:
        return json.loads(self.text(*arguments, "--json", allowed=allowed))

    def register_peer(self, label: str = PEER_LABEL) -> str:
        """A session that is only a row with an hour's lease; its id."""
        row = self.json("register", str(self.checkout), "--label", label, "--lease-seconds", "3600")
        return str(row["id"])

    def lock(self, holder: str, file: str, note: str, *flags: str) -> None:
        answer = self.json("lock", str(self.checkout / file), "--note", note, "--as", holder, *flags)
        assert answer.get("ok") is True, f"lock {file} as {holder}: {answer}"

    def peer_lock(self, file: str, note: str = "careful surgery", *flags: str) -> str:
        """A peer takes `file`; the peer's id."""
        peer = self.register_peer()
        self.lock(peer, file, note, *flags)
        return peer

    def locks(self) -> list[dict[str, Any]]:
        return list(self.json("locks", "--scope", str(self.checkout)))

    def sessions(self) -> list[dict[str, Any]]:
        """The registered instances that are not the tests' own peers."""
        rows = self.json("instances", "--scope", str(self.checkout))
        return [row for row in rows if row["label"] != PEER_LABEL]

    def query(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Rows of the store itself."""
        with closing(sqlite3.connect(f"file:{self.env['SWARM_DB_PATH']}?mode=ro", uri=True)) as connection:
            return connection.execute(sql, values).fetchall()

    def kv(self, key: str) -> Any:
        """Return the value under `key` in the checkout's scope, or None."""
        row = self.json("kv", "get", key, "--scope", str(self.checkout))
        return row and row["value"]
