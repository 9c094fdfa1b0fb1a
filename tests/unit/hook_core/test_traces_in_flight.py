"""Sessions that replace the same file whole, each after a read, while calls take time until they write.

Each agent appends a line to the text that it last read, and replaces the file with it, by a shell command whose text
cannot be parsed. Between the check of a call and its write, other sessions read, are checked, and write. In any order,
no line may be lost, and no session may be denied for ever. The model knows the written lines and shares no code with
the traces.
"""

import contextlib
import os
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.apart import home_apart
from support.sessions import mistakes
from support.traced import Player, checkout
from support.world import some_time_passes

from swarm_hook_core.hooks import SessionEvent
from swarm_hook_core.session_events import _calls_are_over

pytestmark = pytest.mark.slow

NAME = "notes.md"
AGENTS = st.integers(0, 3)
# commands with a text known only at run time
WAYS = (f"cp /tmp/x {NAME}", f"make && sort /tmp/x > {NAME}", f"mv /tmp/x {NAME}")


class Agent:
    """A session: the text that it has `read`, and the new text of a call that was let pass and has not written
    (`flying`).
    """

    def __init__(self, player: Player):
        self.player = player
        self.read: str | None = None
        self.flying: str | None = None


class Changed:
    """What `os.stat` tells of a file, with a later time of its last change."""

    def __init__(self, found: os.stat_result, later_ns: int):
        self._found = found
        self.st_ctime_ns = found.st_ctime_ns + later_ns

    def __getattr__(self, name: str) -> Any:
        return getattr(self._found, name)


class InFlight(RuleBasedStateMachine):
    """Two to four agents and one file."""

    def __init__(self) -> None:
        super().__init__()
        self._apart = contextlib.ExitStack()
        base = self._apart.enter_context(home_apart(SWARM_AUTO="keep"))
        self.passed, now, now_ns = 0.0, time.time, time.time_ns
        self._apart.enter_context(mock.patch.object(time, "time", lambda: now() + self.passed))
        self._apart.enter_context(mock.patch.object(time, "time_ns", lambda: now_ns() + int(self.passed * 1e9)))
        self.file = checkout(base / "work", NAME) / NAME
        self._file_has_the_time_too()
        self.agents: list[Agent] = []
        self.lines: set[str] = set()  # all that has been written
        self.count = 0

    def teardown(self) -> None:
        with self._apart:
            self._comes_to_an_end()

    def _file_has_the_time_too(self) -> None:
        """Tell the file's last change by the clock of this model: a write is later than the entry of its call."""
        inode = self.file.stat().st_ino
        self.changed_ns = 0

        def told_by(ask: Callable[..., os.stat_result]) -> Callable[..., Any]:
            def tell(*words: Any, **more: Any) -> Any:
                found = ask(*words, **more)
                return Changed(found, self.changed_ns) if found.st_ino == inode else found

            return tell

        for name in ("stat", "lstat", "fstat"):
            self._apart.enter_context(mock.patch.object(os, name, told_by(getattr(os, name))))

    @initialize(runtimes=st.lists(st.sampled_from(["codex", "claude-code"]), min_size=2, max_size=4))
    def begins(self, runtimes: list[str]) -> None:
        for runtime in runtimes:
            self.agents.append(Agent(Player(runtime, self.file.parent)))
        for agent in self.agents:
            agent.player.runs(f"cat {NAME}")  # so that each has left something for the others to meet

    @rule(place=AGENTS, way=st.sampled_from(WAYS), end=st.sampled_from(["lands", "lands", "lands", "fails", "turns"]))
    def goes_on(self, place: int, way: str, end: str) -> None:
        """Take the next step of an agent: it reads, its write is let pass or denied, its call writes or fails."""
        agent = self.agents[place % len(self.agents)]
        if agent.flying is not None:
            self._ends(agent, end)
        elif agent.read is None:
            self._reads(agent)
        else:
            self._is_checked(agent, ("Bash", {"command": f"sleep 2; {way}"}))

    @rule(seconds=st.sampled_from([1, 4, 20]))
    def some_time_passes(self, seconds: int) -> None:
        self.passed += seconds

    def _reads(self, agent: Agent) -> None:
        assert agent.player.runs(f"cat {NAME}") == "", "reading is never denied"
        agent.read = self.file.read_text()

    def _is_checked(self, agent: Agent, call: tuple[str, dict[str, str]]) -> None:
        self.passed += 1.5
        if not agent.player.denied(*call):
            self.count += 1
            agent.flying = f"{agent.read}line {self.count}\n"
            return
        assert agent.player.denied(*call), "nor the second time"
        agent.read = None

    def _ends(self, agent: Agent, end: str) -> None:
        text, agent.flying, agent.read = agent.flying or "", None, None
        if end == "lands":
            lost = self.lines - set(text.splitlines())
            assert not lost, f"{sorted(lost)} is overwritten unseen"
            self.file.write_text(text)
            self.changed_ns = int(self.passed * 1e9)
            some_time_passes()
            self.lines |= {line for line in text.splitlines() if line.startswith("line ")}
            return
        self.passed += 2
        if end == "turns":
            _calls_are_over(agent.player.core, SessionEvent(agent.player.session_id, str(self.file.parent), "Stop"))
        else:
            assert agent.player.runs("true") == ""

    def _comes_to_an_end(self) -> None:
        """All that is under way lands or fails; then each agent can write once it has looked."""
        for agent in self.agents:
            if agent.flying is not None:
                self._ends(agent, "fails")
        for agent in self.agents:
            assert agent.player.runs(f"cat {NAME}") == ""
            assert agent.player.denied("Bash", {"command": f"cp /tmp/x {NAME}"}) == ""
            self.passed += 2
            agent.player.runs("true")

    @invariant()
    def nothing_went_wrong(self) -> None:
        assert mistakes() == []
        assert self.lines <= set(self.file.read_text().splitlines())


_SETTINGS: Any = settings(
    max_examples=10, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestInFlight = InFlight.TestCase
TestInFlight.settings = _SETTINGS


def test_a_move_that_has_landed_ends_the_wait() -> None:
    model = InFlight()
    model.begins(["codex", "codex"])
    for _step in range(3):
        model.goes_on(1, WAYS[2], "lands")  # the last call of its session: no entry tells its end
    assert model.lines == {"line 1"}
    model.teardown()


@pytest.mark.thorough
class TestInFlightAtLength(InFlight.TestCase):
    settings = settings(_SETTINGS, max_examples=300)
