"""A private piece of the machine: home, checkout, store, executables, one model server.

Nothing of the person's own is reached: HOME is private, the environment is written out here from
nothing. Installing a plugin takes seconds, so a ground lives as long as the test worker and each
test gets a fresh checkout and store at the *same paths*: the clients' settings stay valid.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from swarm_mcp.play.models import ModelServer

from .coordinator import PATIENCE, Coordinator

IDENTITY = "personal"
FILES = {"notes.md": "line one\n", "other.md": "other\n", "sub/deep.md": "deep\n"}
Found = TypeVar("Found")


class Lacking(Exception):
    """Something that the tests need is not on this machine; the message says how to get it."""


def wait_for(probe: Callable[[], Found], seconds: float, pause: float = 0.05) -> Found:
    """The first true value of `probe`, or its last value once `seconds` are over."""
    end = time.monotonic() + seconds
    while True:
        value = probe()
        if value or time.monotonic() > end:
            return value
        time.sleep(pause)


def has_text(path: Path, text: str) -> bool:
    """Return True if the file has this content. At the moment at which git replaces it there is none."""
    try:
        return path.read_text() == text
    except FileNotFoundError:
        return False


def base_folder() -> Path:
    """Return the folder for the private roots.

    Not below $TMPDIR or /tmp: Codex makes no helper binaries (its own `apply_patch` on PATH) with a home there, and its
    sandboxes leave both writable, so that a write refused in a real home would pass. Without our name: the program in
    front of the check would leave each call to Python, as if it concerned the plugin's own files.
    """
    base = Path(os.environ.get("SWARM_E2E_ROOT") or f"/var/tmp/agents-e2e-{os.getuid()}")
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    if base.stat().st_uid != os.getuid():
        raise Lacking(f"{base} belongs to someone else: set SWARM_E2E_ROOT to a folder of your own")
    return base.resolve()


def sweep() -> None:
    """Remove the leftovers of killed test runs: the roots carry their worker's pid in the name."""
    for root in base_folder().glob("*-*-*"):
        try:
            os.kill(int(root.name.split("-")[1]), 0)
        except ProcessLookupError:
            kill_processes_of(root / "home")
            shutil.rmtree(root, ignore_errors=True)
        except (ValueError, PermissionError):
            pass  # not ours, or alive under another user


def swarm_executable() -> Path:
    """The `swarm-mcp` under test."""
    named = os.environ.get("SWARM_E2E_BIN")
    path = Path(named) if named else Path(sys.executable).with_name("swarm-mcp")
    if not path.is_file():
        raise Lacking(f"no swarm-mcp at {path}: run `make e2e`, or set SWARM_E2E_BIN")
    return path.absolute()


def client_folder() -> Path:
    """The folder with the executables `claude` and `codex`."""
    modules = os.environ.get("SWARM_E2E_CLIENTS")
    folder = Path(modules or ".") / ".bin"
    absent = [name for name in ("claude", "codex") if not (folder / name).exists()]
    if not modules or absent:
        raise Lacking(
            f"the clients {absent} are not in SWARM_E2E_CLIENTS={modules!r}: run `make e2e`, which installs them"
        )
    return folder.absolute()


