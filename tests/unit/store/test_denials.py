"""A refused session hears of it when the file is free: once, truthfully, and however it came free."""

import json
import os
import sys
from pathlib import Path

import pytest
from support import many_processes as crowd
from support.fixtures import Ground, wait_for
from support.sessions import RUNTIMES, new_session, peer_locks, ready_store, start, write

from swarm_hook_core import process
from swarm_mcp.domain import Session
from swarm_mcp.errors import LockRefused
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request
from swarm_mcp.store.refusals import KNOWN_SECONDS, Attempt

pytestmark = pytest.mark.slow


def mail_of(ground: Ground, instance: dict) -> list[str]:
    """The system's messages to this session."""
    rows = ground.sql("SELECT content FROM messages WHERE recipient = ? AND sender = 'system'", instance["id"])
    return [row["content"] for row in rows]


def refused(ground: Ground, instance: dict, file: str, **given) -> None:
    with pytest.raises(LockRefused), ground.store() as store:
        store.locks.acquire(instance, file, **given)


def release(ground: Ground, instance: dict, file: str) -> None:
    with ground.store() as store:
        store.locks.release(instance, file)


@pytest.fixture
def pair(ground: Ground) -> tuple[dict, dict]:
    """Two sessions; the first holds f, and the second has been refused it."""
    holder, waiter = ground.session("holder", "identity:p holder"), ground.session("waiter", "identity:p waiter")
    ground.lock(holder, "f", "busy")
    refused(ground, waiter, "f", tool="lock_file")
    return holder, waiter


def test_the_word_names_a_shared_file_as_it_was_asked_for(ground: Ground, store: Store):
    first, second, writer = (ground.session(name) for name in ("first", "second", "writer"))
    for reader in map(Session, (first, second)):
        store.locks.acquire_all(reader, request(reader, ["f"], mode="shared"))
    release(ground, first, "f")
    refused(ground, writer, "f")
    release(ground, second, "f")
    (text,) = mail_of(ground, writer)
    assert text.startswith(f"[auto] {ground.scope}/f is free: "), text


def test_a_release_tells_who_was_refused(ground: Ground, pair: tuple[dict, dict]):
    holder, waiter = pair
    assert mail_of(ground, waiter) == []
    release(ground, holder, "f")
    (text,) = mail_of(ground, waiter)
    name = f"holder {holder['id'][:8]} (instance {holder['id']})"
    assert text.startswith(f"[auto] {ground.scope}/f is free: {name} released it.")
    assert "Your write by lock_file was refused" in text
    assert ground.sql("SELECT * FROM swarm_denials") == []
    assert mail_of(ground, holder) == []
    ground.lock(holder, "f")
    release(ground, holder, "f")
    assert len(mail_of(ground, waiter)) == 1, "once for each refusal"
    (sent,) = ground.sql("SELECT * FROM events WHERE type = 'message.sent'")
    assert (sent["actor"], sent["subject"]) == ("system", waiter["id"])


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("deregister", "{name} has left"),
        ("reclaim", "{name} is gone"),
        ("task", "the task that {name} held it for has ended"),
        ("foreign release", "{name} no longer holds it"),
        ("foreign removal", "the session that held it no longer holds it"),
    ],
)
def test_the_word_says_how_the_lock_ended(ground: Ground, pair: tuple[dict, dict], how: str, words: str, store: Store):
    holder, waiter = pair
    if how == "deregister":
        store.instances.remove(holder["id"])
    elif how == "reclaim":
        ground.backdate(holder, 90000)
        store.cleanup.clean()
    elif how == "task":
        task = store.tasks.request(holder, {"type": "fix", "title": "T", "files": ["f"]})["task"]
        store.tasks.claim(holder, task["id"])
        store.tasks.end(holder, task["id"], "done")
    else:
        # As an implementation would that has never heard of denials.
        ground.sql("DELETE FROM context WHERE instance_id = ?", holder["id"])
        if how == "foreign removal":
            ground.sql("DELETE FROM instances WHERE id = ?", holder["id"])
        store.cleanup.clean()
    (text,) = mail_of(ground, waiter)
    name = f"holder {holder['id'][:8]} (instance {holder['id']})"
    assert text.startswith(f"[auto] {ground.scope}/f is free: {words.format(name=name)}.")
    assert ground.sql("SELECT * FROM swarm_denials") == []


def test_a_dead_holders_file_that_is_taken_over_was_never_free(ground: Ground, pair: tuple[dict, dict]):
    holder, waiter = pair
    other = ground.session("other")
    refused(ground, other, "f")
    ground.backdate(holder, 90000)
    ground.lock(waiter, "f")
    assert mail_of(ground, waiter) == mail_of(ground, other) == [], "it was never free"
    (row,) = ground.sql("SELECT instance_id, holder_id FROM swarm_denials")
    assert row == {"instance_id": other["id"], "holder_id": waiter["id"]}
    release(ground, waiter, "f")
    assert len(mail_of(ground, other)) == 1


