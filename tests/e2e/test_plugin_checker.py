"""Plugins that live in their client's process ask the checker by themselves: no process is started for a hook."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from swarm_hook_core import __version__
from swarm_mcp.play.models import Player, Step, play

from .checks import assert_denied, assert_text
from .client import Client
from .ground import Ground, Lacking, own_ground, wait_for
from .marketplace import Marketplace
from .more import prepared, program
from .pi import Pi, alone
from .test_checker import TRIES, answers, checkers

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("pi", "opencode", "kilo", "omp", "cline", "hermes")
CASES = [pytest.param(name, marks=pytest.mark.xdist_group(f"more-{name}"), id=name) for name in NAMES]
CHANGE = ("notes.md", "line one", "line two")


@pytest.fixture(scope="module", params=CASES)
def installed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with ExitStack() as stack:
        client: Client
        if request.param == "pi":
            ground = stack.enter_context(own_ground("pi", clients=alone(tmp_path_factory.mktemp("clients"))))
            client = Pi(ground)
            client.prepare()
        else:
            client = stack.enter_context(prepared(request.param))
        Marketplace(client.ground, "install").install(request.param)
        yield client


@pytest.fixture
def plugin(installed: Client) -> Iterator[Client]:
    installed.ground.renew()
    yield installed
    installed.ground.end_processes()


@contextmanager
def noted_processes(ground: Ground) -> Iterator[Path]:
    """Have each hook that is started as a process leave a line in the file that this returns."""
    log = ground.root / "processes"
    log.write_text("")
    files = [path for name in ("hooks.json", "hook.sh") for path in ground.home.rglob(name)]
    assert len({path.name for path in files}) == 2, "no plugin is installed"
    texts = [path.read_text() for path in files]
    try:
        for path, text in zip(files, texts):
            if path.name == "hook.sh":
                path.write_text(f'echo "$*" >>"{log}"\n{text}')
                continue
            tree = json.loads(text)
            for event, groups in tree["hooks"].items():
                for hook in (hook for group in groups for hook in group["hooks"]):
                    hook["command"] = f"echo {event} >>'{log}'; {hook['command']}"
            path.write_text(json.dumps(tree))
        yield log
    finally:
        for path, text in zip(files, texts):
            path.write_text(text)


def server_of(ground: Ground) -> int:
    """Return the pid of the MCP server that keeps the checker of this ground's client."""
    (lock,) = [path for path in ground.root.rglob("checkers/*.lock") if ground.checkout not in path.parents]
    return int(lock.read_text())


@pytest.mark.promise(
    "a plugin in its client's process is answered by the checker, and denies a write to a locked file", only=("pi",)
)
def test_checks_start_no_process(plugin: Client) -> None:
    ground = plugin.ground
    counts: list[tuple[int, str]] = []  # the answers of the checker and the processes of hooks, after each call

    def moves() -> Generator[Step, list[str], None]:
        yield Step(calls=(plugin.create("first.md", "first\n"),))
        ground.coordinator.peer_lock("notes.md")
        assert wait_for(lambda: bool(checkers(ground)), 60), "no checker was started"
        for number in range(TRIES):
            counts.append((answers(ground), log.read_text()))
            yield Step(calls=(plugin.create(f"{number}.md", "second\n"),))
            yield Step(calls=(plugin.shell(f"cat {number}.md"),))
            yield Step(calls=(plugin.replace(*CHANGE),))
            if not processes():
                break

    def processes() -> list[str]:
        """Return the hooks before and after tools that were processes, in the newest try."""
        lines = log.read_text().removeprefix(counts[-1][1]).splitlines()
        return [line for line in lines if "tool" in line.lower()]

    with noted_processes(ground) as log:
        plugin.models.players["work"] = Player(moves())
        plugin.ask(play("work"))
        assert not processes(), log.read_text()
    assert_denied(plugin, "work", "notes.md")
    assert_text(plugin, "notes.md", "line one\n")
    assert_text(plugin, f"{len(counts) - 1}.md", "second\n")
    assert answers(ground) >= counts[-1][0] + 3


