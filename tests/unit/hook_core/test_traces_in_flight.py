"""Days of ordinary work, whole writes that take time, and any order of calls: traces keep them apart."""

import contextlib
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.apart import home_apart
from support.sessions import mistakes
from support.traced import Player, checkout
from support.traces_machine import Traces
from support.worker import Worker, repository
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


class TracesThatAreNoticed(Traces):
    level = "notice"


_OF_THE_MACHINE: Any = settings(
    max_examples=12, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestKeep = Traces.TestCase
TestKeep.settings = _OF_THE_MACHINE
TestNotice = TracesThatAreNoticed.TestCase
TestNotice.settings = settings(_OF_THE_MACHINE, max_examples=6)


@pytest.mark.thorough
class TestKeepAtLength(Traces.TestCase):
    settings = settings(_OF_THE_MACHINE, max_examples=400)


LEVELS = (pytest.param("notice", marks=pytest.mark.thorough), "keep", "turn")
# One turn each, in a folder of its own.
DAY = (
    (
        "git status --short", "ls", "cat HERE/app.py", "grep -rn 'def ' HERE", "edit one two HERE/app.py",
        "edit two three HERE/app.py", "new HERE/util.py", "python3 HERE/app.py", "git diff -- HERE",
    ),
    (
        "sed -n 1,20p HERE/util.py", "sed -i 's/line/row/' HERE/util.py", "echo '# done' >> HERE/notes.md",
        "cat > HERE/config.json <<'EOF'\n{\"a\": 1}\nEOF", "git add HERE && git commit -qm 'work' -- HERE", "git log -1 --oneline",
    ),
    (
        "edit three four HERE/app.py", "cp HERE/util.py HERE/helper.py", "mv HERE/helper.py HERE/tool.py", "rm HERE/config.json",
        "mkdir -p HERE/deep && printf 'x\\n' > HERE/deep/x.txt", "git checkout -- HERE/app.py", "cat HERE/app.py",
        "edit three five HERE/app.py", "git restore HERE/notes.md",
    ),
    (
        "python3 -c \"open('HERE/made.txt', 'w').write('made')\"", "find HERE -name '*.txt' | xargs wc -l", "make test",
        "git stash list", "git add HERE/app.py HERE/made.txt", "git commit -qm 'more' -- HERE/app.py HERE/made.txt",
        "git rm -q --cached HERE/made.txt; git reset -q -- HERE/made.txt", "tar cf /dev/null HERE",
    ),
)  # fmt: skip


# Commands that only a session alone runs without thinking.
SWEEPS = (
    "new HERE/last.py", "git add -A && git commit -qam 'all of it'", "edit five six HERE/app.py",
    "git stash -q && git stash pop -q", "git checkout .", "edit five seven HERE/app.py", "git reset -q --hard", "git clean -fdq",
)  # fmt: skip


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("level", "runtime"),
    [
        ("keep", "claude-code"),
        ("turn", "codex"),
        *(pytest.param(*rest, marks=pytest.mark.thorough) for rest in (("keep", "codex"), ("turn", "claude-code"))),
        *(pytest.param("notice", runtime, marks=pytest.mark.thorough) for runtime in ("claude-code", "codex")),
    ],
)
def test_who_works_alone_hears_nothing(tmp_path: Path, repo: Path, level: str, runtime: str) -> None:
    place = repository(tmp_path.resolve() / "alone", "src")
    worker = Worker(runtime, place, level)
    for turn in (*DAY, SWEEPS):
        worker.turn(*(call.replace("HERE", "src") for call in turn))
    assert (worker.said, [told for told in worker.at_turns if told]) == ([], [])


@pytest.mark.sampled
def test_two_in_separate_checkouts_hear_nothing(tmp_path: Path, repo: Path, level: str) -> None:
    places = [repository(tmp_path.resolve() / name, "src") for name in ("here", "there")]
    workers = [Worker(runtime, place, level) for runtime, place in zip(("claude-code", "codex"), places, strict=True)]
    side_by_side(workers, ["src", "src"])
    assert [(worker.said, [told for told in worker.at_turns if told]) for worker in workers] == [([], []), ([], [])]


