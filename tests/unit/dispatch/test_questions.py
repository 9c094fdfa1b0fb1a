"""A worker asks a person about its task, and goes on with the answer, whoever is killed meanwhile."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from support import supervised
from support.fixtures import SWARM, Ground, wait_for
from support.serving import Server
from support.supervised import GATEWAY, alive, dispatch, run_of

from swarm_mcp.errors import Refused
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow

SECONDS = 240.0  # for anything that starts a process
QUESTION = "Which database?"
TOLD = f"> You asked a person: {QUESTION}\n> Their answer: the newer one\n"
# A worker asks in its first run, and ends its turn; it keeps its instructions of each run.
ASK = f"""
import os, sys
from pathlib import Path
from swarm_mcp.store import Store
run = len(list(Path().glob("told-*")))
Path(f"told-{{run}}.part").write_text(sys.stdin.read())
with Store() as store:
    me, task = store.instances.live(os.environ["SWARM_MCP_INSTANCE_ID"]), os.environ["SWARM_TASK_ID"]
    if run == 0:
        store.questions.ask(me, task, "{QUESTION}")
Path(f"told-{{run}}.part").rename(f"told-{{run}}")
"""


@pytest.fixture
def lead(ground: Ground) -> Iterator[dict]:
    yield ground.session("lead", f"{GATEWAY} lead")
    supervised.end_all(ground)


def asking(ground: Ground) -> str:
    """A worker's command that asks."""
    program = ground.folder / "ask.py"
    program.write_text(ASK)
    return f"{sys.executable} {program}"


def answered(ground: Ground, task_id: str, text: str) -> subprocess.CompletedProcess[str]:
    """Answer as a person's script does."""
    env = {**os.environ, "SWARM_MCP_ALLOW_SPAWN": "1"}
    return subprocess.run(
        [*SWARM, "task", "answer", task_id[:8], *text.split(), "--json"],
        cwd=ground.repo, env=env, capture_output=True, text=True, timeout=SECONDS, start_new_session=True, check=False,
    )  # fmt: skip


def waits(ground: Ground, answer: dict) -> dict:
    """The task once its worker has ended its turn and waits for the answer."""

    def waiting() -> dict | None:
        task, run = supervised.task(ground, answer), run_of(ground, answer)
        blocked = task["blocked_reason"] == f"a person's answer: {QUESTION}"
        return task if blocked and run["state"] == "queued" and (ground.repo / "told-0").exists() else None

    return wait_for(waiting, SECONDS)


def ended_well(ground: Ground, answer: dict) -> dict:
    return wait_for(lambda: (task := supervised.task(ground, answer))["status"] == "done" and task, SECONDS)


def test_a_worker_waits_for_the_answer_and_goes_on_with_it(ground: Ground, lead: dict) -> None:
    answer = dispatch(ground, lead, "port it", command=asking(ground))
    task = waits(ground, answer)
    (listed,) = ground.swarm("task", "list", "--json").json
    assert (listed["id"], listed["question"]) == (task["id"], QUESTION)
    assert f"asks a person: {QUESTION}" in ground.swarm("task", "list").out
    assert f'asks a person: "{QUESTION}" (swarm-mcp task answer {task["id"][:8]} TEXT)' in ground.swarm("status").out
    told = ground.sql("SELECT content FROM messages WHERE recipient = ?", lead["id"])
    assert any(QUESTION in row["content"] and f"task answer {task['id']}" in row["content"] for row in told)
    done = answered(ground, task["id"], "the newer one")
    assert done.returncode == 0 and '"the newer one"' in done.stdout, done
    ended_well(ground, answer)
    told = (ground.repo / "told-1").read_text()
    assert TOLD in told and "An earlier run of this task ended with a question to a person. Its progress:" in told
    assert "interrupted" not in told
    assert run_of(ground, answer)["result"]["attempts"] == 2
    assert supervised.task(ground, answer)["blocked_reason"] is None
    assert "question" not in ground.swarm("task", "list", "--json").json[0]
    again = answered(ground, task["id"], "the older one")
    assert again.returncode == 1 and "nobody waits for the answer" in again.stdout


@pytest.mark.parametrize("when", ["before", "after"])
def test_kill_9_of_the_worker_loses_neither_question_nor_answer(ground: Ground, lead: dict, when: str) -> None:
    command = asking(ground)
    answer = dispatch(ground, lead, "port it", command=command)
    task = waits(ground, answer)
    if when == "after":
        os.kill(run_of(ground, answer)["supervisor_pid"], signal.SIGSTOP)  # it cannot take the answer up
        assert answered(ground, task["id"], "the newer one").returncode == 0
    run = run_of(ground, answer)
    os.kill(run["supervisor_pid"], signal.SIGKILL)
    wait_for(lambda: not alive(run["supervisor_pid"], run["supervisor_start"]), SECONDS)
    dispatch(ground, lead, "", command=command, resume=task["id"])
    if when == "before":
        waits(ground, answer)  # the successor starts no agent before the answer
        assert not (ground.repo / "told-1").exists()
        assert answered(ground, task["id"], "the newer one").returncode == 0
    ended_well(ground, answer)
    assert TOLD in (ground.repo / "told-1").read_text()


