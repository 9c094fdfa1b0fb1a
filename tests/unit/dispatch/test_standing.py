"""``worker poll``: a standing worker takes tasks as they come, within its limits, and ends without losing any."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support import supervised
from support.fixtures import SWARM, Ground, wait_for
from support.supervised import GATEWAY, alive, priced_claude

from swarm_mcp.agents.dispatch import processes, standing
from swarm_mcp.agents.dispatch.request import DispatchRequest
from swarm_mcp.agents.dispatch.standing import StandingWorker
from swarm_mcp.agents.harness.outcome import Cost, added
from swarm_mcp.store import Store

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


def requested(ground: Ground, lead: dict, title: str, kind: str = "implement", **more: object) -> str:
    with ground.store() as store:
        return str(store.tasks.request(lead, {"type": kind, "title": title, **more})["task"]["id"])


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


@pytest.mark.thorough
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


@pytest.mark.sampled
@pytest.mark.parametrize("waits", [True, False])
def test_a_place_is_free_once_the_turn_has_ended(ground: Ground, lead: dict, limits, waits: bool, store: Store) -> None:
    """A worker that has asked is at work until its turn ends; a paused one is not."""
    (ground.folder / "ask.py").write_text(ASK)
    asks = requested(ground, lead, "asks")
    told: list[str] = []
    limits(standing, LOOK_SECONDS=0.0)
    row = store.instances.live(lead["id"])
    request = DispatchRequest("", harness="process", command=f"{sys.executable} {ground.folder}/ask.py")
    work = StandingWorker(store, row, request, most=1, tell=lambda task, words: told.append(f"{task.title} {words}"))
    wait_for(lambda: work.advance(store) or ground.sql("SELECT 1 FROM swarm_questions"), SECONDS)
    later = requested(ground, lead, "later")
    for _ in range(20):
        work.advance(store)
    assert store.runs.of_task(ground.scope, later) == []
    if waits:
        (ground.repo / "go").touch()
    else:
        processes.pause(store, row, asks)
    wait_for(lambda: work.advance(store) or store.runs.of_task(ground.scope, later), SECONDS)
    (ground.repo / "go").touch()
    wait_for(lambda: work.advance(store) or status(ground, later) == "done", SECONDS)
    assert ("asks asks a person" if waits else "asks paused") in told
    assert status(ground, asks) == "in_progress"


@pytest.mark.thorough
def test_after_a_failure_it_starts_none_for_a_while(ground: Ground, lead: dict, limits, store: Store) -> None:
    bad = requested(ground, lead, "bad")
    request = DispatchRequest("", harness="process", command="/bin/sh -c 'exit 4'")
    limits(standing, BACK_OFF=100_000.0, LONGEST_BACK_OFF=100_000.0)
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


def test_dependents_come_after_what_they_depend_on_and_the_urgent_come_first(ground: Ground, lead: dict, poll: Poll):
    low = requested(ground, lead, "low")
    high = requested(ground, lead, "high", priority=5)
    last = requested(ground, lead, "last", priority=9, depends_on=[low, high])
    waits = requested(ground, lead, "not yet", approval_required=True)
    idle = ground.session("idle", "identity:p role:implementer")
    theirs = requested(ground, lead, "theirs", assignee=idle["id"])
    assert ended(poll("echo $SWARM_TASK_ID >> order; echo fine", "--max-tasks", "3"))["counts"] == {"done": 3}
    assert (ground.repo / "order").read_text().split() == [high, low, last]
    assert [status(ground, one) for one in (waits, theirs)] == ["approval_required", "claimed"]


def test_a_failed_task_is_tried_once_more_with_the_reason(ground: Ground, lead: dict, poll: Poll) -> None:
    first = requested(ground, lead, "flaky")
    after = requested(ground, lead, "after", depends_on=[first])
    never = requested(ground, lead, "never", depends_on=[after])
    flaky = "cat > told-$SWARM_TASK_ID; n=tried-$SWARM_TASK_ID; [ -e $n ] && [ ! -e no-$SWARM_TASK_ID ] && exit 0"
    flaky += "; echo x >> $n; echo the disk was full >&2; exit 4"
    (ground.repo / f"no-{never}").touch()
    assert ended(poll(flaky, "--max-tasks", "3"))["counts"] == {"done": 2, "failed": 1}
    assert [status(ground, one) for one in (first, after, never)] == ["done", "done", "failed"]
    assert (ground.repo / f"tried-{never}").read_text() == "x\nx\n"
    told = (ground.repo / f"told-{first}").read_text()
    assert "You have tried this before, and it failed: process_crashed: the disk was full" in told


def test_costs_of_two_tries_are_added_and_what_is_not_known_stays_unknown() -> None:
    one, two = Cost(0.1, 10, 2, 0, 0, 1, "m"), Cost(0.25, 1, 1, 5, 0, 2, "m")
    assert added(one, two)._replace(total_cost_usd=0) == Cost(0, 11, 3, 5, 0, 3, "m")
    assert added(one, two).total_cost_usd == pytest.approx(0.35)
    assert added(one, Cost()).total_cost_usd is None and added(Cost(), two).input_tokens is None


@pytest.mark.thorough
def test_a_worker_that_is_killed_gets_a_successor_and_three_are_enough(ground: Ground, lead: dict) -> None:
    """The worker kills its own supervisor, found in the store; once, or each time."""
    well, ill = requested(ground, lead, "well"), requested(ground, lead, "ill")
    kill = (
        "case $SWARM_TASK_ID in " + well + ") [ -e once ] && exit 0; touch once;; esac; "
        'swarm-mcp worker runs --json --state running > $SWARM_TASK_ID.json; kill -9 $(python3 -c "import json, os; print(next('
        "row['supervisor_pid'] for row in json.load(open(os.environ['SWARM_TASK_ID'] + '.json')) if row['task_id'] =="
        " os.environ['SWARM_TASK_ID']))\"); sleep 60"
    )
    (ground.repo / "agent.sh").write_text(kill)
    told: list[str] = []
    with ground.store() as store:
        request = DispatchRequest("", harness="process", command=f"/bin/sh {ground.repo}/agent.sh")
        work = StandingWorker(
            store,
            store.instances.live(lead["id"]),
            request,
            tell=lambda task, words: told.append(f"{task.title}: {words}"),
        )
        lost = "ill: 3 workers have left it, the last so: its supervisor was killed"
        wait_for(lambda: work.advance(store) or (lost in told and status(ground, well) == "done"), SECONDS)
        assert len(store.runs.of_task(ground.scope, well)) == 2 and len(store.runs.of_task(ground.scope, ill)) == 3
        assert not store.runs.live(ground.scope)


def kill_everything(command: subprocess.Popen[str]) -> None:
    """kill -9 of the command and of every supervisor, keeper and child that there is, all at once."""
    command.kill()
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            variables = Path("/proc", entry, "environ").read_bytes()
        except OSError:  # the process has ended
            continue
        if f"SWARM_STATE_DIR={os.environ['SWARM_STATE_DIR']}".encode() in variables:
            try:
                os.kill(int(entry), signal.SIGKILL)
            except ProcessLookupError:  # it has ended
                pass
    command.wait()


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="finds what to kill in /proc")
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in (1, 2))])
def test_kill_9_of_the_whole_tree_at_any_moment_loses_no_task(
    ground: Ground, lead: dict, poll: Poll, seed: int
) -> None:
    chance = random.Random(seed)
    tasks: list[str] = []
    for number in range(12):
        before = chance.sample(tasks, k=min(len(tasks), chance.randint(0, 2)))
        tasks.append(requested(ground, lead, f"t{number}", depends_on=before))
    script = "sleep 0.2; echo $SWARM_TASK_ID >> ended; echo fine"
    for _ in range(4):
        command = poll(script, "--max", "4")
        time.sleep(chance.uniform(0.05, 1.6))
        kill_everything(command)
    command = poll(script, "--max", "4")
    for task in tasks:
        becomes(ground, task, "done")
    command.send_signal(signal.SIGTERM)
    ended(command)
    assert set((ground.repo / "ended").read_text().split()) == set(tasks)
    assert ground.swarm("cleanup").code == 0  # of the marks of dispatches that were killed
    assert ground.sql("SELECT * FROM context") == [] and ground.integrity() == "ok"


def test_a_supervisor_starts_without_what_it_does_not_need() -> None:
    """There may be a hundred: asyncio alone took a quarter of their start."""
    code = "import sys; import swarm_mcp.agents.dispatch.supervision as _; print(*{'asyncio', 'logging'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
