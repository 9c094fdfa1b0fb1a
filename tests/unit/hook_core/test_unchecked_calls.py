"""Calls that something of ours cannot check: they pass soon, or are denied with SWARM_FAIL=closed, in words."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.altered import Limits
from support.files import program_at, text_at
from support.fixtures import time_limit
from support.sessions import (
    ROOT,
    Ran,
    captured,
    fault_lines,
    hook_core,
    instances,
    mistakes,
    new_session,
    peer_locks,
    ready_store,
    run,
    said_by,
    start,
    write,
    write_payload,
)

from swarm_hook_core import collisions
from swarm_hook_core.coordinator import MODULE
from swarm_hook_core.lookup import Peers, Session
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_hook_core.shell.model import Effects, GitCall, Tree
from swarm_hook_core.state import config_path, store_path, watched_dir
from swarm_hook_core.watching import records
from swarm_mcp.runtimes import bundle
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow


CLOSED = {"SWARM_FAIL": "closed", "PATH": "/nowhere"}


def garbage() -> None:
    path = Path(store_path())
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"this was a database once\n" * 500)


def folder() -> None:
    Path(store_path()).mkdir(parents=True)


def link() -> None:
    path = Path(store_path())
    path.parent.mkdir(exist_ok=True)
    path.symlink_to("nothing")


def unreachable() -> None:
    Path(store_path()).parent.write_text("a file where a folder is to be")


def cut_short() -> None:
    path = ready_store()
    path.write_bytes(path.read_bytes()[:5000])


def somebody_else_s() -> None:
    Path(store_path()).parent.mkdir(exist_ok=True)
    connection = sqlite3.connect(store_path())
    connection.execute("CREATE TABLE strangers (a)")
    connection.close()


MENDED = pytest.mark.alone("a checker has the coordinator of its own installation, which mends a stranger's store")
BROKEN = [garbage, folder, link, unreachable, cut_short, pytest.param(somebody_else_s, marks=MENDED)]


def assert_denied(ran: Ran, *words: str) -> None:
    assert (ran.code, ran.err) == (0, "")
    for word in ("could not be checked", "Nothing was written", "swarm-mcp doctor", *words):
        assert word in ran.reason, word


def shell(runtime: str, cwd: Path, command: str) -> dict[str, Any]:
    payload = write_payload(runtime, new_session(), cwd, "f")
    return {**payload, "tool_name": "bash" if runtime == "pi" else "Bash", "tool_input": {"command": command}}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
@pytest.mark.sampled
def test_a_write_is_denied_where_the_store_is_broken(runtime: str, broken: Callable[[], None], tmp_path: Path) -> None:
    broken()
    assert_denied(write(runtime, new_session(), tmp_path, "f", **CLOSED), "SWARM_FAIL is closed", "SWARM_FAIL=open")
    assert any("denied, as it could not be checked" in line["fault"] for line in fault_lines())
    before = len(fault_lines())
    assert write(runtime, new_session(), tmp_path, "f", PATH="/nowhere").out == "", "open is how it is by itself"
    assert len(fault_lines()) > before


@pytest.mark.parametrize("broken", BROKEN[:5], ids=lambda broken: broken.__name__)
@pytest.mark.sampled
def test_of_shell_commands_those_that_may_write_are_denied(
    runtime: str, broken: Callable[[], None], tmp_path: Path
) -> None:
    broken()
    for command in ("echo x > f", "make", "git commit -am x", "f() { "):
        assert_denied(run(runtime, "pre_tool_use", shell(runtime, tmp_path, command), CLOSED), "SWARM_FAIL")
    for command in ("ls -l", "git status", "swarm-mcp doctor"):
        assert run(runtime, "pre_tool_use", shell(runtime, tmp_path, command), CLOSED).out == "", command
    assert run(runtime, "pre_tool_use", shell(runtime, tmp_path, "echo x > f")).out == ""


def test_of_other_servers_tools_those_that_write_are_denied(runtime: str, tmp_path: Path) -> None:
    garbage()
    payload = shell(runtime, tmp_path, "")
    writes = {**payload, "tool_name": "mcp__fs__write_file", "tool_input": {"path": "f", "content": "x"}}
    reads = {**payload, "tool_name": "mcp__fs__read_file", "tool_input": {"path": "f"}}
    assert_denied(run(runtime, "pre_tool_use", writes, CLOSED), "mcp__fs__write_file")
    assert run(runtime, "pre_tool_use", reads, CLOSED).out == ""


def test_a_busy_store_denies_and_says_to_try_again(runtime: str, tmp_path: Path) -> None:
    connection = sqlite3.connect(ready_store(), isolation_level=None)
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("BEGIN EXCLUSIVE")
    try:
        assert_denied(write(runtime, new_session(), tmp_path, "f", **CLOSED), "locked", "Try once more")
    finally:
        connection.close()
    assert write(runtime, new_session(), tmp_path, "f", **CLOSED).out == ""


def test_a_chosen_coordinator_that_fails_denies(runtime: str, tmp_path: Path) -> None:
    chosen = {"SWARM_FAIL": "closed", "SWARM_MCP_BIN": "/bin/false"}
    assert_denied(write(runtime, new_session(), tmp_path, "f", **chosen))
    assert_denied(run(runtime, "pre_tool_use", shell(runtime, tmp_path, "echo > f"), chosen))


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to this user")
def test_locks_count_where_what_others_have_changed_cannot_be_looked_at(runtime: str, tmp_path: Path) -> None:
    assert_traces_matter(runtime, tmp_path, lambda place: place.chmod(0))


def test_traces_that_cannot_be_read_are_a_check_that_was_not_made(runtime: str, tmp_path: Path) -> None:
    def spoil(place: Path) -> None:
        for journal in place.iterdir():
            journal.unlink()
            journal.mkdir()

    assert_traces_matter(runtime, tmp_path, spoil)


def assert_traces_matter(runtime: str, tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    """Beside another session's traces that are `spoil`ed a write is denied, else only recorded."""
    ready_store()
    me, peer = new_session(), new_session()
    (tmp_path / ".git").mkdir()
    for session in (me, peer):
        assert start("codex" if session == peer else runtime, session, tmp_path).context
    assert write("codex", peer, tmp_path, "g").out == ""
    (place,) = Path(os.environ["SWARM_STATE_DIR"], "traces").iterdir()
    spoil(place)
    peer_locks(tmp_path, tmp_path / "h")
    closed = {"SWARM_FAIL": "closed"}
    assert write(runtime, me, tmp_path, "f").out == "" and fault_lines()
    assert "swarm lock blocked" in write(runtime, me, tmp_path, "h").reason
    assert_denied(write(runtime, me, tmp_path, "f", **closed), "what others have changed")
    assert_denied(run(runtime, "pre_tool_use", {**shell(runtime, tmp_path, "echo > f"), "session_id": me}, closed))
    assert run(runtime, "pre_tool_use", {**shell(runtime, tmp_path, "ls"), "session_id": me}, closed).reason == ""


