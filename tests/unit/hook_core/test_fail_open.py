"""With any fault on our side, the call passes: soon, silently, and with a line for the doctor."""

import io
import json
import os
import shlex
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.altered import Limits
from support.files import program_at, text_at
from support.fixtures import LONGER, time_limit, wait_for, without_privileges
from support.requirement import requirement
from support.sessions import (
    ROOT,
    RUNTIMES,
    Ran,
    argv,
    captured,
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

from swarm_hook_core import registration
from swarm_hook_core.coordinator import MODULE

pytestmark = pytest.mark.slow

HOOKS = ("session_start", "turn", "pre_tool_use", "session_end")
SOON = 30.0  # seconds: the hook allows itself 0.25, and what hangs does so for ten minutes


def assert_passed(ran: Ran) -> None:
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert ran.took < time_limit(SOON)


@pytest.fixture(scope="module")
def cores() -> list[Any]:
    """The HookCore of each plugin, as its own folder configures it."""
    return [hook_core(name) for name in RUNTIMES]


def coordinator(folder: Path, body: str) -> dict[str, str]:
    """Return an environment with this shell script as `swarm-mcp`, or without one."""
    folder.mkdir()
    if body:
        program_at(folder / "swarm-mcp", body if body.startswith("\0") else f"#!/bin/sh\n: {MODULE.decode()}\n{body}\n")
    return {"PATH": str(folder)}


BROKEN = {
    "missing": "",
    "hangs": "exec /bin/sleep 600",
    "fails": "echo it broke >&2; exit 1",
    "dies": "kill -9 $$",
    "says nothing": "exit 0",
    "says nonsense": "echo '<html>'",
    "says another shape": "echo '[1, 2]'",
    "says an object without an id": "echo '{\"id\": 3}'",
    "says no text": "printf '\\377\\376'",
    "nests deeply": "exec /usr/bin/head -c 200000 /dev/zero | /usr/bin/tr '\\000' '['",
    "floods": "exec /usr/bin/yes",
    "is no program": "\0\0\0",
}


@pytest.mark.alone("a checker has the coordinator of its own installation")
@pytest.mark.parametrize("body", BROKEN.values(), ids=list(BROKEN))
@requirement("P-11")
@pytest.mark.sampled
def test_a_write_passes_without_a_working_coordinator(runtime: str, body: str, tmp_path: Path) -> None:
    env = coordinator(tmp_path / "bin", body)
    me = new_session()
    assert_passed(write(runtime, me, tmp_path, "f", **env))
    assert len(fault_lines()) == 1 and fault_lines()[0]["runtime"] == runtime
    assert_passed(write(runtime, me, tmp_path, "f", **env))
    if body in (BROKEN["hangs"], BROKEN["floods"]):
        return  # the other hooks wait longer; told below
    assert_passed(run(runtime, "turn", {**captured(runtime, "Stop", tmp_path), "session_id": me}, env))
    assert fault_lines()[-1]["hook"] == "turn"
    assert_passed(run(runtime, "session_end", {**captured(runtime, "SessionEnd", tmp_path), "session_id": me}, env))
    if body in (BROKEN["missing"], BROKEN["fails"], BROKEN["dies"], BROKEN["is no program"]):
        assert fault_lines()[-1]["hook"] == "session_end"


@pytest.mark.parametrize(
    ("hook", "event", "limit"),
    [
        ("session_start", "SessionStart.startup", "START_SECONDS"),
        ("turn", "Stop", "TURN_SECONDS"),
        ("session_end", "SessionEnd", "END_SECONDS"),
    ],
)
def test_a_coordinator_that_hangs_has_no_more_than_its_time_and_leaves_no_process(
    hook: str,
    event: str,
    limit: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    limits: Limits,
    capsys: pytest.CaptureFixture[str],
    cores: list[Any],
) -> None:
    pids = tmp_path / "pids"
    pids.touch()
    script = f"echo $$ >> {pids}; /bin/sleep 600 & echo $! >> {pids}; wait"
    monkeypatch.setenv("PATH", coordinator(tmp_path / "bin", script)["PATH"])
    for seconds in LONGER:
        limits("swarm_hook_core.session_events", **{limit: seconds})
        begun = time.monotonic()
        assert getattr(cores[1], f"run_{hook}_hook")(io.StringIO(json.dumps(captured("codex", event, tmp_path)))) == 0
        assert seconds - 0.05 < time.monotonic() - begun < seconds + time_limit(SOON)
        said = capsys.readouterr().out
        assert "could not be registered" in said if hook == "session_start" else said == ""
        assert fault_lines()[-1]["hook"] == hook
        if pids.read_text().count("\n") > 1:
            break
    started = pids.read_text().split()
    assert len(started) > 1
    wait_for(lambda: not any(os.path.exists(f"/proc/{pid}/exe") for pid in started))  # its whole group is ended


def test_a_hook_s_own_deadline_is_within_its_client_s(runtime: str) -> None:
    from swarm_hook_core import session_events

    wired = json.loads((ROOT / "integrations" / runtime / "hooks.json").read_text())["hooks"]
    given_seconds = {event: groups[0]["hooks"][0]["timeout"] for event, groups in wired.items()}
    assert registration.DEADLINE_SECONDS <= 0.25
    assert given_seconds["SessionStart"] > session_events.START_SECONDS
    assert session_events.TURN_SECONDS < given_seconds["Stop"] == given_seconds["UserPromptSubmit"]
    assert given_seconds["SessionEnd"] > session_events.END_SECONDS
    # Claude Code cancels a SessionEnd hook after 1.5 s in all, in spite of its hooks.json.
    assert session_events.END_SECONDS <= 1.0


def other_implementation(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript("CREATE TABLE strangers (a, b); INSERT INTO strangers VALUES (1, 2);")
    connection.close()


def test_tables_of_another_implementation_are_kept(tmp_path: Path) -> None:
    path = Path(os.environ["SWARM_DB_PATH"])
    path.parent.mkdir()
    other_implementation(path)
    assert start("codex", new_session(), tmp_path).context
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute("SELECT * FROM strangers").fetchall() == [(1, 2)]
    connection.close()


def test_a_writer_at_work_does_not_hide_a_lock(runtime: str, tmp_path: Path) -> None:
    path = ready_store()
    me = new_session()
    start(runtime, me, tmp_path)
    peer_locks(tmp_path, tmp_path / "f")
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE instances SET heartbeat = heartbeat + 1")
    try:
        assert write(runtime, me, tmp_path, tmp_path / "f").reason
    finally:
        connection.execute("ROLLBACK")
        connection.close()


def test_a_write_passes_where_the_store_may_not_be_read(runtime: str, tmp_path: Path) -> None:
    path = ready_store()
    path.chmod(0)
    path.parent.chmod(0)
    try:
        done = subprocess.run(
            argv(runtime, "pre_tool_use"), input=json.dumps(write_payload(runtime, new_session(), tmp_path, "f")).encode(),
            capture_output=True, check=False, preexec_fn=without_privileges,
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        assert fault_lines()
    finally:
        path.parent.chmod(0o700)
        path.chmod(0o600)


INPUTS = {
    "nothing": b"",
    "a blank": b" \n",
    "no JSON": b"hello",
    "a list": b"[]",
    "null": b"null",
    "a number": b"3",
    "half an object": b'{"session_id": "x", "tool_',
    "invalid UTF-8": b"\xff\xfe{}",
    "null bytes": b"\0" * 100,
    "deep lists": b"[" * 100_000,
    "deep lists, closed": b"[" * 100_000 + b"]" * 100_000,
    "a deep object": b'{"tool_input":' * 100_000,
    "two objects": b"{}{}",
}


@pytest.mark.parametrize(
    ("hook", "kind"),
    [("pre_tool_use", kind) for kind in INPUTS] + [(hook, "no JSON") for hook in HOOKS if hook != "pre_tool_use"],
)
def test_input_that_is_no_payload_is_a_recorded_fault(hook: str, kind: str) -> None:
    """Each odd input of the check; the other hooks read theirs by the same function."""
    assert_passed(run("codex", hook, INPUTS[kind]))
    (fault,) = fault_lines()
    assert (fault["runtime"], fault["hook"]) == ("codex", hook) and fault["fault"]


def odd_payloads(runtime: str, cwd: Path) -> dict[str, bytes]:
    """Return objects that are odd inside; the hook decides if one is a fault. Other types: test_no_payload_breaks_a_hook."""
    whole = write_payload(runtime, new_session(), cwd, str(cwd / "f"))
    tool_input = json.dumps(whole["tool_input"]).encode()
    text = json.dumps(whole).encode()
    big = {**whole, "tool_input": {**whole["tool_input"], "content": "x" * 5_000_000}}
    return {
        "five megabytes": json.dumps(big).encode(),
        "five megabytes of patch": text.replace(
            tool_input, json.dumps({"command": "*** Begin Patch\n" + "*** Add" * 700_000}).encode()
        ),
        "bytes that are no text": text.replace(b"/f", b"/\xff\xfe"),
        "a null byte in the path": text.replace(b"/f", b"/\\u0000f"),
        "a null byte in the folder": json.dumps({**whole, "cwd": "/tmp\0/x"}).encode(),
        "a folder that is not there": json.dumps({**whole, "cwd": "/not/there"}).encode(),
        "half a character": text.replace(b"/f", b"/\\ud800"),
    }


@requirement("P-11")
def test_odd_payloads_pass(runtime: str, tmp_path: Path) -> None:
    ready_store()
    for name, data in odd_payloads(runtime, tmp_path).items():
        ran = run(runtime, "pre_tool_use", data)
        assert (ran.code, ran.out, ran.err) == (0, "", ""), name
        assert ran.took < time_limit(SOON), name


HOSTILE_IDS = [
    "../../../evil",
    "/etc/evil",
    "..",
    "a/b",
    "a\0b",
    "x" * 10_240,
    "\ud800",
    "-h",
    "--json",
    "$(touch evil)",
    "a\nb",
]


@pytest.mark.parametrize("session_id", HOSTILE_IDS, ids=[ascii(name[:12]) for name in HOSTILE_IDS])
@pytest.mark.sampled
def test_a_hostile_session_id_touches_nothing_outside(session_id: str, home: Path, tmp_path: Path) -> None:
    ready_store()
    text_at(home / "evil" / "precious", "kept")
    before = {
        path for path in home.rglob("*") if home / "state" not in path.parents and home / "store" not in path.parents
    }
    for hook, event in (
        ("session_start", "SessionStart.startup"), ("pre_tool_use", "PreToolUse.apply_patch"),
        ("turn", "Stop"), ("session_end", "SessionEnd"),
    ):  # fmt: skip
        payload = {**captured("codex", event, tmp_path), "session_id": session_id}
        ran = run("codex", hook, payload, {"SWARM_MCP_BIN": "swarm-mcp"}, cwd=home)
        assert ran.code == 0 and ran.err == ""
    after = {
        path for path in home.rglob("*") if home / "state" not in path.parents and home / "store" not in path.parents
    }
    assert after - {home / "state", home / "store"} == before - {home / "state", home / "store"}
    assert (home / "evil" / "precious").read_text() == "kept"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.sampled
def test_closed_streams_are_survived(runtime: str, closed: str, tmp_path: Path) -> None:
    ready_store()
    me = new_session()
    start(runtime, me, tmp_path)
    peer_locks(tmp_path, tmp_path / "f")
    done = subprocess.run(
        ["sh", "-c", f"{shlex.join(argv(runtime, 'pre_tool_use'))} {closed}"],
        input=json.dumps(write_payload(runtime, me, tmp_path, str(tmp_path / "f"))).encode(), capture_output=True, check=False)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == b"" if closed != "2>&-" else b"deny" in done.stdout


@pytest.mark.parametrize("place", ["/dev/null/nowhere", "/proc/nowhere"])
def test_a_home_that_cannot_be_written_stops_no_tool_call(runtime: str, place: str, tmp_path: Path) -> None:
    env = {"HOME": place, "SWARM_STATE_DIR": f"{place}/state", "SWARM_DB_PATH": f"{place}/swarm.db"}
    assert_passed(write(runtime, new_session(), tmp_path, "f", **env))
    ran = start(runtime, new_session(), tmp_path, **env)
    assert ran.code == 0 and ran.err == "" and "could not be registered" in ran.context


def test_a_working_folder_that_has_gone_stops_no_tool_call(runtime: str, tmp_path: Path) -> None:
    ready_store()
    me = new_session()
    start(runtime, me, tmp_path)
    peer_locks(tmp_path, tmp_path / "f")
    (tmp_path / "doomed").mkdir()
    payload = tmp_path / "payload.json"
    for spelled, denied in ((str(tmp_path / "f"), True), ("g", False)):
        payload.write_text(json.dumps({**write_payload(runtime, me, tmp_path, spelled), "cwd": ""}))
        (tmp_path / "doomed").mkdir(exist_ok=True)
        script = f"cd {tmp_path}/doomed && rmdir {tmp_path}/doomed && {shlex.join(argv(runtime, 'pre_tool_use'))} < {payload}"
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert ("deny" in done.stdout) is denied, spelled


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=[]), max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
TOOLS = st.sampled_from(["Write", "Edit", "NotebookEdit", "apply_patch", "Bash", "shell", "Read", ""]) | anything
INPUT = (
    anything
    | st.fixed_dictionaries(
        {}, optional=dict.fromkeys(("file_path", "notebook_path", "path", "command", "input", "patch"), anything)
    )
    | st.text("*** BeginAddUpdateMovetoFile: Patch\n+-@ab/.", max_size=120).map(
        lambda text: {"command": "*** Begin Patch\n" + text + "\n*** End Patch"}
    )
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    payload=st.fixed_dictionaries(
        {"tool_name": TOOLS, "tool_input": INPUT},
        optional={"session_id": anything, "cwd": anything, "hook_event_name": anything},
    )
    | anything,
    hook=st.sampled_from(HOOKS),
)
@requirement("P-11")
def test_no_payload_breaks_a_hook(cores: list[Any], payload: Any, hook: str) -> None:
    data = json.dumps(payload).encode()
    for core in cores:
        out, before = io.StringIO(), len(fault_lines())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdout", out)
            patch.setenv("PATH", "/nowhere")
            code = getattr(core, f"run_{hook}_hook")(io.TextIOWrapper(io.BytesIO(data)))
        assert code == 0
        if hook != "session_start":
            assert out.getvalue() == ""
        if not isinstance(payload, dict):
            assert len(fault_lines()) == before + 1