@pytest.mark.parametrize("ends", [signal.SIGKILL, signal.SIGSTOP])
def test_a_lock_denies_where_no_checker_answers(plugin: Client, ends: signal.Signals) -> None:
    ground = plugin.ground
    with noted_processes(ground) as log:
        with plugin.held("work", plugin.create("first.md", "first\n"), plugin.replace(*CHANGE), at=1) as live:
            ground.coordinator.peer_lock("notes.md")
            assert wait_for(lambda: bool(checkers(ground)), 60), "no checker was started"
            stopped = checkers(ground)
            if ends == signal.SIGKILL:
                stopped.append(server_of(ground))
            for pid in stopped:
                os.kill(pid, ends)
            before = log.read_text()
            live.go_on()
            assert_denied(plugin, "work", "notes.md")
            for pid in stopped:
                with suppress(ProcessLookupError):  # its client has ended it
                    os.kill(pid, signal.SIGCONT)
        assert_text(plugin, "notes.md", "line one\n")
        assert "pre_tool_use" in log.read_text().removeprefix(before), "a process has checked the write"


HOOK = """echo "$*" >>"$PLAYED/started"
cat >"$PLAYED/input"; cat /proc/self/environ >"$PLAYED/environment"
echo '{"hookSpecificOutput": {"additionalContext": "by a process"}}'
"""
PAYLOAD = {"session_id": "one", "cwd": "/", "hook_event_name": "PreToolUse", "tool_name": "write", "tool_input": {}}
FAULTS = {
    "closes": "busy", "waits": "busy", "ends": "not answered", "is silent": "not answered",
    "stops short": "not answered", "talks nonsense": "not answered", "refuses": "not answered",
}  # fmt: skip


