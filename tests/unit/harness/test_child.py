"""Children, the reaper that ends them, and their private folders: nothing outlives a run, however the run goes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.files import text_at
from support.fixtures import FOLDERS, wait_for
from support.harness_fixtures import gone_within, is_alive
from support.requirement import requirement

from swarm_hook_core.process import is_stopped
from swarm_mcp import processes
from swarm_mcp.agents.harness import environment
from swarm_mcp.agents.harness.child import Child, LineSplitter, found
from swarm_mcp.agents.harness.environment import place, sweep

pytestmark = pytest.mark.slow

# A run with a child that ignores TERM, a member of its group, and one that has left it. Prints their pids.
SUPERVISOR = (
    f"import sys; sys.path[:0] = {FOLDERS!r}"
    + """
import json, os, time
from swarm_mcp.agents.harness import registry
from swarm_mcp.agents.harness.query import Query
from swarm_mcp.agents.harness.run import Run
child = '''
import os, signal, subprocess, time
signal.signal(15, signal.SIG_IGN)
members = [subprocess.Popen(["sleep", "60"], start_new_session=new).pid for new in (False, True)]
print(os.getpid(), *members, flush=True)
time.sleep(60)
'''
run = Run(registry.get("process"), Query("p", os.getcwd(), command=(sys.executable, "-I", "-S", "-c", child)))
run.on_event(lambda e: print(e.data["content"], flush=True) if e.kind == "raw_log" else None)
%s
"""
)

RUN_ID = f"run-of-a-test-{os.getpid()}"  # the run's strays are ended by it: not those of a test in another process


def supervisor(tmp_path, rest: str) -> tuple[subprocess.Popen, list[int]]:
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-B", "-c", SUPERVISOR % rest], cwd=tmp_path, stdout=subprocess.PIPE
    )
    return process, [int(word) for word in process.stdout.readline().split()]


def test_a_supervisor_that_is_killed_leaves_nobody_behind(tmp_path: Path):
    process, pids = supervisor(tmp_path, "run.start().wait()")
    with process:
        assert len(pids) == 3 and all(map(is_alive, pids))
        left = [path for path in Path(place()).iterdir() if str(process.pid) in (path / "owner").read_text().split()]
        assert len(left) == 1 and sweep() == [], "a folder of somebody who lives is not touched"
        process.kill()
    assert gone_within(pids, 60), "TERM, three seconds, KILL"
    assert sweep() == [str(left[0])] and not left[0].exists()


# A child's leftovers in a session of their own, with no environment and an ended parent; and a process marked to
# outlive the run. Prints both pids.
UNMARKED = """
import os, subprocess, time
left = subprocess.run(["env", "-i", "/bin/sh", "-c", "setsid sleep 60 >/dev/null 2>&1 & echo $!"], stdout=-1, text=True)
stays = subprocess.Popen(["sleep", "600"], env={"PATH": os.environ["PATH"], "SWARM_OUTLIVES_RUN": "1"},
                         stdin=-3, stdout=-3, stderr=-3, start_new_session=True)
print(int(left.stdout), stays.pid, flush=True)
time.sleep(60)
"""
UNMARKED_SUPERVISOR = (
    f"import sys; sys.path[:0] = {FOLDERS!r}"
    + f"""
import os
from swarm_mcp.agents.harness import registry
from swarm_mcp.agents.harness.run import ended_by_signals
from swarm_mcp.agents.harness.query import Query
from swarm_mcp.agents.harness.run import Run
run = Run(registry.get("process"), Query("p", os.getcwd(), command=(sys.executable, "-c", {UNMARKED!r})))
run.on_event(lambda e: print(e.data["content"], flush=True) if e.kind == "raw_log" else None)
with ended_by_signals(run):
    run.start().wait()