@pytest.mark.parametrize("data", [b"", b"no JSON", b"[]", b'{"tool_', b"[" * 100_000, b"\xff\xfe{}", b"{}"], ids=ascii)
def test_a_payload_that_cannot_be_read_is_denied(runtime: str, data: bytes) -> None:
    ready_store()
    assert_denied(run(runtime, "pre_tool_use", data, CLOSED), "SWARM_FAIL is closed")
    assert run(runtime, "pre_tool_use", data).out == ""


@pytest.mark.parametrize("hook", ["session_start", "turn", "post_tool_use", "session_end"])
def test_other_hooks_deny_nothing(hook: str) -> None:
    garbage()
    assert run("codex", hook, b"no JSON", CLOSED).out == ""


def test_it_is_said_of_a_checkout_of_the_user_or_by_a_variable(runtime: str, tmp_path: Path) -> None:
    garbage()
    path = Path(config_path())
    path.parent.mkdir(parents=True)
    (tmp_path / "a" / ".git").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    path.write_text(json.dumps({"checkouts": {str(tmp_path / "a"): {"fail": "closed"}}}))
    me = new_session()
    denied = write(runtime, me, tmp_path / "a", "f")
    assert_denied(denied, f'"fail" is "closed" for {tmp_path / "a"} in {path}', 'set that to "open"')
    assert write(runtime, me, tmp_path / "b", "f").out == ""
    assert write(runtime, me, tmp_path / "a", "f", SWARM_FAIL="open").out == ""
    path.write_text(json.dumps({"fail": "closed", "checkouts": {str(tmp_path / "b"): {"fail": "open"}}}))
    assert_denied(write(runtime, me, tmp_path / "a", "f"), f'"fail" is "closed" in {path}')
    assert write(runtime, me, tmp_path / "b", "f").out == ""
    path.unlink()
    own = f"SWARM_{hook_core(runtime).config.env_prefix}_FAIL"
    assert_denied(write(runtime, me, tmp_path / "a", "f", **{own: "closed"}), own)


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
    said = said_by(command, bash(me, tmp_path, WRITES), env={**os.environ, "PATH": "/usr/bin:/bin"})
    assert "swarm lock blocked Bash" in said


