"""The schedule explorer (tests/explore): the same seed is the same run, no property is broken, planted faults are found."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from explore import build
from explore.faults import FAULTS, planted
from explore.recipes import MEETINGS
from support.fixtures import time_limit

TESTS = Path(__file__).resolve().parents[2]
FOUND = sorted(TESTS.joinpath("data", "explored").glob("*.json"))
IS_THOROUGH = bool(os.environ.get("SWARM_THOROUGH"))
SCHEDULES = (4 if IS_THOROUGH else 1) * len(MEETINGS)
SHORT = ("row_stays", "mail_twice")  # planted faults that the first seeds show; the nights plant all of them
WITHIN = 2 * len(MEETINGS)  # schedules

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(sys.platform != "linux", reason="calls are caught by the loader of Linux"),
]


def explore(out: Path, *words: str, before: list[str] | None = None) -> tuple[int, str]:
    """Run the explorer on one core, behind the words `before`; return its status and words."""
    argv = [*(before or []), sys.executable, "-m", "explore", "--cores", "1", "--out", str(out), *words]
    done = subprocess.run(argv, cwd=TESTS, capture_output=True, text=True, check=False, timeout=time_limit(600))
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.returncode, done.stdout


def test_no_property_is_broken_in_a_few_schedules_of_each_meeting(tmp_path: Path) -> None:
    code, words = explore(tmp_path, "--count", str(SCHEDULES))
    assert (code, f"{SCHEDULES} schedules" in words) == (0, True), words


def test_the_same_decisions_are_the_same_steps(tmp_path: Path) -> None:
    plan: dict[str, Any] = {
        "fault": "", "roles": ["edits", "overwrites"], "level": "keep", "seed": 5, "chances": [0] * 6, "most": [0] * 6,
        "has_power_cuts": False, "has_old_turn": False, "decisions": [[0, 100, 1, 1], [1, 90, 1, 0], [0, 130, 2, 0]],
    }  # fmt: skip
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    runs = {explore(tmp_path, "--replay", str(tmp_path / "plan.json")) for _ in range(2)}
    assert len(runs) == 1
    (run,) = runs
    assert "[switch 1]" in run[1] and "[kill 0]" in run[1] and " open " in run[1]
    assert "session 0 asks the hook for Edit of notes.md" in run[1] and "is killed before" in run[1]


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_can_be_planted(fault: str, tmp_path: Path) -> None:
    folder = planted(fault, tmp_path)
    for edit in FAULTS[fault].edits:
        compile((folder / edit.file).read_text(encoding="utf-8"), edit.file, "exec")


def machine_up_for(seconds: int) -> list[str]:
    """Return the words before a program that let it see a machine that has been up for so long.

    Where the kernel refuses a time namespace there are none. The virtual clock is ahead of the machine's there as well.
    """
    with open("/proc/uptime", encoding="ascii") as file:
        ahead = seconds - int(float(file.read().split()[0]))
    for user in ([], ["--user", "--map-current-user"]):
        words = ["unshare", *user, "--time", "--fork", f"--monotonic={ahead}", f"--boottime={ahead}"]
        if (
            shutil.which("unshare")
            and not subprocess.run([*words, "true"], capture_output=True, check=False).returncode
        ):
            return words
    return []


def test_the_time_since_the_machines_start_makes_no_difference(tmp_path: Path) -> None:
    words = []
    for seconds in (1, 20 * 365 * 86400):  # the virtual clock is between the two
        code, said = explore(tmp_path, "--count", "3", before=machine_up_for(seconds))
        assert code == 0, said
        words.append((said.partition(" violations")[0], said.rpartition(" ")[2]))
    assert words[0] == words[1]


# In the world's time, but not as one of its processes: wait in each way that Python has, and look at a file from outside.
OUTSIDE = """
import os, sys, threading, time
from explore.world import World
folder = os.getcwd() + "/"
open(folder + "made before", "w").close()
world = World(os.environ["LD_PRELOAD"], folder + "world", folder)
world.shared.is_virtual = 1
time.sleep(0.01)
lock = threading.Lock()
lock.acquire()
assert not lock.acquire(timeout=0.01)
assert not threading.Event().wait(0.01)
ahead = time.time() - os.stat(folder + "made before").st_mtime
assert ahead == 3600, ahead
"""


def test_a_process_outside_of_a_schedule_waits_by_the_machines_clock(tmp_path: Path) -> None:
    variables = {**os.environ, "LD_PRELOAD": str(build.library()), "PYTHONPATH": str(TESTS)}
    words = [sys.executable, "-c", OUTSIDE]
    done = subprocess.run(
        words, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False, timeout=time_limit(60)
    )
    assert done.returncode == 0, done.stderr


# On a place whose last world had a clock so far ahead: each seed's digest, or a report. Processes are stopped for a while before.
SERVER = """
import json, os, signal, subprocess, sys
from explore.process import Process
from explore.recipes import plan
from explore.run import claimed_place, explored
from explore.server import Server
from explore.world import World
ahead, seeds, seconds, decisions = json.loads(sys.argv[1])
handle, root = claimed_place()
library = os.environ["LD_PRELOAD"]
World(library, root + ".world", root + "/").shared.now = ahead
server = Server(library, root)
server.warm_up()
found, begin = {}, Process.__init__
def slowly(self, *given):
    begin(self, *given)
    for _ in range(int(seconds * 1000000)):
        pass