"""
)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere only the group is found")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.thorough
def test_what_has_an_empty_environment_ends_with_the_run(tmp_path: Path, number):
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-B", "-c", UNMARKED_SUPERVISOR], cwd=tmp_path, stdout=subprocess.PIPE
    )
    with process:
        left, stays = map(int, process.stdout.readline().split())
        try:
            assert is_alive(left) and is_alive(stays)
            process.send_signal(number)
            assert gone_within([left], 60) and is_alive(stays)
            process.wait(60)
        finally:
            os.kill(stays, signal.SIGKILL)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere only the group is found")
def test_a_process_that_has_just_been_started_is_known_by_its_mark(monkeypatch: pytest.MonkeyPatch):
    """For a moment after `Popen` has returned, the new program's environment cannot be read yet."""
    for mark, expected in [*[("SWARM_OUTLIVES_RUN", False)] * 30, ("NOTE", True)]:
        process = subprocess.Popen(["sleep", "60"], env={"PATH": os.environ["PATH"], mark: "1"})
        with monkeypatch.context() as patch:
            patch.setattr(os, "listdir", lambda _: [str(process.pid)])  # noqa: B023 - to look at others takes time
            found = processes.living(-1, "", os.getpid())
        process.kill()
        process.wait()
        assert (process.pid in found) is expected


# Two searches for the client that started this: by the child's own child, and by one with an ended parent.
CLIENT_SEEN = (
    f"import sys, time; sys.path[:0] = {FOLDERS!r}"
    + """
import os, subprocess
look = f"import os, sys, time; sys.path[:0] = {sys.path!r}; from swarm_hook_core.process import client_process"
direct = look + "\\nprint(client_process()[0])"
orphan = look + "\\nwhile os.getppid() == int(sys.argv[1]): time.sleep(0.01)\\nprint(client_process()[0])"
print(os.getpid(), flush=True)
subprocess.run([sys.executable, "-I", "-S", "-c", direct])
subprocess.run(["/bin/sh", "-c", '"$0" -I -S -c "$1" $$ & sleep 0.2', sys.executable, orphan])
time.sleep(60)
"""
)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere there is none")
def test_a_keeper_is_nobodys_client(tmp_path: Path):
    """A hook left by its starter belongs to no client, with and without a keeper."""
    known = {"PATH": os.environ["PATH"], "SWARM_RUN_ID": f"{RUN_ID}-2"}
    child = Child([sys.executable, "-I", "-S", "-c", CLIENT_SEEN], str(tmp_path), known)
    out = b""
    while out.count(b"\n") < 3:
        out += child.read(child.output) or b""
        time.sleep(0.01)
    child.close()
    assert out.split() == [b"%d" % child.pid, b"%d" % child.pid, b"0"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere there is none")
def test_a_keeper_that_is_killed_ends_the_run(tmp_path: Path):
    child = child_of(tmp_path, "sleep 60")
    os.kill(child._keeper, signal.SIGKILL)
    wait_for(child.ended)
    child.close()
    assert child.signal == signal.SIGKILL and gone_within([child.pid], 60)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere there is none")
@pytest.mark.parametrize("script", ["sleep 60", "exit 3"], ids=["one that runs", "one that ends by itself"])
def test_a_keeper_that_is_stopped_is_woken(tmp_path: Path, script):
    child = child_of(tmp_path, f"read -r go; {script}", "go\n")
    os.kill(child._keeper, signal.SIGSTOP)
    wait_for(lambda: is_stopped(child._keeper))
    child.feed()
    if "sleep" in script:
        child.kill()
    wait_for(child.ended)
    assert (child.close(), child.exit_code) == (0, -signal.SIGKILL if "sleep" in script else 3)


@pytest.mark.parametrize(
    "rest",
    [
        "from swarm_mcp.agents.harness.run import ended_by_signals\n"
        "with ended_by_signals(run): sys.exit(3 if run.start().wait().error_category == 'aborted' else 4)",
        "run.start(); time.sleep(0.4); sys.exit(3)",  # the process ends without waiting for the run
    ],
    ids=["by a signal", "at exit"],
)
@pytest.mark.thorough
def test_a_supervisor_that_ends_takes_its_runs_along(tmp_path: Path, rest):
    rest = "run._query = run._query._replace(grace_seconds=0.3)\n" + rest
    process, pids = supervisor(tmp_path, rest)
    with process:
        if "signals" in rest:
            process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 3
    assert not any(map(is_alive, pids)) and os.listdir(place()) == []


def child_of(tmp_path, script: str, prompt: str = "", **variables) -> Child:
    known = {"PATH": os.environ["PATH"], "SWARM_RUN_ID": RUN_ID, **variables}
    return Child([found("sh", known, str(tmp_path)), "-c", script], str(tmp_path), known, prompt)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere only the group is found")
def test_nobody_elses_processes_are_ended(tmp_path: Path):
    """Processes that left the group are found by the run's id: by that whole variable, and never without an id."""

    def bystander(**variables) -> subprocess.Popen:
        return subprocess.Popen(["sleep", "60"], env={"PATH": os.environ["PATH"], **variables}, start_new_session=True)

    name = f"stray-test-{os.getpid()}"
    others = [
        bystander(SWARM_RUN_ID=f"{name}-2"), bystander(NOTE=f"SWARM_RUN_ID={name}"), bystander(X_SWARM_RUN_ID=name),
        bystander(NOTE=f"two lines\nSWARM_RUN_ID={name}\nand more"), bystander(SWARM_RUN_ID=name.replace("-", ".")),
    ]  # fmt: skip
    member, stray = bystander(), bystander(SWARM_RUN_ID=name, NOTE="é\n\x01\xff")
    nameless = bystander()
    try:
        for group, run_id, count in ((member, name, 2), (nameless, "", 1)):
            assert processes.end(group.pid, run_id, 0, 1) == count
        assert member.wait(60) == stray.wait(60) == nameless.wait(60) == -signal.SIGTERM
        assert [other.poll() for other in others] == [None] * len(others)
    finally:
        for process in (*others, member, stray, nameless):
            process.kill()
            process.wait()


def test_where_there_is_no_keeper_a_reaper_ends_the_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "platform", "another")
    child = child_of(tmp_path, 'read -r word; echo "$word $$"; trap "" TERM; exec sleep 60', "a prompt\n")
    while child.feed():
        time.sleep(0.01)
    wait_for(lambda: child.read(child.output) == f"a prompt {child.pid}\n".encode())
    assert os.getpgid(child.pid) == child.pid and not child.ended()
    watcher = child._start._reaper._shell
    watcher.stdin.close()  # as when the supervisor is killed
    watcher.wait(60)
    wait_for(child.ended)
    assert (child.close(), child.signal) == (0, signal.SIGKILL)