def test_files_that_become_free_together_are_told_in_one_message(ground: Ground, pair: tuple[dict, dict], store: Store):
    holder, waiter = pair
    ground.lock(holder, "g")
    refused(ground, waiter, "g")
    store.instances.remove(holder["id"])
    (text,) = mail_of(ground, waiter)
    assert f"\n- {ground.scope}/f\n- {ground.scope}/g\n" in text
    assert ground.sql("SELECT * FROM swarm_denials") == []


def test_a_file_that_somebody_else_still_holds_is_not_free(ground: Ground, pair: tuple[dict, dict], store: Store):
    holder, waiter = pair
    third = ground.stranger("third", "/other")
    # Another implementation knows only (scope, file), so it may hold the same file beside ours.
    row = {"id": "theirs", "scope": "/other", "instance_id": third, "file": f"{ground.scope}/f"}
    ground.add("context", **row, type="lock", content="")
    release(ground, holder, "f")
    assert mail_of(ground, waiter) == []
    (waiting,) = ground.sql("SELECT * FROM swarm_denials")
    assert (waiting["instance_id"], waiting["holder_id"]) == (waiter["id"], third)
    ground.sql("DELETE FROM context WHERE id = 'theirs'")
    store.activity.sweep()
    assert len(mail_of(ground, waiter)) == 1


def test_the_file_is_known_by_whatever_spelling(ground: Ground):
    real, link = ground.repo / "real", ground.repo / "link"
    real.mkdir()
    link.symlink_to(real)
    holder, waiter = ground.session("holder"), ground.session("waiter")
    ground.lock(holder, str(real / "f"))
    refused(ground, waiter, str(link / "f"))
    release(ground, holder, str(link / "f"))
    assert len(mail_of(ground, waiter)) == 1


def test_a_holder_of_another_identity_stays_unnamed(ground: Ground):
    holder, waiter = ground.session("1", "identity:q secret-name"), ground.session("2", "identity:p waiter")
    ground.lock(holder, "f", "secret-note")
    refused(ground, waiter, "f")
    release(ground, holder, "f")
    (text,) = mail_of(ground, waiter)
    assert "a session of another identity released it" in text
    assert "secret" not in text and holder["id"] not in text


def test_the_event_of_a_refusal_says_all_there_is_to_know(ground: Ground, pair: tuple[dict, dict]):
    holder, waiter = pair
    (event,) = ground.sql("SELECT * FROM events WHERE type = 'context.lock_denied'")
    lock = ground.sql("SELECT * FROM context")[0]
    assert (event["scope"], event["actor"], event["subject"]) == (ground.scope, waiter["id"], f"{ground.scope}/f")
    assert json.loads(event["payload"]) == {
        "holder": holder["id"], "holder_label": "identity:p holder", "key": lock["path_key"], "tool": "lock_file",
        "lock": lock["id"], "note": "busy", "locked_at": lock["created_at"], "fence": 1, "rule": "file",
        "path": lock["file"], "path_key": lock["path_key"], "cwd": waiter["directory"], "wanted_mode": "exclusive",
        "session": ["claude-code", "waiter"],
    }  # fmt: skip


def test_a_refusal_that_is_known_writes_nothing(ground: Ground, pair: tuple[dict, dict]):
    _holder, waiter = pair
    before = ground.sql("SELECT count(*) AS n FROM events")
    with ground.store() as other, Store(ground.database, busy_seconds=3600.0) as store:
        with other.database.writing():  # a write would wait for an hour
            with pytest.raises(LockRefused):
                store.locks.acquire(waiter, "f")
    assert ground.sql("SELECT count(*) AS n FROM events") == before
    ground.sql("UPDATE swarm_denials SET denied_at = denied_at - ?", KNOWN_SECONDS + 1)
    refused(ground, waiter, "f")
    assert ground.sql("SELECT count(*) AS n FROM events")[0]["n"] == before[0]["n"] + 1


def test_whoever_is_refused_among_many_gets_the_lock_or_hears_that_it_is_free(ground: Ground):
    """Sessions that contend for one file: each refused one ends up with the lock, or with word that it is free."""
    sessions = [ground.session(str(number)) for number in range(6)]
    body = """
store = Store(arguments["path"])
me = store.instances.get(arguments["id"])
gate()
refusals = 0
for _ in range(12):
    try:
        store.locks.acquire(me, "f")
        time.sleep(0.002)
        store.locks.release(me, "f")
    except LockRefused:
        refusals += 1
report(refusals)
"""
    members = crowd.run(body, [{"path": ground.database, "id": session["id"]} for session in sessions])
    assert all(member.code == 0 for member in members), [member.err for member in members]
    assert sum(member.reports[0] for member in members) > 0, "nobody was refused: this test showed nothing"
    assert ground.sql("SELECT * FROM context") == []
    assert ground.sql("SELECT * FROM swarm_denials") == [], "nobody holds the file, so nobody waits for it"


