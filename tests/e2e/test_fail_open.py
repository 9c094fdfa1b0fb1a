"""With any fault on our side, the client works as if swarm were not there."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from support.requirement import requirement

from .checks import assert_text
from .client import Client
from .ground import Ground

# Tests that do not depend on the way of installing run in one of them; a few in both, as a sample.
pytestmark = pytest.mark.ways("install")

CALL_DELAY_LIMIT = 4.0  # seconds a fault may add to a write: less than the five after which the client itself goes on
DELAY_LIMIT = 10.0  # seconds that all the hooks of a session of one turn may add together
Broken = dict[str, str]  # changes to the client's environment


@contextmanager
def no_command_line(ground: Ground) -> Iterator[Broken]:
    """S22: `swarm-mcp` was uninstalled, or is not where it was."""
    folder = ground.root / "bare"
    try:
        yield {"PATH": ground.path_without(folder, "swarm-mcp"), "SWARM_MCP_BIN": "/nonexistent/swarm-mcp"}
    finally:
        shutil.rmtree(folder)


@contextmanager
def no_python(ground: Ground) -> Iterator[Broken]:
    folder = ground.root / "bare"
    try:
        yield {"PATH": ground.path_without(folder, "python", "pypy", "swarm-mcp")}
    finally:
        shutil.rmtree(folder)


@contextmanager
def store_is_garbage(ground: Ground) -> Iterator[Broken]:
    ground.store.write_bytes(b"this was a database once\n" * 500)
    yield {}


@contextmanager
def store_is_a_folder(ground: Ground) -> Iterator[Broken]:
    folder = ground.root / "not-a-file"
    folder.mkdir()
    try:
        yield {"SWARM_DB_PATH": str(folder)}
    finally:
        shutil.rmtree(folder)


@contextmanager
def store_out_of_reach(ground: Ground) -> Iterator[Broken]:
    yield {"SWARM_DB_PATH": "/dev/null/swarm.db"}


@contextmanager
def store_held_by_another(ground: Ground) -> Iterator[Broken]:
    """Another process has the database for itself and does not let go."""
    ground.coordinator.register_peer()
    greedy = sqlite3.connect(ground.store, isolation_level=None)
    try:
        greedy.execute("PRAGMA locking_mode = EXCLUSIVE")
        greedy.execute("BEGIN EXCLUSIVE")
        yield {}
    finally:
        greedy.close()


@contextmanager
def no_place_for_state(ground: Ground) -> Iterator[Broken]:
    yield {f"XDG_{kind}_HOME": "/dev/null/nowhere" for kind in ("STATE", "DATA", "CACHE", "CONFIG")}


FAULTS: list[Callable[[Ground], AbstractContextManager[Broken]]] = [
    no_command_line,
    no_python,
    store_is_garbage,
    store_is_a_folder,
    store_out_of_reach,
    store_held_by_another,
    no_place_for_state,
]
# Each night shows each fault in both clients.
SHOWN = (
    "claude-code-install-no_command_line",
    "claude-code-install-store_is_garbage",
    "codex-install-no_python",
    "codex-install-store_held_by_another",
)


@pytest.mark.promise("whatever is broken, the write goes ahead", only=SHOWN)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@requirement("P-11")
def test_the_write_lands(client: Client, fault: Callable[[Ground], AbstractContextManager[Broken]]) -> None:
    usual = client.run("usual", client.create("usual.md", "usual\n"))
    with fault(client.ground) as env:
        done = client.run("work", client.replace("notes.md", "line one", "line two"), env=env)
    assert_text(client, "notes.md", "line two\n")
    (usual_call,), (call,) = client.call_seconds("usual"), client.call_seconds("work")
    assert call < 2 * usual_call + CALL_DELAY_LIMIT, f"the write took {call:.2f} s instead of {usual_call:.2f} s"
    assert done.seconds < 2 * usual.seconds + DELAY_LIMIT, f"{done.seconds:.1f} s instead of {usual.seconds:.1f} s"


@pytest.mark.promise("doctor shows what is broken", only=("codex",))
@pytest.mark.from_git
def test_faults_can_be_looked_up(client: Client) -> None:
    """A fault is silent for the agent, and `doctor` tells of it later."""
    with store_is_garbage(client.ground):
        client.run("work", client.replace("notes.md", "line one", "line two"))
    client.ground.store.unlink()
    report = client.ground.coordinator.json("doctor", allowed=(0, 1))
    faults = [check for check in report["checks"] if "fault" in check["name"]]
    assert faults and faults[0]["status"] in ("warn", "fail"), [check["name"] for check in report["checks"]]
    assert "database" in str(faults), faults
