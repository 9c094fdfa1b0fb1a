"""Commands run as workers under the kernel's protection of others' locks."""

import os
from pathlib import Path
from typing import Any

import pytest
from support.harness_fixtures import kinds, run_of, seen_of
from support.kernel_calls import says
from support.sessions import join, mistakes, new_session, peer_locks, ready_store

from swarm_hook_core.kernel import namespace
from swarm_mcp.agents.harness import registry
from swarm_mcp.domain import RUN_RUNTIME
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow

WRITES = "echo mine > free.txt; echo mine > held.txt; cat; exit 0"


@pytest.fixture
def held(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    ready_store()
    monkeypatch.setenv("SWARM_KERNEL", "1")
    file = project / "held.txt"
    file.write_text("theirs\n")
    peer_locks(project, file)
    return file


def ran(folder: Path, *command: str, member: bool = True) -> tuple[Any, list[Any]]:
    """Run a command as the worker of an instance; its result, and the events."""
    run_id, worker = new_session(), ""
    if member:
        with Store() as store:
            worker = join(store, folder, "worker", runtime=RUN_RUNTIME, session_id=run_id)["id"]
    words = command or ("bash", "-c", WRITES)
    return seen_of(run_of(registry.get("process"), folder, command=words, instance_id=worker, run_id=run_id), 120)


def notes(seen: list[Any]) -> list[str]:
    """Return the run's notes about locks that could not be held."""
    found = [event.data["data"]["message"] for event in seen if event.data.get("name") == "swarm.not_heeded"]
    return [words for words in found if words.startswith("the kernel does not protect the locked files of others")]


def needs_the_kernel() -> None:
    why = namespace.again()
    if why:
        pytest.skip(f"the kernel holds nothing here: {why}")


def test_what_others_hold_as_it_starts_is_read_only_for_it(project: Path, held: Path) -> None:
    needs_the_kernel()
    result, seen = ran(project)
    assert held.read_text() == "theirs\n" and (project / "free.txt").read_text() == "mine\n"
    assert result.output == "do it" and not result.is_error and result.exit_code == 0, "its input is its own"
    assert any("Read-only file system" in str(event.data) for event in seen)
    assert not notes(seen) and not [kind for kind in kinds(seen) if "leftovers" in kind] and mistakes() == []


def test_the_record_names_the_command_and_not_what_starts_it(project: Path, held: Path) -> None:
    needs_the_kernel()
    told: list[dict[str, Any]] = []
    with Store() as store:
        worker = join(store, project, "worker", runtime=RUN_RUNTIME, session_id="r")["id"]
    run = run_of(registry.get("process"), project, command=("bash", "-c", WRITES), instance_id=worker, run_id="r")
    run.on_meta(told.append)
    seen_of(run, 120)
    assert told[0]["command"] == "bash" and "enter.py" not in told[0]["command_line"]


def test_git_in_it_asks_first(project: Path, held: Path) -> None:
    needs_the_kernel()
    result, seen = ran(project, "bash", "-c", "git init -q . && git add held.txt && git rm -qf held.txt; echo $?")
    assert result.output.strip().endswith("1") and held.read_text() == "theirs\n"
    assert any("swarm lock blocked git" in str(event.data) for event in seen)


@pytest.mark.parametrize("off", ["switch", "member", "locks"])
def test_there_is_nothing_to_it_where_it_is_off_or_nothing_is_held(
    project: Path, held: Path, monkeypatch: pytest.MonkeyPatch, off: str
) -> None:
    says()
    if off == "switch":
        monkeypatch.setenv("SWARM_KERNEL", "0")
    if off == "locks":
        with Store() as store:
            for row in store.database.rows("SELECT instance_id FROM context WHERE type = 'lock'"):
                store.instances.remove(row["instance_id"])
    result, seen = ran(project, member=off != "member")
    assert held.read_text() == "mine\n" and not result.is_error and not notes(seen)


def test_where_it_cannot_the_run_says_so_and_strict_does_not_begin(project: Path, held: Path, monkeypatch) -> None:
    says("Operation not permitted")
    result, seen = ran(project)
    assert held.read_text() == "mine\n" and not result.is_error and len(notes(seen)) == 1, seen
    held.write_text("theirs\n")
    monkeypatch.setenv("SWARM_STRICT", "1")
    result, seen = ran(project)
    assert result.is_error and result.error_category == "unsupported" and "SWARM_STRICT" in result.error_message
    assert held.read_text() == "theirs\n"


def test_strict_wants_all_of_it_held(project: Path, held: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_the_kernel()
    monkeypatch.setenv("SWARM_STRICT", "1")
    result, _ = ran(project)
    assert not result.is_error and held.read_text() == "theirs\n"
    peer_locks(project, project / "to-come.txt")
    result, _ = ran(project)
    assert result.is_error and "not there yet" in result.error_message


def test_a_program_that_does_not_work_so_runs_as_ever(project: Path, held: Path) -> None:
    says()
    result, seen = ran(project, "bash", "-c", "swarm-mcp --version; echo mine > held.txt")
    assert held.read_text() == "mine\n" and len(notes(seen)) == 1 and "swarm-mcp" in notes(seen)[0]
    assert os.path.exists(project / "held.txt") and not result.is_error
