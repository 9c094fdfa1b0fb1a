"""``dispatch --all``: tasks with dependencies, a limit on how many and how much, one more try, and kill -9 at any time."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import supervised
from support.fixtures import SWARM, Ground, wait_for
from support.supervised import GATEWAY, alive, dispatch, over, priced_claude, reaches, run_of

from swarm_mcp.agents.dispatch.all_tasks import AllTasks
from swarm_mcp.agents.dispatch.dispatch import Dispatch
from swarm_mcp.agents.dispatch.nursery import Nursery
from swarm_mcp.agents.dispatch.request import DispatchRequest
from swarm_mcp.agents.harness.outcome import Cost, added
from swarm_mcp.domain.task import Task

pytestmark = pytest.mark.slow


@pytest.fixture
def lead(ground: Ground):
    yield ground.session("lead", f"{GATEWAY} lead")
    supervised.end_all(ground)


def requested(ground: Ground, lead: dict, title: str, **spec) -> str:
    with ground.store() as store:
        return str(store.tasks.request(lead, {"type": "implement", "title": title, **spec})["task"]["id"])


def script(text: str) -> list[str]:
    return ["--harness", "process", "--command", "/bin/sh -c " + "'" + text.replace("'", "'\\''") + "'"]


def everything(ground: Ground, *words: str, **options):
    return ground.process("dispatch", "--all", "--as", "lead", *words, start_new_session=True, **options)


def of(done, task_id: str) -> dict:
    return next(row for row in done.json["tasks"] if row["task_id"] == task_id)


def test_a_plan_is_done_in_its_order_with_one_command(ground: Ground, lead: dict) -> None:
    a, b = requested(ground, lead, "a"), requested(ground, lead, "b")
    c = requested(ground, lead, "c", depends_on=[a, b])
    d = requested(ground, lead, "d", depends_on=[c])
    waits = requested(ground, lead, "not yet", approval_required=True)
    idle = ground.session("idle", "identity:p role:implementer")
    theirs = requested(ground, lead, "theirs", assignee=idle["id"])
    done = everything(ground, *script("echo $SWARM_TASK_ID >> order; sleep 0.1; echo fine"), "--json")
    assert done.code == 1, done  # one waits for approval
    order = (ground.repo / "order").read_text().split()
    assert set(order[:2]) == {a, b} and order[2:] == [c, d]
    assert {row["task_id"]: row["status"] for row in done.json["tasks"]} == {
        **dict.fromkeys((a, b, c, d), "done"), waits: "approval_required",
    }  # fmt: skip
    assert of(done, waits)["why"] == "waits for approval" and of(done, d)["result"] == "fine"
    assert ground.sql("SELECT status FROM tasks WHERE id = ?", theirs)[0]["status"] == "claimed"
    assert ground.sql("SELECT * FROM messages WHERE recipient = ? AND read = 0", lead["id"]) == []
    again = everything(ground, *script("exit 1"))
    assert again.code == 1 and "[approval_required]" in again.out and "1 approval_required; $0.0000\n" in again.out


def test_no_more_are_at_work_than_were_asked_for(ground: Ground, lead: dict, monkeypatch) -> None:
    for number in range(7):
        requested(ground, lead, f"t{number}")
    # The first ones wait for each other.
    count = "mkdir at-$$; until [ -e full ] || [ $(ls -d at-* | wc -l) -ge 3 ]; do sleep 0.05; done; touch full; "
    count += "ls -d at-* | wc -l >> seen; sleep 0.2; rmdir at-$$"
    done = everything(ground, *script(count), "--max", "3")
    assert done.code == 0 and "7 done" in done.out, done
    seen = [int(line) for line in (ground.repo / "seen").read_text().split()]
    assert len(seen) == 7 and max(seen) == 3
    monkeypatch.setenv("SWARM_MAX_WORKERS", "2")
    requested(ground, lead, "one more")
    done = everything(ground, *script("true"), "--max", "9")
    assert done.code == 0 and "lets 2 workers run at a time on this machine, not 9" in done.err


def test_what_fails_is_tried_once_more_and_told_why_before_anybody_else_hears_of_it(ground: Ground, lead: dict) -> None:
    first = requested(ground, lead, "flaky")
    after = requested(ground, lead, "after", depends_on=[first])
    never = requested(ground, lead, "never")
    flaky = "cat > told-$SWARM_TASK_ID; n=tried-$SWARM_TASK_ID; [ -e $n ] && [ ! -e no-$SWARM_TASK_ID ] && echo ok && exit 0"
    flaky += "; echo x >> $n; echo the disk was full >&2; exit 4"
    (ground.repo / f"no-{never}").touch()
    done = everything(ground, *script(flaky), "--json")
    assert done.code == 1
    assert [of(done, each)["status"] for each in (first, after, never)] == ["done", "done", "failed"]
    assert [of(done, each)["tries"] for each in (first, after, never)] == [2, 2, 2]
    assert [of(done, each)["workers"] for each in (first, after, never)] == [1, 1, 1]
    assert (ground.repo / f"tried-{never}").read_text() == "x\nx\n"
    told = (ground.repo / f"told-{first}").read_text()
    assert "You have tried this before, and it failed: process_crashed: the disk was full" in told
    assert "process_crashed: the disk was full" in of(done, never)["result"]
    shown = everything(ground, *script("true"))
    assert "(this scope has no open task)" in shown.out


def test_what_no_second_try_helps_against_is_not_tried_again(ground: Ground, lead: dict) -> None:
    task = requested(ground, lead, "no such program")
    done = everything(ground, "--harness", "process", "--command", "/nowhere/agent", "--json")
    assert done.code == 1 and of(done, task)["status"] == "failed" and of(done, task)["tries"] == 1, done
    assert everything(ground, "--harness", "process").err.count("\n") == 1
    refused = everything(ground, *script("true"), "--max-cost", "2")
    assert refused.code == 1 and "process cannot have a cost limit: its cost is unknown" in refused.err
    refused = everything(ground, "--spawner", "swarm-ui")
    assert refused.code == 1 and "use --all with process or tmux" in refused.err


def test_a_dispatch_that_fails_to_start_anybody_says_so_and_ends(ground: Ground, lead: dict) -> None:
    task = requested(ground, lead, "for nobody")
    done = everything(ground, "--harness", "codex", "--json", env={**os.environ, "PATH": "/usr/bin:/bin"})
    assert done.code == 1 and "codex is not installed" in of(done, task)["why"], done


# ---------------------------------------------------------------------------------------- the budget


def test_all_together_keep_to_the_limit_and_each_gets_its_share(ground: Ground, lead: dict) -> None:
    spent = ground.folder / "spent"
    spent.mkdir()
    tasks = [requested(ground, lead, f"t{number}") for number in range(6)]
    env = priced_claude(ground, spent, "0.4")
    done = everything(ground, "--harness", "claude", "--max", "2", "--max-cost", "1.5", "--json", env=env)
    assert done.code == 1
    limits = sorted(json.loads(file.read_text()) for file in spent.iterdir())
    finished = [task for task in tasks if of(done, task)["status"] == "done"]
    assert (len(finished), done.json["counts"]) == (4, {"done": 4, "open": 2}), done
    assert done.json["cost_usd"] == pytest.approx(1.5) and done.json["stopped"] == "the limit of $1.5 is reached"
    assert limits == [pytest.approx(0.35), pytest.approx(0.35), 0.75, 0.75]
    done = everything(ground, "--harness", "claude", "--max", "2", "--max-cost", "1", "--json", env=env)
    assert (done.code, done.json["counts"], done.json["cost_usd"]) == (0, {"done": 2}, pytest.approx(0.8)), done
    requested(ground, lead, "free")
    done = everything(ground, "--harness", "claude", "--json", env=env)  # without a limit
    assert done.code == 0 and None in [json.loads(file.read_text()) for file in spent.iterdir()]


def test_costs_of_two_tries_are_added_and_what_is_not_known_stays_unknown() -> None:
    one, two = Cost(0.1, 10, 2, 0, 0, 1, "m"), Cost(0.25, 1, 1, 5, 0, 2, "m")
    assert added(one, two)._replace(total_cost_usd=0) == Cost(0, 11, 3, 5, 0, 3, "m")
    assert added(one, two).total_cost_usd == pytest.approx(0.35)
    assert added(one, Cost()).total_cost_usd is None and added(Cost(), two).input_tokens is None


# ------------------------------------------------------------------------------------ killed


def test_a_worker_that_is_killed_gets_a_successor_and_three_are_enough(ground: Ground, lead: dict) -> None:
    well, ill = requested(ground, lead, "well"), requested(ground, lead, "ill")
    # The worker kills its own supervisor, found in the store; once, or each time.
    kill = (
        "case $SWARM_TASK_ID in " + well + ") [ -e once ] && exit 0; touch once;; esac; "
        'swarm-mcp worker runs --json --state running > $SWARM_TASK_ID.json; kill -9 $(python3 -c "import json, os; print(next('
        "row['supervisor_pid'] for row in json.load(open(os.environ['SWARM_TASK_ID'] + '.json')) if row['task_id'] =="
        " os.environ['SWARM_TASK_ID']))\"); sleep 60"
    )
    program = ground.repo / "agent.sh"
    program.write_text(kill)
    done = everything(ground, "--harness", "process", "--command", f"/bin/sh {program}", "--json")
    assert (of(done, well)["status"], of(done, well)["workers"]) == ("done", 2), done
    assert of(done, ill)["status"] == "open" and of(done, ill)["workers"] == 3
    assert of(done, ill)["why"] == "3 workers have left it, the last so: its supervisor was killed"


def kill_everything(ground: Ground, command: subprocess.Popen) -> None:
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
def test_kill_9_of_the_whole_tree_at_any_moment_loses_no_task(ground: Ground, lead: dict, seed: int) -> None:
    chance = random.Random(seed)
    tasks: list[str] = []
    for number in range(12):
        before = chance.sample(tasks, k=min(len(tasks), chance.randint(0, 2)))
        tasks.append(requested(ground, lead, f"t{number}", depends_on=before))
    words = ["dispatch", "--all", "--max", "4", "--as", lead["id"],
             *script("sleep 0.2; echo $SWARM_TASK_ID >> ended; echo fine")]  # fmt: skip
    for _ in range(4):
        command = subprocess.Popen([*SWARM, *words], cwd=ground.repo, start_new_session=True, stdout=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.05, 1.6))
        kill_everything(ground, command)
    done = ground.process(*words, "--json", start_new_session=True)
    assert done.code == 0, done
    assert {row["status"] for row in ground.sql("SELECT status FROM tasks")} == {"done"}
    assert set((ground.repo / "ended").read_text().split()) == set(tasks)
    assert {row["status"] for row in done.json["tasks"]} <= {"done"}
    assert ground.swarm("cleanup").code == 0  # of the marks of dispatches that were killed
    assert ground.sql("SELECT * FROM context") == [] and ground.integrity() == "ok"


def test_workers_of_a_command_that_was_killed_are_looked_on_at_by_the_next(ground: Ground, lead: dict) -> None:
    task = requested(ground, lead, "goes on")
    words = [
        *SWARM,
        "dispatch",
        "--all",
        "--as",
        lead["id"],
        *script("while [ ! -e go ]; do sleep 0.05; done; echo x >> n"),
    ]
    first = subprocess.Popen(words, cwd=ground.repo, start_new_session=True, stdout=subprocess.DEVNULL)
    reaches(ground, {"task_id": task}, "in_progress")
    first.kill()
    first.wait()
    second = subprocess.Popen([*words, "--json"], cwd=ground.repo, start_new_session=True, stdout=subprocess.PIPE)
    time.sleep(1)
    ground.repo.joinpath("go").touch()
    out, _ = second.communicate(timeout=60)
    assert second.returncode == 0 and json.loads(out)["tasks"][0]["workers"] == 1
    assert (ground.repo / "n").read_text() == "x\n"


def test_a_paused_retry_and_a_cancelled_one(ground: Ground, lead: dict) -> None:
    answer = dispatch(ground, lead, "fails", "echo x >> n; [ $(wc -l < n) = 1 ] && exit 3; sleep 600", retries=1)
    wait_for(lambda: (ground.repo / "n").exists() and (ground.repo / "n").read_text() == "x\nx\n")
    assert ground.swarm("cancel", answer["task_id"], "--wait", "10", "--as", lead["id"]).code == 0
    over(ground, answer)
    assert run_of(ground, answer)["result"]["attempts"] == 2
    assert not alive(run_of(ground, answer)["child_pid"])


@pytest.mark.skipif(sys.platform != "linux", reason="copies are made on Linux")
def test_supervisors_are_copies_of_one_process_and_whole_ones_where_that_has_gone(ground: Ground, lead: dict) -> None:
    first, second, third = (requested(ground, lead, name) for name in ("first", "second", "third"))
    command = "/bin/sh -c 'cat > told-$SWARM_TASK_ID; ps -o args= $(ps -o ppid= $PPID) > who-$SWARM_TASK_ID'"
    with ground.store() as store, Nursery() as nursery:
        assert nursery.pid
        request = DispatchRequest("", harness="process", command=command, spawner="process", message="Mind the tests")
        for task in (first, second, third):
            if task == third:
                os.kill(nursery.pid, signal.SIGKILL)
            under_way = Dispatch(lead, request._replace(resume=task), starter=nursery)
            answer = wait_for(lambda under_way=under_way: under_way.advance(store))
            assert (answer["status"], reaches(ground, answer, "done")["status"]) == ("spawned", "done")
            row = over(ground, answer)
            assert os.path.getsize(ground.repo / f"told-{task}") > 100
            assert list(Path(os.environ["SWARM_STATE_DIR"], "work").iterdir()) == []
            assert row["supervisor_pid"] != nursery.pid
        assert not nursery.pid
    who = {task: (ground.repo / f"who-{task}").read_text() for task in (first, second, third)}
    assert [" --many" in who[task] for task in (first, second, third)] == [True, True, False], who


def test_a_supervisor_starts_without_what_it_does_not_need() -> None:
    """There may be a hundred: asyncio alone took a quarter of their start."""
    code = "import sys; import swarm_mcp.agents.dispatch.supervision as _; print(*{'asyncio', 'logging'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_who_is_most_urgent_comes_first(ground: Ground, lead: dict) -> None:
    low = requested(ground, lead, "low")
    high = requested(ground, lead, "high", priority=5)
    told: list[tuple[str, str]] = []

    def tell(task: Task, words: str) -> None:
        told.append((task.title, words))

    command = "/bin/sh -c 'echo $SWARM_TASK_ID >> order'"
    with ground.store() as store:
        request = DispatchRequest("", harness="process", command=command, spawner="process")
        work = AllTasks(store, lead, request, 1, tell=tell)
        wait_for(lambda: work.advance(store), 60)
        assert [end.task.status for end in work.ends(store)] == ["done", "done"]
    assert (ground.repo / "order").read_text().split() == [high, low]
    assert [row for row in told if row[1] == "done"] == [("high", "done"), ("low", "done")]