Process.__init__ = slowly
for seed in seeds:
    pids = list(map(str, server.pids.values()))
    for pid in pids:
        os.kill(int(pid), signal.SIGBUS if seconds < 0 else signal.SIGSTOP)
    if pids and seconds > 0:
        subprocess.Popen(["sh", "-c", f"sleep {seconds}; kill -CONT " + " ".join(pids)])
    elif pids:
        server.world.shared.limit_seconds = 1
        job = {"core": 0, "cores": 1, "first": seed, "seconds": 0, "count": 1, "out": os.getcwd(), "fault": ""}
        job.update(is_raw=False, role="")
        found = explored(server, job)
        break
    assert server.judged(plan(seed)._replace(decisions=decisions)) == []
    found[seed] = server.world.digest()
server.close()
print(json.dumps(found))
"""


def serve(
    folder: Path, ahead_ns: int, seeds: list[int], seconds: float, decisions: list[Any] | None = None
) -> dict[str, Any]:
    """Run `SERVER`; before each seed but the first its processes are stopped for so many seconds; 0: for ever; -1: they end.

    They take longer between two lives, too, the more so the longer they are stopped.
    """
    variables = {"LD_PRELOAD": str(build.library()), "PYTHONHASHSEED": "0", "PYTHONPATH": str(TESTS)}
    words = [sys.executable, "-c", SERVER, json.dumps([ahead_ns, seeds, seconds, decisions])]
    done = subprocess.run(
        words, cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_a_seed_is_the_same_steps_after_any_other_and_beside_any_load(tmp_path: Path) -> None:
    seeds = [0, 3, 60, 61, 62, 537, 1332]
    assert serve(tmp_path, 0, seeds, 0.01) == serve(tmp_path, 3600 * 10**9, seeds[::-1], 0.5)


def test_a_turn_that_comes_while_a_process_is_stopped_is_not_lost(tmp_path: Path) -> None:
    # Without switches each process has one turn in a life: the next one's count of turns is that of the one before.
    assert serve(tmp_path, 0, [0, 1, 3], 0.01, []) == serve(tmp_path, 0, [0, 1, 3], 0.5, [])


@pytest.mark.parametrize(("seconds", "words"), [(0, "nothing moves"), (-1, "a process has died")])
def test_a_schedule_that_does_not_end_in_time_is_reported(seconds: int, words: str, tmp_path: Path) -> None:
    report = serve(tmp_path, 0, [0, 12], seconds)
    assert [one["words"] for one in report["violations"] if words in one["words"]], report


@pytest.mark.parametrize("file", FOUND, ids=lambda path: path.stem)
def test_a_schedule_that_once_broke_a_property_breaks_none(file: Path, tmp_path: Path) -> None:
    code, words = explore(tmp_path, "--replay", str(file))
    assert code == 0, words


@pytest.mark.parametrize("fault", SHORT)
def test_a_planted_fault_is_found_told_as_a_story_and_replayed(fault: str, tmp_path: Path) -> None:
    code, words = explore(tmp_path, "--fault", fault, "--count", str(WITHIN))
    assert (code, "  session 0 " in words) == (1, True), words
    (file,) = list(tmp_path.glob("*.json"))[:1]
    code, words = explore(tmp_path, "--replay", str(file))
    assert code == 1, words
