"""SWARM_FAIL=closed: an unchecked call is denied, in words that name the fault and the way past it."""

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.sessions import (
    Ran,
    fault_lines,
    hook_core,
    new_session,
    peer_locks,
    ready_store,
    run,
    start,
    write,
    write_payload,
)

from swarm_hook_core.state import config_path, store_path

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
def test_a_write_is_denied_where_the_store_is_broken(runtime: str, broken: Callable[[], None], tmp_path: Path) -> None:
    broken()
    assert_denied(write(runtime, new_session(), tmp_path, "f", **CLOSED), "SWARM_FAIL is closed", "SWARM_FAIL=open")
    assert any("denied, as it could not be checked" in line["fault"] for line in fault_lines())
    assert write(runtime, new_session(), tmp_path, "f", PATH="/nowhere").out == "", "open is how it is by itself"


@pytest.mark.parametrize("broken", BROKEN[:5], ids=lambda broken: broken.__name__)
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
