"""A hook of a session's life answers first; the cleaning that is due then is done by a process of its own."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.sessions import new_session, ready_store

from swarm_mcp.hooks import session_hooks
from swarm_mcp.installation import coordinator_command
from swarm_mcp.store import Store

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
