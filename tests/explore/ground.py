"""The folder that others can see: store, state and checkout. It is put back before each schedule."""

import os
import runpy
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support import turns

from swarm_hook_core.process import start_time
from swarm_hook_core.state import client_note, write_private
from swarm_hook_core.traces import UNDO, journal, journal_name
from swarm_mcp.store import Store
from swarm_mcp.store.sessions import Registration

ROOT = Path(__file__).resolve().parents[2]
TEXT = "first\nlast\n"
FILES = ("notes.md", "other.md")
LEASE = 86400
CLIENTS = 8_000_000  # and the number of a process: the pid of its client (clock.c)


class Ground:
    """The folders below `root`. Its path has always the same length, since names are made of digests of paths."""

    def __init__(self, root: str):
        self.root = root
        self.state, self.home, self.work = (os.path.join(root, name) for name in ("state/swarm-mcp", "home", "work"))
        self.store = os.path.join(self.home, "swarm.db")
        self.template: dict[str, bytes] = {}
        self.sessions: list[Any] = []

    def environment(self) -> dict[str, str]:
        """Return the variables of explored processes."""
        return {
            "HOME": self.home, "SWARM_DB_PATH": self.store, "XDG_STATE_HOME": os.path.dirname(self.state),
            "XDG_CONFIG_HOME": os.path.join(self.home, "config"), "PYTHONHASHSEED": "0", "PATH": os.environ["PATH"],
        }  # fmt: skip

    def make(self, processes: int) -> None:
        """Make the ground once, with a live session for each process."""
        shutil.rmtree(self.root, ignore_errors=True)
        for folder in (self.state, self.home, self.work):
            os.makedirs(folder, mode=0o700)
        with Store(self.store) as store:
            for process in range(processes):
                given = {"runtime": "claude-code", "session_id": session_id(process), "client": (1, start_time(1))}
                request = Registration(
                    self.work,
                    label=f"session {process}",
                    preassigned_id=f"instance-{process}",
                    lease_seconds=LEASE,
                    **given,
                )
                self.sessions.append(store.instances.register(request))
        with open(self.store, "rb") as file:
            self.template[self.store] = file.read()
        for name in FILES:
            self.template[os.path.join(self.work, name)] = TEXT.encode()
        self.put_back()

    def put_back(self, has_old_turn: bool = False, has_commit: bool = False) -> None:
        """Remove all that a schedule has left, and write the first contents.

        `has_commit`: git's stand-in answers, and the folder of the repository has a HEAD. The sessions' clients are noted
        then, as at their start: so others see the ends of their calls.
        """
        for ending in ("", "-wal"):
            if os.path.lexists(self._synced(ending)):
                os.unlink(self._synced(ending))
        shutil.rmtree(f"{self.work}2", ignore_errors=True)  # of `add_tree`
        for folder in (self.state, self.home, self.work):
            empty(folder)
        os.mkdir(os.path.join(self.work, ".git"))
        for path, content in self.template.items():
            handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
            os.write(handle, content)
            os.close(handle)
        if has_old_turn:
            path = os.path.join(self.work, FILES[0])
            turns.write(("claude-code", session_id(9)), path)
        if has_commit:
            with open(os.path.join(self.work, ".git", "HEAD"), "w", encoding="ascii") as file:
                file.write("ref: refs/heads/main\n")
        for process in range(len(self.sessions) * has_commit):
            write_private(client_note(journal_name("claude-code", session_id(process))), f"{CLIENTS + process} - ")

    def add_tree(self) -> str:
        """Add a work tree with the same files, as ``git worktree add`` does; return its top."""
        top, own = f"{self.work}2", os.path.join(self.work, ".git", "worktrees", "two")
        for folder in (top, own):
            os.makedirs(folder, exist_ok=True)
        rows = {f"{top}/.git": f"gitdir: {own}\n", f"{own}/commondir": "../..\n", f"{own}/gitdir": f"{top}/.git\n"}
        for path, text in {**rows, **dict.fromkeys([f"{top}/{name}" for name in FILES], TEXT)}.items():
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
        return top

    def _synced(self, ending: str) -> str:
        return f"{self.root}.synced.swarm.db{ending}"

    def lose_power(self, kept: int) -> None:
        """Let a power cut take all that was not synced, of the store (bit 0 of `kept`) and of its log (bit 1).

        Entries of the folder count as synced with it: names are lost by no cut.
        """
        for bit, ending in ((1, ""), (2, "-wal")):
            path, synced = self.store + ending, self._synced(ending)
            if kept & bit or not os.path.exists(path):
                continue
            content = b"" if ending else self.template[self.store]
            if os.path.exists(synced):
                with open(synced, "rb") as file:
                    content = file.read()
            with open(path, "wb") as file:
                file.write(content)
        if os.path.exists(self.store + "-shm"):
            os.unlink(self.store + "-shm")  # it is never on a disk

    def has_log(self) -> bool:
        """Return True if the store's log holds anything. One that has only been read may leave an empty log."""
        return os.path.exists(self.store + "-wal") and os.path.getsize(self.store + "-wal") > 0

    def has_changed_store(self) -> bool:
        """Return True if the store is not as it was before the schedule."""
        if self.has_log():
            return True
        with open(self.store, "rb") as file:
            return file.read() != self.template[self.store]

    def writes_noted(self, process: int) -> int:
        """Return the number of writes in the journals of a process's session, without undos and those taken back."""
        name = journal_name("claude-code", session_id(process))
        found = [path for path in files(self.state) if os.path.basename(path) == name]
        lines = [line for path in found for line in journal.read(path).split(b"\n")]
        heads = [line.partition(b"\0")[0].split(b" ") for line in lines]
        return len({head[0] for head in heads if head[1:2] == [b"wrote"] and head[3:] != [UNDO.encode()]})

    def left(self, ending: str) -> list[str]:
        """Return all files below the ground with names of this ending, relative to it, sorted."""
        return sorted(path[len(self.root) + 1 :] for path in files(self.root) if path.endswith(ending))


def files(folder: str) -> Iterator[str]:
    """Yield the path of each file below a folder. With `os.walk` it takes twice as long."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from files(entry.path)
            else:
                yield entry.path


def empty(folder: str) -> None:
    """Remove all below a folder. Nobody else changes it meanwhile, which `shutil.rmtree` would guard against."""
    with os.scandir(folder) as entries:
        for entry in list(entries):
            if entry.is_dir(follow_symlinks=False):
                empty(entry.path)
                os.rmdir(entry.path)
            else:
                os.unlink(entry.path)


def session_id(process: int) -> str:
    return f"{process:08d}-0000-4000-8000-000000000000"


def runtime(name: str) -> Any:
    """Return the RuntimeConfig of a client."""
    return runpy.run_path(str(ROOT / "integrations" / name / "runtime.py"))["RUNTIME"]