def test_what_an_unchecked_call_has_changed_is_told_and_kept(me: str, tmp_path: Path) -> None:
    payload, nothing = {**bash(me, tmp_path, WRITES), "tool_name": "Write", "tool_input": {}}, {"PATH": "/nowhere"}
    assert_goes_ahead_unchecked(run("claude-code", "pre_tool_use", payload, nothing), tmp_path / "f")
    (tmp_path / "f").write_text("y\n")
    payload["hook_event_name"] = "PostToolUse"
    said = told(run("claude-code", "post_tool_use", payload, nothing))
    assert str(tmp_path / "f") in said and "swarm-mcp restore" in said


def test_nothing_is_said_of_a_call_out_of_reach_of_any_lock(me: str, tmp_path: Path, store: Store) -> None:
    for name in ("repo", "other"):
        (tmp_path / name / ".git").mkdir(parents=True)
    command = "cd src && sed -i s/x/y/ f"
    away = bash(me, tmp_path / "other", command)
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
    program_at(tmp_path / "bin" / "swarm-mcp", f"#!/bin/sh\necho > {tmp_path}/started\n")
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
    return collisions.judge(session, "Bash", effects, str(folder), peers, time.time())


def test_a_predicate_that_fails_cannot_tell(me: str, tmp_path: Path) -> None:
    def fails(_path: str) -> bool:
        raise ValueError("not what was expected")

    verdict = judged(me, tmp_path, tree=Tree(str(tmp_path), "find", fails))
    assert verdict.denial is None and "`find`" in verdict.notice and len(verdict.watched) == 1
    assert "not what was expected" in fault_lines()[-1]["fault"]


@pytest.mark.parametrize("body", ["printf ':x\\0f\\0'", "exec /bin/sleep 600", "exit 128", "exec /usr/bin/yes"])
def test_a_git_that_is_no_use_cannot_tell(body: str, me: str, tmp_path: Path, limits: Limits, monkeypatch) -> None:
    limits(collisions, GIT_SECONDS=0.5)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    program_at(tmp_path / "bin" / "git", f"#!/bin/sh\n: {MODULE.decode()}\n{body}\n")
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
    text_at(left / "key.0-0-0.taken.1.tmp", "{")
    os.utime(left, (time.time() - 2 * records.DROPPED_SECONDS,) * 2)
    ended = {**captured("claude-code", "SessionEnd", tmp_path), "session_id": me}
    assert run("claude-code", "session_end", ended).code == 0
    assert not os.path.exists(watched_dir())
