"""The record of faults inside hooks."""

import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.altered import Failing

from swarm_hook_core.faults import HOUR, LIMIT_BYTES, describe, fault_log, record, record_hourly


def lines(path: str) -> list[dict[str, object]]:
    with open(path, encoding="ascii") as file:
        return [json.loads(line) for line in file]


def test_a_fault_is_one_line() -> None:
    before = int(time.time())
    record("codex", "turn", "it\nbroke")
    (line,) = lines(fault_log())
    assert before <= int(str(line.pop("at"))) <= time.time()
    assert line == {"runtime": "codex", "hook": "turn", "fault": "it\nbroke"}
    found = os.stat(fault_log())
    assert stat.S_IMODE(found.st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(fault_log())).st_mode) == 0o700


@settings(max_examples=50)
@given(st.text(st.characters(exclude_categories=[])))
def test_any_text_is_recorded(fault: str) -> None:
    record("codex", "turn", fault)
    assert lines(fault_log())[-1]["fault"] == fault[:500]


def test_what_every_check_meets_is_recorded_once_an_hour() -> None:
    for _ in range(2):
        record_hourly("store", "pre_tool_use", "many")
    assert [line["fault"] for line in lines(fault_log())] == ["many"]
    then = time.time() - HOUR - 1
    os.utime(fault_log(), (then, then))
    record_hourly("store", "pre_tool_use", "many")
    assert len(lines(fault_log())) == 2


def test_the_record_is_bounded() -> None:
    longest = "\u2028" * 10_000  # six bytes each when written
    for number in range(200):
        record("codex", "turn", f"{number} {longest}")
    folder = Path(fault_log()).parent
    assert sorted(path.name for path in folder.iterdir()) == ["faults.jsonl", "faults.jsonl.1"]
    assert all(path.stat().st_size <= LIMIT_BYTES + 4096 for path in folder.iterdir())
    newest = [str(line["fault"]).split()[0] for line in lines(fault_log() + ".1") + lines(fault_log())]
    assert newest == [str(number) for number in range(200 - len(newest), 200)], "the newest are the ones that stay"
    assert len(newest) >= 30


def test_lines_of_hooks_that_fail_together_do_not_mix() -> None:
    work = (
        "import sys\nfrom swarm_hook_core.faults import record\n"
        "for n in range(50): record(sys.argv[1], 'turn', f'{n} ' + 'x' * 300)"
    )
    workers = [subprocess.Popen([sys.executable, "-c", work, str(w)]) for w in range(6)]
    assert [worker.wait() for worker in workers] == [0] * 6
    found = [(line["runtime"], str(line["fault"]).split()[0]) for line in lines(fault_log())]
    assert sorted(found) == sorted((str(w), str(n)) for w in range(6) for n in range(50))


def test_the_record_stays_whole_while_many_hooks_turn_it_over() -> None:
    work = (
        "import sys\nfrom swarm_hook_core import faults\nfaults.LIMIT_BYTES = 4000\n"
        "for n in range(100): faults.record(sys.argv[1], 'turn', f'{n} ' + 'x' * 300)"
    )
    workers = [subprocess.Popen([sys.executable, "-c", work, str(w)]) for w in range(4)]
    assert [worker.wait() for worker in workers] == [0] * 4
    kept = [path for path in (fault_log(), fault_log() + ".1") if os.path.exists(path)]
    assert kept
    for path in kept:
        assert os.path.getsize(path) < 8000
        lines(path)


@pytest.mark.parametrize("obstacle", ["file", "link", "folder", "nowhere"])
def test_where_nothing_can_be_written_nothing_happens(
    obstacle: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "state"
    if obstacle == "file":
        place.write_text("")
    elif obstacle == "link":
        place.symlink_to(tmp_path / "elsewhere", target_is_directory=True)
        (tmp_path / "elsewhere").mkdir()
    elif obstacle == "folder":
        (place / "faults.jsonl").mkdir(parents=True)
    monkeypatch.setenv("SWARM_STATE_DIR", "/proc/nowhere" if obstacle == "nowhere" else str(place))
    record("codex", "turn", "lost")
    assert not list(tmp_path.glob("elsewhere/*"))


def test_a_full_disk_is_no_error(failing: Failing) -> None:
    failing(os, "write", OSError(28, "No space left on device"))
    record("codex", "turn", "lost")
    assert os.path.getsize(fault_log()) == 0


def test_an_exception_in_one_line() -> None:
    assert describe(ValueError("a\n  b")) == "ValueError: a b"
    assert describe(KeyError()) == "KeyError:"
