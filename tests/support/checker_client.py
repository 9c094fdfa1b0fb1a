"""This process as a client of swarm's: it starts a server and hooks. The server's checker answers for the hooks.

::

    client = Client(tmp_path)
    client.serve()
    client.warm(RELAY)                                a checker answers from now on
    answer = client.ask(client.edit("held.py"))       by the relay in C, as an installed plugin does
    assert answer.is_denied and not answer.alone      `alone`: why the hook ran as a process of its own

Each session is registered by a hook of its own. `WAYS` are the two relays; `ALONE` is a hook without one.
"""

import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from support.fixtures import SWARM, time_limit
from swarm_hook_core.process import start_time
from swarm_hook_core.traces import journal
from swarm_mcp import installation
from swarm_mcp.runtimes import bundle

RELAY, TWIN, ALONE = "c", "python", "alone"
WAYS = (RELAY, TWIN)
FREEZES = 20
SECONDS = 60.0  # until a state that is waited for has to be there, on an idle machine
BUSY = ["busy"]  # why a hook ran alone whose checker had no 50 ms of this machine
Call = tuple[str, bytes]  # an event and its payload


class Answer(NamedTuple):
    """The end of a hook. `alone`: the reasons noted during it why hooks ran as processes of their own."""

    status: int
    output: str
    alone: list[str]

    @property
    def is_denied(self) -> bool:
        """True if the answer denies the call."""
        return '"permissionDecision": "deny"' in self.output


