"""Running a command without ``subprocess``, and giving up in time."""

import os
import sys
import time
from pathlib import Path

import pytest
from support.fixtures import LONGER, time_limit, wait_for

from swarm_hook_core.spawn import run


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
