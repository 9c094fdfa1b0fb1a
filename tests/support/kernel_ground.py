"""Commands under the kernel's protection of others' locks: of this user, and, for root, of an ordinary one."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import swarm_hook_core
from swarm_hook_core.kernel.plans import Plan
from swarm_mcp.store import Store

from .fixtures import put_empty_store, wait_for
from .sessions import join, new_session

USERS = ("this user", "an ordinary user")
NOBODY = 54321  # the number of a user unknown to this machine
PATIENCE = 120.0  # seconds until something that is waited for counts as never coming


class KernelGround:
    """A repository, a store, a session that runs commands (`me`) and a peer that holds locks, all of one user."""

    def __init__(self, folder: Path, user: int, monkeypatch: pytest.MonkeyPatch):
        self.folder, self.user = folder, user
        self.repo = folder / "repo"
        (self.repo / ".git").mkdir(parents=True)
        self.state = folder / "state"
        self.database = folder / "store" / "swarm.db"
        put_empty_store(str(self.database))
        monkeypatch.setenv("SWARM_DB_PATH", str(self.database))
        monkeypatch.setenv("SWARM_STATE_DIR", str(self.state))
        core, self.python = Path(swarm_hook_core.__file__).parent, sys.executable
        if user != os.geteuid():  # the tests' interpreter may be in a private folder
            self.python = _python_of_everybody()
            core = Path(shutil.copytree(core, folder / "swarm_hook_core", ignore=shutil.ignore_patterns("__pycache__")))
        self.core = core
        self.session_id = new_session()
        with Store() as store:
            self.me = join(store, self.repo, "me", runtime="claude-code", session_id=self.session_id)
            self.peer = join(store, self.repo)
        self._plans = 0
        self.started: list[subprocess.Popen[str]] = []
        self.own()

    def own(self) -> None:
        """Give all that is there to the user."""
        if self.user != os.geteuid():
            for path in [self.folder, *self.folder.rglob("*")]:
                with suppress(FileNotFoundError):  # a file that Python renames while it compiles
                    os.chown(path, self.user, self.user, follow_symlinks=False)

    def file(self, name: str, text: str = "theirs\n") -> Path:
        """A file in the repository."""
        path = self.repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self.own()
        return path

    def locked(self, name: str, text: str = "theirs\n") -> Path:
        """A file that the peer holds."""
        path = self.file(name, text)
        with Store() as store:
            store.locks.acquire(self.peer, str(path), "busy")
        return path

    def plan(self, *paths: Path | str, strict: bool = False, **more: Any) -> Path:
        """A plan, left for one command."""
        names = [os.fspath(path) for path in paths]
        plan = Plan(
            "claude-code", self.session_id, self.me["id"], is_strict=strict, roots=[str(self.repo)], paths=names,
            store=str(self.database), **more,
        )  # fmt: skip
        self._plans += 1
        place = self.folder / f"plan-{self._plans}"
        place.write_bytes(plan.text().encode("utf-8", "surrogateescape"))
        self.own()
        return place

    def words(self, place: Path, *argv: str) -> list[str]:
        """The command line that runs `argv` inside the plan at `place`."""
        return [self.python, "-E", "-s", "-S", str(self.core / "kernel" / "enter.py"), str(place), *argv]

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of the user's commands: this user's own programs are not for others."""
        own = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.folder)} if self.user != os.geteuid() else {}
        return {**os.environ, **own}

    def start(self, place: Path, *argv: str, **more: Any) -> subprocess.Popen[str]:
        """Start `argv` inside the plan; its streams are pipes."""
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        if self.user != os.geteuid():
            more = {"user": self.user, "group": self.user, "extra_groups": [], "env": self.environment, **more}
        given: dict[str, Any] = {"cwd": self.repo, "text": True, "errors": "surrogateescape", **streams, **more}
        child = subprocess.Popen(self.words(place, *argv), **given)
        self.started.append(child)
        return child

    def run(self, place: Path, *argv: str, stdin: str = "", **more: Any) -> subprocess.CompletedProcess[str]:
        """Run `argv` inside the plan to its end."""
        child = self.start(place, *argv, **more)
        out, err = child.communicate(stdin, timeout=PATIENCE)
        return subprocess.CompletedProcess(argv, child.returncode, out, err)

    def bash(self, place: Path, text: str, stdin: str = "", **more: Any) -> subprocess.CompletedProcess[str]:
        """Run a text of bash inside the plan."""
        return self.run(place, "bash", "-c", text, stdin=stdin, **more)

    def processes(self) -> list[int]:
        """Return the processes about to run a command inside a plan, and the keepers of mounts."""
        found = []
        mark = os.fsencode(self.folder)
        for name in filter(str.isdecimal, os.listdir("/proc")):
            try:
                words = Path(f"/proc/{name}/cmdline").read_bytes()
            except OSError:  # the process has ended
                continue
            if mark in words and b"enter.py" in words:
                found.append(int(name))
        return found

    def close(self) -> None:
        """End the remaining processes."""
        for child in self.started:
            if child.poll() is None:
                child.kill()
                child.wait()
            for stream in (child.stdin, child.stdout, child.stderr):
                if stream:
                    stream.close()
        wait_for(lambda: not self.processes())


def _python_of_everybody() -> str:
    for name in ("/usr/bin/python3", "/usr/local/bin/python3"):
        asked = [name, "-c", "import sys, _sqlite3, ctypes; sys.exit(sys.version_info < (3, 9))"]
        if os.path.exists(name) and subprocess.run(asked, capture_output=True, check=False).returncode == 0:
            return name
    pytest.skip("no Python 3.9 or newer, with sqlite3 and ctypes, that every user may start: apt install python3")


def grounds(which: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[KernelGround]:
    """The ground of one of USERS, and its end; skips where the kernel holds nothing for that one."""
    if not sys.platform.startswith("linux"):
        pytest.skip("mount namespaces are Linux")
    user = os.geteuid()
    if which != USERS[0]:
        if user:
            pytest.skip("this is an ordinary user already")
        user = NOBODY
    # Pytest's own folder is closed to others.
    folder = Path(tempfile.mkdtemp(prefix="swarm-kernel-", dir="/tmp")).resolve()
    os.chmod(folder, 0o755)
    ground = None
    try:
        ground = KernelGround(folder, user, monkeypatch)
        tried = ground.run(ground.plan(ground.file("probe"), strict=True), "true")
        if tried.returncode:
            pytest.skip(f"the kernel holds nothing for {which} here: {tried.stderr}")
        wait_for(lambda: not ground.processes())  # a test counts its own
        yield ground
    finally:
        if ground is not None:
            ground.close()
        shutil.rmtree(folder, ignore_errors=True)


def mounts_of(folder: Path) -> list[str]:
    """Return the mounts at or below `folder` in this process's view."""
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(folder) in line]
