"""``worker poll``: a standing worker takes tasks as they come, within its limits, and ends without losing any."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from support import supervised
from support.fixtures import SWARM, Ground, wait_for
from support.supervised import GATEWAY, alive, priced_claude

from swarm_mcp.agents.dispatch import all_tasks, control, standing
from swarm_mcp.agents.dispatch.request import DispatchRequest
from swarm_mcp.agents.dispatch.standing import StandingWorker

pytestmark = pytest.mark.slow

SECONDS = 240.0  # for anything that starts a process
# The worker of a task named "asks" asks a person, and ends its turn once the file "go" is there.
ASK = """
import os, time
from pathlib import Path
from swarm_mcp.store import Store
with Store() as store:
    me, task = store.instances.live(os.environ["SWARM_MCP_INSTANCE_ID"]), os.environ["SWARM_TASK_ID"]
    if store.tasks.get(me.scope, task).title == "asks":
        store.questions.ask(me, task, "Which?")
while not Path("go").exists():
    time.sleep(0.1)
"""
Poll = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def lead(ground: Ground) -> Iterator[dict]:
    yield ground.session("lead", f"{GATEWAY} lead")
    supervised.end_all(ground)


@pytest.fixture
def poll(ground: Ground, lead: dict) -> Iterator[Poll]:
    """Start a standing worker whose tasks are a shell script; it is killed after the test if it still runs."""
    begun: list[subprocess.Popen[str]] = []

    def start(script: str, *more: str) -> subprocess.Popen[str]:
        command = "/bin/sh -c " + "'" + script.replace("'", "'\\''") + "'"
        words = [*SWARM, "poll", "--as", lead["id"], "--harness", "process", "--command", command, *more, "--json"]
        begun.append(
            subprocess.Popen(words, cwd=ground.repo, start_new_session=True, stdout=subprocess.PIPE, text=True)
        )
        return begun[-1]

    yield start
    for one in begun:
        if one.poll() is None:
            one.kill()
        one.communicate()


def requested(ground: Ground, lead: dict, title: str, kind: str = "implement") -> str:
    with ground.store() as store:
        return str(store.tasks.request(lead, {"type": kind, "title": title})["task"]["id"])


def status(ground: Ground, task: str) -> str:
    return str(ground.sql("SELECT status FROM tasks WHERE id = ?", task)[0]["status"])


def becomes(ground: Ground, task: str, wanted: str) -> None:
    wait_for(lambda: status(ground, task) == wanted, SECONDS)


def ended(process: subprocess.Popen[str]) -> dict:
    out, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, out
    return dict(json.loads(out))


def test_it_takes_the_tasks_of_its_role_as_they_come_until_it_is_ended(ground: Ground, lead: dict, poll: Poll) -> None:
    review = requested(ground, lead, "look", "review")
    first = requested(ground, lead, "first")
    worker = poll("echo $SWARM_TASK_ID >> done-by", "--role", "implementer")
    becomes(ground, first, "done")
    second = requested(ground, lead, "came later", "fix")
    becomes(ground, second, "done")
    worker.send_signal(signal.SIGTERM)
    assert ended(worker) == {"counts": {"done": 2}, "stopped": None}
    assert (ground.repo / "done-by").read_text().split() == [first, second]
    assert status(ground, review) == "open"


def test_it_ends_after_so_many_tasks(ground: Ground, lead: dict, poll: Poll) -> None:
    tasks = [requested(ground, lead, f"t{number}") for number in range(3)]
    assert ended(poll("true", "--max-tasks", "2", "--max", "3"))["counts"] == {"done": 2}
    assert sorted(status(ground, task) for task in tasks) == ["done", "done", "open"]


def test_it_ends_once_its_tasks_have_cost_the_limit(ground: Ground, lead: dict) -> None:
    spent = ground.folder / "spent"
    spent.mkdir()
    env = priced_claude(ground, spent, "0.4")
    tasks = [requested(ground, lead, f"t{number}") for number in range(3)]

    def poll_for(dollars: str, *more: str) -> dict:
        words = ["poll", "--as", lead["id"], "--harness", "claude", "--max-cost", dollars, *more, "--json"]
        done = subprocess.run(
            [*SWARM, *words], cwd=ground.repo, env=env, stdout=subprocess.PIPE, text=True, timeout=SECONDS,
            start_new_session=True, check=True,
        )  # fmt: skip
        return dict(json.loads(done.stdout))

    assert poll_for("0.8") == {"counts": {"done": 2}, "stopped": "the limit of $0.8 is reached"}
    assert sorted(status(ground, task) for task in tasks) == ["done", "done", "open"]
    assert sorted(json.loads(file.read_text()) for file in spent.iterdir()) == [0.4, 0.8]  # the rest of the money
    # The cost of earlier tasks does not count.
    assert poll_for("1", "--max-tasks", "1") == {"counts": {"done": 1}, "stopped": None}
    assert [row["cost_usd"] for row in ground.sql("SELECT cost_usd FROM swarm_runs")] == [0.4] * 3


def test_at_a_signal_the_task_at_work_is_finished(ground: Ground, lead: dict, poll: Poll) -> None:
    task = requested(ground, lead, "long")
    worker = poll("echo $$ > pid; while [ ! -e go ]; do sleep 0.1; done", "--grace", "600")
    wait_for(lambda: (ground.repo / "pid").exists() and (ground.repo / "pid").read_text().strip(), SECONDS)
    later = requested(ground, lead, "later")
    worker.send_signal(signal.SIGINT)
    (ground.repo / "go").touch()
    assert ended(worker)["counts"]["done"] >= 1
    assert status(ground, task) == "done" and status(ground, later) in ("open", "done")


def test_after_its_grace_or_a_second_signal_it_hands_the_task_back(ground: Ground, lead: dict, poll: Poll) -> None:
    task = requested(ground, lead, "long")
    script = "[ -e again ] && exit 0; echo $$ > pid; while true; do sleep 0.1; done"
    for more, signals in ((["--grace", "0"], 1), (["--grace", "6000"], 2)):
        worker = poll(script, *more)
        wait_for(lambda: (ground.repo / "pid").exists() and (ground.repo / "pid").read_text().strip(), SECONDS)
        child = int((ground.repo / "pid").read_text())
        for number in (signal.SIGTERM, signal.SIGHUP)[:signals]:  # two equal ones at once would be one
            worker.send_signal(number)
        assert ended(worker)["counts"] == {}
        wait_for(lambda child=child: not alive(child), SECONDS)
        becomes(ground, task, "open")
        (ground.repo / "pid").unlink()
    (ground.repo / "again").touch()
    assert ended(poll(script, "--max-tasks", "1"))["counts"] == {"done": 1}


def test_the_next_one_follows_the_workers_of_a_killed_one(ground: Ground, lead: dict, poll: Poll) -> None:
    task = requested(ground, lead, "long")
    script = "echo x >> begun; while [ ! -e go ]; do sleep 0.1; done"
    first = poll(script)
    wait_for(lambda: (ground.repo / "begun").exists(), SECONDS)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    second = poll(script)
    (ground.repo / "go").touch()
    becomes(ground, task, "done")
    assert (ground.repo / "begun").read_text() == "x\n"
    after = requested(ground, lead, "after")
    becomes(ground, after, "done")
    second.send_signal(signal.SIGTERM)
    assert ended(second)["counts"]["done"] >= 1


def test_a_worker_that_waits_for_an_answer_leaves_its_place_to_others(ground: Ground, lead: dict, poll: Poll) -> None:
    (ground.folder / "ask.py").write_text(ASK)
    (ground.repo / "go").touch()
    asks = requested(ground, lead, "asks")
    worker = poll(f"exec {sys.executable} {ground.folder}/ask.py", "--max", "1")
    wait_for(lambda: ground.sql("SELECT 1 FROM swarm_questions"), SECONDS)
    later = requested(ground, lead, "later")
    becomes(ground, later, "done")
    assert status(ground, asks) == "in_progress"
    with ground.store() as store:
        store.questions.answer(lead, asks, "that one")
    becomes(ground, asks, "done")
    worker.send_signal(signal.SIGTERM)
    assert ended(worker)["counts"] == {"done": 2}


@pytest.mark.parametrize("waits", [True, False])
def test_a_place_is_free_once_the_turn_has_ended(ground: Ground, lead: dict, limits, waits: bool) -> None:
    """A worker that has asked is at work until its turn ends; a paused one is not."""
    (ground.folder / "ask.py").write_text(ASK)
    asks = requested(ground, lead, "asks")
    told: list[str] = []
    limits(all_tasks, LOOK_SECONDS=0.0)
    with ground.store() as store:
        row = store.instances.live(lead["id"])
        request = DispatchRequest("", harness="process", command=f"{sys.executable} {ground.folder}/ask.py")
        work = StandingWorker(
            store, row, request, most=1, tell=lambda task, words: told.append(f"{task.title} {words}")
        )
        wait_for(lambda: work.advance(store) or ground.sql("SELECT 1 FROM swarm_questions"), SECONDS)
        later = requested(ground, lead, "later")
        for _ in range(20):
            work.advance(store)
        assert store.runs.of_task(ground.scope, later) == []
        if waits:
            (ground.repo / "go").touch()
        else:
            control.pause(store, row, asks)
        wait_for(lambda: work.advance(store) or store.runs.of_task(ground.scope, later), SECONDS)
        (ground.repo / "go").touch()
        wait_for(lambda: work.advance(store) or status(ground, later) == "done", SECONDS)
        assert ("asks asks a person" if waits else "asks paused") in told
        assert status(ground, asks) == "in_progress"


def test_after_a_failure_it_starts_none_for_a_while(ground: Ground, lead: dict, limits) -> None:
    bad = requested(ground, lead, "bad")
    request = DispatchRequest("", harness="process", command="/bin/sh -c 'exit 4'")
    limits(standing, BACK_OFF=100_000.0, LONGEST_BACK_OFF=100_000.0)
    with ground.store() as store:
        row = store.instances.live(lead["id"])
        work = StandingWorker(store, row, request, most=1)
        wait_for(lambda: work.advance(store) or work.counts_of_ends["failed"] == 1, SECONDS)
        after = requested(ground, lead, "after")
        looks: list[bool] = []
        wait_for(lambda: looks.append(work.advance(store)) or (not work.is_busy and len(looks) > 100), SECONDS)
        assert (status(ground, bad), status(ground, after), any(looks)) == ("failed", "open", False)
        fresh = StandingWorker(store, row, request._replace(command="/bin/true"), most=1)
        wait_for(lambda: fresh.advance(store) or fresh.counts_of_ends["done"] == 1, SECONDS)
        assert status(ground, after) == "done"
        fresh.end()
        wait_for(lambda: fresh.advance(store), SECONDS)
