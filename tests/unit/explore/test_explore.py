"""The schedule explorer (tests/explore): the same seed is the same run, no property is broken, planted faults are found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from explore import build
from explore.faults import FAULTS
from explore.recipes import MEETINGS

TESTS = Path(__file__).resolve().parents[2]
FOUND = sorted(TESTS.joinpath("data", "explored").glob("*.json"))
IS_THOROUGH = bool(os.environ.get("SWARM_THOROUGH"))
SCHEDULES = (4 if IS_THOROUGH else 1) * len(MEETINGS)
SHORT = (
    "claim_replaced",
    "claims_overlooked",
    "check_before_claim",
    "leftover",
)  # planted faults that the first seeds show; the others only in a thorough run
WITHIN = 400  # schedules of the meeting that shows a fault; each has been found in fewer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="calls are caught by the loader of Linux"),
]


def explore(out: Path, *words: str) -> tuple[int, str]:
    """Run the explorer on one core; return its status and words."""
    argv = [sys.executable, "-m", "explore", "--cores", "1", "--out", str(out), *words]
    done = subprocess.run(argv, cwd=TESTS, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.returncode, done.stdout


def test_no_property_is_broken_in_a_few_schedules_of_each_meeting(tmp_path: Path) -> None:
    code, words = explore(tmp_path, "--count", str(SCHEDULES))
    assert (code, f"{SCHEDULES} schedules" in words) == (0, True), words


def test_the_same_decisions_are_the_same_steps(tmp_path: Path) -> None:
    plan: dict[str, Any] = {
        "fault": "", "roles": ["edits", "overwrites"], "level": "keep", "seed": 5, "chances": [0] * 6, "most": [0] * 6,
        "has_power_cuts": False, "has_old_claim": False, "has_first_look": False, "decisions": [[0, 100, 1, 1], [1, 90, 1, 0], [0, 130, 2, 0]],
    }  # fmt: skip
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    runs = {explore(tmp_path, "--replay", str(tmp_path / "plan.json")) for _ in range(2)}
    assert len(runs) == 1
    (run,) = runs
    assert "[switch 1]" in run[1] and "[kill 0]" in run[1] and " open " in run[1]


# On a place whose last world had a clock so far ahead: each seed's digest, or a report. Processes are stopped for a while before.
SERVER = """
import json, os, signal, subprocess, sys
from explore import roles
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
found, begin = {}, roles.Process.__init__
def slowly(self, *given):
    begin(self, *given)
    for _ in range(int(seconds * 1000000)):
        pass
roles.Process.__init__ = slowly
for seed in seeds:
    pids = list(map(str, server.pids.values()))
    for pid in pids:
        os.kill(int(pid), signal.SIGSTOP)
    if pids and seconds:
        subprocess.Popen(["sh", "-c", f"sleep {seconds}; kill -CONT " + " ".join(pids)])
    elif pids:
        server.world.shared.limit_seconds = 1
        job = {"core": 0, "cores": 1, "first": seed, "seconds": 0, "count": 1, "out": os.getcwd(), "fault": ""}
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
    """Run `SERVER`; before each seed but the first its processes are stopped for so many seconds; 0: for ever.

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


def test_a_schedule_that_does_not_end_in_time_is_reported(tmp_path: Path) -> None:
    report = serve(tmp_path, 0, [0, 12], 0)
    assert [one["words"] for one in report["violations"] if "nothing moves" in one["words"]], report


@pytest.mark.parametrize("file", FOUND, ids=lambda path: path.stem)
def test_a_schedule_that_once_broke_a_property_breaks_none(file: Path, tmp_path: Path) -> None:
    code, words = explore(tmp_path, "--replay", str(file))
    assert code == 0, words


@pytest.mark.parametrize("fault", FAULTS if IS_THOROUGH else SHORT)
def test_a_planted_fault_is_found_and_its_short_form_replayed(fault: str, tmp_path: Path) -> None:
    code, words = explore(tmp_path, "--fault", fault, "--count", str(WITHIN))
    assert code == 1, words
    (file,) = list(tmp_path.glob("*.json"))[:1]
    code, words = explore(tmp_path, "--replay", str(file))
    assert code == 1, words