class Miniature:
    """A process with OpenCode's plugin in it, and a played server below. Both leave files in `folder`."""

    def __init__(self, folder: Path, runner: list[str]):
        self.folder, self.state, bundle = folder, folder / "state", folder / "bundle"
        (bundle / "integrations" / "opencode").mkdir(parents=True)
        for name in ("hooks.ts", "checker.ts", "opencode/hooks.json"):
            (bundle / "integrations" / name).write_bytes((ROOT / "integrations" / name).read_bytes())
        (bundle / "integrations" / "hook.sh").write_text(HOOK)
        server = folder / "bin" / "swarm-mcp"
        server.parent.mkdir()
        server.write_text(f"#!{sys.executable}\n{Path(__file__).with_name('played_checker.py').read_text()}")
        server.chmod(0o755)
        path = f"{server.parent}:{os.environ['PATH']}"
        self.env = {"PATH": path, "HOME": str(folder), "SWARM_STATE_DIR": str(self.state), "PLAYED": str(folder)}
        driver = str(Path(__file__).with_name("plugin_process.ts"))
        self.process = subprocess.Popen(
            [*runner, driver, str(bundle), "opencode"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={os.fsencode(name): os.fsencode(value) for name, value in self.env.items()} | {b"ODD": b"x\xffy=\n"},
            cwd=folder, text=True, bufsize=1,
        )  # fmt: skip
        assert self.process.stdout
        self.pid = json.loads(self.process.stdout.readline())["pid"]

    def ask(self, **request: Any) -> dict[str, Any]:
        """Return the process's answer to a request (plugin_process.ts)."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(request) + "\n")
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def said(self, **more: Any) -> Any:
        """Return the words of the hook's answer to PAYLOAD with `more`."""
        return self.ask(payload={**PAYLOAD, **more})["answer"].get("additionalContext")

    def start(self, manner: str = "answers") -> int:
        """Start a server with a checker of this manner. Return its pid."""
        (self.folder / "manner").write_text(manner)
        pid = int(self.ask(start=True)["pid"])
        assert wait_for((self.folder / "ready").exists, 60), "the played server has not begun"
        return pid

    def read(self, name: str) -> bytes:
        """Return the bytes of a file in the folder; empty without it."""
        with suppress(FileNotFoundError):
            return (self.folder / name).read_bytes()
        return b""

    def started(self) -> list[str]:
        """Return the words of the hooks that were started as processes."""
        return self.read("started").decode().splitlines()

    def socket(self) -> Path:
        (lock,) = (self.state / "checkers").glob("*.lock")
        return lock.with_suffix("")

    def close(self) -> None:
        with self.process:
            if self.process.poll() is None:
                self.ask(stop="SIGKILL")
            self.process.kill()


def runner_of(name: str) -> list[str]:
    """Return the command that runs a file of TypeScript in Node or Bun. Raises Lacking."""
    if name == "bun":
        return [str(program("omp").with_name("bun"))]
    compiler = (
        Path(os.environ.get("SWARM_E2E_CLIENTS") or ".").absolute() / ".bin" / "jiti"
    )  # pi has it for its plugins
    if not compiler.exists():
        raise Lacking("jiti is not in SWARM_E2E_CLIENTS: run `make e2e`: it installs pi there")
    return ["node", str(compiler.resolve())]


@pytest.fixture(params=["node", "bun"])
def small(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Miniature]:
    try:
        runner = runner_of(request.param)
    except Lacking as lacking:
        if request.param == "bun":
            pytest.skip(str(lacking))  # as the tests of its client
        raise
    made = Miniature(tmp_path, runner)
    yield made
    made.close()


def variables(data: bytes) -> dict[bytes, bytes]:
    """Return an environment without the variables that a shell adds."""
    pairs = dict(entry.partition(b"=")[::2] for entry in data.split(b"\0") if entry)
    return {name: value for name, value in pairs.items() if name not in (b"PWD", b"OLDPWD", b"SHLVL", b"_")}


@pytest.mark.promise("a checker is told all that a process would have had", only=("node",))
def test_a_request_has_what_a_process_would_have_had(small: Miniature) -> None:
    odd = {"path": "a\0b", "content": "\ud83d", "more": "ü€😀"}
    assert small.said(tool_input=odd) == "by a process" and small.started() == ["opencode pre_tool_use  alone"]
    small.start()
    assert small.said(tool_input=odd) == "by the checker" and len(small.started()) == 1
    words = small.read("head").split(b"\0")
    release, client, event, parent, end, folder = words[:6]
    assert [release.decode(), client, event] == [__version__, b"opencode", b"pre_tool_use"]
    assert int(parent) == small.pid and folder == os.fsencode(small.folder)
    assert end[:1] == b"+" and 1.5e9 < int(end) < 2.2e9, "the time that is left, in nanoseconds"
    assert small.read("payload") == small.read("input")
    assert variables(b"\0".join(words[6:])) == variables(small.read("environment"))
    assert b"ODD" in variables(small.read("environment"))


def test_a_text_of_20_mb(small: Miniature) -> None:
    small.start()
    answer = small.ask(payload={**PAYLOAD, "tool_input": {}}, large=20_000_000)["answer"]
    assert answer["additionalContext"] == "by the checker" and not small.started()
    assert len(json.loads(small.read("payload"))["tool_input"]["content"]) == 20_000_000


@pytest.mark.parametrize(("manner", "why"), FAULTS.items())
def test_where_none_answers_a_process_does(small: Miniature, manner: str, why: str) -> None:
    small.start(manner)
    assert small.said() == "by a process"
    assert small.started() == ["opencode pre_tool_use  alone"]
    tried = variables(small.read("environment")).get(b"SWARM_TRIED_NS", b"0")
    assert (int(tried) > 0) == (why == "not answered"), "a process learns if the checker may have noted the call"
    assert (small.state / "checkers" / "alone").read_text().split(" ", 1)[1] == f"{why}\n"


def test_a_pipe_in_the_place_of_a_file_keeps_nobody_waiting(small: Miniature) -> None:
    """Each call that waited for one would take one of the few threads that read files for the client."""
    small.start()
    (small.state / "ended").mkdir()
    (small.state / "watched").mkdir()
    for path in (small.socket().with_name(f"{small.socket().name}.lock"), small.state / "checkers" / "alone"):
        path.unlink()
        os.mkfifo(path)
    os.mkfifo(small.state / "ended" / str(small.pid))
    for _ in range(9):
        assert small.said() == small.said(hook_event_name="PostToolUse", tool_name="bash") == "by a process"
    assert small.read("environment") and b"SWARM_TRIED_NS" not in small.read("environment"), "its time was over"


@pytest.mark.parametrize("is_known", [False, True])
def test_another_process_s_socket_is_not_asked(small: Miniature, tmp_path: Path, is_known: bool) -> None:
    small.start()
    if is_known:
        assert small.said() == "by the checker"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "foreign"))
        listener.listen()
        listener.setblocking(False)
        (tmp_path / "foreign").replace(small.socket())
        assert small.said() == "by a process"
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert small.started() == ["opencode pre_tool_use  alone"]


