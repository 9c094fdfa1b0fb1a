"""Runs: the supervisor's instance, the sessions that are its guests, and the state after a kill."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from support.files import folder_at
from support.fixtures import Ground
from support.listings import rows_of
from support.requirement import requirement

from swarm_hook_core.process import start_time
from swarm_mcp.agents.harness.membership import Membership, RunRow
from swarm_mcp.agents.harness.outcome import RunResult
from swarm_mcp.domain import ABANDONED
from swarm_mcp.errors import SwarmError
from swarm_mcp.store import Store, runs
from swarm_mcp.store.sessions import Registration


def membership(ground: Ground, **given) -> Membership:
    spec = {"scope": ground.scope, "harness": "claude", "cwd": ground.scope, **given}
    return Membership(spec, label="identity:work role:implementer origin:run")


def hook(store: Store, run: Membership, session: str, client: tuple[int, str], runtime: str = "claude-code") -> dict:
    """The row that a session's own hook gets, started with the run's environment."""
    label = f"{runtime} platform:cli role:other origin:{runtime} session:{session[:8]}"
    given = {"runtime": runtime, "session_id": session, "client": client, "lease_seconds": 600}
    return store.instances.register(Registration(run.spec["cwd"], label=label, preassigned_id=run.instance_id, **given))


@pytest.fixture
def client():
    """A process that stands for the client of the child."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process.pid, start_time(process.pid)
    process.communicate(b"\n")


@requirement("A-31")
def test_the_childs_session_is_the_runs_instance(ground: Ground, client, store: Store) -> None:
    run = membership(ground)
    run.join()
    row = hook(store, run, "session-one", client)
    assert row["id"] == run.instance_id
    words = row["label"].split()
    assert {"identity:work", "role:implementer", "origin:run", "claude-code"} <= set(words)
    assert "role:other" not in words
    assert hook(store, run, "session-one", client)["label"] == row["label"]
    assert [found["id"] for found in store.instances.in_scope(ground.scope)] == [run.instance_id]
    run.leave()
    assert store.instances.get(run.instance_id) is None
    assert store.runs.get(run.run_id)["state"] == "ended"


def test_a_client_that_the_child_starts_is_a_session_of_its_own(ground: Ground, client, store: Store) -> None:
    run = membership(ground)
    run.join()
    assert hook(store, run, "the-child", client)["id"] == run.instance_id
    nested = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    other = hook(store, run, "nested", (nested.pid, start_time(nested.pid)), "codex")
    nested.communicate(b"\n")
    assert other["id"] != run.instance_id
    assert store.instances.of_session("claude-code", "the-child")["id"] == run.instance_id
    run.leave()


def test_the_end_of_the_childs_session_takes_nothing_along(ground: Ground, client, store: Store) -> None:
    run = membership(ground)
    row = run.join()
    (ground.repo / "held.txt").touch()
    hook(store, run, "first", client)
    store.locks.acquire(row, str(ground.repo / "held.txt"), "mine", False, None)
    store.instances.end_session(store.instances.of_session("claude-code", "first"))
    assert [lock["instance_id"] for lock in store.locks.held(ground.scope, "")] == [run.instance_id]
    # Resumed, it may come back under another name, from another process.
    assert hook(store, run, "second", (os.getppid(), start_time(os.getppid())))["id"] == run.instance_id
    run.leave()
    assert list(store.locks.held(ground.scope, "")) == []


def test_an_instance_that_is_anothers_is_not_taken(ground: Ground, store: Store) -> None:
    theirs = ground.session("theirs", "theirs")
    mine = Membership({"scope": ground.scope, "harness": "pi", "cwd": ground.scope}, instance_id=theirs["id"])
    with pytest.raises(SwarmError, match="another session's"):
        mine.join()
    assert store.instances.live(theirs["id"])
    assert store.runs.live() == []


def test_an_instance_that_was_removed_comes_back_with_the_next_beat(ground: Ground, store: Store) -> None:
    run = membership(ground)
    run.join()
    store.instances.remove(run.instance_id)
    run.beat()
    assert store.instances.live(run.instance_id)["label"] == run.label
    run.leave()


SUPERVISOR = """
import sys
from swarm_mcp.agents.harness.membership import Membership
run = Membership({"scope": sys.argv[1], "harness": "codex", "cwd": sys.argv[1], "id": "r1", "task_id": "t1"})
row = run.join()
from swarm_mcp.store import Store
with Store() as store:
    store.locks.acquire(row, sys.argv[1] + "/held.txt", "mine", False, None)
print(run.instance_id, flush=True)
sys.stdin.read()
"""


def test_a_killed_supervisor_leaves_nothing_held(ground: Ground, store: Store) -> None:
    (ground.repo / "held.txt").touch()
    process = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR, ground.scope], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    instance_id = process.stdout.readline().strip()
    assert store.instances.live(instance_id)
    assert store.runs.find(ground.scope, "t1")["state"] == "starting"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert store.instances.live(instance_id) is None
    row = store.runs.find(ground.scope, "r1")
    assert (row["state"], row["result"]["error_message"]) == ("ended", ABANDONED)
    assert store.runs.live() == []
    me = ground.session("me", "me")
    store.locks.acquire(me, f"{ground.scope}/held.txt", "now mine", False, None)


def test_old_runs_go_with_their_records_and_nothing_else(ground: Ground, store: Store) -> None:
    folder = folder_at(ground.folder / "runs" / "old")
    (folder / "1.jsonl").touch()
    other = folder_at(ground.folder / "precious")
    for number, record in (("old", folder / "1.jsonl"), ("odd", other / "file"), ("new", None)):
        spec = {"scope": ground.scope, "instance_id": number, "harness": "pi", "cwd": "/x"}
        store.runs.begin({"id": number, "record": record and str(record), **spec})
        store.runs.update(number, state="ended", **({} if number == "new" else {"ended_at": 1}))
    with store.database.writing():
        runs.forget_old(store.database, 10)
    assert [row["id"] for row in rows_of(store.runs.walk(ground.scope))] == ["new"]
    assert not folder.exists()
    assert other.is_dir()


def test_a_busy_store_is_waited_for_with_the_result(ground: Ground, store: Store) -> None:
    """The result of a run was once lost if a writer held the store longer than a sign of life waits."""
    member = membership(ground)
    member.join()
    run_row = RunRow(member.run_id)
    begun = threading.Event()

    def write_for_a_while() -> None:
        with ground.store() as other, other.database.writing():
            begun.set()
            time.sleep(2.5)

    writer = threading.Thread(target=write_for_a_while)
    writer.start()
    begun.wait(60)
    run_row.close(RunResult(member.run_id, "claude", output="kept"))
    writer.join()
    member.leave()
    row = store.runs.get(member.run_id)
    assert row["state"] == "ended" and row["result"]["output"] == "kept"