def test_who_asks_and_who_answers(ground: Ground, lead: dict, store: Store) -> None:
    worker, other = ground.session("worker", "identity:p"), ground.session("other", "identity:p")
    task = store.tasks.request(lead, {"type": "fix", "title": "port it"})["task"]
    with pytest.raises(Refused, match="Only the assignee"):
        store.questions.ask(worker, task.id, QUESTION)
    store.tasks.claim(worker, task.id)
    with pytest.raises(Refused, match="waits for no answer"):
        store.questions.answer(lead, task.id, "any")
    asked, notices = store.questions.ask(worker, task.id, QUESTION)
    assert [who for who, _ in notices] == [lead["id"]]
    assert store.questions.ask(worker, task.id, QUESTION) == (asked, [])  # the same once more
    for text, why in (("Which colour?", "not answered yet"), (" ", "is empty"), ("x" * 10_001, "more than 10000")):
        with pytest.raises(Refused, match=why):
            store.questions.ask(worker, task.id, text)
    with pytest.raises(Refused, match="Only the assignee"):
        store.questions.ask(other, task.id, QUESTION)
    assert store.questions.answer(lead, task.id, "the newer one").answer == "the newer one"
    with pytest.raises(Refused, match="waits for no answer"):
        store.questions.answer(lead, task.id, "the older one")
    again, _ = store.questions.ask(worker, task.id, QUESTION)
    assert again.answer == "the newer one"
    store.tasks.report_progress(worker, task.id, "on it", "waits for CI")
    second, _ = store.questions.ask(worker, task.id, "Which colour?")
    store.questions.told([asked.id, second.id])
    assert [one.id for one in store.questions.untold(task.id)] == [second.id]  # nothing to be told yet
    store.tasks.end(worker, task.id, "done")
    with pytest.raises(Refused, match="Task is done: nobody waits"):
        store.questions.answer(lead, task.id, "red")
    assert store.questions.waiting(worker) == []
    ground.sql("UPDATE tasks SET updated_at = 1")
    store.cleanup.clean()
    assert ground.sql("SELECT * FROM swarm_questions") == []


def test_an_agent_does_not_answer(ground: Ground, lead: dict) -> None:
    env = {**os.environ, "CLAUDECODE": "1"}
    done = subprocess.run(
        [*SWARM, "task", "answer", "any", "yes"],
        cwd=ground.repo, env=env, capture_output=True, text=True, timeout=SECONDS, start_new_session=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and "an agent may not do that" in done.stderr, done


def test_the_tool_waits_for_the_answer(ground: Ground, lead: dict) -> None:
    with Server(ground) as server:
        asks = {"task_id": "none", "question": QUESTION}
        assert server.text("request_human_input", asks) == "Not registered. Call register first."
        server.call("register", {"directory": ground.scope, "label": "identity:p"})
        task = server.value("request_task", {"type": "fix", "title": "port it"})["task_id"]
        server.value("claim_task", {"task_id": task})
        first = server.value("request_human_input", {"question": QUESTION, "wait_seconds": 0})  # about the only task
        asks = {"task_id": task, "question": QUESTION}
        assert first["answer"] is None and "No answer yet" in first["next"]
        number = server.begin("tools/call", {"name": "request_human_input", "arguments": {**asks, "wait_seconds": 600}})
        with ground.store() as store:  # the server's client, which is an agent, is above this process: no command may
            store.questions.answer(lead, task, "the newer one")
        value = server.answer_to(number, SECONDS)["structuredContent"]
        assert (value["question_id"], value["answer"]) == (first["question_id"], "the newer one")

        def untold() -> list:
            with ground.store() as store:
                return list(store.questions.untold(task))

        wait_for(lambda: untold() == [], SECONDS)
        assert server.value("request_human_input", asks)["answer"] == "the newer one"  # at once
        assert server.value("request_human_input", {**asks, "task_id": "none"}) == {"error": "Task not found"}
        other = server.value("request_task", {"type": "fix", "title": "and this"})["task_id"]
        server.value("claim_task", {"task_id": other, "ignore_unread_messages": True})
        unclear = server.value("request_human_input", {"question": QUESTION})
        assert "needs task_id: you have 2 tasks" in unclear["error"] and set(unclear["tasks"]) == {task, other}