class Ground:
    def __init__(self, name: str, with_swarm: bool = True, clients: Path | None = None) -> None:
        clients, swarm = clients or client_folder(), swarm_executable() if with_swarm else None
        self.root = Path(tempfile.mkdtemp(prefix=f"{name}-{os.getpid()}-", dir=base_folder()))
        self.home, self.checkout, self.bin, self.tmp = (self.root / n for n in ("home", "checkout", "bin", "tmp"))
        self.store = self.root / "swarm.db"
        for folder in (self.home, self.bin, self.tmp):
            folder.mkdir()
        self.models = ModelServer()
        self._children: list[subprocess.Popen[str]] = []
        # Resolved, to get a bare interpreter instead of a virtual environment's: the plugin's files must work with the
        # standard library.
        (self.bin / "python3").symlink_to(Path(sys.executable).resolve())
        if swarm:
            (self.bin / "swarm-mcp").symlink_to(swarm)
        self.path = [str(self.bin), str(clients), *self._node(), "/usr/local/bin", "/usr/bin", "/bin"]
        self.env = {
            "PATH": ":".join(self.path),
            "HOME": str(self.home),
            "TMPDIR": str(self.tmp),
            "SHELL": "/bin/bash",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "USER": "e2e",
            "SWARM_DB_PATH": str(self.store),
            "AGENT_IDENTITY": IDENTITY,
            "SWARM_UVX": "off",  # no test has uv fetch anything, where a machine has it
        }
        # The agents' commands run in login shells, and the system profile may write PATH anew.
        (self.home / ".profile").write_text(f'export PATH="{self.env["PATH"]}:$PATH"\n')
        self.coordinator = Coordinator(self.bin / "swarm-mcp", self.checkout, self.env)
        self.renew()

    @staticmethod
    def _node() -> list[str]:
        node = shutil.which("node")
        return [os.path.dirname(node)] if node else []

    def renew(self) -> None:
        """A fresh checkout; no store, no person's settings, no process and no request left of the test before."""
        self.end_processes()
        self.models.reset()
        for file in self.root.glob("swarm.db*"):
            file.unlink(missing_ok=True)
        (self.home / ".config" / "swarm-mcp" / "config.json").unlink(missing_ok=True)
        # Claude Code remembers a server that could not be started, and leaves it alone for a while.
        (self.home / ".claude" / "mcp-needs-auth-cache.json").unlink(missing_ok=True)
        shutil.rmtree(self.checkout, ignore_errors=True)
        for name, text in FILES.items():
            file = self.checkout / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        self.git(self.checkout, "init", "-q", "-b", "main")
        self.commit(self.checkout)

    def close(self) -> None:
        self.end_processes()
        self.models.close()
        shutil.rmtree(self.root, ignore_errors=True)
        if self.root.exists():  # a process that was dying wrote once more
            time.sleep(0.5)
            shutil.rmtree(self.root)

    def git(self, folder: Path, *arguments: str) -> None:
        names = ("-c", "user.name=e2e", "-c", "user.email=e2e@localhost")
        subprocess.run(["git", *names, *arguments], cwd=folder, env=self.env, check=True, capture_output=True)

    def commit(self, folder: Path) -> None:
        self.git(folder, "add", "-A")
        self.git(folder, "commit", "-q", "-m", "Start")

    def run(
        self, argv: list[str], *, env: dict[str, str] | None = None, cwd: Path | None = None, seconds: float = PATIENCE
    ) -> subprocess.CompletedProcess[str]:
        """Run to the end. When `seconds` are over, its whole process group is killed."""
        process = self.start(argv, env=env, cwd=cwd, keep_output=True)
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            kill_group(process)
            raise
        return subprocess.CompletedProcess(argv, process.returncode, out, err)

    def start(
        self,
        argv: list[str],
        *,
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
        keep_output: bool = False,
        talk: bool = False,
    ) -> subprocess.Popen[str]:
        """Start in a process group of its own, to be killed at the end of the test. `talk`: with pipes to it and from
        it.
        """
        sink = subprocess.PIPE if keep_output else subprocess.DEVNULL
        process = subprocess.Popen(
            argv,
            cwd=cwd or self.checkout,
            env={**self.env, **(env or {})},
            stdin=subprocess.PIPE if talk else subprocess.DEVNULL,
            stdout=subprocess.PIPE if talk else sink,
            stderr=sink,
            text=True,
            start_new_session=True,
        )
        self._children.append(process)
        return process

    def end_processes(self) -> None:
        """Kill the tests' processes: our process groups, then the processes that left them."""
        for process in self._children:
            kill_group(process)
        self._children.clear()
        kill_processes_of(self.home)

    def own_processes(self) -> list[int]:
        return processes_of(self.home)

    def command_lines(self) -> list[str]:
        """All the words that each of our processes was started with."""
        return list(filter(None, map(command_line, self.own_processes())))

    def path_without(self, folder: Path, *names: str) -> str:
        """Return a PATH, made in `folder`, with all programs of ours except those that begin with `names`."""
        folder.mkdir(exist_ok=True)
        for place in self.path:
            for entry in os.listdir(place) if os.path.isdir(place) else ():
                link = folder / entry
                if not entry.startswith(names) and not os.path.lexists(link):
                    link.symlink_to(Path(place) / entry)
        return str(folder)


@contextmanager
def own_ground(name: str, clients: Path | None = None) -> Iterator[Ground]:
    """Yield a ground, and close it in the end. A tool missing on this machine fails the test in a line."""
    try:
        ground = Ground(name, clients=clients)
    except Lacking as lacking:
        absent = str(lacking)
    else:
        yield ground
        ground.close()
        return
    import pytest  # the demo and the benchmarks have grounds as well, and no pytest

    pytest.fail(absent, pytrace=False)


def processes_of(home: Path) -> list[int]:
    """Return the processes with this HOME, a private path, in their environment."""
    mark = f"HOME={home}"
    if not os.path.isdir("/proc/self"):
        listing = subprocess.run(["ps", "-axEww", "-o", "pid=,command="], capture_output=True, text=True).stdout
        return [int(line.split()[0]) for line in listing.splitlines() if mark in line.split()]
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/environ", "rb") as environment:
                if mark.encode() in environment.read().split(b"\0"):
                    found.append(int(entry))
        except OSError:
            pass  # gone meanwhile, or another user's
    return found


def command_line(pid: int) -> str:
    """All the words that a process was started with; empty where it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:  # it has ended, or this system has no such file
        asked = ["ps", "-ww", "-p", str(pid), "-o", "command="]
        return subprocess.run(asked, capture_output=True, text=True).stdout


def kill_processes_of(home: Path) -> None:
    """Kill by id the processes that left their process group: servers that clients start, Codex's daemon."""
    for pid in processes_of(home):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:  # it has ended
            pass
    # Codex's daemon binds its sockets in /tmp, and a killed one leaves them behind.
    for link in filter(Path.is_symlink, home.glob(".codex/app-server-*/*.sock")):
        socket = link.readlink()
        for file in (socket, Path(f"{socket}.lock"), link):
            file.unlink(missing_ok=True)


def _runs_in_group(group: int) -> bool:
    """Return True while a process of the group has not ended; a zombie has."""
    asked = ["ps", "-A", "-o", "pgid=,stat="]
    rows = (line.split() for line in subprocess.run(asked, capture_output=True, text=True).stdout.splitlines())
    return any(row[0] == str(group) and row[1][:1] not in "ZX" for row in rows if len(row) == 2)


def kill_group(process: subprocess.Popen[str]) -> None:
    """SIGKILL for the process and its group (it leads one); waits until it is reaped and no other of them runs."""
    is_killed = process.poll() is None
    if is_killed:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:  # it has ended
            pass
    process.wait()
    while is_killed and _runs_in_group(process.pid):  # a client's launcher may be gone before the client is
        time.sleep(0.02)
    for stream in (process.stdout, process.stderr):
        if stream:
            stream.close()
