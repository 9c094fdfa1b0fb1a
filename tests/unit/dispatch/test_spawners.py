"""Starting workers: one at a time, through any spawner, and the repair of a killed dispatch."""

import hashlib
import json
import threading
import time

import pytest
from support import many_processes as crowd
from support.fixtures import Ground, Sleeper, wait_for
from support.supervised import mutexes

from swarm_mcp.agents.dispatch.dispatch import Dispatch, carry_out
from swarm_mcp.agents.dispatch.request import SPAWNERS, DispatchRequest, SpawnFailed, UiShells, spawner
from swarm_mcp.domain import Lock
from swarm_mcp.store import Store, runs

pytestmark = pytest.mark.slow

GATEWAY = "identity:p mode:gateway role:planner origin:codex"


@pytest.fixture
def lead(ground: Ground) -> dict:
    return ground.session("lead", GATEWAY, pane={"pane_id": "w1:p1", "workspace_id": "w1"})


def dispatch(ground: Ground, requester: dict, title: str = "Do it", **given) -> dict:
    given.setdefault("spawner", "ui")
    given.setdefault("wait_seconds", 0)
    with ground.store() as store:
        return carry_out(store, requester, DispatchRequest(title, **given))


def orders(ground: Ground) -> list[dict]:
    return ground.sql("SELECT * FROM ui_commands ORDER BY id")


def settle(ground: Ground, status: str, result: dict | None = None, error: str | None = None) -> None:
    """Settle the last request, as a user interface does."""
    ground.sql(
        "UPDATE ui_commands SET status = ?, result = ?, error = ?, claimed_by = 'ui', started_at = 1,"
        " completed_at = CASE WHEN ? IN ('done', 'failed') THEN 2 END WHERE id = (SELECT max(id) FROM ui_commands)",
        status, json.dumps(result) if result else None, error, status,
    )  # fmt: skip


def dispatch_settled(ground: Ground, lead: dict, *how, **given) -> dict:
    """Return the answer to a dispatch while a user interface settles its order."""
    thread = threading.Thread(target=lambda: wait_for(lambda: orders(ground)) and settle(ground, *how))
    thread.start()
    try:
        return dispatch(ground, lead, wait_seconds=20, **given)
    finally:
        thread.join()


def arrive(ground: Ground, instance_id: str, label: str = "identity:p role:implementer") -> dict:
    """The started worker registers, as its hooks would."""
    return ground.session(f"worker-{instance_id}", label, preassigned_id=instance_id)


def test_an_order_to_the_user_interface(ground: Ground, lead: dict) -> None:
    answer = dispatch(ground, lead, message="Mind the tests", label="x:y", name="Worker", placement={"tab": "new"})
    (request,) = orders(ground)
    (lock,) = mutexes(ground)
    assert list(answer) == [
        "status", "task_id", "task", "spawner", "ui_command_id", "instance_id", "ui_command", "spawn_lock", "promotion",
    ]  # fmt: skip
    assert (answer["status"], answer["spawner"]) == ("spawn_in_flight", "swarm-ui")
    assert answer["ui_command_id"] == request["id"]
    payload = json.loads(request["payload"])
    assert payload == {
        "cwd": ground.scope, "harness": "codex", "role": "implementer", "task_id": answer["task_id"],
        "instance_id": answer["instance_id"], "label": "x:y", "name": "Worker", "message": "Mind the tests",
        "placement": {"tab": "new"},
    }  # fmt: skip
    assert (request["kind"], request["scope"], request["created_by"]) == ("spawn_shell", ground.scope, lead["id"])
    assert answer["ui_command"]["payload"] == payload and answer["ui_command"]["status"] == "pending"
    key = hashlib.sha256(answer["task"]["idempotency_key"].encode()).hexdigest()[:16]
    assert answer["spawn_lock"] == lock["file"] == f"/__swarm/spawn/implementer/{key}"
    assert (lock["instance_id"], lock["task_id"], lock["type"]) == (lead["id"], answer["task_id"], "lock")
    (event,) = ground.sql("SELECT * FROM events WHERE type = 'context.lock_acquired'")
    assert event["subject"] == lock["file"]
    assert ground.swarm("locks", "--json").json == [], "no file is locked"


def test_a_second_dispatch_meets_the_first(ground: Ground, lead: dict) -> None:
    dispatch(ground, lead)
    (lock,) = mutexes(ground)
    other = ground.session("lead2", GATEWAY)
    for requester in (lead, other):
        answer = dispatch(ground, requester)
        assert list(answer) == ["status", "task_id", "task", "lock"]
        assert (answer["status"], answer["lock"]["id"]) == ("spawn_in_flight", lock["id"])
        assert answer["lock"]["owner"]["id"] == lead["id"]
    assert len(orders(ground)) == 1
    assert dispatch(ground, lead, "Other work")["ui_command_id"] == 2


