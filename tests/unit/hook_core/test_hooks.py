"""The plugins' own hook processes against a real store, from a session's start to its end."""

import json
import os
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.files import folder_at, program_at
from support.fixtures import time_limit, wait_for
from support.requirement import requirement
from support.sessions import (
    FOLDERS,
    PAYLOADS,
    ROOT,
    argv,
    captured,
    fault_lines,
    instances,
    join,
    mistakes,
    new_session,
    peer_locks,
    ready_store,
    run,
    said_by,
    start,
    wired_command,
    write,
    write_payload,
)
from support.world import World

from swarm_hook_core.naming import holder_name
from swarm_hook_core.process import start_time
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow

SOURCES = ("startup", "resume", "clear", "compact", "fork")


@pytest.fixture(autouse=True)
def store() -> Path:
    return ready_store()


def only_instance() -> dict[str, Any]:
    (row,) = instances()
    return row


@pytest.mark.parametrize("source", SOURCES)
@requirement("P-04", "P-07")
@pytest.mark.sampled
def test_every_source_registers_the_session(runtime: str, source: str, repo: Path) -> None:
    me = new_session()
    ran = start(runtime, me, repo / "sub", source)
    assert (ran.code, ran.err) == (0, "")
    row = only_instance()
    assert (row["runtime"], row["session_id"], row["directory"]) == (runtime, me, str(repo / "sub"))
    assert row["scope"] == str(repo), "the git root of the payload's folder"
    assert row["label"] == f"{runtime} platform:cli origin:{runtime} session:{me[:8]}"
    assert (row["client_pid"], row["client_start"]) == (os.getpid(), start_time(os.getpid()))
    assert row["lease_seconds"] == 86400
    for said in (
        row["id"],
        f"`{holder_name(row['label'], row['id'])}`",
        row["scope"],
        "lock_file",
        "unlock_file",
        "swarm-mcp",
        "No other session",
        "Nothing is locked",
    ):
        assert said in ran.context, said
    assert mistakes() == []


def test_a_session_has_one_instance_whatever_happens_to_it(runtime: str, repo: Path) -> None:
    me = new_session()
    start(runtime, me, repo)
    first = only_instance()["id"]
    with Store() as store:
        store.locks.acquire(store.instances.get(first) or {}, str(repo / "mine"), "keep me")
    for source in ("compact", "clear", "resume"):
        assert first in start(runtime, me, repo, source).context
    assert run(runtime, "turn", {**captured(runtime, "UserPromptSubmit", repo), "session_id": me}).out == ""
    assert only_instance()["id"] == first
    with Store() as store:
        assert len(store.locks.on(str(repo / "mine"))) == 1, "and keeps its locks"


@requirement("P-07")
def test_the_start_tells_of_peers_and_locks_in_scope(runtime: str, repo: Path, tmp_path: Path) -> None:
    peer = peer_locks(repo, repo / "schema.sql", "renumbering", "identity:work codex role:dba")
    peer_locks(tmp_path / "elsewhere", tmp_path / "elsewhere" / "x", "far away", "far")
    context = start(runtime, new_session(), repo).context
    assert f"schema.sql by codex {peer['id'][:8]}" in context and "schema.sql" in context and "renumbering" in context
    assert "far" not in context.replace("before", "")


def test_settings_reach_the_registration(runtime: str, repo: Path, tmp_path: Path) -> None:
    prefix = {"claude-code": "CC", "codex": "CODEX"}[runtime]
    (repo / ".swarm-role").write_text("reviewer\n")
    start(
        runtime, new_session(), repo, AGENT_IDENTITY="personal", **{f"SWARM_{prefix}_SCOPE": str(tmp_path)},
        SWARM_MCP_FILE_ROOT=str(tmp_path / "main"), SWARM_LEASE_SECONDS="77",
    )  # fmt: skip
    row = only_instance()
    assert (row["scope"], row["file_root"], row["lease_seconds"]) == (str(tmp_path), str(tmp_path / "main"), 77)
    assert row["label"].startswith(f"identity:personal {runtime} platform:cli role:reviewer origin:{runtime} session:")


def test_the_payload_s_folder_counts_not_the_process_s(runtime: str, repo: Path, tmp_path: Path) -> None:
    payload = {**captured(runtime, "SessionStart.startup", repo), "session_id": new_session()}
    away = {"SWARM_MCP_DIRECTORY": str(tmp_path), "TERMINAL_CWD": str(tmp_path), "PWD": str(tmp_path)}
    run(runtime, "session_start", payload, away, cwd=tmp_path)
    assert only_instance()["directory"] == str(repo)


