"""Commands that take long: they name the holder they wait for, and show their steps."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from support.fixtures import BARE_PYTHON, FOLDERS, SWARM, Ground, wait_for
from support.screen import Played, Screen

pytestmark = pytest.mark.slow


@pytest.fixture
def lead(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> dict:
    monkeypatch.setenv("SWARM_MCP_ALLOW_SPAWN", "1")
    return ground.session("lead", "identity:p role:planner mode:gateway")


@contextmanager
def piped(ground: Ground, *words: str) -> Iterator[subprocess.Popen]:
    with subprocess.Popen(
        [*SWARM, *words], cwd=ground.repo, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill() if process.poll() is None else None


def until_file(path: str) -> str:
    """The command of an agent that works until there is such a file."""
    code = f"import os, time\nwhile not os.path.exists({path!r}): time.sleep(0.02)\nprint('all good')"
    return shlex.join([sys.executable, "-c", code])


def test_who_waits_for_a_lock_is_told_for_whom(ground: Ground):
    peer, me = ground.session("peer", "identity:p origin:codex"), ground.session("me", "identity:p")
    ground.lock(peer, "a.txt")
    with piped(ground, "lock", "a.txt", "--wait", "60", "--as", me["id"]) as process:
        assert process.stdout.readline() == f"waiting for a.txt, held by codex {peer['id'][:8]} ...\n"
        ground.swarm("unlock", "a.txt", "--as", peer["id"])
        out, err = process.communicate(timeout=60)
    assert out.startswith(f"locked {ground.scope}/a.txt") and (process.returncode, err) == (0, "")


def test_at_a_terminal_the_wait_is_a_line_that_counts_and_goes(ground: Ground):
    peer, me = ground.session("peer", "identity:p origin:codex"), ground.session("me", "identity:p")
    ground.lock(peer, "a.txt")
    with Played([*SWARM, "lock", "a.txt", "--wait", "60", "--as", me["id"]], cwd=ground.repo) as played:
        name = f"codex {peer['id'][:8]}"
        played.until(lambda screen: f"1s  waiting for a.txt, held by {name}" in screen.text)
        ground.swarm("unlock", "a.txt", "--as", peer["id"])
        assert played.ended() == 0
        assert "waiting" not in played.screen.text and "locked" in played.screen.text


def test_one_in_line_is_told_who_is_before(ground: Ground):
    one, two, three = (ground.session(name, f"identity:p {name}") for name in ("one", "two", "three"))
    ground.lock(one, "a.txt")
    with piped(ground, "lock", "a.txt", "--wait", "60", "--as", two["id"]) as second:
        assert "held by" in second.stdout.readline()
        with piped(ground, "lock", "a.txt", "--wait", "60", "--as", three["id"]) as third:
            assert third.stdout.readline().startswith("waiting in the queue behind ")
            ground.swarm("unlock", "a.txt", "--as", one["id"])
            assert "locked" in second.stdout.readline()
            assert third.stdout.readline().startswith("waiting for a.txt, held by ")


def test_a_stranger_is_not_named(ground: Ground):
    stranger, me = ground.session("s", "identity:theirs secret"), ground.session("me", "identity:ours")
    ground.lock(stranger, "a.txt")
    with piped(ground, "lock", "a.txt", "--wait", "60", "--as", me["id"]) as process:
        assert process.stdout.readline() == "waiting for a.txt, held by another identity ...\n"


def test_a_wait_that_ends_in_nothing_says_what_to_type(ground: Ground):
    ground.lock(ground.session("peer", "identity:p"), "a.txt")
    me = ground.session("me", "identity:p")
    with piped(ground, "lock", "a.txt", "--wait", "0.3", "--as", me["id"]) as process:
        _, err = process.communicate(timeout=60)
    assert err.rstrip().endswith(f"next: swarm-mcp why {ground.scope}/a.txt") and process.returncode == 1


def test_beside_json_only_a_terminal_sees_the_wait(ground: Ground):
    peer, me = ground.session("peer", "identity:p"), ground.session("me", "identity:p")
    ground.lock(peer, "a.txt")
    with piped(ground, "lock", "a.txt", "--wait", "0.3", "--as", me["id"], "--json") as process:
        out, err = process.communicate(timeout=60)
    assert json.loads(out)["queue"] and err == ""


def test_hold_says_it_on_standard_error_since_its_output_is_the_commands(ground: Ground):
    peer = ground.session("peer", "identity:p origin:codex")
    ground.lock(peer, "a.txt")
    with piped(ground, "hold", "a.txt", "--wait", "60", "--", "echo", "ran") as process:
        assert process.stderr.readline() == f"waiting for a.txt, held by codex {peer['id'][:8]} ...\n"
        ground.swarm("unlock", "a.txt", "--as", peer["id"])
        assert process.communicate(timeout=60) == ("ran\n", "")


def dispatch(ground: Ground, lead: dict, command: str, seconds: str = "60") -> list[str]:
    words = ["dispatch", "Do it", "--harness", "process", "--command", command, "--completion-wait", seconds]
    return [*words, "--as", lead["id"]]


def test_a_dispatch_says_each_step_as_it_comes(ground: Ground, lead: dict):
    go = str(ground.folder / "go")
    with piped(ground, *dispatch(ground, lead, until_file(go))) as process:
        assert process.stdout.readline() == "starting a worker (process, process) ...\n"
        assert process.stdout.readline().endswith(" is up\n")
        assert process.stdout.readline().endswith(" to end, at most 60 s ...\n")
        open(go, "w").close()
        out, _ = process.communicate(timeout=60)
    assert out.splitlines()[0].endswith(" done: all good") and process.returncode == 0


def test_at_a_terminal_a_dispatch_counts_while_it_waits(ground: Ground, lead: dict):
    go = str(ground.folder / "go")
    with Played([*SWARM, *dispatch(ground, lead, until_file(go))], cwd=ground.repo) as played:
        played.until(lambda screen: "1s  waiting for task" in screen.text)
        assert " is up" in played.screen.text
        open(go, "w").close()
        assert played.ended() == 0
        assert "waiting for task" not in played.screen.text and "done: all good" in played.screen.text


def test_a_dispatch_that_takes_too_long_says_what_to_type(ground: Ground, lead: dict):
    go = str(ground.folder / "go")
    with piped(ground, *dispatch(ground, lead, until_file(go), "0.3")) as process:
        out, _ = process.communicate(timeout=60)
    (task,) = ground.sql("SELECT id FROM tasks")
    assert out.splitlines()[-2:] == [
        f"task {task['id']} has not ended yet", f"next: swarm-mcp worker logs {task['id'][:8]} -f",
    ]  # fmt: skip
    open(go, "w").close()
    followed = ground.process("logs", task["id"][:8], "-f")
    assert followed.code == 0 and "all good" in followed.out


def test_a_task_that_nobody_of_ours_works_on_is_looked_at_otherwise(ground: Ground, lead: dict):
    done = ground.process("dispatch", "Do it", "--no-spawn", "--completion-wait", "0.2", "--as", lead["id"])
    (task,) = ground.sql("SELECT id FROM tasks")
    assert done.out.splitlines()[-1] == f"next: swarm-mcp task show {task['id'][:8]}"
    assert ground.swarm("task", task["id"][:8]).code == 0


def test_a_dispatch_beside_json_says_nothing_else(ground: Ground, lead: dict):
    done = ground.process(*dispatch(ground, lead, "echo all good"), "--json")
    assert done.json["completion"]["result"] == "all good" and done.err == ""


def test_a_run_says_who_is_working_and_where_to_look(ground: Ground):
    go = str(ground.folder / "go")
    with piped(ground, "run", "--harness", "process", "--command", until_file(go), "x") as process:
        line = process.stderr.readline()
        assert line.startswith("swarm-mcp run: process is working (swarm-mcp worker logs ")
        wait_for(lambda: ground.swarm("runs", "--json").json)
        (row,) = ground.swarm("runs", "--json").json
        assert f"logs {row['id'][:8]} -f" in line
        open(go, "w").close()
        assert process.communicate(timeout=60) == ("all good\n", "")


def test_at_a_terminal_a_run_counts_and_leaves_its_answer_alone(ground: Ground):
    go = str(ground.folder / "go")
    with Played([*SWARM, "run", "--harness", "process", "--command", until_file(go), "x"], cwd=ground.repo) as played:
        played.until(lambda screen: "1s  process is working" in screen.text and "0 tools" in screen.text)
        open(go, "w").close()
        assert played.ended() == 0 and played.screen.text == "all good"


def test_harness_doctor_says_at_whom_it_looks(ground: Ground):
    slow = ground.folder / "slow"
    slow.write_text(f"#!/bin/sh\nwhile [ ! -e {ground.folder}/go ]; do sleep 0.02; done\necho 1.2.3\n")
    slow.chmod(0o755)
    with piped(ground, "harness", "doctor", "claude", "--command", str(slow)) as process:
        assert process.stdout.readline() == "claude: checking if it can run here ...\n"
        (ground.folder / "go").touch()
        out, _ = process.communicate(timeout=60)
    assert out.splitlines()[0] in ("claude: pass", "claude: warn", "claude: fail")
    done = ground.process("harness", "doctor", "claude", "--command", str(slow), "--json")
    assert done.json["adapter_type"] == "claude" and os.linesep not in done.err


# Takes a step when a line is typed, so that a test decides how long each lasts.
SCENE = f"""
import sys
sys.path[:0] = {FOLDERS!r}
if "--without-rich" in sys.argv:
    sys.modules["rich"] = None
