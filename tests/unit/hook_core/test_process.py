"""Processes: live and ended ones, running a command without ``subprocess``, and reading the store beside threads."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.files import text_at
from support.fixtures import LONGER, Ground, time_limit, wait_for

from swarm_hook_core import clock, process
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_hook_core.process import client_process, gone, host_id, parent_of, program_name, run, start_time

HERE = host_id()


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen(["sleep", "60"])
    yield child
    child.kill()
    child.wait()


def test_a_start_time_names_a_process(sleeper: subprocess.Popen[bytes]) -> None:
    mine, its = start_time(os.getpid()), start_time(sleeper.pid)
    assert mine and its and mine != its
    assert (start_time(os.getpid()), start_time(sleeper.pid)) == (mine, its)
    assert start_time(2**22 + 7) == ""


def test_a_program_s_name_may_hold_anything(tmp_path: Path) -> None:
    # /proc/PID/stat has the name in parentheses, and the name may have them too.
    odd = tmp_path / "a) R 1 (b c"
    odd.symlink_to("/bin/sleep")
    child = subprocess.Popen([odd, "60"])
    try:
        wait_for(lambda: program_name(child.pid) == odd.name[:15])
        assert parent_of(child.pid) == os.getpid()
        assert start_time(child.pid).isdigit()
        assert not gone(HERE, child.pid, start_time(child.pid), HERE)
    finally:
        child.kill()
        child.wait()


def test_a_running_process_is_not_gone(sleeper: subprocess.Popen[bytes]) -> None:
    assert not gone(HERE, sleeper.pid, start_time(sleeper.pid), HERE)
    os.kill(sleeper.pid, signal.SIGSTOP)
    assert not gone(HERE, sleeper.pid, start_time(sleeper.pid), HERE), "a stopped one only looks quiet"


def test_this_process_and_its_parent_are_looked_at_once(failing) -> None:
    mine, above = os.getpid(), os.getppid()
    started = {pid: start_time(pid) for pid in (mine, above)}
    for pid in (mine, above):
        assert not gone(HERE, pid, started[pid], HERE)
    failing(process, "start_time", pytest.fail.Exception("one was looked at again"))
    for pid in (mine, above):
        assert not gone(HERE, pid, started[pid], HERE)
        assert gone(HERE, pid, started[pid] + "0", HERE), "an earlier process had the number"


def test_a_forked_process_looks_for_itself() -> None:
    assert not gone(HERE, os.getpid(), start_time(os.getpid()), HERE)
    child = os.fork()
    if not child:
        mine, above = os.getpid(), os.getppid()
        is_right = gone(HERE, mine, start_time(above) + "0", HERE) and not any(
            gone(HERE, pid, start_time(pid), HERE) for pid in (mine, above)
        )
        os._exit(0 if is_right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_an_ended_process_is_gone(sleeper: subprocess.Popen[bytes]) -> None:
    started = start_time(sleeper.pid)
    sleeper.kill()
    wait_for(lambda: start_time(sleeper.pid) == "-")  # killed and unreaped, it is a zombie
    assert gone(HERE, sleeper.pid, started, HERE), "a zombie has ended"
    sleeper.wait()
    assert start_time(sleeper.pid) == ""
    assert gone(HERE, sleeper.pid, started, HERE)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="only Linux tells of the end of a process by a handle")
def test_a_checker_looks_at_a_process_once_and_is_told_of_its_end(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "MOST_FOLLOWED", 1)
    monkeypatch.setattr(process, "_handles", {})
    started, another = start_time(sleeper.pid), subprocess.Popen(["sleep", "60"])
    process.answer_for(0, 0, lambda: None)
    try:
        for one in (another, sleeper):  # of more than it follows one is given up
            assert not gone(HERE, one.pid, start_time(one.pid), HERE)
        (handle,) = process._handles.values()
        assert gone(HERE, sleeper.pid, started + "0", HERE), "an earlier process had the number"
        with monkeypatch.context() as patch:
            patch.setattr(process, "start_time", lambda pid: pytest.fail("it was looked at again"))
            assert not gone(HERE, sleeper.pid, started, HERE)
        sleeper.kill()
        wait_for(lambda: start_time(sleeper.pid) == "-")
        assert gone(HERE, sleeper.pid, started, HERE) and process._handles == {}
        with pytest.raises(OSError):
            os.fstat(handle)
    finally:
        process.answer_for(0, 0, None)
        another.kill()
        another.wait()


def test_a_pid_used_again_is_another_process(sleeper: subprocess.Popen[bytes]) -> None:
    assert gone(HERE, sleeper.pid, str(int(start_time(sleeper.pid)) - 1), HERE)


def test_nobody_is_gone_without_proof(sleeper: subprocess.Popen[bytes]) -> None:
    started = start_time(sleeper.pid)
    sleeper.kill()
    sleeper.wait()
    pid = sleeper.pid
    machine, boot, namespace = HERE.split("/")
    assert machine and boot and namespace
    assert gone(HERE, pid, started, HERE), "the same facts, with proof"
    for host in ("", f"other/{boot}/{namespace}", f"/{boot}/{namespace}", f"{machine}/{boot}/1", f"{machine}//{namespace}",
                 f"{machine}/{boot}", machine, "//"):  # fmt: skip
        assert not gone(host, pid, started, HERE), host
    for here in ("", "//", f"other/{boot}/{namespace}", f"{machine}//{namespace}", f"{machine}/{boot}/1", machine):
        assert not gone(HERE, pid, started, here), here
    assert not gone(HERE, 0, started, HERE)
    assert not gone(HERE, pid, "", HERE)
    assert not gone("//", pid, started, "//"), "two machines that cannot be told are not one"


def test_a_restart_ends_everything(sleeper: subprocess.Popen[bytes]) -> None:
    machine, _boot, namespace = HERE.split("/")
    assert gone(f"{machine}/an-earlier-boot/{namespace}", sleeper.pid, start_time(sleeper.pid), HERE)
    assert gone(f"{machine}/an-earlier-boot/1", sleeper.pid, "1", HERE), "whatever its pid namespace was"
    assert not gone(f"other/an-earlier-boot/{namespace}", sleeper.pid, start_time(sleeper.pid), HERE)


def test_a_process_that_may_not_be_signalled_is_looked_at(sleeper: subprocess.Popen[bytes]) -> None:
    def refuse(pid: int, number: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    started = start_time(sleeper.pid)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "kill", refuse)
        assert not gone(HERE, sleeper.pid, started, HERE)
        assert gone(HERE, sleeper.pid, "1", HERE)


@pytest.mark.parametrize("content", ["", "garbage", "12 (x) R"])
def test_a_process_that_cannot_be_looked_at_counts_as_alive(
    content: str, sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    started = start_time(sleeper.pid)
    monkeypatch.setattr(process, "_read", lambda path: content)  # as with /proc mounted hidepid=2
    assert start_time(sleeper.pid) == ""
    assert not gone(HERE, sleeper.pid, started, HERE)
    assert not gone(HERE, sleeper.pid, "1", HERE)
    assert parent_of(sleeper.pid) == 0


def test_a_machine_without_its_files_still_proves_nothing_wrong(sleeper: subprocess.Popen[bytes], monkeypatch) -> None:
    started = start_time(sleeper.pid)
    monkeypatch.setattr(process, "_read", lambda path: "")
    monkeypatch.setattr(process, "_hosts", {})  # it is looked up once
    here = host_id()
    assert here.partition("/")[0] == os.uname().nodename
    assert not gone(here, sleeper.pid, started, here)
    assert not gone(HERE, sleeper.pid, started, here) and not gone(here, sleeper.pid, started, HERE)


def test_another_pid_namespace_sees_other_processes(sleeper: subprocess.Popen[bytes]) -> None:
    ask = (
        "import sys; from swarm_hook_core.process import *; host, pid, started = sys.argv[1:];"
        "print(host_id(), gone(host, int(pid), started, host_id()))"
    )
    command = [
        "unshare",
        "--pid",
        "--fork",
        "--mount-proc",
        *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]),
    ]
    facts = [HERE, str(sleeper.pid), start_time(sleeper.pid)]
    done = subprocess.run([*command, sys.executable, "-c", ask, *facts], capture_output=True, text=True, check=False)
    if done.returncode and "unshare" in done.stderr:
        pytest.skip(
            f"no leave to make a pid namespace here ({done.stderr.strip()}); run as root or allow user namespaces"
        )
    there, verdict = done.stdout.split()
    assert there.rpartition("/")[0] == HERE.rpartition("/")[0] and there != HERE
    assert verdict == "False", "its pid does not exist in there, which proves nothing"


def test_one_clock_leases_go_by_the_boot_clock_which_counts_sleep() -> None:
    name = "CLOCK_BOOTTIME" if hasattr(time, "CLOCK_BOOTTIME") else "CLOCK_MONOTONIC"
    assert abs(clock.now() - time.clock_gettime(getattr(time, name))) < 1


ASK = "from swarm_hook_core.process import client_process; print(*client_process())"


def asked(argv: list[str]) -> list[str]:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()


def test_the_client_is_the_process_that_started_the_hook() -> None:
    assert asked([sys.executable, "-c", ASK]) == [str(os.getpid()), start_time(os.getpid())]


def test_the_client_is_found_behind_its_shells() -> None:
    # The trailing command keeps each shell from replacing itself by its command.
    script = f"{sys.executable} -c '{ASK}'; true"
    assert asked(["sh", "-c", script]) == [str(os.getpid()), start_time(os.getpid())]
    assert asked(["bash", "-c", f'sh -c "{script}"; true']) == [str(os.getpid()), start_time(os.getpid())]


def test_the_client_is_found_behind_a_shell_that_nobody_knows(tmp_path: Path) -> None:
    hook = text_at(tmp_path / "integrations" / "hook.py", ASK)
    odd = "import subprocess, sys; subprocess.run(['/bin/sh', '-c', sys.argv[1]])"
    wired = f'{sys.executable} "{hook}" codex turn; true'
    assert asked([sys.executable, "-c", odd, wired]) == [str(os.getpid()), start_time(os.getpid())]


def test_the_client_is_found_behind_the_script_that_watches_it(tmp_path: Path) -> None:
    """Hermes' servers are children of such a script."""
    script = text_at(tmp_path / "mcp_stdio_watchdog.py", "import subprocess, sys; subprocess.run(sys.argv[4:])")
    watched = [sys.executable, str(script), "--ppid", "1", "--", sys.executable, "-c", ASK]
    assert asked(watched) == [str(os.getpid()), start_time(os.getpid())]


