"""Cleaning that is due: by a process of its own after a hook, and of files that killed processes have left."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.fixtures import Ground
from support.sessions import ROOT, new_session, ready_store

from swarm_hook_core.state import state_dir
from swarm_mcp.hooks import session_hooks
from swarm_mcp.installation import coordinator_command
from swarm_mcp.store import Store, cleanup

KILLED = (
    "import os, signal, sys\n"
    f"sys.path.insert(0, {str(ROOT)!r})\n"
    "from swarm_hook_core import state\n"
    "os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
    "state.write_private(sys.argv[1], 'text')\n"
)
AGES = {"now": 0, "an hour ago": -cleanup.KEPT_SECONDS - 60, "in the future": cleanup.KEPT_SECONDS + 60}


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
    cleanup.remove(time.time())
    assert left.exists() == (when == "now") and whole.exists()


def test_workers_own_files_are_left_alone() -> None:
    for name in cleanup.NOT_OURS:
        path = Path(state_dir(), name, "repository", "draft.tmp")
        path.parent.mkdir(parents=True)
        path.touch()
        cleanup.remove(time.time() + 2 * cleanup.KEPT_SECONDS)
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
    monkeypatch.setattr(cleanup, "remove", looks.append)
    with ground.store() as store:
        for at in (None, 0, cleanup.KEPT_SECONDS - 60, cleanup.KEPT_SECONDS + 60, -cleanup.KEPT_SECONDS - 60):
            ground.sql("DELETE FROM swarm_upkeep WHERE what = 'pass'")
            if at is not None:
                done = int(time.time()) - at
                ground.sql("UPDATE swarm_upkeep SET done_at = ? WHERE what = 'leftovers'", done)
            assert store.cleanup.some()
            if at in (None, cleanup.KEPT_SECONDS + 60, -cleanup.KEPT_SECONDS - 60):
                assert looks.pop() and looks == [], at
            else:
                assert looks == [], at


OLD = 30 * 86400  # seconds
AGED = "events WHERE type = 'aged'"


def hook(event: str, name: str, session_id: str, folder: Path) -> None:
    words = ["hook", event, "--runtime", "codex", "--within", "60"]
    payload = {"session_id": session_id, "cwd": str(folder), "hook_event_name": name, "source": "startup"}
    subprocess.run(
        [*coordinator_command(), *words], input=json.dumps(payload), text=True, check=True, stdout=subprocess.DEVNULL
    )


def add_aged(passed: int | None) -> None:
    """Add an old event; the last pass was `passed` seconds ago; None: never."""
    with Store() as store, store.database.writing() as tx:
        old = tx.now() - OLD
        tx.change("INSERT INTO events (scope, type, created_at) VALUES ('/s', 'aged', ?)", (old,))
        tx.change("DELETE FROM swarm_upkeep WHERE what = 'pass'")
        if passed is not None:
            tx.change("INSERT INTO swarm_upkeep (what, place, done_at) VALUES ('pass', '', ?)", (tx.now() - passed,))


def is_aged_there() -> bool:
    with Store() as store:
        return store.database.has(AGED)


@pytest.mark.parametrize("event, name", [("session_start", "SessionStart"), ("turn", "UserPromptSubmit")])
def test_what_is_due_is_removed_after_the_answer(event: str, name: str, tmp_path: Path) -> None:
    ready_store()
    add_aged(passed=300)
    hook(event, name, new_session(), tmp_path)
    end = time.monotonic() + 60
    while is_aged_there() and time.monotonic() < end:
        time.sleep(0.05)
    assert not is_aged_there()


def test_a_store_that_was_never_cleaned_is_cleaned_at_once(tmp_path: Path) -> None:
    ready_store()
    add_aged(passed=None)
    hook("session_start", "SessionStart", new_session(), tmp_path)
    assert not is_aged_there()


def test_the_process_is_started_by_the_hooks_own_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["hook", "turn", "--runtime", "codex", "--within", "2"]
    monkeypatch.setattr(sys, "argv", ["-c", *words])
    monkeypatch.setattr(sys, "orig_argv", ["/bin/python", "-I", "-c", "code", *words])
    assert session_hooks.this_command() == ["/bin/python", "-I", "-c", "code"]
    monkeypatch.setattr(sys, "argv", ["pytest"])
    assert session_hooks.this_command() == coordinator_command()