def test_the_same_key_elsewhere_is_another_spawn(ground: Ground, lead: dict) -> None:
    place = ground.folder / "other"
    (place / ".git").mkdir(parents=True)
    there = ground.session("there", GATEWAY, directory=str(place))
    dispatch(ground, lead, idempotency_key="k")
    assert "ui_command_id" in dispatch(ground, there, idempotency_key="k")
    assert len({lock["file"] for lock in mutexes(ground)}) == 1 and len(mutexes(ground)) == 2


def test_eight_dispatches_at_once_start_one_worker(ground: Ground, lead: dict) -> None:
    body = """
from swarm_mcp.agents.dispatch.dispatch import carry_out
from swarm_mcp.agents.dispatch.request import DispatchRequest
with Store() as store:
    lead = store.instances.live(arguments)
    gate()
    answer = carry_out(store, lead, DispatchRequest("Do it", spawner="ui", wait_seconds=0))
    report([answer["status"], answer["task_id"], "spawner" in answer])
"""
    members = crowd.run(body, [lead["id"]] * 8)
    assert [member.err for member in members if member.code] == []
    found = [member.reports[0] for member in members]
    assert {status for status, *_ in found} == {"spawn_in_flight"}
    assert len({task_id for _, task_id, _ in found}) == 1
    assert sum(own for *_, own in found) == 1
    assert len(mutexes(ground)) == len(ground.sql("SELECT 1 FROM tasks")) == 1
    assert len(orders(ground)) == 1


def test_a_worker_that_comes_up_gets_the_task(ground: Ground, lead: dict) -> None:
    def ui() -> None:
        request = wait_for(lambda: orders(ground))[0]
        settle(ground, "running")
        arrive(ground, json.loads(request["payload"])["instance_id"])

    thread = threading.Thread(target=ui)
    thread.start()
    answer = dispatch(ground, lead, message="Mind the tests", wait_seconds=20)
    thread.join()
    assert list(answer) == [
        "status", "task_id", "task", "spawner", "ui_command_id", "instance_id", "ui_command", "spawn_lock", "promotion",
    ]  # fmt: skip
    assert (answer["status"], answer["task"]["status"]) == ("spawned", "claimed")
    assert answer["task"]["assignee"] == answer["instance_id"]
    sent = ground.sql("SELECT content FROM messages WHERE recipient = ?", answer["instance_id"])
    assert [row["content"] for row in sent] == [f"[task:{answer['task_id']}] Mind the tests"]
    assert mutexes(ground) == []
    again = dispatch(ground, lead)
    assert (again["status"], again["recipient"]) == ("dispatched", answer["instance_id"])
    assert len(orders(ground)) == 1


def test_an_interface_that_is_done_but_names_nobody(ground: Ground, lead: dict) -> None:
    answer = dispatch_settled(ground, lead, "done", {"pty": 3})
    assert (answer["status"], answer["task"]["status"]) == ("spawned", "open")
    assert answer["ui_command"]["result"] == {"pty": 3}
    assert len(mutexes(ground)) == 1, "until the task ends, or the worker does not come"
    assert dispatch(ground, lead)["status"] == "spawn_in_flight"


def test_an_interface_that_names_another_worker(ground: Ground, lead: dict) -> None:
    worker = ground.session("w", "identity:p role:other")
    answer = dispatch_settled(ground, lead, "done", {"instance_id": worker["id"]})
    assert (answer["status"], answer["instance_id"]) == ("spawned", worker["id"])
    assert answer["task"]["assignee"] == worker["id"]


def test_a_failed_spawn_can_be_tried_again(ground: Ground, lead: dict) -> None:
    begun = time.monotonic()
    answer = dispatch_settled(ground, lead, "failed", None, "no space left", completion_wait_seconds=100)
    assert time.monotonic() - begun < 100, "nobody is coming, so nothing is waited for"
    assert (answer["status"], answer["error"], answer["task"]["status"]) == ("spawn_failed", "no space left", "open")
    assert mutexes(ground) == []
    assert dispatch(ground, lead)["ui_command_id"] == 2


def test_one_that_fails_after_its_dispatch_has_left_can_be_tried_again(ground: Ground, lead: dict) -> None:
    dispatch(ground, lead)
    settle(ground, "failed", error="late")
    assert dispatch(ground, lead)["ui_command_id"] == 2
    assert len(mutexes(ground)) == 1


def test_a_worker_that_comes_late_gets_the_task_from_the_next_dispatch(ground: Ground, lead: dict) -> None:
    reserved = dispatch(ground, lead)["instance_id"]
    worker = arrive(ground, reserved, "identity:p role:of-its-own")
    answer = dispatch(ground, lead)
    assert (answer["status"], answer["recipient"]) == ("dispatched", worker["id"])
    assert answer["task"]["assignee"] == worker["id"]
    assert len(orders(ground)) == 1


def test_a_worker_that_never_comes_is_replaced(ground: Ground, lead: dict) -> None:
    dispatch(ground, lead)
    settle(ground, "done", {"pty": 3})
    late = runs.ARRIVAL_SECONDS + 1
    ground.sql("UPDATE context SET created_at = created_at - ?", late - 60)
    assert dispatch(ground, lead)["status"] == "spawn_in_flight"
    assert len(orders(ground)) == 1
    ground.sql("UPDATE context SET created_at = created_at - 60")
    assert dispatch(ground, lead)["ui_command_id"] == 2


