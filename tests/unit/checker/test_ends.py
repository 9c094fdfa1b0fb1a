"""The checker's answer is that of a hook alone: for calls of every kind, many at once, and however it ends."""

import os
import shutil
import signal
import subprocess
import sysconfig
import time
from pathlib import Path

import pytest
from support.both_ways import BothWays
from support.check_payloads import cases
from support.checker_client import ALONE, BUSY, RELAY, TWIN, WAYS, Client, SlowGit, is_there
from support.fixtures import SWARM

pytestmark = pytest.mark.slow


def test_a_killed_server_takes_its_checker_along(client: Client) -> None:
    checker = client.warm()
    client.servers[0].kill()
    client.servers[0].wait()
    client.wait_for("the checker's end", lambda: not is_there(checker))
    for way in WAYS:
        answer = client.ask(client.edit("held.py"), way)
        assert (answer.is_denied, answer.alone) == (True, ["none"])


def test_a_server_that_ends_takes_its_checker_along(client: Client) -> None:
    checker = client.warm()
    assert client.servers[0].stdin
    client.servers[0].stdin.close()
    client.servers[0].stdin = None
    client.wait_for("the server's end", lambda: client.servers[0].poll() is not None)
    client.wait_for("the checker's end", lambda: not is_there(checker))


def test_a_killed_checker_is_started_again(client: Client) -> None:
    checker = client.warm()
    os.kill(checker, signal.SIGKILL)
    client.wait_for("the checker's end", lambda: not is_there(checker))
    assert client.ask(client.edit("held.py")).is_denied
    assert client.warm() not in (0, checker)
    assert client.ask(client.edit("held.py"), TWIN).is_denied


@pytest.mark.parametrize("way", WAYS)
def test_a_stopped_checker_is_replaced(client: Client, way: str) -> None:
    checker = client.warm(way)
    os.kill(checker, signal.SIGSTOP)
    assert client.ask(client.edit("held.py"), way).is_denied
    client.wait_for("the checker's end", lambda: not is_there(checker))
    assert client.warm(way) not in (0, checker)


