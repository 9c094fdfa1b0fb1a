"""Processes killed at any moment: nothing is left behind, and nothing is mounted outside of the namespace."""

import os
import random
import signal
import time
from collections.abc import Iterator

import pytest
from support.fixtures import wait_for
from support.kernel_ground import USERS, KernelGround, grounds, mounts_of

pytestmark = pytest.mark.slow

MOMENTS = 200 if os.environ.get("SWARM_THOROUGH") else 15


@pytest.fixture(params=USERS)
def ground(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[KernelGround]:
    yield from grounds(request.param, monkeypatch)


def nothing_is_left(ground: KernelGround) -> None:
    wait_for(lambda: not ground.processes())
    assert mounts_of(ground.folder) == []


def test_the_command_is_killed_at_any_moment(ground: KernelGround) -> None:
    place, chance = ground.plan(ground.locked("held.txt"), strict=True), random.Random(1)
    begun = time.monotonic()
    ground.bash(place, "true")
    longest = (time.monotonic() - begun) * 1.5
    for _again in range(MOMENTS):
        child = ground.start(place, "bash", "-c", "exec sleep 600")
        time.sleep(chance.uniform(0, longest))
        child.kill()
        child.wait()
        nothing_is_left(ground)


def test_who_keeps_the_mounts_is_killed_at_any_moment(ground: KernelGround) -> None:
    """The command goes on, or is not started if its plan is strict."""
    held = ground.locked("held.txt")
    place, chance = ground.plan(held, strict=True), random.Random(2)
    for _again in range(MOMENTS):
        child = ground.start(place, "bash", "-c", "echo x > held.txt; echo started; read -r _; exit 5")
        others = wait_for(
            lambda child=child: child.poll() is not None or [p for p in ground.processes() if p != child.pid]
        )
        time.sleep(chance.uniform(0, 0.1))
        for other in others if isinstance(others, list) else ():
            kill(other)
        out, err = child.communicate("go\n", timeout=120)
        assert (child.returncode, out) in ((5, "started\n"), (126, "")), err
        assert held.read_text() == "theirs\n"
        nothing_is_left(ground)


def kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:  # it has ended
        pass
