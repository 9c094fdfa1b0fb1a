"""A check is killed at a system call: journals stay readable, nothing noted is lost, a later check sees the write.

``SWARM_KILLS=1`` tries each system call, not each seventh; ``SWARM_THOROUGH=1`` all scenes in both clients.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.altered import Limits
from support.killed_calls import CAN_TRACE, killed_at
from support.scenes import ME, PEER
from support.shared_scenes import Shared, files_below, in_both_clients

from swarm_hook_core.traces import meetings
from swarm_hook_core.traces.journal import Entry

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CAN_TRACE, reason="no ptrace as Linux has it"),
]
STEP = 1 if os.environ.get("SWARM_KILLS") else 7
MOST = 1000  # system calls


@pytest.fixture
def scene(runtime: str, tmp_path: Path, checks_have_time: None, limits: Limits) -> Iterator[Shared]:
    """A scene with a write by each session."""
    limits(meetings, WAIT_SECONDS=0)  # for the end of a killed call
    made = Shared(tmp_path / "look", runtime)
    with made.environment():
        yield made


def _alone(scene: Shared) -> None:
    for path in scene.place.glob(f"*{PEER}*"):
        path.unlink()


def _first_of_all(scene: Shared) -> None:
    for path in scene.place.glob("*"):
        path.unlink()


SCENES: dict[str, Callable[[Shared], None]] = {
    "beside a peer": lambda scene: None,
    "a further write": lambda scene: scene.writes(ME, "sub/deep.md"),
    "alone": _alone,
    "a first call": _first_of_all,
    "a large file": lambda scene: (scene.work / "sub/deep.md").write_text("x" * 900_000) and None,
}


@pytest.mark.parametrize(("case", "runtime"), in_both_clients(SCENES, 3))
@pytest.mark.sampled
def test_a_kill_at_a_system_call_loses_nothing(scene: Shared, case: str) -> None:
    target = scene.work / "sub/deep.md"
    tool, given_input = scene.edit_of(str(target))
    mine = scene.payload(tool, given_input)
    tool, given_input = scene.edit_of(str(target), scene.peers_core.config.runtime_name)
    theirs = scene.payload(tool, given_input, PEER)
    for number in range(1, MOST, STEP):
        scene.begin_example()
        SCENES[case](scene)
        before = files_below(scene.state)
        status = killed_at(lambda: int(scene.asks(mine) != (0, "")), number)
        assert status in (None, 0), (case, number, status)
        _is_whole(scene, before, (case, number))
        named = (
            scene.journal().exists() and os.fsencode(target) in scene.journal().read_bytes()[_length(before, scene) :]
        )
        if not named:  # the call had not been noted: the client's next one is
            assert scene.asks(mine) == (0, ""), (case, number)
        target.write_text(f"changed after {number}\n")
        assert scene.asks(theirs, is_peer=True) != (0, ""), (case, number, "the write is not seen")
        assert not (scene.state / "faults.jsonl").exists(), (scene.state / "faults.jsonl").read_text()
        if status == 0:
            break
    assert status == 0 and number > 3 * STEP


def _length(before: dict, scene: Shared) -> int:
    name = str(scene.journal().relative_to(scene.state))
    return len(before[name].content) if name in before else 0


def _is_whole(scene: Shared, before: dict, where: object) -> None:
    """Fail unless all files of the state folder keep their contents, and each entry of the journals can be read."""
    after = files_below(scene.state)
    for name, seen in before.items():
        if not name.startswith("ended/"):
            assert after[name].mode == seen.mode and after[name].content.startswith(seen.content), (where, name)
    for path in scene.place.glob("*"):
        data = path.read_bytes()
        assert not data or data.endswith(b"\n"), (where, path)
        for line in filter(None, data.split(b"\n")):
            Entry(line)  # raises for a torn one
