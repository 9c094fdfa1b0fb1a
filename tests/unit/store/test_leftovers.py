"""Files that a killed process was writing are removed from the state folder later; no other file is."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.fixtures import Ground
from support.sessions import ROOT

from swarm_hook_core.state import state_dir
from swarm_mcp.store import leftovers

KILLED = (
    "import os, signal, sys\n"
    f"sys.path.insert(0, {str(ROOT)!r})\n"
    "from swarm_hook_core import state\n"
    "os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
    "state.write_private(sys.argv[1], 'text')\n"
)
AGES = {"now": 0, "an hour ago": -leftovers.KEPT_SECONDS - 60, "in the future": leftovers.KEPT_SECONDS + 60}


def killed_while_writing(*names: str) -> Path:
    """Let a process be killed while it writes that file of the state folder; return what it leaves."""
    file = Path(state_dir(), *names)
    done = subprocess.run([sys.executable, "-c", KILLED, str(file)])
    assert done.returncode == -signal.SIGKILL
    (left,) = file.parent.iterdir()
    assert left.name.endswith(".tmp")
    return left


@pytest.mark.parametrize("folder", ["watched-edits", "settled", "kept", os.path.join("traces", "place")])
@pytest.mark.parametrize("when", AGES)
def test_only_what_is_certainly_over_is_removed(folder: str, when: str) -> None:
    left = killed_while_writing(folder, "session")
    whole = left.with_name("whole")
    whole.touch()
    for path in (left, whole):
        os.utime(path, (time.time() + AGES[when],) * 2)
    leftovers.remove(time.time())
    assert left.exists() == (when == "now") and whole.exists()


def test_workers_own_files_are_left_alone() -> None:
    for name in leftovers.NOT_OURS:
        path = Path(state_dir(), name, "repository", "draft.tmp")
        path.parent.mkdir(parents=True)
        path.touch()
        leftovers.remove(time.time() + 2 * leftovers.KEPT_SECONDS)
        assert path.exists(), name


def test_the_coordinator_s_cleaning_removes_them(ground: Ground) -> None:
    left = killed_while_writing("watched-edits", "session")
    os.utime(left, (1, 1))
    assert ground.swarm("cleanup").code == 0
    assert not left.exists()
    again = killed_while_writing("settled", "session")
    os.utime(again, (1, 1))
    ground.sql("DELETE FROM swarm_upkeep")
    assert ground.swarm("cleanup", "--due").code == 0
    assert not again.exists()


def test_the_cleaning_looks_for_them_once_an_hour(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[float] = []
    monkeypatch.setattr(leftovers, "remove", looks.append)
    with ground.store() as store:
        for at in (None, 0, leftovers.KEPT_SECONDS - 60, leftovers.KEPT_SECONDS + 60, -leftovers.KEPT_SECONDS - 60):
            ground.sql("DELETE FROM swarm_upkeep WHERE what = 'pass'")
            if at is not None:
                done = int(time.time()) - at
                ground.sql("UPDATE swarm_upkeep SET done_at = ? WHERE what = 'leftovers'", done)
            assert store.cleanup.some()
            if at in (None, leftovers.KEPT_SECONDS + 60, -leftovers.KEPT_SECONDS - 60):
                assert looks.pop() and looks == [], at
            else:
                assert looks == [], at
