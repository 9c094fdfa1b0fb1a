"""The machine of sessions without locks, with the program in front of the check for some of their calls.

A call of a client's own tool goes to the program or to the check at random, and from the program to the check where it
is handed over. At `keep` no update may be lost, and no call may be denied or told for nothing. A session may lock a file:
then no other writes it.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from support.first_look import CONTRACT, HANDED_OVER, IS_SUITE, PROGRAM
from support.traced import Player
from support.traces_machine import NAMES, PLACES, Traces
from support.world import Verdict

from swarm_mcp.errors import LockRefused
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not PROGRAM, reason="no program: make native")]
EXAMPLES = int(os.environ.get("SWARM_MACHINE_EXAMPLES", "6"))
COUNTED: Counter[str] = Counter()


class Looked(Player):
    """A player: its calls go through the program where `is_next`."""

    is_next = False

    def ask(self, tool: str, given: Any, agent: str = "", **more: Any) -> Verdict:
        if not self.is_next:
            return super().ask(tool, given, agent, **more)
        outer = {"session_id": self.session_id, "cwd": str(self.folder), "tool_name": tool, "tool_input": given}
        check = ["/bin/sh", "-c", f"exit {HANDED_OVER}"]
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("SWARM_", "XDG_"))}
        environment |= {
            "SWARM_DB_PATH": os.environ["SWARM_DB_PATH"],
            "XDG_STATE_HOME": os.path.dirname(os.environ["SWARM_STATE_DIR"]),
        }
        done = subprocess.run(
            [PROGRAM, CONTRACT, self.runtime, *check], input=json.dumps(outer).encode(), env=environment, check=False,
            stderr=subprocess.PIPE,
        )  # fmt: skip
        assert done.returncode in (0, HANDED_OVER)
        COUNTED["handed over" if done.returncode else "silent"] += 1
        COUNTED[done.stderr.decode().strip()] += 1
        if done.returncode:
            return super().ask(tool, given, agent, **more)
        return Verdict(False, "", "")


class Looks(Traces):
    """The machine, with such players, and locks."""

    make_player = Looked

    def __init__(self) -> None:
        super().__init__()
        del os.environ["SWARM_AUTO"]  # settings are the check's
        os.environ["SWARM_STATE_DIR"] = str(self.base / "state" / "swarm-mcp")
        self.locked: dict[str, int] = {}  # file -> session

    def _player(self, place: int) -> tuple[int, Player]:
        me, player = super()._player(place)
        player.is_next = (place + self.time) % 3 > 0  # type: ignore[attr-defined]
        return me, player

    def _may(self, me: int, name: str) -> bool:
        return self.locked.get(name, me) == me or not self.alive[self.locked[name]]

    @rule(place=PLACES, name=NAMES)
    def edits(self, place: int, name: str) -> None:
        me, player = self._player(place)
        if self._may(me, name) or not self.alive[me]:
            super().edits(place, name)
        else:
            first = self.text[name].split("\n")[0]
            assert player.edits(name, first, "never").startswith("denied: ")

    @rule(place=PLACES, name=NAMES)
    def adds_over(self, place: int, name: str) -> None:
        me, player = self._player(place)
        if self._may(me, name) or not self.alive[me]:
            super().adds_over(place, name)
        else:
            assert player.writes(name, "never\n").startswith("denied: ")

    @rule(place=PLACES, name=NAMES)
    def overwrites(self, place: int, name: str) -> None:
        if self._may(place % len(self.players), name):
            super().overwrites(place, name)

    @rule(place=PLACES)
    def removes_a_folder(self, place: int) -> None:
        if self._may(place % len(self.players), "sub/deep.md"):
            super().removes_a_folder(place)

    @rule(place=PLACES, name=NAMES)
    def sweeps(self, place: int, name: str) -> None:
        if self._may(place % len(self.players), name):
            super().sweeps(place, name)

    @rule(place=PLACES, name=NAMES, now=st.integers(0, 3))
    def locks(self, place: int, name: str, now: int) -> None:
        me, player = super()._player(place)
        if now or not self.alive[me]:
            return
        with Store() as store:
            try:
                store.locks.acquire_all(player.row, request(player.row, [str(self.work / name)], note="mine"))
                self.locked[name] = me
            except LockRefused:
                assert not self._may(me, name)

    @rule(name=NAMES)
    def unlocks(self, name: str) -> None:
        me = self.locked.pop(name, None)
        if me is not None and self.alive[me]:
            with Store() as store:
                store.locks.release(self.players[me].row, str(self.work / name))

    @rule(place=PLACES, number=st.integers(0, 2))
    def edits_elsewhere(self, place: int, number: int) -> None:
        """A file of its own: the usual case: the program is silent."""
        me, player = self._player(place)
        if self.alive[me]:
            player.is_next = True  # type: ignore[attr-defined]
            path = self.work / f"own-{me}-{number}.md"
            path.touch()
            assert player.edits(path.name, path.read_text(), f"{self._now()}\n") == ""

    @rule(place=PLACES, number=st.integers(0, 2))
    def edits_elsewhere_again(self, place: int, number: int) -> None:
        self.edits_elsewhere(place, number)


def test_no_update_is_lost_and_locks_exclude_with_the_program_as_a_second_hook() -> None:
    COUNTED.clear()
    run_state_machine_as_test(
        Looks,
        settings=settings(
            max_examples=EXAMPLES,
            derandomize=IS_SUITE,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    print(dict(COUNTED))
    assert COUNTED["silent"], COUNTED
