"""An undo that is killed at any step: its files are as before or as after, at the latest with the next command."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from support.files import folder_at
from support.killing import killed_before_call
from support.world import World

from swarm_hook_core.traces import state_of
from swarm_mcp.changes import writing
from swarm_mcp.changes.writing import ChangedMeanwhile, FileUndo, Record, recover, write

pytestmark = pytest.mark.usefixtures("no_faults")

BEFORE = {"changed": b"before\n", "removed": b"gone\n", "made": None, "sub/back": None}
AFTER = {"changed": b"after\n", "removed": None, "made": b"new\n", "sub/back": b"back\n"}


def planned(folder: Path) -> Record:
    """Make the files as before the undo, and its plan."""
    record = Record("0123abcd", ("codex", "theirs"), ("", ""))
    for name, content in BEFORE.items():
        one = FileUndo(str(folder / name))
        if content is not None:
            (folder / name).write_bytes(content)
            (folder / name).chmod(0o644)
        one.before, one.after = content, AFTER[name]
        one.mode_before, one.mode_after = 0o644 * (content is not None), 0o755 * (one.after is not None)
        one.state = state_of(one.path)
        record.files.append(one)
    return record


def contents(folder: Path) -> dict[str, bytes | None]:
    return {name: (folder / name).read_bytes() if (folder / name).exists() else None for name in BEFORE}


def steps_of_a_write(folder: Path) -> list[str]:
    """Return the words of all steps of a whole undo."""
    found: list[str] = []
    write(planned(folder), found.append)
    return found


def killed_at(number: int) -> Callable[[str], None]:
    left = [number]

    def reached(_word: str) -> None:
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1

    return reached


def in_a_child(function: Callable[[], object]) -> int:
    """Run `function` in a forked process; return its exit status."""
    child = os.fork()
    if not child:
        try:
            function()
        finally:
            os._exit(0)
    return os.waitpid(child, 0)[1]


def test_killed_before_and_after_each_step(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    steps = steps_of_a_write(tmp_path / "whole")
    assert contents(tmp_path / "whole") == AFTER and len(steps) > 10
    for number in range(len(steps)):
        folder = folder_at(tmp_path / str(number))
        record = planned(folder)
        record.id = f"{number:08x}"
        status = in_a_child(lambda record=record, number=number: write(record, killed_at(number)))  # type: ignore[misc]
        assert os.WIFSIGNALED(status)
        recover()
        assert contents(folder) in (BEFORE, AFTER), steps[number]
        assert sorted(os.listdir(folder)) == sorted(
            {name.split("/")[0] for name, data in contents(folder).items() if data is not None}
            | ({"sub"} if (folder / "sub").exists() else set())
        )
        assert recover() == [] and not any(name == record.id for name in os.listdir(writing.undos_dir()))


@pytest.mark.slow
@pytest.mark.thorough
def test_killed_before_each_system_call(tmp_path: Path) -> None:
    ends, number = [], 0
    while True:
        number += 1
        folder = folder_at(tmp_path / str(number))
        record = planned(folder)
        record.id = f"{number:08x}"
        if not killed_before_call(lambda record=record: write(record), number):  # type: ignore[misc]
            break
        recover()
        found = contents(folder)
        assert found in (BEFORE, AFTER), number
        ends.append(found == AFTER)
        left = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
        assert left == {name for name, data in found.items() if data is not None}, number
        assert writing.unfinished() == writing.unreadable() == [] and recover() == []
    assert contents(folder) == AFTER and ends == sorted(ends) and len(set(ends)) == 2 and number > 100


@pytest.mark.slow
@pytest.mark.parametrize("word", ["replace", "finish"])
@pytest.mark.parametrize("stride", [5, pytest.param(1, marks=pytest.mark.thorough)])
@pytest.mark.thorough
def test_the_recovery_is_killed_before_each_system_call(word: str, stride: int, tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    steps, number = steps_of_a_write(tmp_path / "whole"), 1 - stride
    last = len(steps) - 1 - steps[::-1].index(word)
    while True:
        number += stride
        folder = folder_at(tmp_path / str(number))
        record = planned(folder)
        record.id = f"{number:08x}"
        in_a_child(lambda record=record: write(record, killed_at(last)))  # type: ignore[misc]
        if not killed_before_call(recover, number):
            break
        recover()
        assert contents(folder) == (AFTER if word == "finish" else BEFORE), number
        assert writing.unfinished() == writing.unreadable() == [] and recover() == []
    assert number > 30


def test_killed_within_the_recovery(tmp_path: Path) -> None:
    record = planned(tmp_path)
    count = len(steps_of_a_write(tmp_path))
    record = planned(tmp_path)
    for name in ("made", "sub/back"):
        (tmp_path / name).unlink()
    record = planned(tmp_path)
    in_a_child(lambda: write(record, killed_at(count - 4)))
    in_a_child(lambda: _recover_killed())
    recover()
    assert contents(tmp_path) in (BEFORE, AFTER)


def _recover_killed() -> None:
    real, puts = writing._put, []

    def put(*given: object) -> None:
        if puts:
            os.kill(os.getpid(), signal.SIGKILL)
        puts.append(real(*given))  # type: ignore[arg-type, func-returns-value]

    writing._put = put  # type: ignore[assignment]
    recover()


@pytest.mark.parametrize("step", ["save", "replace"])
@pytest.mark.parametrize("name", BEFORE)
def test_a_file_that_changes_meanwhile_is_not_overwritten(name: str, step: str, tmp_path: Path) -> None:
    record = planned(tmp_path)
    steps = [step] * (1 + list(BEFORE).index(name) * (step == "replace"))  # there is one "replace" for each file

    def reached(word: str) -> None:
        if word in steps:
            steps.remove(word)
            if steps:
                return
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_bytes(b"another's\n")

    with pytest.raises(ChangedMeanwhile):
        write(record, reached)
    assert contents(tmp_path) == {**BEFORE, name: b"another's\n"} and recover() == []


def test_what_others_wrote_after_the_crash_stays(tmp_path: Path) -> None:
    record = planned(tmp_path)
    in_a_child(lambda: write(record, killed_at(8)))
    (tmp_path / "changed").write_bytes(b"another's\n")
    recover()
    assert contents(tmp_path)["changed"] == b"another's\n"


@pytest.mark.parametrize("how", ["command", "hook"])
def test_the_next_command_or_hook_of_any_session_puts_it_right(how: str, world: World) -> None:
    record = planned(world.repo)
    in_a_child(lambda: write(record, killed_at(8)))
    assert contents(world.repo) not in (BEFORE, AFTER)
    if how == "command":
        done = world.ground.swarm("locks")
        assert done.code == 0 and f"undo {record.id} was interrupted" in done.err, done
    else:
        me = world.session()
        payload = {"session_id": me.session_id, "cwd": str(world.repo), "hook_event_name": "Stop"}
        line = ["hook", "turn", "--runtime", me.runtime, "--within", "60"]
        done = world.ground.process(*line, input=json.dumps(payload).encode())
        assert done.code == 0, done.err
    assert contents(world.repo) in (BEFORE, AFTER) and not writing.any_unfinished()


def test_one_process_recovers_at_a_time(tmp_path: Path) -> None:
    record = planned(tmp_path)
    in_a_child(lambda: write(record, killed_at(8)))
    with writing.one_at_a_time() as is_free:
        assert is_free and recover() == [] and writing.any_unfinished()
    assert recover() and not writing.any_unfinished()
