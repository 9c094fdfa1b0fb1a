"""Workers that are supervised in the background: from dispatch to the end of the task, however that comes."""

import json
import os
import signal
import threading
from pathlib import Path

import pytest
from support.fixtures import Ground, Sleeper, wait_for
from support.requirement import requirement
from support.supervised import alive, child_of, dispatch, mutexes, over, reaches, run_of, task

from swarm_mcp.agents.dispatch.dispatch import Dispatch, carry_out
from swarm_mcp.agents.dispatch.processes import Processes
from swarm_mcp.agents.dispatch.request import DispatchRequest, SpawnFailed, WorkerSpec
from swarm_mcp.doctor import recorded_faults
from swarm_mcp.errors import Refused
from swarm_mcp.store import Store, runs

pytestmark = pytest.mark.slow

WAIT = "while [ ! -e go ]; do sleep 0.05; done"
FOR_EVER = "echo $$ > pid; sleep 600 & wait"


def events(ground: Ground, answer: dict) -> list[str]:
    found = ground.sql("SELECT type FROM events WHERE subject = ? ORDER BY id", answer["task_id"])
    return [row["type"].removeprefix("task.") for row in found]


@requirement("A-29")
def test_a_dispatched_task_is_done_by_a_process_that_outlives_the_dispatch(ground: Ground, lead: dict) -> None:
    script = f"cat > told; echo $SWARM_TASK_ID $SWARM_AGENT_ROLE >> told; {WAIT}; echo fine"
    done = ground.process(
        "dispatch", "Do it", "--message", "Mind the tests", "--harness", "process", "--as", lead["id"], "--json",
        "--command", f"/bin/sh -c '{script}'", start_new_session=True,
    )  # fmt: skip
    answer = done.json
    assert (done.code, answer["status"], answer["spawner"]) == (0, "spawned", "process")
    worker = ground.sql("SELECT * FROM instances WHERE id = ?", answer["instance_id"])[0]
    assert worker["label"] == f"identity:p role:implementer origin:process run:{answer['run_id'][:8]}"
    assert reaches(ground, answer, "in_progress")["assignee"] == worker["id"]
    assert mutexes(ground) == []
    ground.repo.joinpath("go").touch()
    assert reaches(ground, answer, "done")["result"] == "fine"
    row = over(ground, answer)
    assert (row["state"], row["id"], row["requester"]) == ("ended", answer["run_id"], lead["id"])
    assert (row["result"]["is_error"], row["cost_usd"]) == (False, None)
    record = [json.loads(line) for line in Path(row["record"]).read_text().splitlines()]
    assert record[-1]["type"] == "result" and record[-1]["output"] == "fine"
    told = (ground.repo / "told").read_text()
    assert "Mind the tests" in told and told.endswith(f"{answer['task_id']} implementer\n")
    assert events(ground, answer)[:3] == ["created", "reserved", "claimed"] and events(ground, answer)[-1] == "updated"
    (word,) = ground.mail(lead["id"])
    assert "Done" in word and "fine" in word
    assert ground.sql("SELECT * FROM instances WHERE id = ?", worker["id"]) == []
    assert list(Path(os.environ["SWARM_STATE_DIR"], "work").iterdir()) == []
    assert sorted(path.name for path in ground.repo.iterdir()) == [".git", "go", "told"]


def test_naming_a_harness_starts_a_worker(ground: Ground, lead: dict) -> None:
    """A live session of the role was not started like that; one that has the task already is said to have it."""
    idle = ground.session("idle", "identity:p role:implementer")
    answer = dispatch(ground, lead, "Mine", "echo did it", completion_wait_seconds=20)
    assert (answer["status"], answer["completion"]["result"]) == ("spawned", "did it")
    assert ground.mail(idle["id"]) == []
    taken = dispatch(ground, lead, "Taken", spawn=False, harness="")
    assert (taken["status"], taken["recipient"]) == ("dispatched", idle["id"])
    done = ground.process(
        "dispatch", "Taken", "--harness", "process", "--command", "touch no", "--as", lead["id"], start_new_session=True
    )
    assert done.code == 0 and f"no worker was started: implementer {idle['id'][:8]} works on it already" in done.out
    assert not (ground.repo / "no").exists()