def read_all(child: Child) -> bytes:
    out = b""
    while True:
        data = child.read(child.output)
        if data == b"":
            return out
        out += data or b""
        if data is None:
            time.sleep(0.005)


@requirement("D-06")
def test_a_child_has_its_group_its_words_and_its_end(tmp_path: Path):
    child = child_of(tmp_path, 'cat; echo "$1 $(pwd)"; exit 7', "a prompt\n")
    assert os.getpgid(child.pid) == child.pid == os.getsid(child.pid)  # it lives until its input ends
    while child.feed():
        time.sleep(0.01)
    assert read_all(child) == f"a prompt\n {tmp_path}\n".encode()
    wait_for(child.ended)
    assert (child.close(), child.close(), child.exit_code, child.signal) == (0, 0, 7, 0)


def test_names_that_a_shell_does_not_know_get_through(tmp_path: Path):
    script = "import os, sys; print(os.environ['BASH_FUNC_x%%'], sys.stdin.read())"
    known = {"BASH_FUNC_x%%": "() { :; }", "SWARM_RUN_ID": f"{RUN_ID}-3"}
    child = Child([sys.executable, "-I", "-S", "-c", script], str(tmp_path), known, "said")
    child.feed()
    out = read_all(child).decode()
    child.close()
    assert out == "() { :; } said\n"


def test_one_that_cannot_be_started_leaves_no_watcher(tmp_path: Path):
    before = children()
    with pytest.raises(OSError):
        Child(["/bin/true"], str(tmp_path / "nowhere"), {"PATH": "/bin"})
    with pytest.raises(ValueError):
        Child(["/bin/true"], str(tmp_path), {"A": "nul\0"})
    assert children() == before


def children() -> set[str]:
    listed = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(os.getpid())], capture_output=True, text=True)
    return {line for line in listed.stdout.splitlines() if "swarm-reaper" in line or ".keeper" in line}


def test_where_a_program_is_found(tmp_path: Path):
    tool = text_at(tmp_path / "bin" / "tool", "#!/bin/sh\n")
    known = {"PATH": str(tool.parent)}
    assert found("tool", known, "/") is None, "it cannot be run"
    tool.chmod(0o700)
    assert found("tool", known, "/") == str(tool) == found("bin/tool", {}, str(tmp_path))
    assert found("bin/tool", known, "/") is None and found(str(tmp_path), known, "/") is None