@pytest.mark.parametrize("way", WAYS)
def test_a_stopped_checker_under_a_stopped_server_keeps_no_hook_waiting(client: Client, way: str) -> None:
    checker = client.freeze(way)
    for name, is_denied in (("held.py", True), ("free.py", False)):
        answer = client.ask(client.edit(name), way, even_busy=True)
        assert (answer.is_denied, answer.alone) == (is_denied, BUSY)
    assert client.writes() == ["free.py"]
    client.thaw(checker)
    client.warm(way)
    assert client.writes() == ["free.py"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("deed", ["killed", "stopped", "both stopped"])
@pytest.mark.sampled
def test_a_check_that_is_cut_short_is_made_by_the_hook_alone(
    client: Client, way: str, deed: str, tmp_path: Path
) -> None:
    client.warm(way)
    git = SlowGit(client, tmp_path)
    hook = client.cut_short(client.bash("git checkout held.py; echo x > new.py"), way, git)
    checker = client.checker()
    if deed == "both stopped":  # the keeper cannot end it: the hook waits as long as a check may take
        client.servers[0].send_signal(signal.SIGSTOP)
    os.kill(checker, signal.SIGKILL if deed == "killed" else signal.SIGSTOP)
    assert b'"deny"' in hook.communicate(timeout=60)[0]
    assert client.notes()[-1] == "not answered"
    if deed == "both stopped":  # and the check that goes on afterwards is ended before it leaves anything
        client.thaw(checker)
    client.wait_for("the checker's end", lambda: not is_there(checker))
    git.go_on()
    assert client.writes() == []
    client.warm(way)


def test_no_write_is_noted_twice_after_a_check_that_was_cut_short(client: Client) -> None:
    call = client.bash("echo x > new.py; echo y > src/other.py")
    began_ns = str(time.time_ns())
    client.ask(call, ALONE)
    client.ask(call, ALONE, environment={"SWARM_TRIED_NS": began_ns})
    assert client.writes() == ["new.py", "src/other.py"]
    client.ask(call, ALONE, environment={"SWARM_TRIED_NS": "1"})  # no try of now: another call
    assert client.writes() == ["new.py", "new.py", "src/other.py", "src/other.py"]


@pytest.mark.parametrize("way", WAYS)
def test_a_hook_that_its_client_kills_leaves_no_traces(client: Client, way: str, tmp_path: Path) -> None:
    client.warm(way)
    git = SlowGit(client, tmp_path)
    hook = client.cut_short(client.bash("git checkout free.py; echo x > new.py"), way, git)
    hook.kill()
    hook.communicate()
    git.go_on()
    client.warm(way)
    assert client.writes() == []
    assert not client.faults()


def test_the_second_server_of_a_client_is_the_heir(client: Client) -> None:
    checker = client.warm()
    client.serve()
    assert client.checker() == checker
    assert not client.ask(client.edit("held.py")).alone
    client.servers[0].kill()
    client.servers[0].wait()
    client.wait_for("the heir's checker", lambda: not client.ask(client.bash("ls")).alone)
    heir = client.checker()
    assert heir not in (0, checker)
    for way in WAYS:
        answer = client.ask(client.edit("held.py"), way)
        assert (answer.is_denied, answer.alone) == (True, [])


def test_a_server_behind_a_shell_has_a_checker(client: Client) -> None:
    client.close()
    client.serve("/bin/sh", "-c", '"$@"; true', "sh", *SWARM, "serve")
    for way in WAYS:
        client.warm(way)
        assert client.ask(client.edit("held.py"), way).is_denied
    for pid in _below(client.servers[0].pid):
        os.kill(pid, signal.SIGKILL)
    client.servers[0].wait()  # the shell goes on to its end


def test_a_checker_ends_when_files_of_its_release_are_replaced(client: Client, tmp_path: Path) -> None:
    client.close()
    packages = tmp_path / "packages"
    _copy_packages(packages)
    code = f"import sys; sys.path[:0] = [{str(packages)!r}]; from swarm_mcp.cli.main import main; sys.exit(main())"
    client.serve(SWARM[0], "-I", "-S", "-B", "-c", code, "serve")
    checker = client.warm()
    first = packages / "swarm_hook_core/__init__.py"
    new = tmp_path / "new.py"
    new.write_bytes(first.read_bytes())
    os.replace(new, first)
    answer = client.ask(client.edit("held.py"), even_busy=True)
    assert answer.is_denied and answer.alone
    client.wait_for("the checker's end", lambda: not is_there(checker))
    assert client.warm() != checker


@pytest.mark.sampled
@pytest.mark.parametrize("way", WAYS)
def test_a_hundred_calls_at_once(client: Client, way: str) -> None:
    client.warm(way)
    calls = [
        client.edit("held.py") if number % 4 == 0 else client.bash(f"echo x > new{number}.py") for number in range(100)
    ]
    hooks = [client.start(call, way) for call in calls]
    denied = [b'"deny"' in hook.communicate(timeout=300)[0] for hook in hooks]
    assert denied == [number % 4 == 0 for number in range(100)]
    assert client.writes() == sorted(f"new{number}.py" for number in range(100) if number % 4)
    assert not client.faults()


def _below(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True)
    return [int(one) for one in found.stdout.split()]


def _copy_packages(packages: Path) -> None:
    packages.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if entry.name in ("swarm_mcp", "swarm_hook_core"):
            shutil.copytree(entry, packages / entry.name)
        else:
            (packages / entry.name).symlink_to(entry)


SEED, CALLS = 20, 120
MANY = int(os.environ.get("SWARM_CHECKER_EXAMPLES", "50000"))
LONGEST = 25 * 1024 * 1024  # bytes of a checker that it does not share


def test_the_same_answer(tmp_path: Path) -> None:
    assert _differences(tmp_path, SEED, CALLS) == []


@pytest.mark.thorough
def test_the_same_answer_to_many_calls(tmp_path: Path) -> None:
    assert _differences(tmp_path, int(time.time() // 86400), MANY) == []


def _differences(folder: Path, seed: int, count: int) -> list[str]:
    ways = BothWays(folder)
    try:
        found = [difference for case in cases(seed, count) if (difference := ways.difference(case))]
        assert ways.checker.memory() < LONGEST
        assert ways.by_time <= count / 50 + 5  # on a busy machine
        return found
    finally:
        ways.close()


AT_ONCE = (4, 20)
SESSIONS, ROUNDS = 3, 3


@pytest.fixture(scope="module")
def sessions(shared_client: Client) -> list[str]:
    """Sessions beside the client's first one."""
    return [shared_client.join() for _ in range(SESSIONS)]


@pytest.mark.parametrize("way", [RELAY, TWIN, ALONE])
@pytest.mark.parametrize("count", AT_ONCE)
@pytest.mark.sampled
def test_a_storm_loses_no_write(client: Client, sessions: list[str], way: str, count: int) -> None:
    client.warm(RELAY)
    client.renew()
    wanted: dict[str, list[str]] = {session: [] for session in sessions}
    for one in range(ROUNDS):
        hooks = []
        for number in range(count):
            session, name = sessions[number % SESSIONS], f"new{one}-{number}.py"
            if number % 5 == 4:
                hooks.append((client.start(client.edit("held.py", session), way), True))
                continue
            call = client.bash(f"echo x > {name}", session) if number % 2 else client.edit(name, session)
            hooks.append((client.start(call, way), False))
            wanted[session].append(name)
        for hook, is_denied in hooks:
            output, errors = hook.communicate(timeout=300)
            assert (hook.returncode, errors) == (0, b"")
            assert (b'"deny"' in output) is is_denied, output
    assert {session: client.writes(session) for session in sessions} == {
        session: sorted(names) for session, names in wanted.items()
    }
    assert client.faults() == []
