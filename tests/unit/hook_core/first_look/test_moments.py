"""Two sessions write one file at one moment, with the program on one side or on both: at least one meets the other.

``SWARM_MOMENTS=10000`` is a long form.
"""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from support.altered import Limits
from support.first_look import CONTRACT, HANDED_OVER, ME, PEER, PROGRAM
from support.shared_scenes import Shared

from swarm_hook_core.traces import meetings

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not PROGRAM, reason="no program: make native")]
MOMENTS = int(os.environ.get("SWARM_MOMENTS", "60"))
TOGETHER = 30  # moments with the same journals: long ones would go to the check
LATEST_SECONDS = 0.004  # between the two calls


class Waiting:
    """The program, started, with its payload still to come."""

    def __init__(self, scene: Shared, runtime: str):
        check = ["/bin/sh", "-c", f"exit {HANDED_OVER}"]
        self.process = subprocess.Popen(
            [PROGRAM, CONTRACT, runtime, *check],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def go(self, payload: bytes) -> None:
        """Give it the payload."""
        assert self.process.stdin is not None
        self.process.stdin.write(payload)
        self.process.stdin.close()

    def meets(self) -> bool:
        """Return True if it has handed the call over, False for silence."""
        status = self.process.wait()
        assert status in (0, HANDED_OVER)
        return status == HANDED_OVER


@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize("how", ["edit", "whole"])
def test_of_two_writers_at_one_moment_one_meets_the_other(
    tmp_path: Path, limits: Limits, checks_have_time: None, both: bool, how: str
) -> None:
    limits(meetings, WAIT_SECONDS=0)  # the other one's call never ends
    scene, pick, counted = Shared(tmp_path / "look", "claude-code"), random.Random(), Counter[tuple[bool, bool]]()
    theirs = scene.peers_core.config.runtime_name
    with scene.environment():
        for moment in range(MOMENTS // 4):
            if moment % TOGETHER == 0:
                scene.begin_example()
            name = str(scene.work / f"at-{moment}.md")
            mine, others = _call(scene, how, name, scene.runtime, ME), _call(scene, how, name, theirs, PEER)
            one = Waiting(scene, scene.runtime)
            two = Waiting(scene, theirs) if both else None
            first, pause = pick.random() < 0.5, pick.random() * LATEST_SECONDS * (pick.random() < 0.7)
            if first:
                one.go(mine)
                time.sleep(pause)
            if two is not None:
                two.go(others)
                if not first:
                    time.sleep(pause)
                    one.go(mine)
                met = two.meets()
            else:
                if not first:
                    one.go(mine)
                met = scene.asks(others, is_peer=True) != (0, "")
            found = (one.meets(), met)
            assert any(found), (name, "both were silent")
            counted[found] += 1
    print(how, both, dict(counted))


def _call(scene: Shared, how: str, name: str, runtime: str, who: str) -> bytes:
    """Return a call that edits a file, or makes it."""
    tool, given = scene.edit_of(name, runtime)
    if how == "whole":
        tool, given = "Write", {"file_path": name, "content": "x\n"}
        if runtime == "codex":
            tool, given = "apply_patch", {"command": f"*** Begin Patch\n*** Add File: {name}\n+x\n*** End Patch\n"}
    return scene.payload(tool, given, who)