def test_a_waiting_order_is_not_doubled_however_old(ground: Ground, lead: dict) -> None:
    dispatch(ground, lead)
    ground.sql("UPDATE context SET created_at = created_at - 80000")
    assert "lock" in dispatch(ground, lead)
    assert len(orders(ground)) == 1


def test_the_lock_goes_with_its_holder(ground: Ground, lead: dict, store: Store) -> None:
    dispatch(ground, lead)
    other = ground.session("lead2", GATEWAY)
    ground.sql("UPDATE ui_commands SET status = 'failed', claimed_by = 'ui', started_at = 1, completed_at = 1")
    store.instances.remove(lead["id"])
    assert mutexes(ground) == []
    assert "ui_command_id" in dispatch(ground, other)


def test_a_dispatch_killed_before_it_had_started_anybody(ground: Ground, lead: dict) -> None:
    with Sleeper() as dispatcher, ground.store() as store:
        task = store.tasks.request(lead, {"type": "implement", "title": "x", "idempotency_key": "k"})["task"]
        name = runs.name_of("implementer", "k")
        row = store.spawn_locks.take(lead, name, task["id"], "reserved")
        content = json.loads(row["content"])
        content["by"] = [store.here, *dispatcher.identity]
        ground.sql("UPDATE context SET content = ?", json.dumps(content))
        assert "lock" in dispatch(ground, lead, idempotency_key="k")
        dispatcher.end()
        assert "ui_command_id" in dispatch(ground, lead, idempotency_key="k")
    assert len(mutexes(ground)) == len(orders(ground)) == 1
    released = ground.sql("SELECT payload FROM events WHERE type = 'context.lock_released'")
    assert [json.loads(row["payload"])["reason"] for row in released] == ["spawn_void"]


def test_a_dispatch_killed_right_after_its_request(ground: Ground, lead: dict) -> None:
    first = dispatch(ground, lead)
    with Sleeper() as dispatcher, ground.store() as store:
        note = {"stage": "starting", "instance_id": first["instance_id"], "by": [store.here, *dispatcher.identity]}
        ground.sql("UPDATE context SET content = ?", json.dumps(note))
        dispatcher.end()
        again = dispatch(ground, lead)
    assert (again["ui_command_id"], again["instance_id"]) == (first["ui_command_id"], first["instance_id"])
    assert len(orders(ground)) == 1


def test_another_programs_spawn_lock_is_honoured(ground: Ground, lead: dict) -> None:
    task_id = dispatch(ground, lead, spawn=False, idempotency_key="k")["task_id"]
    stranger = ground.stranger("foreign")
    name = runs.name_of("implementer", "k")
    for content in ("", "spawning", "[1]", '{"stage": "starting"}', '{"stage": "starting", "by": [1, 2, 3]}'):
        ground.sql("DELETE FROM context")
        ground.add(
            "context", id="c", scope=ground.scope, instance_id=stranger, file=name, type="lock", content=content,
            task_id=task_id,
        )  # fmt: skip
        assert dispatch(ground, lead, idempotency_key="k", role="implementer", force_spawn=True)["lock"]["id"] == "c"
    assert orders(ground) == []


def test_every_spawner_can_be_loaded() -> None:
    assert {name: spawner(name).patience for name in SPAWNERS} == {
        "process": 30.0, "swarm-ui": 5.0,
    }  # fmt: skip


def test_an_order_that_has_vanished_is_a_failure(ground: Ground, lead: dict) -> None:
    with ground.store() as store, pytest.raises(SpawnFailed, match="7"):
        UiShells().look(store, {"ui_command_id": 7, "instance_id": "i"})


def test_a_fault_in_a_spawner_does_not_block_the_next_dispatch(ground: Ground, lead: dict, monkeypatch) -> None:
    def fault(*_anything) -> dict:
        raise RuntimeError("bug")

    with monkeypatch.context() as patched:
        patched.setattr(UiShells, "start", fault)
        with pytest.raises(RuntimeError):
            dispatch(ground, lead)
    assert mutexes(ground) == []
    assert "ui_command_id" in dispatch(ground, lead)


def test_the_lock_does_not_outlive_the_task(ground: Ground, lead: dict, store: Store) -> None:
    task_id = dispatch(ground, lead)["task_id"]
    store.tasks.end(lead, task_id, "cancelled")
    for lock in mutexes(ground):
        assert runs.is_void(store.database, Lock(lock))


def test_a_spawn_is_waited_for_without_looking_all_the_time(ground: Ground, lead: dict, store: Store) -> None:
    burnt = time.process_time()
    under_way = Dispatch(lead, DispatchRequest("Do it", spawner="ui", wait_seconds=None))
    assert under_way.advance(store) is None and 4.5 < under_way.seconds_left() <= 5
    dispatch(ground, lead, "Other", wait_seconds=0.7)
    assert time.process_time() - burnt < 0.4