def test_a_failed_start_says_so_and_how_to_mend_it(runtime: str, repo: Path, store: Path) -> None:
    store.unlink()
    store.mkdir()
    ran = start(runtime, new_session(), repo)
    assert ran.code == 0 and "could not be registered" in ran.context and "swarm-mcp doctor" in ran.context
    (fault,) = fault_lines()
    assert (fault["runtime"], fault["hook"]) == (runtime, "session_start") and "swarm.db" in str(fault["fault"])


@requirement("P-24")
def test_as_typed_from_the_folder_of_the_integrations(runtime: str, repo: Path) -> None:
    me = new_session()
    line = json.dumps({"session_id": me, "cwd": str(repo), "source": "startup"})
    typed = f"echo '{line}' | AGENT_IDENTITY=personal HERDR_PANE_ID=p_5 python3 hook.py {runtime} session_start"
    done = subprocess.run(typed, shell=True, cwd=ROOT / "integrations", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    row = only_instance()
    assert row["session_id"] == me and row["label"].startswith(f"identity:personal {runtime} ")
    assert json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"].count(row["id"]) == 1
    with Store() as store:
        value = json.loads((store.kv.get(row["scope"], f"identity/workspace/herdr/{row['id']}") or {})["value"])
    assert (value["pane_id"], value["handle"], value["backend"]) == ("p_5", "p_5", "herdr")


def test_a_turn_renews_the_session(runtime: str, repo: Path) -> None:
    me = new_session()
    start(runtime, me, repo)
    for event, state in (("UserPromptSubmit", "working"), ("Stop", "idle")):
        with Store() as store, store.database.writing():
            store.database.change("UPDATE swarm_sessions SET last_seen = 1000")
            store.database.change("UPDATE instances SET heartbeat = 1000, lease_until = 1001")
        before = int(time.time())
        ran = run(runtime, "turn", {**captured(runtime, event, repo), "session_id": me})
        assert (ran.code, ran.out, ran.err) == (0, "", "")
        row = only_instance()
        assert row["state"] == state
        assert row["last_seen"] >= before and row["heartbeat"] >= before and row["lease_until"] >= before + 86400


def test_a_turn_brings_back_a_session_that_was_reclaimed(runtime: str, repo: Path) -> None:
    me = new_session()
    run(runtime, "turn", {**captured(runtime, "UserPromptSubmit", repo), "session_id": me})
    assert only_instance()["session_id"] == me


@requirement("P-08")
def test_the_end_leaves_nothing(runtime: str, repo: Path, home: Path) -> None:
    me = new_session()
    start(runtime, me, repo, HERDR_PANE_ID="p_9", SWARM_MCP_BIN="swarm-mcp")
    row = only_instance()
    key = f"identity/workspace/herdr/{row['id']}"
    with Store() as store:
        assert store.kv.get(row["scope"], key)
        store.locks.acquire(row, str(repo / "f"), "")
    kept = list((home / "state").rglob("meta.json"))
    assert len(kept) == 1, "told which coordinator to use, the hook keeps its instance at hand"
    ran = run(runtime, "session_end", {**captured(runtime, "SessionEnd", repo), "session_id": me}, patient=True)
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert instances() == []
    with Store() as store:
        assert store.kv.get(row["scope"], key) is None
        assert store.locks.on(str(repo / "f")) == []
    assert list((home / "state").rglob("meta.json")) == [] and mistakes() == []
    assert write(runtime, new_session(), repo, repo / "f").reason == ""


def test_a_session_nobody_knows_is_registered_in_passing_and_then_checked(runtime: str, repo: Path) -> None:
    peer_locks(repo, repo / "f")
    me = new_session()
    assert write(runtime, me, repo, repo / "f").reason
    # On a busy machine the registration outlasts the check: the check waits for a limited time only.
    wait_for(lambda: len(instances()) > 1)
    assert sorted(row["session_id"] == me for row in instances()) == [False, True]
    assert all("no answer within" in line["fault"] for line in fault_lines())


@pytest.mark.parametrize("coordinator", ["slow", "broken"])
def test_a_session_that_cannot_be_registered_is_checked_all_the_same(
    runtime: str, coordinator: str, repo: Path, tmp_path: Path
) -> None:
    # An unregistered session has no locks, so every live lock is a peer's.
    peer_locks(repo, repo / "f")
    folder = folder_at(tmp_path / "bin")
    program_at(
        folder / "swarm-mcp",
        "#!/bin/sh\n: swarm_mcp.cli.main\n" + {"slow": "exec /bin/sleep 600", "broken": "exit 3"}[coordinator],
    )
    me = new_session()
    for _ in range(2):  # the second within the pause that follows a failure
        ran = write(runtime, me, repo, repo / "f", SWARM_MCP_BIN=str(folder / "swarm-mcp"))
        assert ran.reason and ran.took < time_limit(30)
        assert write(runtime, me, repo, repo / "g", SWARM_MCP_BIN=str(folder / "swarm-mcp")).reason == ""
    assert fault_lines()


def test_the_very_first_check_of_all_makes_the_store(runtime: str, repo: Path, store: Path) -> None:
    store.unlink()
    ran = write(runtime, new_session(), repo, repo / "f")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    wait_for(lambda: store.exists() and instances())  # a first registration outlasts the check, and is left to finish


def test_a_lock_holds_from_any_folder_scope_and_spelling(runtime: str, world: World, tmp_path: Path) -> None:
    world.lock(world.session("codex", scope=str(tmp_path / "a scope of its own")), "notes.md")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "ln").symlink_to(world.repo)
    me = world.session(runtime, folder=tmp_path / "other", scope=str(tmp_path / "other"))
    spelled = [
        "../repo/notes.md",
        "ln/notes.md",
        "ln//sub/../notes.md",
        f"{world.repo}/sub/../notes.md",
        "ln/notes.md ",
    ]
    assert [path for path in spelled if not me.ask(*me.writing(path)).denied] == []
    assert not me.ask(*me.writing("notes.md")).denied
    below = str(world.repo / "sub")
    assert me.ask(*me.writing("../notes.md"), cwd=below).denied, "from the folder that this very call names"