def test_a_server_of_another_client_is_not_asked(small: Miniature, tmp_path: Path) -> None:
    """The socket is a server's own, and its name is this client's; that server has another client."""
    server = small.start()
    small.ask(stop="SIGKILL")
    name = small.socket().name
    code = f"import sys; sys.argv = ['', 'serve']; import swarm_mcp.checker as c; c.name_of = lambda _: {name!r}\n"
    program = tmp_path / "foreign.py"
    program.write_text(f"{code}exec(compile(open({str(tmp_path / 'bin' / 'swarm-mcp')!r}).read(), 'x', 'exec'))")
    (tmp_path / "ready").unlink()
    foreign = subprocess.Popen([sys.executable, str(program), "serve"], env=small.env)
    try:
        assert wait_for((tmp_path / "ready").exists, 60) and foreign.pid != server
        assert (small.state / "checkers" / f"{name}.lock").read_text() == str(foreign.pid)
        assert small.said() == "by a process" and small.started() == ["opencode pre_tool_use  alone"]
    finally:
        foreign.kill()
        foreign.wait()


def test_after_a_call_its_end_is_marked_and_the_checker_asked_only_if_somebody_waits(small: Miniature) -> None:
    small.start()
    ended, call = small.state / "ended", {"tool_name": "bash", "agent_id": "helper"}
    after = {**call, "hook_event_name": "PostToolUse"}
    small.said(**call)
    assert small.said(**after) is None and not ended.exists()
    ended.mkdir()
    small.said(**call)
    (small.folder / "head").unlink()
    assert small.said(**after) is None
    mark = ended / str(small.pid)
    assert mark.read_bytes() == b"one\0helper"
    os.utime(mark, (1, 1))
    small.said(**call)
    (small.folder / "head").unlink()
    assert small.said(**after) is None and mark.stat().st_mtime > 1
    assert not small.read("head") and not small.started()
    (small.state / "watched").mkdir()
    assert small.said(**after) == "by the checker" and not small.started()


def test_an_end_is_marked_once_no_call_of_the_agent_is_open(small: Miniature) -> None:
    small.start()
    mark = small.state / "ended" / str(small.pid)
    mark.parent.mkdir()

    def marked(event: str, call: str, tool: str, **more: str) -> str:
        mark.unlink(missing_ok=True)
        small.said(hook_event_name=event, tool_use_id=call, tool_name=tool, **more)
        return mark.read_text() if mark.exists() else ""

    assert marked("PreToolUse", "1", "bash") == marked("PreToolUse", "2", "edit") == ""
    assert marked("PostToolUse", "2", "edit") == "", "the command goes on, and may write"
    assert marked("PreToolUse", "3", "read") == marked("PostToolUse", "3", "read") == "", "it only reads"
    assert marked("PreToolUse", "4", "write", agent_id="helper") == ""
    assert marked("PostToolUse", "4", "write", agent_id="helper") == "one\0helper"
    assert marked("PostToolUse", "1", "bash") == "one\0"
    assert marked("PostToolUse", "1", "bash") == "", "its end was told before"
    assert marked("PreToolUse", "5", "bash") == marked("Stop", "", "") == marked("PreToolUse", "6", "edit") == ""
    assert marked("PostToolUse", "6", "edit") == "one\0", "a turn's end closes all"


def test_a_session_s_start_and_end_are_processes(small: Miniature) -> None:
    small.start()
    for event, words in (("SessionStart", "session_start"), ("SessionEnd", "session_end")):
        assert small.said(hook_event_name=event) == "by a process"
        assert small.started()[-1] == f"opencode {words}"
    assert not small.read("head")