from swarm_mcp.cli.output import complain, say, show
from swarm_mcp.cli.progress import Progress
as_json = "--json" in sys.argv
with Progress(as_json) as progress:
    progress.begin("installing", "Codex")
    progress.begin("asking", "Claude Code")
    sys.stdin.readline()
    progress.end("installed", "Codex")
    complain("one thing is odd")
    sys.stdin.readline()
    progress.begin("trusting", "Codex")
    progress.note("in other words", "Claude Code")
    sys.stdin.readline()
    if "--fail" in sys.argv:
        raise SystemExit(3)
    progress.end("done", "Codex")
    progress.end(who="Claude Code")
show({{"ok": True}}) if as_json else say("all done")
"""
ARGV = [*BARE_PYTHON, "-c", SCENE]


def has(*lines: str):
    """A check that the last lines of the screen end with `lines`, in this order."""

    def there(screen: Screen) -> bool:
        shown = [line for line in screen.lines if line][-len(lines) :]
        return len(shown) == len(lines) and all(one.endswith(line) for one, line in zip(shown, lines))

    return there


def test_at_a_terminal_the_steps_under_way_stand_below_what_has_been_said():
    with Played(ARGV) as played:
        played.until(has("0s  Codex: installing", "0s  Claude Code: asking"))
        played.types("\n")
        played.until(has("Codex: installed", "one thing is odd", "Claude Code: asking"))
        played.types("\n")
        played.until(has("one thing is odd", "Claude Code: in other words", "Codex: trusting"))
        played.types("\n")
        assert played.ended() == 0
        said = [line for line in played.screen.lines if line]
        assert said[-1] == "all done" and said[-2].startswith("Codex: done") and said[-3] == "one thing is odd"
        assert not [line for line in said if "asking" in line or "trusting" in line]


def test_the_seconds_of_a_step_that_took_some_are_said_with_its_end():
    with Played(ARGV) as played:
        played.until(lambda screen: any(line.endswith("1s  Codex: installing") for line in screen.lines))
        played.types("\n\n\n")
        assert played.ended() == 0
        assert any(line.startswith("Codex: installed (") for line in played.screen.lines), played.screen.text


@pytest.mark.parametrize("columns", [20, 80])
def test_what_is_left_of_a_command_that_breaks_off_is_a_clean_terminal(columns: int):
    with Played([*ARGV, "--fail"], columns=columns) as played:
        played.until(lambda screen: "Codex" in screen.text)
        played.types("\n\n\n")
        assert played.ended() == 3
        assert played.screen.lines[-1] == "" and "trusting" not in played.screen.text
        assert not played.screen.broken


@pytest.mark.parametrize(("terminal", "words"), [("dumb", []), ("xterm", ["--without-rich"])])
def test_a_terminal_that_cannot_go_back_gets_plain_lines(terminal: str, words: list[str]):
    """So does one without rich: `doctor` must run where libraries are broken."""
    with Played([*ARGV, *words], env={"TERM": terminal}) as played:
        played.types("\n\n\n")
        assert played.ended() == 0
        assert "\x1b" not in played.raw
        said = [line for line in played.screen.lines if line]
        assert said == ["Codex: installing ...", "Claude Code: asking ...", "Codex: installed", "one thing is odd",
                        "Codex: trusting ...", "Codex: done", "all done"]  # fmt: skip


def test_in_a_pipe_each_step_is_a_line_when_it_begins_and_one_when_it_ends():
    with subprocess.Popen(ARGV, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin and process.stdout

        def said(*expected: str) -> bool:
            # Were a line not handed over at once, this would wait for ever: the next step wants its answer first.
            return [process.stdout.readline().decode().rstrip("\n") for _ in expected] == list(expected)

        assert said("Codex: installing ...", "Claude Code: asking ...")
        for expected in (("Codex: installed",), ("Codex: trusting ...",), ("Codex: done", "all done")):
            process.stdin.write(b"\n")
            process.stdin.flush()
            assert said(*expected)


def test_beside_json_only_a_terminal_on_standard_error_sees_the_steps():
    done = subprocess.run([*ARGV, "--json"], input=b"\n\n\n", capture_output=True)
    assert json.loads(done.stdout) == {"ok": True} and done.stderr == b"one thing is odd\n"
    with Played([*ARGV, "--json"], stdout=subprocess.PIPE) as played:
        played.until(has("Codex: installing", "Claude Code: asking"))
        played.types("\n\n\n")
        assert played.ended() == 0
        with played.process.stdout as out:
            assert json.loads(out.read()) == {"ok": True}
        assert [line for line in played.screen.lines if line] == ["one thing is odd"]


def test_doctor_says_what_it_looks_at(ground: Ground):
    done = ground.process("doctor", "--no-clients")
    assert "  [ .. ] swarm-mcp: looking at this installation ...\n" in done.out
    shown = ground.swarm("doctor", "--no-clients", "--json")
    assert shown.json["checks"] and shown.err == ""
