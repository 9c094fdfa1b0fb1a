"""Dispatch: its permission, equal dispatches, the choice of a worker, and waiting for its end."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from support import many_processes as crowd
from support.fixtures import SWARM, Ground, wait_for
from support.requirement import requirement
from support.serving import Server

from swarm_hook_core.process import start_time
from swarm_mcp.agents.dispatch.dispatch import CompletionWait, Dispatch, carry_out
from swarm_mcp.agents.dispatch.request import DispatchRequest
from swarm_mcp.domain import TASK_COLUMNS
from swarm_mcp.errors import Refused
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow

GATEWAY = "identity:p mode:gateway role:planner"
ANSWER = ["status", "task_id", "task"]


@pytest.fixture
def worker(ground: Ground) -> dict:
    return ground.session("w", "identity:p role:implementer")


def dispatch(ground: Ground, requester: dict, title: str = "Do it", **given) -> dict:
    """Return the answer to a dispatch without a new worker."""
    given.setdefault("spawn", False)
    with ground.store() as store:
        return carry_out(store, requester, DispatchRequest(title, **given))


def tasks(ground: Ground) -> list[dict]:
    return ground.sql("SELECT * FROM tasks ORDER BY rowid")


def mail(ground: Ground, row: dict) -> list[str]:
    """Return a session's unread mail."""
    found = ground.sql("SELECT content FROM messages WHERE recipient = ? AND read = 0 ORDER BY id", row["id"])
    return [each["content"] for each in found]


@requirement("P-22")
def test_only_a_gateway_dispatches(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = ground.session("w", "identity:p role:mode:gateway notmode:gateway")
    with pytest.raises(Refused, match="gateway-only"):
        dispatch(ground, worker)
    for text in ("", "0", "no", "maybe"):
        monkeypatch.setenv("SWARM_MCP_ALLOW_SPAWN", text)
        with pytest.raises(Refused, match="gateway-only"):
            dispatch(ground, worker)
    assert tasks(ground) == []
    monkeypatch.setenv("SWARM_MCP_ALLOW_SPAWN", "YES")
    assert dispatch(ground, worker)["status"] == "no_worker"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"title": "  "}, "title"),
        ({"role": "a b"}, "role"),
        ({"role": "../x"}, "role"),
        ({"spawner": "nope"}, r'"nope"\. Registered spawners: process, swarm-ui\.'),
        ({"spawner": "tmux"}, "tmux starts no workers any more: leave the spawner out"),
        ({"harness": "rm -rf"}, "harness"),
        ({"spawn": True, "cwd": "missing"}, "no such folder"),
        ({"type": "dance"}, "type"),
        ({"depends_on": ("t9",)}, "t9"),
        ({"parent_task_id": "t9"}, "t9"),
        ({"files": ("",)}, "path"),
        ({}, "screen"),
    ],
)
def test_a_senseless_request_makes_no_task(ground: Ground, lead: dict, monkeypatch, given: dict, words: str) -> None:
    if not given:
        monkeypatch.setenv("SWARM_SPAWNER", "screen")
    with pytest.raises(Refused, match=words):
        dispatch(ground, lead, **{"title": "Do it", **given})
    assert tasks(ground) == []


@requirement("P-20")
def test_a_live_worker_of_the_role_gets_the_task_and_the_message(ground: Ground, lead: dict) -> None:
    ground.session("r", "identity:p role:reviewer")
    generalist = ground.session("g", "identity:p")
    worker = ground.session("w", "identity:p role:implementer")
    answer = dispatch(ground, lead, message="Mind the tests", files=("a.py",), priority=3)
    assert list(answer) == [*ANSWER, "recipient", "prompt", "promotion"]
    assert (answer["status"], answer["recipient"]) == ("dispatched", worker["id"])
    (task,) = tasks(ground)
    assert answer["task_id"] == answer["task"]["id"] == task["id"]
    assert (task["assignee"], task["status"], task["requester"]) == (worker["id"], "claimed", lead["id"])
    assert (task["type"], task["title"], task["description"]) == ("implement", "Do it", "Mind the tests")
    assert (answer["task"]["files"], task["priority"]) == ([f"{ground.scope}/a.py"], 3)
    assert list(answer["task"]) == list(TASK_COLUMNS)
    assert mail(ground, worker) == [f"[task:{task['id']}] Mind the tests"]
    assert mail(ground, generalist) == []
    sent = answer["prompt"]
    assert (sent["message_sent"], sent["sender"], sent["recipient"]) == (True, lead["id"], worker["id"])
    assert sent["nudged"] is False and "nudge_skipped" in sent
    decision = {"promote": False, "reason": "no_tracker_configured", "identity": "p", "provider": None}
    assert answer["promotion"] == {"decision": decision}


