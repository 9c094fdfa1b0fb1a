"""One scene for many examples: it is put back as it was before each, in milliseconds.

A ``Scene`` of ``support.scenes`` with a write by each session. Kept in memory: the state folder, the store,
and the files of the work tree.
"""

import contextlib
import os
import shutil
import sqlite3
import stat
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from support.scenes import ME, PEER, Scene, not_a_pipe

FILES = ("notes.md", "other.md", "sub/deep.md", "real/file.md")
LINKS = {"link.md": "notes.md", "linked": "real"}


def in_both_clients(cases: Iterable[str], each: int = 4) -> list[tuple[str, str]]:
    """Return ``(case, client)``: all cases in Claude Code, and one of `each` in Codex. ``SWARM_THOROUGH=1``: all in both."""
    listed = list(cases)
    if os.environ.get("SWARM_THOROUGH"):
        each = 1
    return [(case, "claude-code") for case in listed] + [(case, "codex") for case in listed[::each]]


class Seen(NamedTuple):
    """One file, as it is kept and compared; `content` of a link is its target."""

    mode: int
    content: bytes
    atime_ns: int
    mtime_ns: int


class Shared(Scene):
    """A scene with a template of itself. `begin_example` restores it."""

    def __init__(self, folder: Path, runtime: str):
        super().__init__(folder, runtime)
        with self.environment():
            self.begin()
            self.writes(ME, "other.md")
            self.writes(PEER, "real/file.md")
            self.pass_time(60)
            with contextlib.closing(sqlite3.connect(self.store)) as store:
                store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._state = files_below(self.state)
        self._store = self.store.read_bytes()

    def begin_example(self) -> None:
        """Restore state, store and work tree."""
        put_back(self.state, self._state)
        for path in self.store.parent.glob("*"):
            path.unlink()
        self.store.write_bytes(self._store)
        self.store.chmod(0o600)
        for path in self.work.iterdir():
            if path.name != ".git":
                remove(path)
        for path in self.other.iterdir():
            if path.name != ".git":
                remove(path)
        for config in (self.home / ".config", self.home / "moved"):
            shutil.rmtree(config, ignore_errors=True)
        for name in FILES:
            (self.work / name).parent.mkdir(exist_ok=True)
            (self.work / name).write_text(f"{name}\n")
        for name, target in LINKS.items():
            (self.work / name).symlink_to(target)

    def writes(self, who: str, name: str) -> None:
        """Let a session edit a file; a denied call writes nothing."""
        is_peer = who == PEER
        runtime = (self.core, self.peers_core)[is_peer].config.runtime_name
        tool, given = self.edit_of(str(self.work / name), runtime)
        status, told = self.asks(self.payload(tool, given, who), is_peer)
        if status == 0 and '"deny"' not in told:
            (self.work / name).parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(IsADirectoryError, FileExistsError):
                not_a_pipe(self.work / name).write_text(f"{name} by {who} at {time.time_ns()}\n")

    @property
    def place(self) -> Path:
        """The folder of the journals of the checkout."""
        found = (self.work / ".git").stat()
        return self.state / "traces" / f"{found.st_dev:x}.{found.st_ino:x}"

    def journal(self, who: str = ME) -> Path:
        """The journal of a session in the checkout."""
        theirs = {"codex": "claude-code", "claude-code": "codex"}[self.runtime]
        return self.place / f"{self.runtime if who == ME else theirs}.{who}"

    def insert(self, table: str, **columns: Any) -> None:
        """Add a row past the store's own code, as another program may; an impossible one is left out."""
        marks = ", ".join("?" * len(columns))
        self.execute(f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) VALUES ({marks})", *columns.values())

    def execute(self, statement: str, *values: Any) -> None:
        """Run one statement on the store."""
        with contextlib.closing(sqlite3.connect(self.store, isolation_level=None)) as store:
            with contextlib.suppress(sqlite3.IntegrityError):
                store.execute(statement, values)


def remove(path: Path) -> None:
    """Remove a file, a link or a folder."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _read(path: Path) -> bytes:
    """Return a file's content without a change of its time of access."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOATIME", 0))
    with open(handle, "rb") as file:
        return file.read()


def files_below(folder: Path) -> dict[str, Seen]:
    """Return all that is in a folder, by relative path."""
    found = {}
    for base, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(base, name)
            seen = path.lstat()
            content = b""
            if stat.S_ISREG(seen.st_mode):
                content = _read(path)
            elif stat.S_ISLNK(seen.st_mode):
                content = os.readlink(path).encode()
            found[str(path.relative_to(folder))] = Seen(seen.st_mode, content, seen.st_atime_ns, seen.st_mtime_ns)
    return found


def put_back(folder: Path, kept: dict[str, Seen]) -> None:
    """Make a folder again as `files_below` has found it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    for name, seen in kept.items():
        path = folder / name
        if stat.S_ISDIR(seen.mode):
            path.mkdir()
        elif stat.S_ISLNK(seen.mode):
            path.symlink_to(seen.content.decode())
            continue
        elif stat.S_ISREG(seen.mode):
            path.write_bytes(seen.content)
        else:
            os.mkfifo(path)
        path.chmod(stat.S_IMODE(seen.mode))
        if not stat.S_ISDIR(seen.mode):
            os.utime(path, ns=(seen.atime_ns, seen.mtime_ns))
