"""Held files while a command runs: locks end or change hands, holders save, processes stay behind."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.fixtures import wait_for
from support.kernel_ground import USERS, KernelGround, grounds, mounts_of
from support.sessions import join

from swarm_hook_core.process import start_time
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request

pytestmark = pytest.mark.slow

# Says that it is refused, and ends once it is not.
TRIES = """
echo x > "$1" && exit 3
echo refused
until echo x > "$1"; do sleep 0.05; done
"""


@pytest.fixture(params=USERS)
def ground(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[KernelGround]:
    yield from grounds(request.param, monkeypatch)


def trying(ground: KernelGround, held: Path, *others: Path) -> subprocess.Popen[str]:
    """A command that has been kept from writing `held`, and goes on trying."""
    child = ground.start(ground.plan(held, *others, strict=True), "bash", "-c", TRIES, "bash", str(held))
    assert child.stdout and child.stdout.readline() == "refused\n"
    return child


def ends_well(child: subprocess.Popen[str], held: Path) -> None:
    assert child.wait(120) == 0 and held.read_text() == "x\n"


def refused_for(child: subprocess.Popen[str], held: Path, seconds: float) -> None:
    """Check that the command cannot write for so many seconds, with looks at the locks meanwhile."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert child.poll() is None and held.read_text() != "x\n"
        time.sleep(0.05)


def test_an_unlock_lifts_it(ground: KernelGround) -> None:
    held, other = ground.locked("held.txt"), ground.locked("other.txt")
    child = trying(ground, held, other)
    with Store() as store:
        store.locks.release(ground.peer, str(held))
    ends_well(child, held)
    assert other.read_text() == "theirs\n"


def test_of_a_locked_folder_one_file_may_stay_locked(ground: KernelGround) -> None:
    folder, held = ground.locked("sub/file.txt").parent, ground.repo / "sub" / "file.txt"
    free = ground.file("sub/free.txt")
    with Store() as store:
        store.locks.acquire(ground.peer, str(folder), "all of it")
    child = trying(ground, free, folder, held)
    with Store() as store:
        store.locks.release(ground.peer, str(folder))
    ends_well(child, free)
    child = trying(ground, held)
    with Store() as store:
        store.locks.release(ground.peer, str(held))
    ends_well(child, held)


def test_a_lapsed_lease_lifts_it(ground: KernelGround) -> None:
    held = ground.file("held.txt")
    with Store() as store:
        store.locks.acquire_all(ground.peer, request(ground.peer, [str(held)], ttl=86400.0))
    child = trying(ground, held)
    refused_for(child, held, 2.5)
    with Store() as store:
        store.locks.acquire_all(ground.peer, request(ground.peer, [str(held)], ttl=1.0))
    ends_well(child, held)


def test_the_death_of_the_holder_lifts_it(ground: KernelGround) -> None:
    held = ground.file("held.txt")
    client = subprocess.Popen(["sleep", "600"])
    try:
        with Store() as store:
            peer = join(store, ground.repo, client=(client.pid, start_time(client.pid)))
            store.locks.acquire(peer, str(held), "busy")
        child = trying(ground, held)
        refused_for(child, held, 2.5)
    finally:
        client.kill()
        client.wait()
    ends_well(child, held)


def hand_over(held: Path, giver: Any, taker: Any) -> None:
    """Move a lock from one session to another, without a moment between."""
    with Store() as store:
        store.database.connection.execute(
            "UPDATE context SET instance_id = ? WHERE instance_id = ? AND type = 'lock' AND file = ?",
            (taker["id"], giver["id"], str(held)),
        )


def test_handed_over_to_this_session_it_is_free_and_to_another_it_is_not(ground: KernelGround) -> None:
    held = ground.locked("held.txt")
    with Store() as store:
        third = join(store, ground.repo, "third")
    child = trying(ground, held)
    hand_over(held, ground.peer, third)
    refused_for(child, held, 2.5)
    hand_over(held, third, ground.me)
    ends_well(child, held)


def test_a_file_that_its_holder_saves_anew_is_held_again_with_what_is_in_it_now(ground: KernelGround) -> None:
    held = ground.locked("held.txt")
    text = 'until [ "$(cat held.txt)" = "$1" ]; do sleep 0.02; done; echo seen; until ! echo x > held.txt; do :; done; echo refused'
    for number in range(3):
        new = f"saved {number}"
        child = ground.start(ground.plan(held), "bash", "-c", "echo ready; " + text, "bash", new)
        assert child.stdout and child.stdout.readline() == "ready\n"
        scratch = ground.file("scratch", new + "\n")
        os.replace(scratch, held)
        assert child.stdout.readline() == "seen\n"
        assert child.stdout.readline() == "refused\n"
        assert child.wait(120) == 0
        held.write_text("theirs\n")


