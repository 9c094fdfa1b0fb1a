"""SPEC.md's guarantees and assumptions of locks on one machine that no other module here shows."""

import json
import subprocess
import time
from collections.abc import Iterator

import pytest
from support.fixtures import BARE_PYTHON, FOLDERS, Ground, Sleeper
from support.lock_cases import *  # noqa: F403
from support.lock_cases import denied
from support.worlds import OneMachine

from swarm_mcp.errors import LockRefused
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request

pytestmark = pytest.mark.slow


@pytest.fixture
def world(ground: Ground) -> Iterator[OneMachine]:
    with ground.store() as store:
        yield OneMachine([ground], [store])


def take(store: Store, row: dict, *names: str, **given) -> list[dict]:
    return store.locks.acquire_all(row, request(row, names, **given))


STEPPED = f"""
import json, sys, time
sys.path[:0] = {FOLDERS!r}
step, real = float(sys.argv[1]), time.time
time.time = lambda: real() + step
from swarm_mcp.domain.session import Session
from swarm_mcp.errors import LockRefused
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request
row, said = Session(json.loads(sys.argv[2])), []
with Store() as store:
    for name in ("a", "b/", "x.py"):
        try:
            store.locks.acquire_all(row, request(row, [name]))
            said.append(True)
        except LockRefused:
            said.append(False)
print(json.dumps(said))
"""


@pytest.mark.parametrize("hours", [1, -1])
def test_one_clock_the_time_of_day_may_be_set_by_an_hour(ground: Ground, world: OneMachine, hours: int):
    """The time of day at the taking of a lock and at a question about it differ by an hour."""
    two = ground.session("2")
    with Sleeper() as client, ground.store() as store:
        one = ground.session("1", client=client.identity, lease_seconds=0)
        take(store, one, "a", ttl=1800)
        take(store, one, "b/")
        take(store, one, "x.py", ttl=1)
        time.sleep(1.05)
        argv = [*BARE_PYTHON, "-c", STEPPED, str(3600 * hours), json.dumps(two)]
        done = subprocess.run(argv, cwd=ground.repo, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == [False, False, True]


def test_one_clock_after_a_restart_the_time_of_day_counts(ground: Ground, store: Store, world: OneMachine):
    one, two = ground.session("1"), ground.session("2")
    take(store, one, "a", ttl=100)
    take(store, one, "b/", ttl=100)
    # Another start of the machine, with a new clock; the holder's client is gone.
    ground.sql("UPDATE context SET booted = 'another', renewed = 9e9")
    ground.sql("UPDATE context SET wall_until = ? WHERE path_key LIKE '%/b'", time.time() - 1)
    with pytest.raises(LockRefused):
        take(store, two, "a")
    take(store, two, "b")


def test_other_implementations_know_exact_paths_alone_and_theirs_are_honoured(ground: Ground, world: OneMachine):
    """One of them can take a file in a folder that is locked here: then neither may write it here."""
    one, two = ground.session("1"), ground.session("2")
    ground.stranger("f1")
    with ground.store() as store:
        take(store, one, "a")
        file = f"{ground.scope}/a/x.py"
        ground.add("context", id="theirs", scope="/s", instance_id="f1", file=file, type="lock", content="")
        assert denied(ground, one, "a/x.py") and not denied(ground, one, "a/y.sql")
        store.locks.release(one, "a")
        for name in ("a", "a/*.py", "a/x.py"):
            with pytest.raises(LockRefused) as refused:
                take(store, two, name)
            assert refused.value.active["instance_id"] == "f1"


def test_a_path_that_became_a_folder_counts_as_a_file_towards_patterns_and_still_holds_what_is_below(
    ground: Ground, store: Store
):
    one, two = ground.session("1"), ground.session("2")
    take(store, one, "new")
    (ground.repo / "new").mkdir()
    take(store, two, "*.md")
    assert denied(ground, one, "new/a.md") == denied(ground, two, "new/a.md") == {"new/a.md"}
    with pytest.raises(LockRefused):
        take(store, one, "new")  # as the folder that it is now