def test_a_write_through_a_configured_file_root_is_found(runtime: str, world: World, tmp_path: Path) -> None:
    (tmp_path / "tree" / ".git").mkdir(parents=True)
    world.lock(world.session("codex"), "notes.md")
    me = world.session(runtime, folder=tmp_path / "tree", file_root=str(world.repo))
    found = [me.ask(*me.writing(name)).denied for name in ("notes.md", f"{tmp_path}/tree/notes.md", "other.md")]
    assert found == [True, True, False]


@pytest.mark.parametrize(
    ("facts", "silent", "holds"),
    [
        pytest.param({}, 86000, True, id="a quiet client, all day"),
        pytest.param({"lease_seconds": 600}, 550, True, id="within its lease"),
        # As with a daemon that outlives the terminals it serves.
        pytest.param({"lease_seconds": 600}, 610, False, id="past its lease, its process alive"),
        pytest.param({"lease_seconds": 0}, 10**7, True, id="without a lease only death ends it"),
        pytest.param({"client": (0, "")}, 0, True, id="a client nobody could name"),
        pytest.param({"client": (0, "")}, 86401, False, id="a client nobody could name, past its lease"),
    ],
)
def test_how_long_a_silent_session_keeps_its_locks(
    facts: dict[str, Any], silent: int, holds: bool, world: World
) -> None:
    holder = world.session("codex", **facts)
    world.lock(holder, "notes.md")
    world.ground.backdate(holder.row, silent)
    assert world.session().edit("notes.md").denied is holds


def test_notes_and_kinds_that_are_no_locks_do_not_block(runtime: str, repo: Path) -> None:
    with Store() as store:
        row = join(store, repo)
        with store.database.writing():
            store.database.change(
                "INSERT INTO context (id, scope, instance_id, file, type, content) VALUES ('x', ?, ?, ?, 'note', 'n')",
                (row["scope"], row["id"], str(repo / "f")),
            )
    assert write(runtime, new_session(), repo, repo / "f").reason == ""


WRITES = {
    "claude-code": {
        "PreToolUse.Write": ["w.md"],
        "PreToolUse.Write.subagent": ["sa.md"],
        "PreToolUse.Edit": ["notes.md"],
        "PreToolUse.NotebookEdit": ["n.ipynb"],
        "PreToolUse.Bash.heredoc": ["b.md"],
        "PreToolUse.mcp__plugin_probe_probe__write_file": ["m.txt"],
    },
    "codex": {
        "PreToolUse.apply_patch": ["one.md"],
        "PreToolUse.apply_patch.move": ["notes.md", "moved.md"],
        "PreToolUse.apply_patch.subagent": ["sa.md"],
        "PreToolUse.Bash.heredoc": ["hd.md"],
        "PreToolUse.mcp__probe__write_file": ["m.txt"],
    },
}