@pytest.mark.sampled
def test_two_in_separate_folders_of_one_checkout_hear_nothing_at_their_calls(
    tmp_path: Path, repo: Path, level: str
) -> None:
    """Changed files of the other session are listed at the beginning of a turn only.

    Except at `turn`: there its files are locked, and a program that cannot be parsed may write any of them.
    """
    place = repository(tmp_path.resolve() / "both", "mine", "yours")
    workers = [Worker(runtime, place, level) for runtime in ("claude-code", "codex")]
    side_by_side(workers, ["mine", "yours"])
    said = [said for worker in workers for said in worker.said]
    if level == "turn":
        said = [said for said in said if said.denied or "cannot be told beforehand" not in said.text]
    assert said == []
    assert all(len(told.splitlines()) <= 5 for worker in workers for told in worker.at_turns)


def side_by_side(workers: list[Worker], folders: list[str]) -> None:
    """A day of each, one call of the first and one of the second in turn."""
    for turn in DAY:
        calls = [
            worker.turns_calls(*(call.replace("HERE", folder) for call in turn))
            for worker, folder in zip(workers, folders, strict=True)
        ]
        for _ in zip(*calls, strict=True):
            pass


def test_two_on_the_same_file_in_turn_hear_one_line_each_way(tmp_path: Path, repo: Path, level: str) -> None:
    """Each session is told once about the other's change, however often that writes; no edit is denied."""
    place = repository(tmp_path.resolve() / "same", "src")
    one, two = (Worker("codex", place, level) for _ in range(2))
    one.turn("edit one two src/app.py", "edit two three src/app.py")
    two.turn("edit three four src/app.py", "edit four five src/app.py", "sed -i s/five/six/ src/app.py")
    one.turn("edit six seven src/app.py", "edit seven eight src/app.py")
    assert [(said.denied, "src/app.py" in said.text) for said in one.said] == [(False, True)], one.said
    assert [(said.denied, "src/app.py" in said.text) for said in two.said] == [(False, True)], two.said
    assert [said.text for said in (*one.said, *two.said) if "\n" in said.text.strip()] == []


@pytest.mark.sampled
@pytest.mark.parametrize("over", ["committed", "undone", "left"])
def test_what_is_over_is_no_news(tmp_path: Path, repo: Path, over: str) -> None:
    """Changes that were committed or undone, or whose session has ended."""
    place = repository(tmp_path.resolve() / "same", "src")
    one, two = Worker("claude-code", place, "keep"), Worker("codex", place, "keep")
    later = f"'{int(time.time()) + 60} +0000'"  # within one second the order is unknown
    end = {"committed": [f"git commit -qam done --date={later}"], "undone": ["git checkout -- src/app.py"]}
    one.turn("edit one two src/app.py", *end.get(over, []))
    if over == "left":
        one.end()
    look = ["cat src/app.py"] if over == "left" else []  # it counts as a person's work by now
    two.turn(*look, "cp src/notes.md src/app.py", *([] if over == "undone" else ["git checkout -- src/app.py"]))
    assert (two.said, [told for told in two.at_turns if told]) == ([], [])


@pytest.mark.sampled
@pytest.mark.parametrize("level", ["notice", "keep"])
def test_no_edit_is_denied_beside_another_who_edits_the_same_files(tmp_path: Path, repo: Path, level: str) -> None:
    """In the midst of both turns; at `notice` nothing else is denied either."""
    place = repository(tmp_path.resolve() / "same", "src")
    one, two = Worker("claude-code", place, level), Worker("codex", place, level)
    edits = [f"edit {old} {new} src/app.py" for old, new in zip("abcdefgh", "bcdefghi", strict=True)]
    (place / "src/app.py").write_text("a\n")
    subprocess.run(["git", "commit", "-qam", "Begin"], cwd=place, check=True)
    first, second = one.turns_calls(*edits[::2]), two.turns_calls(*edits[1::2])
    for _ in zip(first, second, strict=True):
        pass
    if level == "notice":
        one.turn("cp src/notes.md src/app.py", "git checkout -- src/app.py")
        two.turn("printf 'again\\n' > src/app.py", "git stash", "git stash pop", "rm src/app.py")
    assert [said for said in (*one.said, *two.said) if said.denied] == []