class Client:
    """A home, a repository with the locked file `held.py` and others, a plugin, and this process in front of them.

    `state`: the state folder, by default the usual one of the home.
    """

    def __init__(self, folder: Path, state: str = "", locked: bool = True):
        self.root = folder.resolve()
        self.home, self.repo = self.root / "home", self.root / "repo"
        self.home.mkdir()
        self.state = Path(state) if state else self.home / ".local/state/swarm-mcp"
        self.environment = {
            "HOME": str(self.home), "PATH": f"{os.path.dirname(sys.executable)}:/usr/bin:/bin", "LANG": "C.UTF-8", "SWARM_UVX": "off",
            **({"SWARM_STATE_DIR": state} if state else {}),
        }  # fmt: skip
        (self.repo / "src").mkdir(parents=True)
        for name in ("free.py", "held.py", "src/app.py"):
            (self.repo / name).write_text("a\nb\n")
        git = ["git", "-C", str(self.repo), "-c", "user.name=t", "-c", "user.email=t@t"]
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
            subprocess.run([*git, *words], check=True, env=self.environment)
        bundle.write(self.root / "plugin", local=True)
        self.script = str(self.root / "plugin" / bundle.HOOK)
        self.python = installation.interpreter()
        self.session = self.join()
        self.servers: list[subprocess.Popen[bytes]] = []
        if locked:
            peer = json.loads(
                self.swarm(
                    "register", str(self.repo), "--label", "role:peer session:p", "--lease-seconds", "3600", "--json"
                )
            )
            self.swarm("lock", "held.py", "--as", peer["id"])

    def swarm(self, *words: str) -> str:
        """Run a command of swarm's in the repository; return its output."""
        done = subprocess.run([*SWARM, *words], cwd=self.repo, env=self.environment, stdout=subprocess.PIPE, check=True)
        return done.stdout.decode()

    def join(self) -> str:
        """Begin a session; return its id."""
        session = str(uuid.uuid4())
        payload = {"hook_event_name": "SessionStart", "source": "startup"}
        assert "registered" in self.ask(self.event("session_start", session, **payload), ALONE).output
        return session

    # -------------------------------------------------------------------------------------------- server, checker

    def serve(self, *words: str, environment: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start a server, by default directly, and return once it listens for hooks, or waits to be the heir."""
        pipe = subprocess.PIPE
        server = subprocess.Popen(
            words or [*SWARM, "serve"],
            cwd=self.repo,
            env={**self.environment, **(environment or {})},
            stdin=pipe,
            stdout=pipe,
        )
        self.servers.append(server)
        if len(self.servers) == 1:
            self.wait_for("the checker's socket", self.socket.exists)
        return server

    @property
    def socket(self) -> Path:
        """The socket of this client's checker."""
        return self.state / "checkers" / f"{os.getpid()}-{start_time(os.getpid())}"

    def checker(self) -> int:
        """Return the pid of the checker, 0 without one."""
        for server in self.servers:
            for pid in _children(server.pid):
                if b"\0checker\0" in _command_line(pid):
                    return pid
                if found := next((one for one in _children(pid) if b"\0checker\0" in _command_line(one)), 0):
                    return found  # a server behind a wrapper
        return 0

    def warm(self, way: str = RELAY) -> int:
        """Ask until a checker answers by this relay; return its pid."""
        found: list[int] = []

        def is_warm() -> bool:
            found[:] = [self.checker()] * (not self.ask(self.bash("ls"), way).alone)
            return any(found)  # none where the server has just ended it, since it was slow

        self.wait_for("an answer of a checker", is_warm)
        return found[0]

    def freeze(self, way: str = RELAY) -> int:
        """Stop the server, so that it replaces no checker, and then the checker; return its pid."""
        for _try in range(FREEZES):
            self.warm(way)
            self.servers[0].send_signal(signal.SIGSTOP)
            self.wait_for("the server to stop", lambda: _is_stopped(self.servers[0].pid))
            if is_there(found := self.checker()):
                os.kill(found, signal.SIGSTOP)
                self.wait_for("the checker to stop", lambda: not is_there(found) or _is_stopped(found))
                if is_there(found) and found == self.checker():
                    return found
            self.servers[0].send_signal(signal.SIGCONT)  # it was just replacing one that had been slow
        raise AssertionError("no checker stayed long enough to be stopped")

    def thaw(self, checker: int) -> None:
        """Let both go on."""
        os.kill(checker, signal.SIGCONT)
        self.servers[0].send_signal(signal.SIGCONT)

    def wait_for(self, what: str, is_so: Any) -> None:
        """Return once `is_so()` is true."""
        end = time.monotonic() + time_limit(SECONDS)
        while not is_so():
            assert time.monotonic() < end, f"waited for {what}; {self.notes()[-4:]}"
            time.sleep(0.005)

    def renew(self) -> None:
        """Be as at first: no traces, no faults, one server, with a checker or the socket of one."""
        for name in ("traces", "kept", "awaited", "watched", "ended"):
            shutil.rmtree(self.state / name, ignore_errors=True)
        (self.state / "faults.jsonl").unlink(missing_ok=True)
        is_whole = (
            _is_socket(self.socket) and (self.state / "checkers/alone").is_file() and (self.state / "relay").is_file()
        )
        if len(self.servers) != 1 or not is_whole or not self._is_at_work(self.servers[0]):
            self.close()
            shutil.rmtree(self.state / "checkers", ignore_errors=True)
            if (self.state / "relay").is_fifo():
                (self.state / "relay").unlink()
            self.serve()

    @staticmethod
    def _is_at_work(server: subprocess.Popen[bytes]) -> bool:
        return server.poll() is None and not _is_stopped(server.pid)

    def close(self) -> None:
        """End the servers."""
        for server in self.servers:
            with contextlib.suppress(ProcessLookupError):
                server.send_signal(signal.SIGCONT)
            server.kill()
            server.communicate()
        self.servers = []

    # -------------------------------------------------------------------------------------------------- the hooks

    def event(self, event: str, session: str = "", **fields: object) -> Call:
        """Return an event of a session, by default the first one."""
        payload = {
            "session_id": session or self.session,
            "cwd": str(self.repo),
            "transcript_path": "/nowhere/t.jsonl",
            **fields,
        }
        return event, json.dumps(payload).encode()

    def tool(self, tool: str, given: dict[str, object], session: str = "", **fields: object) -> Call:
        """Return a call of a tool, with an id of its own."""
        payload = {
            "hook_event_name": "PreToolUse",
            "tool_name": tool,
            "tool_input": given,
            "tool_use_id": uuid.uuid4().hex,
        }
        return self.event("pre_tool_use", session, **{**payload, **fields})

    def edit(self, name: str, session: str = "") -> Call:
        """Return an edit of a file in the repository."""
        return self.tool("Edit", {"file_path": str(self.repo / name), "old_string": "a", "new_string": "c"}, session)

    def bash(self, command: str, session: str = "", **fields: object) -> Call:
        """Return a call of the shell."""
        return self.tool("Bash", {"command": command}, session, **fields)

    def start(
        self,
        call: Call,
        way: str = RELAY,
        folder: Path | None = None,
        environment: dict[str, str] | None = None,
        release: str = "",
    ) -> subprocess.Popen[bytes]:
        """Start a hook; its payload is written at once. `release`: the plugin's, if not this one."""
        event, payload = call
        words = ["/bin/sh", self.script, "claude-code", event, self.python]
        if way == ALONE:
            words.append("alone")
        elif way == TWIN:
            words = [
                self.python,
                "-E",
                "-s",
                "-S",
                str(self._plugin(release) / "integrations/hook.py"),
                "claude-code",
                event,
            ]
        elif release or event not in ("pre_tool_use", "post_tool_use", "turn", "subagent"):
            words = [installation.relay(), release or "0.1.0", "claude-code", event, *words, "alone"]
        pipe = subprocess.PIPE
        hook = subprocess.Popen(
            words,
            cwd=folder or self.repo,
            env={**self.environment, **(environment or {})},
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
        )
        assert hook.stdin
        with contextlib.suppress(BrokenPipeError):
            hook.stdin.write(payload)
            hook.stdin.flush()
        hook.stdin.close()
        hook.stdin = None
        return hook

    def _plugin(self, release: str) -> Path:
        """Return the folder of the plugin, or that of a copy with the twin of another `release`."""
        if not release:
            return self.root / "plugin"
        folder = self.root / f"plugin-{release}"
        if not folder.exists():
            shutil.copytree(self.root / "plugin", folder, ignore=shutil.ignore_patterns("relay.*.pyc"))
            relay = folder / "integrations/relay.py"
            relay.write_text(relay.read_text().replace('RELEASE = "0.1.0"', f'RELEASE = "{release}"'))
        return folder

    def ask(self, call: Call, way: str = RELAY, even_busy: bool = False, **given: Any) -> Answer:
        """Return the answer of a hook. Where the machine was too busy for the checker, ask again, unless `even_busy`."""
        end = time.monotonic() + time_limit(SECONDS)
        while True:
            before, journals = len(self.notes()), self._journals()
            hook = self.start(call, way, **given)
            output, errors = hook.communicate()
            assert not errors, errors.decode()
            answer = Answer(hook.returncode, output.decode(), self.notes()[before:])
            if answer.alone != BUSY or even_busy:
                return answer
            assert time.monotonic() < end, "the checker was busy all the time"
            for path in self._journals().keys() - journals:
                path.unlink()
            for path, data in journals.items():
                path.write_bytes(data)

    def _journals(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in (self.state / "traces").glob("*/claude-code.*")}

    def cut_short(self, call: Call, way: str, git: "SlowGit") -> subprocess.Popen[bytes]:
        """Return the hook of a call whose check, in the checker, waits for `git`."""
        end = time.monotonic() + time_limit(SECONDS)
        while True:
            hook = self.start(call, way, environment=git.environment)
            git.wait()
            if git.asker() == self.checker():
                return hook
            assert time.monotonic() < end, "the checker was busy all the time"
            git.go_on()  # the machine was too busy: the hook asks git by itself
            hook.communicate()
            self.renew()
            git.renew()

    def notes(self) -> list[str]:
        """Return the reasons why hooks ran as processes of their own, as relays have noted them."""
        try:
            lines = (self.state / "checkers/alone").read_text().splitlines()
        except OSError:  # no server has started yet
            return []
        return [line.partition(" ")[2] for line in lines]

    # -------------------------------------------------------------------------------------------------- the state

    def writes(self, session: str = "") -> list[str]:
        """Return the paths of the writes in the journals, of one session or of all, without withdrawn ones."""
        found = []
        for path in (self.state / "traces").glob(f"*/claude-code.{session or '*'}"):
            for line in journal.read(str(path)).split(b"\n"):
                head, _, rest = line.partition(b"\0")
                if b" wrote " in head:
                    found.append(os.path.relpath(rest.partition(b"\0")[0].decode(), self.repo))
        return sorted(found)

    def faults(self) -> list[str]:
        """Return the recorded faults."""
        try:
            return (self.state / "faults.jsonl").read_text().splitlines()
        except FileNotFoundError:  # no fault so far
            return []


class SlowGit:
    """A `git` for the calls of a test that waits at its first start, until the test lets it go on.

    `environment`: has it on PATH. `wait` returns once a check has started it.
    """

    def __init__(self, client: Client, folder: Path):
        self._client, self._begun, self._gate = client, folder / "begun", folder / "gate"
        os.mkfifo(self._gate)
        script = folder / "git"
        script.write_text(
            f"#!/bin/sh\nmkdir {self._begun} 2>/dev/null && echo $PPID >{self._begun}/asker && read -r line <{self._gate}\n"
            f'PATH={client.environment["PATH"]} exec git "$@"\n'
        )
        script.chmod(0o755)
        self.environment = {"PATH": f"{folder}:{client.environment['PATH']}"}

    def wait(self) -> None:
        """Return once a check waits for this git."""
        self._client.wait_for("a check that has started git", self.asker)

    def asker(self) -> int:
        """Return the pid of the process that has started this git, 0 before."""
        try:
            return int((self._begun / "asker").read_text() or 0)
        except FileNotFoundError:
            return 0

    def renew(self) -> None:
        """Wait at the next start, as at first."""
        shutil.rmtree(self._begun)

    def go_on(self) -> None:
        """Let the waiting git go on, if it has not been ended."""
        with contextlib.suppress(OSError):
            handle = os.open(self._gate, os.O_WRONLY | os.O_NONBLOCK)
            os.write(handle, b"\n")
            os.close(handle)


@contextlib.contextmanager
def client_in(folder: Path, **given: Any) -> Iterator[Client]:
    """Yield a Client with a server; end the server afterwards."""
    with mock.patch.dict(os.environ, {"HOME": str(folder / "home")}):
        client = Client(folder, **given)
    try:
        client.serve()
        yield client
    finally:
        client.close()


def is_there(pid: int) -> bool:
    """Return True if a process exists and has not ended."""
    return start_time(pid) not in ("", "-")


def _is_socket(path: Path) -> bool:
    """Return True for a socket itself: a link may lead anywhere."""
    with contextlib.suppress(FileNotFoundError):
        return stat.S_ISSOCK(path.lstat().st_mode)
    return False


def _children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [
            int(one) for task in Path(f"/proc/{pid}/task").iterdir() for one in (task / "children").read_text().split()
        ]
    return []


def _is_stopped(pid: int) -> bool:
    with contextlib.suppress(OSError):  # it has ended
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    return False


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has ended
        return b""
