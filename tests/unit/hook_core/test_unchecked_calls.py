"""Shell calls beside a peer's lock while something of ours is broken: they pass soon, or are denied by another way."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.altered import Limits
from support.fixtures import time_limit
from support.sessions import (
    ROOT,
    Ran,
    captured,
    fault_lines,
    instances,
    mistakes,
    new_session,
    peer_locks,
    ready_store,
    run,
    start,
    write_payload,
)

from swarm_hook_core.coordinator import MODULE
from swarm_hook_core.lookup import Peers, Session
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_hook_core.shell import collision
from swarm_hook_core.shell.model import Effects, GitCall, Tree
from swarm_hook_core.state import store_path, watched_dir
from swarm_hook_core.watching import records
from swarm_mcp.runtimes import bundle
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow

WRITES = "sed -i s/x/y/ f"


def told(ran: Ran) -> str:
    """Return the notice about a call that goes ahead, in the one object that clients honour."""
    answer = json.loads(ran.out)
    assert (ran.code, ran.err, set(answer)) == (0, "", {"hookSpecificOutput"})
    assert set(answer["hookSpecificOutput"]) == {"hookEventName", "additionalContext"}
    return str(answer["hookSpecificOutput"]["additionalContext"])


def assert_goes_ahead_unchecked(ran: Ran, held: Path) -> None:
    """The call may pass, the model hears that it is unchecked, and the locked file is watched."""
    assert "could not be checked" in told(ran) and str(held) in told(ran)
    assert os.path.isdir(watched_dir())


def bash(session: str, cwd: Path, command: str) -> dict[str, object]:
    payload = write_payload("claude-code", session, cwd, "f")
    return {**payload, "tool_name": "Bash", "tool_input": {"command": command}}


@pytest.fixture
def me(tmp_path: Path) -> str:
    """A session in `tmp_path`, where a peer holds ``f``."""
    ready_store()
    session = new_session()
    assert start("claude-code", session, tmp_path).context
    (tmp_path / "f").write_text("x\n")
    peer_locks(tmp_path, tmp_path / "f")
    return session


def test_a_plugin_s_record_that_is_a_pipe_keeps_nobody_waiting(me: str, tmp_path: Path) -> None:
    root = tmp_path / "a plugin"
    bundle.write(root, local=True)
    (root / "install.json").unlink()
    os.mkfifo(root / "install.json")
    wired = json.loads((root / "integrations/claude-code/hooks.json").read_text())["hooks"]["PreToolUse"]
    command = wired[0]["hooks"][0]["command"].replace("${CLAUDE_PLUGIN_ROOT}", str(root))
    done = subprocess.run(
        ["/bin/sh", "-c", command], input=json.dumps(bash(me, tmp_path, WRITES)), capture_output=True, text=True,
        timeout=60, env={**os.environ, "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert "swarm lock blocked Bash" in done.stdout


def test_what_an_unchecked_call_has_changed_is_told_and_kept(me: str, tmp_path: Path) -> None:
    payload, nothing = {**bash(me, tmp_path, WRITES), "tool_name": "Write", "tool_input": {}}, {"PATH": "/nowhere"}
    assert_goes_ahead_unchecked(run("claude-code", "pre_tool_use", payload, nothing), tmp_path / "f")
    (tmp_path / "f").write_text("y\n")
    payload["hook_event_name"] = "PostToolUse"
    said = told(run("claude-code", "post_tool_use", payload, nothing))
    assert str(tmp_path / "f") in said and "swarm-mcp restore" in said


def test_nothing_is_said_of_a_call_out_of_reach_of_any_lock(me: str, tmp_path: Path) -> None:
    for name in ("repo", "other"):
        (tmp_path / name / ".git").mkdir(parents=True)
    command = "cd src && sed -i s/x/y/ f"
    away = bash(me, tmp_path / "other", command)
    with Store() as store:
        store.locks.release(store.instances.live(instances()[-1]["id"]), str(tmp_path / "f"))
    peer_locks(tmp_path / "repo", tmp_path / "repo" / "g")
    nothing = {"PATH": "/nowhere"}
    assert run("claude-code", "pre_tool_use", away, nothing).out == ""
    named = bash(me, tmp_path / "other", f"cd {tmp_path / 'repo'} && sed -i s/x/y/ g")
    assert "swarm lock blocked Bash" in run("claude-code", "pre_tool_use", named, nothing).reason


@pytest.mark.parametrize("tool_input", [{}, {"file_path": 3}, ["f"], "f"], ids=str)
def test_a_write_whose_path_cannot_be_read_passes_and_the_model_is_told(
    tool_input: object, me: str, tmp_path: Path
) -> None:
    payload = {**write_payload("claude-code", me, tmp_path, "f"), "tool_input": tool_input}
    assert_goes_ahead_unchecked(run("claude-code", "pre_tool_use", payload), tmp_path / "f")
    assert len(fault_lines()) == 1


@pytest.mark.parametrize("store", ["none", "empty", "a stranger's", "without locks"])
def test_a_call_costs_nothing_where_nobody_can_hold_a_lock(store: str, tmp_path: Path) -> None:
    path = Path(store_path())
    path.parent.mkdir(exist_ok=True)
    if store == "without locks":
        ready_store()
    elif store != "none":
        path.touch()
    if store == "a stranger's":
        connection = StoreReader(str(path)).driver.connect(str(path))
        connection.execute("CREATE TABLE strangers (a)")
        connection.close()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "swarm-mcp").write_text(f"#!/bin/sh\necho > {tmp_path}/started\n")
    (tmp_path / "bin" / "swarm-mcp").chmod(0o755)
    ran = run("codex", "pre_tool_use", bash(new_session(), tmp_path, "touch f"), {"PATH": str(tmp_path / "bin")})
    assert (ran.code, ran.out, ran.err) == (0, "", "") and mistakes() == []
    assert not (tmp_path / "started").exists()
    assert {path.name for path in Path(os.environ["SWARM_STATE_DIR"]).glob("*")} <= {"checkers"}
    assert path.exists() is (store != "none")


def judged(me: str, folder: Path, *, tree: Tree | None = None, git: GitCall | None = None):
    effects = Effects()
    effects.trees += [tree] if tree else []
    effects.git += [git] if git else []
    session = Session("me", "", str(folder), str(folder))
    peers = Peers(StoreReader(store_path()), "me", time.time())
    return collision.judge(session, "Bash", effects, str(folder), peers, time.time())


def test_a_predicate_that_fails_cannot_tell(me: str, tmp_path: Path) -> None:
    def fails(_path: str) -> bool:
        raise ValueError("not what was expected")

    verdict = judged(me, tmp_path, tree=Tree(str(tmp_path), "find", fails))
    assert verdict.denial is None and "`find`" in verdict.notice and len(verdict.watched) == 1
    assert "not what was expected" in fault_lines()[-1]["fault"]


@pytest.mark.parametrize("body", ["printf ':x\\0f\\0'", "exec /bin/sleep 600", "exit 128", "exec /usr/bin/yes"])
def test_a_git_that_is_no_use_cannot_tell(
    body: str, me: str, tmp_path: Path, limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits(collision, GIT_SECONDS=0.5)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text(f"#!/bin/sh\n: {MODULE.decode()}\n{body}\n")
    (tmp_path / "bin" / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    begun = time.monotonic()
    verdict = judged(me, tmp_path, git=GitCall(str(tmp_path), ["reset", "--hard"], "git reset --hard"))
    assert time.monotonic() - begun < time_limit(30)
    assert verdict.denial is None and "git reset --hard" in verdict.notice and len(verdict.watched) == 1


@pytest.mark.parametrize("command", ["tar xf pipe", "unzip pipe", "git apply pipe", "git rm --pathspec-from-file=pipe"])
def test_nothing_waits_for_a_pipe(command: str, me: str, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / "pipe")
    ran = run("claude-code", "pre_tool_use", bash(me, tmp_path, command))
    assert ran.code == 0 and "permissionDecision" not in ran.out and mistakes() == []


def test_threads_read_commands_at_the_same_time() -> None:
    """In a server they do. A parser that two of them share takes the process with it."""
    script = (
        "import sys, threading; sys.path[:0] = sys.argv[1:]\n"
        "from swarm_hook_core.shell import effects_of\n"
        "wrong = []\n"
        "def read(n):\n"
        "    for _ in range(60):\n"
        "        found = effects_of(f'for i in a b; do if true; then sed -i s/x/y/ ${{i}}{n}; fi; done', '/', {})\n"
        "        if {write.path for write in found.writes} != {f'a{n}', f'b{n}'}: wrong.append(n)\n"
        "threads = [threading.Thread(target=read, args=(n,)) for n in range(6)]\n"
        "[one.start() for one in threads]; [one.join() for one in threads]\n"
        "print(wrong)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(ROOT)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "[]", "")


def test_what_killed_hooks_have_left_goes_with_the_next_session(me: str, tmp_path: Path) -> None:
    left = Path(watched_dir(), "long-gone")
    left.mkdir(parents=True)
    (left / "key.0-0-0.taken.1.tmp").write_text("{")
    os.utime(left, (time.time() - 2 * records.DROPPED_SECONDS,) * 2)
    ended = {**captured("claude-code", "SessionEnd", tmp_path), "session_id": me}
    assert run("claude-code", "session_end", ended).code == 0
    assert not os.path.exists(watched_dir())