@requirement("D-21")
def test_foreign_variables_stay_out_and_settings_stay():
    foreign = ("CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_PLUGIN_ROOT", "CLAUDE_PID", "CLAUDE_ENV_FILE",
               "CLAUDE_CODE_MESSAGING_TOKEN", "CODEX_THREAD_ID", "CODEX_TOOL_CALL_ID", "SWARM_MCP_INSTANCE_ID",
               "HARNESS_SESSION", "HARNESS_CWD", "HARNESS_PARENT_SESSION", "PI_SESSION_ID", "SWARM_PI_LABEL",
               "SWARM_HS_AGENT_ROLE", "SWARM_MCP_LABEL", "SWARM_AGENT_ROLE", "SWARM_LOOP_CONFIG",
               "SWARM_RUN_ID", "SWARM_TASK_ID", "HERDR_PANE_ID",
               "SWARM_MCP_ALLOW_SPAWN", "SWARM_ALLOW_YOLO")  # fmt: skip
    settings = ("CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_MAX_RETRIES", "CODEX_HOME", "PATH",
                "CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "SWARM_DB_PATH",
                "CLAUDE_CODE_USE_BEDROCK", "SWARM_MCP_SCOPE", "CODEX_API_KEY", "HARNESS_HOME", "HARNESS_PROVIDER",
                "CLAUDE_CODE_SESSION_ACCESS_TOKEN")  # fmt: skip
    kept = environment.without_session(dict.fromkeys((*foreign, *settings), "x"), drop=["CODEX_API_KEY"])
    assert sorted(kept) == sorted(set(settings) - {"CODEX_API_KEY"})


@requirement("A-45", "C-63", "D-13", "D-23")
def test_a_folder_goes_whatever_is_in_it():
    outside = Path(place()).parent / "outside"
    with environment.private_folder() as folder:
        assert os.stat(folder).st_mode & 0o777 == 0o700 and os.stat(folder.parent).st_mode & 0o777 == 0o700
        text_at(outside / "kept", "x")
        (folder / "link").symlink_to(outside)
        text_at(folder / "closed" / "file", "x")
        (folder / "closed").chmod(0o500)
    assert os.listdir(place()) == [] and (outside / "kept").exists()
    with pytest.raises(RuntimeError), environment.private_folder():
        raise RuntimeError
    assert os.listdir(place()) == []


@requirement("C-63")
def test_a_folder_without_an_owner_is_left_until_it_is_old():
    os.makedirs(place(), exist_ok=True)
    orphan = Path(place(), "run-orphan")
    orphan.mkdir()
    Path(place(), "something-else").mkdir()
    assert sweep() == []
    os.utime(orphan, (0, 0))
    assert sweep() == [str(orphan)] and os.listdir(place()) == ["something-else"]


@settings(max_examples=60)
@given(st.lists(st.binary(max_size=30) | st.sampled_from([b"\n", b"\r\n", b"\r", b"a\n\nb", "é".encode()])))
@requirement("D-06")
def test_lines_do_not_depend_on_how_they_come(pieces):
    whole, parts = LineSplitter(), LineSplitter()
    data = b"".join(pieces)
    once = whole.feed(data) + whole.end()
    assert once == [line for piece in pieces for line in parts.feed(piece)] + parts.end()
    expected = data.split(b"\n")
    expected = expected[:-1] if not expected[-1] else expected
    assert once == [line.removesuffix(b"\r").decode("utf-8", "replace") for line in expected]


@requirement("D-06")
def test_a_line_has_a_longest_length():
    lines = LineSplitter(longest=10)
    assert lines.feed(b"0123456789abc") == [] and lines.feed(b"def\nshort\nlast") == ["0123456789", "short"]
    assert lines.end() == ["last"] and lines.end() == [] and lines.cut == 6
    assert LineSplitter().feed(b"x" * 100_000 + b"\r\n") == ["x" * 100_000]
    assert LineSplitter().feed(b"\xff\xfe{}\n") == ["\ufffd\ufffd{}"]