def test_an_unknown_client_is_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_read", lambda path: "")
    assert client_process() == (0, "")
    monkeypatch.setattr(os, "getppid", lambda: 1)
    assert client_process() == (0, "")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:  # it has ended
        return False
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] not in "ZX"


def pid_in(path: Path) -> int:
    """The pid that a script writes to `path`, once it is there."""
    return int(wait_for(lambda: path.exists() and path.read_text().endswith("\n") and path.read_text()))


def test_what_a_command_says_and_how_it_ends() -> None:
    done = run(["sh", "-c", "echo out; echo err >&2; exit 7"], 60)
    assert (done.code, done.stdout, done.stderr) == (7, "out\n", "err\n")


def test_a_command_has_no_input() -> None:
    assert run(["cat"], 60).stdout == ""


def test_words_arrive_as_they_are() -> None:
    words = ["a b", "", "'", '"', "$HOME", "é", "\n", "-x"]
    script = "import sys; print(ascii(sys.argv[1:]))"
    assert run([sys.executable, "-c", script, *words], 60).stdout.strip() == ascii(words)


def test_a_long_answer_arrives_whole() -> None:
    done = run(
        [sys.executable, "-c", "import sys; sys.stdout.write('x' * 3_000_000); sys.stderr.write('y' * 200_000)"], 20
    )
    assert (done.code, len(done.stdout), len(done.stderr)) == (0, 3_000_000, 200_000)