@pytest.mark.parametrize("label", ["identity:p", "role:generalist", "identity:p role:generalist"])
def test_a_generalist_does_where_nobody_has_the_role(ground: Ground, lead: dict, label: str) -> None:
    ground.session("r", "identity:p role:reviewer")
    worker = ground.session("g", label)
    assert dispatch(ground, lead)["recipient"] == worker["id"]


def test_strangers_the_dead_other_scopes_and_oneself_get_nothing(ground: Ground) -> None:
    lead = ground.session("lead", "identity:p mode:gateway role:implementer")
    ground.session("stranger", "identity:q role:implementer")
    ground.session("else", "identity:p role:implementer", directory=str(ground.folder), scope=str(ground.folder))
    dead = ground.session("dead", "identity:p role:implementer")
    ground.backdate(dead, 90000)
    answer = dispatch(ground, lead)
    assert list(answer) == [*ANSWER, "role", "promotion"]
    assert (answer["status"], answer["role"], answer["task"]["status"]) == ("no_worker", "implementer", "open")
    assert ground.sql("SELECT * FROM messages") == []


def test_sessions_that_can_do_no_work_get_none(ground: Ground, lead: dict) -> None:
    """Lock holders, rows kept for their locks, a person's shell, sessions started by a run, and workers of a run."""
    hold = subprocess.Popen(
        [*SWARM, "hold", "a.txt", "--", "sleep", "60"],
        cwd=ground.repo,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_for(lambda: ground.sql("SELECT 1 FROM swarm_sessions WHERE runtime = 'hold'"))
        assert ground.process("lock", "b.txt", "--detach", "--ttl", "60").code == 0
        ground.session("shell", "origin:terminal", runtime="terminal")
        ground.session("run", "role:implementer", runtime="run")
        busy = ground.session("busy", "role:implementer")
        with ground.store() as store:
            run = {"id": "r1", "instance_id": busy["id"], "scope": ground.scope, "harness": "pi", "cwd": ground.scope}
            store.runs.begin(run)
        answer = dispatch(ground, lead)
        assert (answer["status"], answer["task"]["status"]) == ("no_worker", "open")
    finally:
        hold.terminate()
        hold.wait(60)
    assert ground.sql("SELECT * FROM messages") == []


def test_a_session_that_another_agent_has_started_works_for_that_one(ground: Ground, lead: dict) -> None:
    words = "import subprocess, sys; print(subprocess.Popen(['sleep', '60']).pid, flush=True); sys.stdin.read()"
    outer = subprocess.Popen(
        [sys.executable, "-c", words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        inner = int(outer.stdout.readline())
        helper = ground.session("helper", "role:implementer", client=(inner, start_time(inner)))
        assert dispatch(ground, lead, "One")["recipient"] == helper["id"], "nobody is known to have started it"
        ground.session("outer", "role:planner", client=(outer.pid, start_time(outer.pid)))
        assert dispatch(ground, lead, "Two")["status"] == "no_worker"
    finally:
        os.killpg(outer.pid, signal.SIGKILL)
        outer.wait()
        outer.stdin.close()
        outer.stdout.close()


def test_force_spawn_passes_live_workers_over(ground: Ground, lead: dict, worker: dict) -> None:
    answer = dispatch(ground, lead, force_spawn=True)
    assert (answer["status"], answer["task"]["assignee"]) == ("no_worker", None)
    assert mail(ground, worker) == []


def test_a_worker_that_leaves_at_that_moment_is_not_waited_for(ground: Ground, lead: dict, store: Store) -> None:
    first = ground.session("w1", "identity:p role:implementer")
    second = ground.session("w2", "identity:p role:implementer")
    look = store.instances.on_all_machines

    def and_then_it_leaves(scope: str) -> list[dict]:
        found = look(scope)
        store.instances.remove(first["id"])
        return found

    store.instances.on_all_machines = and_then_it_leaves
    answer = carry_out(store, lead, DispatchRequest("Do it", spawn=False))
    assert (answer["status"], answer["recipient"]) == ("dispatched", second["id"])


def test_the_idempotency_key(ground: Ground, lead: dict) -> None:
    task = dispatch(ground, lead, " Do it ", type="fix", role="role:Reviewer")["task"]
    text = "\0".join([ground.scope, "identity:p", "fix", "Do it", "reviewer"])
    assert task["idempotency_key"] == "dispatch:" + hashlib.sha256(text.encode()).hexdigest()[:16]
    assert dispatch(ground, lead, "Other", idempotency_key=" k ")["task"]["idempotency_key"] == "k"


def test_a_repeated_dispatch_is_the_same_task(ground: Ground, lead: dict) -> None:
    first = dispatch(ground, lead, message="One")
    again = dispatch(ground, lead, message="Two")
    assert (first["task_id"], first["task"]) == (again["task_id"], again["task"])
    assert list(again) == [*ANSWER, "role"], "the decision was taken once"
    for other in ({"type": "fix"}, {"role": "reviewer"}, {"title": "Do that"}, {"idempotency_key": "k"}):
        assert dispatch(ground, lead, **{"title": "Do it", **other})["task_id"] != first["task_id"]


def test_instructions_are_not_repeated_while_they_lie_unread(ground: Ground, lead: dict, worker: dict) -> None:
    text = f"[task:{dispatch(ground, lead)['task_id']}] Do it"
    assert dispatch(ground, lead)["status"] == "dispatched"
    assert mail(ground, worker) == [text]
    ground.sql("UPDATE messages SET read = 1")
    dispatch(ground, lead)
    assert mail(ground, worker) == [text], "a reminder, once the first was read"
    dispatch(ground, lead, message="Hurry")
    assert mail(ground, worker) == [text, text.replace("Do it", "Hurry")]


def test_a_waiting_task_goes_to_the_worker_that_has_come(ground: Ground, lead: dict) -> None:
    dispatch(ground, lead)
    worker = ground.session("w", "identity:p role:implementer")
    answer = dispatch(ground, lead)
    assert (answer["status"], answer["recipient"]) == ("dispatched", worker["id"])
    assert (answer["task"]["status"], answer["task"]["assignee"]) == ("claimed", worker["id"])
    assert len(mail(ground, worker)) == 1
    (event,) = ground.sql("SELECT * FROM events WHERE type = 'task.reserved'")
    assert (event["actor"], event["subject"]) == (worker["id"], answer["task_id"])


def test_a_task_stays_with_whoever_has_it(ground: Ground, lead: dict, store: Store) -> None:
    holder = ground.session("w2", "identity:p role:other")
    task_id = dispatch(ground, lead)["task_id"]
    store.tasks.claim(holder, task_id)
    worker = ground.session("w1", "identity:p role:implementer")
    answer = dispatch(ground, lead)
    assert (answer["recipient"], answer["task"]["status"]) == (holder["id"], "in_progress")
    assert mail(ground, worker) == []


def test_what_has_ended_is_not_done_again(ground: Ground, lead: dict, store: Store, worker: dict) -> None:
    task_id = dispatch(ground, lead)["task_id"]
    store.tasks.end(worker, task_id, "failed", "no")
    ground.sql("UPDATE messages SET read = 1")
    answer = dispatch(ground, lead, completion_wait_seconds=30)
    assert list(answer) == [*ANSWER, "completion"]
    assert (answer["status"], answer["completion"]["task_status"]) == ("already_terminal", "failed")
    assert mail(ground, worker) == []


def test_a_key_that_is_a_strangers_is_not_passed_on(ground: Ground, lead: dict) -> None:
    stranger = ground.session("stranger", "identity:q mode:gateway")
    helper = ground.session("helper", "identity:q role:implementer")
    dispatch(ground, stranger, "Secret", idempotency_key="k")
    ground.sql("DELETE FROM messages")
    with pytest.raises(Refused, match='"k" is that of a task of another identity') as refusal:
        dispatch(ground, lead, "Mine", idempotency_key="k")
    assert "Secret" not in str(refusal.value.answer)
    assert mail(ground, helper) == []


def test_eight_dispatches_at_once_are_one_task_and_one_message(ground: Ground, lead: dict, worker: dict) -> None:
    body = """
from swarm_mcp.agents.dispatch.dispatch import carry_out
from swarm_mcp.agents.dispatch.request import DispatchRequest
with Store() as store:
    lead = store.instances.live(arguments)
    gate()
    answer = carry_out(store, lead, DispatchRequest("Do it", spawn=False))
    report([answer["status"], answer["task_id"], "promotion" in answer])
"""
    members = crowd.run(body, [lead["id"]] * 8)
    assert [member.err for member in members if member.code] == []
    (task,) = tasks(ground)
    found = [member.reports[0] for member in members]
    assert {(status, task_id) for status, task_id, _ in found} == {("dispatched", task["id"])}
    assert sum(first for *_, first in found) == 1, "one of them made it"
    assert task["assignee"] == worker["id"]
    assert mail(ground, worker) == [f"[task:{task['id']}] Do it"]


def configure(ground: Ground, value: dict) -> None:
    ground.add("kv", scope=ground.scope, key="config/work_tracker/p", value=json.dumps(value))


def links(ground: Ground) -> dict[str, str]:
    rows = ground.sql("SELECT key, value FROM kv WHERE key LIKE 'tracker/%'")
    return {row["key"]: json.loads(row["value"])["identifier"] for row in rows}


def test_promoted_work_demands_an_entry(ground: Ground, lead: dict) -> None:
    configure(ground, {"provider": "jira"})
    answer = dispatch(ground, lead, files=("a", "b"))
    assert answer["promotion"]["decision"]["reason"] == "medium_or_larger"
    assert (answer["task"]["tracker_required"], answer["task"]["tracker_provider"]) == (1, "jira")
    small = dispatch(ground, lead, "Small")
    assert (small["task"]["tracker_required"], small["task"]["tracker_provider"]) == (0, None)
    assert dispatch(ground, lead, "Told to", promote=True)["task"]["tracker_required"] == 1
    assert dispatch(ground, lead, "Told not to", promote=False, files=("a", "b"))["task"]["tracker_required"] == 0
    assert links(ground) == {}


def test_work_with_an_entry_is_linked_to_it_and_so_are_its_parts(ground: Ground, lead: dict) -> None:
    configure(ground, {"provider": "linear"})
    whole = dispatch(ground, lead, promote_identifier="ENG-1")["task_id"]
    part = dispatch(ground, lead, "Part", parent_task_id=whole)
    named = dispatch(ground, lead, "See linear:eng-2 first")["task_id"]
    plain = dispatch(ground, lead, "Move to UTF-8 and SHA-256")["task"]
    routine = dispatch(ground, lead, "A part of that", parent_task_id=plain["id"], files=("a", "b"))
    assert part["promotion"]["decision"]["reason"] == "parent_binding_inherited"
    assert routine["promotion"]["decision"]["reason"] == "parent_routine_skipped"
    assert plain["tracker_required"] == 0
    tracker = "tracker/linear/p/"
    expected = {tracker + whole: "ENG-1", tracker + part["task_id"]: "ENG-1", tracker + named: "ENG-2"}
    assert links(ground) == expected


def test_a_link_that_a_killed_dispatch_left_out_is_made_by_the_next(ground: Ground, lead: dict) -> None:
    configure(ground, {"provider": "linear"})
    task_id = dispatch(ground, lead, promote_identifier="https://linear.app/x/issue/ENG-9/slug")["task_id"]
    ground.sql("DELETE FROM kv WHERE key LIKE 'tracker/%'")
    dispatch(ground, lead, promote_identifier="https://linear.app/x/issue/ENG-9/slug")
    (row,) = ground.sql("SELECT * FROM kv WHERE key LIKE 'tracker/%'")
    assert row["key"].endswith(task_id)
    value = json.loads(row["value"])
    assert (value["identifier"], value["url"]) == ("ENG-9", "https://linear.app/x/issue/ENG-9/slug")


def later(seconds: float, act) -> threading.Thread:
    """`act()` in a thread, `seconds` from now."""
    thread = threading.Timer(seconds, act)
    thread.start()
    return thread


def finish(ground: Ground, worker: dict, task_id: str, result: str = "all good") -> None:
    with ground.store() as store:
        store.tasks.end(worker, task_id, "done", result)


def test_the_wait_ends_with_the_task_and_brings_its_mail(ground: Ground, lead: dict, store: Store) -> None:
    worker = ground.session("w", "identity:p role:implementer")
    task_id = dispatch(ground, lead)["task_id"]
    store.messages.send(worker, lead["id"], "about something else")
    store.messages.send(worker, lead["id"], f"[task:{task_id}] half way")
    thread = later(0.4, lambda: finish(ground, worker, task_id))
    begun = time.monotonic()
    answer = carry_out(store, lead, DispatchRequest("Do it", completion_wait_seconds=600))
    thread.join()
    assert time.monotonic() - begun < 600
    ended = answer["completion"]
    assert ended["waited_ms"] == round(1000 * ended["waited_seconds"]) > 0
    named = ["status", "task_id", "waited_seconds", "waited_ms", "task_status", "result", "task", "messages"]
    assert list(ended) == named
    assert (ended["status"], ended["task_status"], ended["result"]) == ("completed", "done", "all good")
    assert [m["content"].split("] ")[0] for m in ended["messages"]] == [f"[task:{task_id}"] * 2
    assert "half way" in ended["messages"][0]["content"] and "all good" in ended["messages"][1]["content"]
    # Handed out, not yet delivered: no other caller gets them meanwhile, and nothing is lost.
    assert len(mail(ground, lead)) == 3
    assert [m["content"] for m in store.messages.peek(lead)] == ["about something else"]
    store.messages.acknowledge([m["id"] for m in ended["messages"]])
    assert mail(ground, lead) == ["about something else"]


def test_the_wait_ends_in_time(ground: Ground, lead: dict, store: Store, worker: dict) -> None:
    task_id = dispatch(ground, lead)["task_id"]
    store.messages.send(worker, lead["id"], f"[task:{task_id}] a question")
    begun, burnt = time.monotonic(), time.process_time()
    ended = carry_out(store, lead, DispatchRequest("Do it", completion_wait_seconds=2.0))["completion"]
    took, used = time.monotonic() - begun, time.process_time() - burnt
    assert took >= 2.0 and used < 1.0, "sleeps, does not spin"
    assert (ended["status"], ended["task_status"], ended["result"]) == ("timeout", "claimed", None)
    assert [m["content"] for m in ended["messages"]] == [f"[task:{task_id}] a question"]


def test_the_wait_ends_where_the_task_is_gone(ground: Ground, lead: dict) -> None:
    ground.session("w", "identity:p role:implementer")
    task_id = dispatch(ground, lead)["task_id"]
    thread = later(0.3, lambda: ground.sql("DELETE FROM tasks WHERE id = ?", task_id))
    ended = dispatch(ground, lead, completion_wait_seconds=30)["completion"]
    thread.join()
    assert list(ended) == ["status", "task_id", "waited_seconds", "waited_ms", "messages"]
    assert (ended["status"], ended["task_id"]) == ("missing", task_id)


def test_mail_that_is_being_handed_to_somebody_else_is_left_alone(ground: Ground, lead: dict, store: Store) -> None:
    worker = ground.session("w", "identity:p role:implementer")
    task_id = dispatch(ground, lead)["task_id"]
    finish(ground, worker, task_id)
    assert len(store.messages.take(lead)) == 1
    assert CompletionWait.of(lead, task_id, 5).look(store)["messages"] == []


def test_the_command_says_what_came_of_it(ground: Ground, lead: dict, worker: dict) -> None:
    done = ground.swarm("dispatch", "Do", "it", "--no-spawn", "--as", lead["id"])
    (task,) = tasks(ground)
    assert (done.code, done.out) == (0, f"dispatched task {task['id']} to implementer {worker['id'][:8]}\n")
    done = ground.swarm(
        "dispatch", "T", "--role", "reviewer", "--no-spawn", "--as", lead["id"], "--json",
        "--message", "M", "--description", "D", "--type", "fix", "--file", "a", "--file", "b", "--priority", "4",
        "--depends-on", f"{task['id']}, ", "--parent-task", task["id"], "--idempotency-key", "k",
        "--approval-required",
    )  # fmt: skip
    made = done.json["task"]
    assert (done.code, done.json["status"], made["status"]) == (0, "no_worker", "approval_required")
    assert (made["description"], made["type"], made["priority"]) == ("D", "fix", 4)
    assert (made["depends_on"], made["parent_task_id"], made["idempotency_key"]) == ([task["id"]], task["id"], "k")
    assert made["files"] == [f"{ground.scope}/a", f"{ground.scope}/b"]
    assert "no live worker for role reviewer" in ground.swarm(
        "dispatch", "T", "--role", "reviewer", "--no-spawn", "--as", lead["id"], "--type", "fix"
    ).out  # fmt: skip


def test_the_command_is_refused_in_one_line(ground: Ground, lead: dict, worker: dict) -> None:
    done = ground.swarm("dispatch", "T", "--as", worker["id"])
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert done.err.startswith("swarm-mcp dispatch: dispatch is gateway-only")
    done = ground.swarm("dispatch", "T", "--as", worker["id"], "--json")
    assert (done.code, list(done.json)) == (1, ["error"])
    done = ground.swarm("dispatch", "T", "--spawner", "nope", "--as", lead["id"])
    assert (done.code, done.out) == (1, "") and '"nope"' in done.err
    done = ground.swarm("dispatch", "--as", lead["id"])
    assert done.code == 2 and "title" in done.err


@pytest.mark.parametrize("as_json", [True, False])
def test_what_the_command_has_printed_is_read(ground: Ground, lead: dict, as_json: bool, worker: dict) -> None:
    task_id = dispatch(ground, lead)["task_id"]
    finish(ground, worker, task_id)
    more = ["--json"] if as_json else []
    flag = "--completion-wait" if as_json else "--wait-for-completion"
    done = ground.swarm("dispatch", "Do it", flag, "5", "--as", lead["id"], *more)
    assert done.code == 0
    if as_json:
        assert done.json["completion"]["status"] == "completed"
    else:
        first, waiting, second, third = done.out.splitlines()
        assert (first, second) == (f"task {task_id} is already done", f"task {task_id} done: all good")
        assert waiting == f"waiting for task {task_id[:8]} to end, at most 5 s ..."
        assert third.startswith(f"message from implementer {worker['id'][:8]}: [task:{task_id}] ")
    assert ground.sql("SELECT 1 FROM messages WHERE recipient = ? AND read = 0", lead["id"]) == []
    assert ground.sql("SELECT 1 FROM swarm_deliveries") == []


def test_what_the_command_could_not_print_is_not_lost(ground: Ground, lead: dict, store: Store, worker: dict) -> None:
    finish(ground, worker, dispatch(ground, lead)["task_id"])
    argv = [*SWARM, "dispatch", "Do it", "--completion-wait", "5", "--as", lead["id"], "--json"]
    process = subprocess.Popen(argv, cwd=ground.repo, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()  # a reader that has left
    process.stdout = None
    process.communicate(timeout=60)
    assert process.returncode == 0
    (left,) = store.messages.peek(lead)
    assert "all good" in left["content"]


@requirement("P-22")
def test_the_tool_hands_over_and_waits(ground: Ground, lead: dict, worker: dict) -> None:
    with Server(ground) as server:
        assert server.text("dispatch", {"title": "T"}) == "Not registered. Call register first."
        row = server.value("register", {"directory": ground.scope, "label": GATEWAY})
        answer = server.value("dispatch", {"title": "T", "spawn": False, "message": "M", "files": ["a"]})
        assert (answer["status"], answer["recipient"]) == ("dispatched", worker["id"])
        assert (answer["task"]["requester"], answer["task"]["description"]) == (row["id"], "M")
        assert list(server.value("dispatch", {"title": "T", "spawner": "nope"})) == ["error"]
        asked = {"title": "T", "spawn": False, "completion_wait_seconds": 600}
        waiting = server.begin("tools/call", {"name": "dispatch", "arguments": asked})
        assert server.value("whoami")["id"] == row["id"], "one that waits holds nobody up"
        finish(ground, worker, answer["task_id"])
        ended = server.answer_to(waiting)["structuredContent"]["completion"]
        assert (ended["status"], len(ended["messages"])) == ("completed", 1)
        assert ground.sql("SELECT read FROM messages WHERE id = ?", ended["messages"][0]["id"])
        wait_for(lambda: mail(ground, row) == [], 5)  # delivered mail is read


def test_a_dispatch_needs_no_second_look_without_change(ground: Ground, lead: dict, store: Store) -> None:
    under_way = Dispatch(lead, DispatchRequest("Do it", spawn=False, completion_wait_seconds=5))
    assert under_way.advance(store) is None
    assert 4 < under_way.seconds_left() <= 5
    assert under_way.advance(store) is None
    assert len(tasks(ground)) == 1