def test_a_file_that_was_away_for_a_while_is_held_again(ground: KernelGround) -> None:
    held = ground.locked("held.txt")
    child = trying(ground, held)
    # In a folder where nothing can be made the command cannot take the free name.
    held.unlink()
    wait_for(lambda: child.poll() is not None or held.exists())
    assert child.wait(120) == 0
    text = "until [ -e held.txt ]; do sleep 0.02; done; until ! echo x > held.txt; do sleep 0.05; done; echo refused; cat held.txt"
    held.write_text("theirs\n")
    child = ground.start(
        ground.plan(held), "bash", "-c", "echo ready; while [ -e held.txt ]; do sleep 0.02; done; echo gone;" + text
    )
    assert child.stdout and child.stdout.readline() == "ready\n"
    held.unlink()
    assert child.stdout.readline() == "gone\n"
    ground.file("held.txt", "new\n")
    assert child.stdout.readline() == "refused\n"
    assert child.wait(120) == 0


def test_what_a_command_leaves_running_is_held_until_the_lock_ends(ground: KernelGround) -> None:
    held = ground.locked("held.txt")
    text = f"(setsid bash -c '{TRIES}' bash \"$1\" > out.txt 2> /dev/null &) ; true"
    done = ground.run(ground.plan(held), "bash", "-c", text, "bash", str(held))
    assert (done.returncode, done.stderr) == (0, "")
    wait_for(lambda: (ground.repo / "out.txt").read_text() == "refused\n")
    assert ground.processes(), "somebody keeps the mounts"
    with Store() as store:
        store.locks.release(ground.peer, str(held))
    wait_for(lambda: held.read_text() == "x\n")
    wait_for(lambda: not ground.processes())


def test_who_reads_its_output_is_kept_no_longer_than_it_runs(ground: KernelGround) -> None:
    """Something goes on that has closed its own output."""
    held = ground.locked("held.txt")
    text = "exec 9> mark; (exec > /dev/null 2>&1 < /dev/null; sleep 600 & echo $! > pid); echo said"
    child = ground.start(ground.plan(held), "bash", "-c", text)
    assert child.communicate(timeout=120) == ("said\n", "") and child.returncode == 0
    sleeper = int((ground.repo / "pid").read_text())
    (keeper,) = wait_for(lambda: [pid for pid in ground.processes() if pid != sleeper])
    wait_for(lambda: not [name for name in handles_of(keeper) if "pipe:" in name or str(ground.folder) in name])
    os.kill(sleeper, 9)
    wait_for(lambda: not ground.processes())


def handles_of(process: int) -> list[str]:
    """Return the open files of a process."""
    found = []
    for handle in Path(f"/proc/{process}/fd").iterdir():
        try:
            found.append(os.readlink(handle))
        except OSError:  # the process has ended
            continue
    return found


def test_it_ends_with_the_last_process_and_leaves_nothing(ground: KernelGround) -> None:
    held = ground.locked("held.txt")
    for _again in range(5):
        ground.bash(ground.plan(held), "true")
        wait_for(lambda: not ground.processes())
    assert mounts_of(ground.folder) == []
    assert ground.bash(ground.folder / "no-plan", "echo x > held.txt").returncode == 0


def test_the_store_that_the_plan_names_is_the_one_that_counts(ground: KernelGround) -> None:
    """The client may keep its own variables from its commands."""
    held = ground.locked("held.txt")
    place = ground.plan(held, strict=True)
    env = {name: value for name, value in ground.environment.items() if not name.startswith("SWARM_")}
    child = ground.start(place, "bash", "-c", TRIES, "bash", str(held), env=env)
    assert child.stdout and child.stdout.readline() == "refused\n"
    refused_for(child, held, 2.5)
    with Store() as store:
        store.locks.release(ground.peer, str(held))
    ends_well(child, held)


def test_a_store_that_cannot_be_read_changes_nothing(ground: KernelGround) -> None:
    held = ground.locked("held.txt")
    child = trying(ground, held)
    away = ground.database.with_name("away")
    ground.database.rename(away)
    ground.database.write_bytes(b"no database" * 1000)
    refused_for(child, held, 2.5)
    assert child.poll() is None
