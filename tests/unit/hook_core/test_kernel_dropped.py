"""Plans are removed with their calls; leftovers of killed sessions are removed after a day, and only those."""

import os
import time
from pathlib import Path

import pytest

from swarm_hook_core.kernel import plans
from swarm_hook_core.kernel.plans import Plan


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SWARM_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state" / "kernel"


def leave(session: str, name: str, command: str) -> None:
    plans.leave(Plan("claude-code", session, command=command, paths=["/x"]), name)


def test_a_plan_that_is_left_while_the_last_one_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    leave("s", "one", "first")
    remove, left = os.remove, []

    def remove_slowly(path: str) -> None:
        if not left:
            left.append(path)
            leave("s", "two", "second")
        remove(path)

    monkeypatch.setattr(os, "remove", remove_slowly)
    plans.drop("s", "one")
    folder = plans.folder_of("s")
    assert os.listdir(folder) == ["two"] and os.path.exists(plans.wired_file("s")), "its shell finds its plan"
    plans.drop("s", "two")
    assert not os.path.exists(folder)


def test_what_is_old_is_swept(state: Path) -> None:
    marks = state / plans.WIRED
    marks.mkdir(parents=True)
    leave("killed", "one", "first")
    for name, days in (("long", 20), ("longer", 40)):
        (marks / name).touch()
        os.utime(marks / name, (time.time() - days * 86400,) * 2)
    for folder in (marks, Path(plans.folder_of("killed"))):
        os.utime(folder, (time.time() - 2 * 86400,) * 2)
    leave("s", "one", "first")
    assert sorted(path.name for path in marks.iterdir()) == ["killed", "long", "s"], "a session may go on for days"
    assert not os.path.exists(plans.folder_of("killed"))
    assert os.listdir(plans.folder_of("s"))