def test_every_captured_call_passes_alone_and_is_denied_where_a_peer_holds_its_file(runtime: str, repo: Path) -> None:
    names = sorted(path.stem for path in (PAYLOADS / FOLDERS.get(runtime, runtime)).glob("PreToolUse.*.json"))
    assert set(WRITES[runtime]) < set(names)
    with Store() as store:
        for session_id in {captured(runtime, name, repo)["session_id"] for name in names}:
            join(store, repo, "me", runtime=runtime, session_id=session_id)
        peer = join(store, repo)
        for name in names:
            payload = captured(runtime, name, repo)
            ran = run(runtime, "pre_tool_use", payload)
            assert (ran.code, ran.err) == (0, "") and (not ran.out or " is free: " in ran.out), (name, ran)
            for path in WRITES[runtime].get(name, []):
                store.locks.acquire(peer, str(repo / path), name)
                reason = run(runtime, "pre_tool_use", payload).reason
                assert Path(path).name in reason and payload["tool_name"] in reason, name
                store.locks.release(peer, str(repo / path))
        for path in ("m.txt", "b.md", "n.ipynb"):
            store.locks.acquire(peer, str(repo / path), "")
        for name in set(names) - set(WRITES[runtime]):
            assert run(runtime, "pre_tool_use", captured(runtime, name, repo)).reason == "", name
    assert mistakes() == []


def test_names_that_sql_would_mind_are_names(runtime: str, world: World) -> None:
    me, peer = world.session(runtime), world.session("codex")
    for name in ("it's", 'a"b', "100%", "a_b", "x;--", "é%2e", "*", "a\\b"):
        (world.repo / name).touch()  # a name with a star in it is a pattern otherwise
        world.lock(peer, name)
        assert me.ask(*me.writing(name)).denied and not me.ask(*me.writing(f"{name}x")).denied, name


def test_the_wired_commands_do_what_the_scripts_do(runtime: str, repo: Path) -> None:
    me = new_session()
    peer_locks(repo, repo / "f")

    def wired(event: str, payload: dict[str, Any]) -> str:
        return said_by(wired_command(runtime, event), {**payload, "session_id": me}, cwd=repo)

    assert "is registered as" in wired("SessionStart", captured(runtime, "SessionStart.startup", repo))
    mine = next(row for row in instances() if row["session_id"] == me)
    assert mine["client_pid"] == os.getpid(), "the client is found behind the shell it starts hooks with"
    assert wired("UserPromptSubmit", captured(runtime, "UserPromptSubmit", repo)) == ""
    assert '"deny"' in wired("PreToolUse", write_payload(runtime, me, repo, str(repo / "f")))
    assert wired("Stop", captured(runtime, "Stop", repo)) == ""

    def has_ended() -> bool:
        assert wired("SessionEnd", captured(runtime, "SessionEnd", repo)) == ""
        return [row["session_id"] == me for row in instances()] == [False]

    wait_for(has_ended)  # a busy machine may take longer than the client allows


def test_post_tool_use_does_nothing_where_nothing_is_watched(runtime: str, repo: Path, home: Path) -> None:
    before = sorted(home.rglob("*"))
    payload = json.dumps(write_payload(runtime, new_session(), repo, "f")).encode()
    for data, faults in ((payload, 0), (b"", 1), (b"not json", 2)):
        done = subprocess.run(argv(runtime, "post_tool_use"), input=data, capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        assert len(fault_lines()) == faults
        assert faults or sorted(home.rglob("*")) == before


def test_a_check_reads_and_writes_nothing(runtime: str, repo: Path, store: Path) -> None:
    me = new_session()
    start(runtime, me, repo)
    peer_locks(repo, repo / "f")
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        before = list(connection.iterdump())
    connection.close()
    # Without a coordinator: a process of its own records the refusal there.
    assert write(runtime, me, repo, repo / "f", PATH="/nowhere", SWARM_MCP_BIN="").reason
    with closing(sqlite3.connect(store)) as connection, connection:
        assert list(connection.iterdump()) == before
    connection.close()