def test_an_answer_that_is_no_text_arrives_all_the_same() -> None:
    assert run(["printf", "\\377ok"], 60).stdout == "\udcffok"


@pytest.mark.parametrize("name", ["/not/there", "no-such-program-anywhere", "/etc/passwd", "/"])
def test_a_program_that_cannot_start_is_an_answer(name: str) -> None:
    handles = len(os.listdir("/proc/self/fd"))
    done = run([name, "x"], 60)
    assert done.code is None and name in done.stderr and done.stdout == ""
    assert len(os.listdir("/proc/self/fd")) == handles


def test_no_handle_is_left_open() -> None:
    handles = len(os.listdir("/proc/self/fd"))
    run(["true"], 60)
    run(["sleep", "5"], 0.05)
    assert len(os.listdir("/proc/self/fd")) == handles


def test_a_command_killed_by_a_signal_did_not_succeed() -> None:
    assert run(["sh", "-c", "kill -9 $$"], 60).code == -9


@pytest.mark.parametrize(
    "script",
    [
        "echo part; echo $$ > {0}; exec sleep 600",
        "echo part; sleep 600 & echo $! > {0}; wait",
        "echo part; trap '' TERM INT HUP; sh -c 'trap \"\" TERM; echo $$ > {0}; sleep 600; true'; true",
    ],
    ids=["itself", "grandchild", "stubborn"],
)
def test_out_of_time_the_whole_group_ends(script: str, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    pid.touch()
    for seconds in LONGER:
        begun = time.monotonic()
        done = run(["sh", "-c", script.format(pid)], seconds)
        assert seconds - 0.1 < time.monotonic() - begun < seconds + time_limit(30)
        assert done.code is None and f"{seconds:g} s" in done.stderr
        if pid.read_text():
            break
    assert done.stdout == "part\n"
    number = pid_in(pid)
    wait_for(lambda: not alive(number))


def test_a_wrapper_that_is_gone_while_its_child_keeps_the_pipe_does_not_hold_us(tmp_path: Path) -> None:
    said = tmp_path / "pid"
    for seconds in LONGER:
        begun = time.monotonic()
        run(["sh", "-c", f"sleep 600 & echo $! > {said}"], seconds)
        assert time.monotonic() - begun < seconds + time_limit(30)
        if said.exists() and said.read_text():
            break
    pid = pid_in(said)
    try:
        wait_for(lambda: not alive(pid))  # nobody is left to end what the wrapper started
    finally:
        if alive(pid):
            os.kill(pid, 9)


def test_a_command_may_be_left_to_finish(tmp_path: Path) -> None:
    script = f"while [ ! -e {tmp_path / 'go'} ]; do sleep 0.02; done; echo said; echo $$ > {tmp_path / 'finished'}"
    done = run(["sh", "-c", script], 0.1, leave_running=True)
    assert done.code is None
    (tmp_path / "go").touch()
    pid_in(tmp_path / "finished")


def test_a_silent_command_that_closed_its_output_still_has_only_its_time() -> None:
    begun = time.monotonic()
    assert run(["sh", "-c", "exec >&- 2>&-; sleep 600"], 0.3).code is None
    assert time.monotonic() - begun < time_limit(30)


def test_what_a_thread_has_left_is_closed_in_another(ground: Ground):
    """The garbage collector runs in the thread that happens to ask for memory."""
    ground.store().close()
    made: list[StoreReader] = []
    thread = threading.Thread(target=lambda: made.append(StoreReader(ground.database)))
    thread.start()
    thread.join()
    made.pop().close()