def test_the_command_notes_a_denial(ground: Ground):
    holder, waiter = ground.session("h"), ground.session("w", runtime="codex")
    ground.lock(holder, "f")
    words = ("--runtime", "codex", "--session-id", "w", "--holder", holder["id"], "--tool", "apply_patch")
    done = ground.process("denied", f"{ground.scope}/f", *words, "--json")
    assert done.json == {"ok": True, "id": waiter["id"], "file": f"{ground.scope}/f", "held": True}
    (row,) = ground.sql("SELECT * FROM swarm_denials")
    assert (row["instance_id"], row["holder_id"], row["tool"]) == (waiter["id"], holder["id"], "apply_patch")
    release(ground, holder, "f")
    (text,) = mail_of(ground, waiter)
    assert "Your write by apply_patch was refused" in text


def test_a_lock_that_has_gone_before_the_note_is_told_at_once(ground: Ground):
    holder, waiter = ground.session("h", "holder"), ground.session("w")
    words = ("--runtime", "claude-code", "--session-id", "w", "--holder", holder["id"], "--tool", "Write")
    assert ground.swarm("denied", f"{ground.scope}/f", *words).out.startswith("free already: ")
    (text,) = mail_of(ground, waiter)
    assert f"{ground.scope}/f is free: holder {holder['id'][:8]} (instance {holder['id']}) no longer holds it." in text
    assert ground.sql("SELECT * FROM swarm_denials") == []


def test_a_refusal_that_comes_late_is_noted_for_the_present_holder(ground: Ground):
    first, second, waiter = ground.session("1"), ground.session("2"), ground.session("w")
    ground.lock(second, "f")
    words = ("--runtime", "claude-code", "--session-id", "w", "--holder", first["id"])
    assert ground.swarm("denied", f"{ground.scope}/f", *words).code == 0
    assert ground.sql("SELECT holder_id FROM swarm_denials")[0]["holder_id"] == second["id"]
    assert mail_of(ground, waiter) == []


def test_a_file_that_the_refused_session_holds_by_now_is_not_waited_for(ground: Ground, store: Store):
    holder, waiter = ground.session("h"), ground.session("w")
    ground.lock(waiter, "f")
    assert store.denials.report(waiter, f"{ground.scope}/f", holder["id"], Attempt("Write")) is False
    assert ground.sql("SELECT * FROM swarm_denials") == []


def test_an_unknown_session_is_no_error(ground: Ground):
    words = ("--runtime", "codex", "--session-id", "nobody", "--holder", "x")
    assert ground.swarm("denied", "/f", *words).code == 0
    assert ground.swarm("denied", "/f", "--runtime", "codex").code == 2
    assert ground.swarm("denied").code == 2


def denials() -> list[dict]:
    with Store() as store:
        return store.database.rows("SELECT * FROM swarm_denials")


@pytest.fixture
def recorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A coordinator that only writes down how it was called, one line a call, once there is a file `go`."""
    log, program = tmp_path / "calls", tmp_path / "coordinator"
    waiting = f"n=0; while [ ! -e {tmp_path}/go ] && [ $n -lt 600 ]; do n=$((n + 1)); sleep 0.05; done"
    program.write_text(f'#!/bin/sh\n{waiting}\necho "$*" >> {log}\n')
    program.chmod(0o755)
    monkeypatch.setenv("RECORDER", str(program))
    return log


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_coordinator_is_called_for_a_denial_alone_and_not_waited_for(runtime: str, tmp_path: Path, recorder: Path):
    ready_store()
    me = new_session()
    assert start(runtime, me, tmp_path).context
    holder = peer_locks(tmp_path, tmp_path / "f")
    program = os.environ["RECORDER"]
    assert not write(runtime, me, tmp_path, tmp_path / "g", SWARM_MCP_BIN=program).reason
    denied = write(runtime, me, tmp_path, tmp_path / "f", SWARM_MCP_BIN=program)
    assert denied.reason and not denied.err
    assert not recorder.exists(), "the hook did not wait"
    (tmp_path / "go").touch()
    wait_for(recorder.exists)
    tool = {"claude-code": "Write", "codex": "apply_patch"}[runtime]
    words = f"denied --runtime {runtime} --session-id {me} --holder {holder['id']} --target={tmp_path / 'f'}"
    words += f" --directory={tmp_path} --fence=1 --tool {tool} -- {tmp_path / 'f'}"
    assert recorder.read_text() == words + "\n"


@pytest.mark.skipif(os.name != "posix", reason="sessions of processes are POSIX's: run this on Linux or macOS")
def test_what_is_started_detached_holds_nothing_of_ours(tmp_path: Path):
    found = tmp_path / "found"
    code = (
        "import os, sys, time\n"
        f"while not os.path.exists({str(tmp_path / 'go')!r}): time.sleep(0.02)\n"
        "line = [os.getsid(0) == os.getpid(), sys.stdin.read(), os.isatty(1), os.fstat(1).st_rdev]\n"
        f"open({str(found) + '.new'!r}, 'w').write(repr(line)); os.rename({str(found) + '.new'!r}, {str(found)!r})"
    )
    process.start_detached([sys.executable, "-c", code])
    assert not found.exists(), "its end is not waited for"
    (tmp_path / "go").touch()
    wait_for(found.exists)
    assert found.read_text() == repr([True, "", False, os.stat(os.devnull).st_rdev])
    with pytest.raises(OSError):
        process.start_detached([str(tmp_path / "nothing")])
