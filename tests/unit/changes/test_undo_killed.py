"""An undo that is killed at any step: its files are as before or as after, at the latest with the next command."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from swarm_hook_core.traces import state_of
from swarm_mcp.changes import records, writing
from swarm_mcp.changes.records import FileUndo, Record
from swarm_mcp.changes.writing import ChangedMeanwhile, recover, write

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
        folder = tmp_path / str(number)
        folder.mkdir()
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
        assert recover() == [] and not any(name == record.id for name in os.listdir(records.undos_dir()))


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


@pytest.mark.parametrize("name", BEFORE)
def test_a_file_that_changes_meanwhile_is_not_overwritten(name: str, tmp_path: Path) -> None:
    record = planned(tmp_path)

    def reached(word: str) -> None:
        if word == "save":
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