def test_secrets_of_a_dispatch_are_not_kept(ground: Ground, lead: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://u:tr0ub4dor-3@db/shop")
    words = ("dispatch", "Use tr0ub4dor-3", "--message", "Log in with tr0ub4dor-3", "--harness", "process", "--command",
             "/bin/sh -c 'cat > told'", "--completion-wait", "20", "--as", lead["id"])  # fmt: skip
    for _ in range(2):
        done = ground.process(*words, start_new_session=True)
        assert done.code == 0 and "the task's title and description have it masked" in done.err
    (row,) = ground.sql("SELECT * FROM tasks")
    assert (row["title"], row["description"]) == ("Use [REDACTED:DATABASE_URL]", "Log in with [REDACTED:DATABASE_URL]")
    assert "Log in with tr0ub4dor-3" in (ground.repo / "told").read_text()
    assert ground.sql("SELECT * FROM messages WHERE content LIKE '%tr0ub4dor%'") == []
    plain = ground.process("dispatch", "Plain", "--no-spawn", "--as", lead["id"], start_new_session=True)
    assert plain.err == ""


def test_a_worker_that_ends_its_task_itself_has_the_last_word(ground: Ground, lead: dict) -> None:
    words = "from support.fixtures import Ground; from swarm_mcp.store import Store; import os, sys"
    script = f"""{words}
with Store() as store:
    me = store.instances.live(os.environ["SWARM_MCP_INSTANCE_ID"])
    store.tasks.end(me, os.environ["SWARM_TASK_ID"], "failed", "mine")
print("theirs")"""
    program = ground.repo / "agent.py"
    program.write_text(f"import sys; sys.path[:0] = {__import__('sys').path!r}\n{script}\n")
    answer = dispatch(
        ground, lead, command=f"{__import__('sys').executable} {program}", completion_wait_seconds=20
    )  # fmt: skip
    assert (answer["completion"]["task_status"], answer["completion"]["result"]) == ("failed", "mine")
    assert over(ground, answer)["result"]["output"] == "theirs"
    assert task(ground, answer)["result"] == "mine"


def test_a_worker_that_ends_before_the_dispatch_looks(ground: Ground, lead: dict, store: Store) -> None:
    under_way = Dispatch(lead, DispatchRequest("Do it", harness="process", command="echo quick", spawner="process"))
    assert under_way.advance(store) is None
    made = {"task_id": ground.sql("SELECT id FROM tasks")[0]["id"]}
    reaches(ground, made, "done")
    over(ground, made)
    answer = under_way.advance(store)
    assert (answer["status"], answer["task"]["status"], answer["task"]["result"]) == ("spawned", "done", "quick")
    assert mutexes(ground) == []


def test_a_task_that_waits_for_another_begins_after_it(ground: Ground, lead: dict) -> None:
    first = dispatch(ground, lead, "first", f"{WAIT}; echo one")
    second = dispatch(ground, lead, "second", "echo two", depends_on=(first["task_id"],))
    assert (second["status"], task(ground, second)["status"]) == ("spawned", "blocked")
    ground.repo.joinpath("go").touch()
    assert reaches(ground, second, "done")["result"] == "two"


@requirement("A-28")
def test_workers_beyond_the_cap_wait_and_say_so(ground: Ground, lead: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_MAX_WORKERS", "1")
    answers = [dispatch(ground, lead, name, f"{WAIT}; echo ok") for name in "ab"]
    assert len({answer["instance_id"] for answer in answers}) == 2, "a worker that has a task is given no other"
    reaches(ground, answers[0], "in_progress")
    wait_for(lambda: task(ground, answers[1])["progress_summary"] == "waits for a free slot")
    assert task(ground, answers[1])["status"] == "claimed"
    ground.repo.joinpath("go").touch()
    for answer in answers:
        assert reaches(ground, answer, "done")["result"] == "ok"


def test_dispatches_at_once_start_one_worker(ground: Ground, lead: dict) -> None:
    answers: list[dict] = []
    script = "echo x >> runs; while [ ! -e go ]; do sleep 0.05; done"
    threads = [threading.Thread(target=lambda: answers.append(dispatch(ground, lead, script=script))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {answer["task_id"] for answer in answers} == {answers[0]["task_id"]}
    reaches(ground, answers[0], "in_progress")
    again = dispatch(ground, lead, script=script)
    assert again["status"] == "dispatched"
    worker = {"id": again["recipient"]}
    assert ground.mail(worker["id"]) == [f"[task:{again['task_id']}] Do it"]
    assert ground.sql("SELECT * FROM messages WHERE read = 0") == [], "it had them with its start"
    dispatch(ground, lead, script=script, message="Hurry")
    assert ground.mail(worker["id"])[1:] == [f"[task:{again['task_id']}] Hurry"]
    ground.repo.joinpath("go").touch()
    reaches(ground, again, "done")
    assert (ground.repo / "runs").read_text() == "x\n"


def test_the_worker_of_a_killed_dispatch_is_found_by_the_next(ground: Ground, lead: dict) -> None:
    request = DispatchRequest("Do it", harness="process", command="/bin/sh -c 'while [ ! -e go ]; do sleep 0.05; done'")
    with Sleeper() as dispatcher, ground.store() as store:
        Dispatch(lead, request).advance(store)
        note = json.loads(mutexes(ground)[0]["content"])
        killed = {"stage": "starting", "instance_id": note["instance_id"], "by": [store.here, *dispatcher.identity]}
        ground.sql("UPDATE context SET content = ?", json.dumps(killed))
        dispatcher.end()
        wait_for(lambda: store.instances.live(note["instance_id"]))
        again = carry_out(store, lead, request)
    assert (again["status"], again["recipient"]) == ("dispatched", note["instance_id"])
    ground.repo.joinpath("go").touch()
    reaches(ground, again, "done")
    assert len(ground.sql("SELECT * FROM swarm_runs")) == 1


def test_a_worker_that_comes_up_after_it_was_replaced_does_nothing(ground: Ground, lead: dict, store: Store) -> None:
    made = store.tasks.request(lead, {"type": "implement", "title": "T", "idempotency_key": "k"})["task"]
    late = WorkerSpec(
        lead, made["id"], "late", "implementer", "process", ("touch", "done"), ground.scope, message="T",
        lock=runs.name_of("implementer", "k"),
    )  # fmt: skip
    ground.add(
        "context", id="c", scope=ground.scope, instance_id=lead["id"], file=late.lock, type="lock",
        content='{"stage": "started", "instance_id": "other"}', task_id=made["id"],
    )  # fmt: skip
    facts = Processes().start(store, late)
    with pytest.raises(SpawnFailed, match="another worker is being started"):
        wait_for(lambda: Processes().look(store, facts))
    assert task(ground, {"task_id": made["id"]})["status"] == "open"
    assert not (ground.repo / "done").exists()


def test_a_command_that_fails_fails_the_task(ground: Ground, lead: dict) -> None:
    answer = dispatch(ground, lead, script="echo half; echo why >&2; exit 3", completion_wait_seconds=20)
    ended = answer["completion"]
    assert ended["task_status"] == "failed" and ended["result"].startswith("process_crashed: ")
    assert ended["result"].endswith("Its last words: half")
    (word,) = ended["messages"]
    assert "Failed" in word["content"]


def test_words_that_no_store_can_keep_end_the_task_all_the_same(ground: Ground, lead: dict) -> None:
    """JSON can say half a surrogate pair; the task went back to open, with its result lost."""
    events = [
        {"type": "session_init", "session_id": "\ud800", "model": "\udfff"},
        {"type": "message", "role": "assistant", "content": "half \ud83d of a pair"},
        {"type": "result", "output": "half \ud83d of a pair", "model": "\udfff", "cost": {"input_tokens": 10**400}},
    ]
    (ground.repo / "said").write_text("".join(json.dumps(event) + "\n" for event in events))
    answer = dispatch(ground, lead, script="cat said", completion_wait_seconds=20)
    assert answer["completion"]["task_status"] == "done"
    assert answer["completion"]["result"] == "half \ufffd of a pair"
    assert over(ground, answer)["model"] == "\ufffd" and recorded_faults() == []


def test_a_program_that_is_missing(ground: Ground, lead: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = dispatch(ground, lead, command="/nowhere/agent", completion_wait_seconds=20)
    assert answer["completion"]["task_status"] == "failed"
    assert answer["completion"]["result"].startswith("not_installed: /nowhere/agent")
    monkeypatch.setenv("PATH", "/nowhere")
    answer = dispatch(ground, lead, "Other", harness="codex")
    assert (answer["status"], answer["task"]["status"]) == ("spawn_failed", "open")
    assert answer["error"].startswith("codex is not installed")
    assert mutexes(ground) == []


def test_a_run_that_takes_too_long(ground: Ground, lead: dict) -> None:
    answer = dispatch(ground, lead, script="exec sleep 600", timeout_seconds=0.3, completion_wait_seconds=20)
    assert answer["completion"]["result"].startswith("timeout: ")


def test_a_supervisor_that_cannot_join_says_why(ground: Ground, lead: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_MCP_P_ROOTS", str(ground.folder / "elsewhere"))
    answer = dispatch(ground, lead, command="true")
    assert answer["status"] == "spawn_failed" and "outside the folders" in answer["error"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_supervisor_that_is_ended_leaves_nothing_behind(ground: Ground, lead: dict, number: int) -> None:
    answer = dispatch(ground, lead, script=FOR_EVER)
    child = child_of(ground, answer)
    worker = ground.sql("SELECT * FROM instances WHERE id = ?", answer["instance_id"])[0]
    ground.lock(worker, "src/a.py")
    row = run_of(ground, answer)
    os.kill(row["supervisor_pid"], number)
    wait_for(lambda: not alive(child))
    over(ground, answer)
    with ground.store() as store:
        assert store.instances.live(worker["id"]) is None
        assert store.locks.on(str(ground.repo / "src/a.py")) == []
        store.runs.get(row["id"])
        assert store.runs.live() == []
    (ground.repo / "pid").unlink()
    again = dispatch(ground, lead, script="echo fine", completion_wait_seconds=20)
    assert again["task_id"] == answer["task_id"] and again["completion"]["result"] == "fine"


@pytest.mark.parametrize("how", ["deleted", "garbage"])
def test_a_store_that_is_lost_ends_no_worker(ground: Ground, lead: dict, how: str) -> None:
    """The worker goes on, and a note of it is left; it used to be ended as one with a lost task."""
    answer = dispatch(ground, lead, script=f"echo $$ > pid; {WAIT}; echo whole > written")
    child, row = child_of(ground, answer), run_of(ground, answer)
    files = [Path(f"{ground.database}{ending}") for ending in ("-wal", "-shm", "")]
    for file in files:
        file.unlink(missing_ok=True)
    if how == "garbage":
        files[-1].write_bytes(b"no store at all" * 1000)
    wait_for(lambda: [fault for fault in recorded_faults() if fault["hook"] == "supervision"])
    assert alive(child)
    (ground.repo / "go").touch()
    wait_for(lambda: not alive(row["supervisor_pid"], row["supervisor_start"]))
    assert (ground.repo / "written").read_text() == "whole\n" and not alive(child)
    for file in files:
        file.unlink(missing_ok=True)


def test_options_that_no_worker_can_be_started_with(ground: Ground, lead: dict) -> None:
    for given, words in (
        ({"harness": "process"}, "needs a command"),
        ({"harness": "nope"}, "Supported: claude, codex"),
        ({"mode": "wild", "command": "x"}, "unknown mode"),
        ({"mode": "yolo", "command": "x"}, "SWARM_ALLOW_YOLO"),
        ({"effort": "some", "command": "x"}, "unknown effort"),
        ({"command": "'"}, "split"),
        ({"spawner": "swarm-ui", "harness": "codex", "model": "x"}, "swarm-ui starts a harness as it is"),
        ({"resume": "t9"}, "needs a command"),
        ({"resume": "t9", "command": "x"}, "Task not found"),
    ):
        with pytest.raises(Refused, match=words):
            dispatch(ground, lead, **given)
    assert ground.sql("SELECT * FROM tasks") == []
