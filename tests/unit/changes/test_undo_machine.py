"""Two sessions, an agent of one, and a person in two files, against a model that knows the author of each line.

Each line is added, or removed by its own author alone, so that the model needs no merge: the undo of a session leaves
the lines of all others, byte for byte, and brings back the committed lines that the session removed. The undo of an
undo is where one was. A refused undo, and one that is killed, changes nothing or is complete.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from support.checkouts import ALONE, AMPLE
from support.sessions import mistakes, ready_store
from support.traced import Player, checkout, git

from swarm_hook_core import budget, traces
from swarm_hook_core.shell import walk
from swarm_hook_core.traces import committed, journal, meetings, seen, sweeps
from swarm_mcp.changes import writing
from swarm_mcp.changes.undoing import NotUndone, Undoing
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow

FILES = ("notes.md", "sub/deep.md")
NAMES = st.sampled_from(FILES)
NUMBERS = st.integers(0, 5)
PERSON = -1


class Killed(BaseException):
    """The process was killed."""


class Undos(RuleBasedStateMachine):
    """The model: for each file ``[(line, author)]``, an author None for a committed line, and who removed lines."""

    def __init__(self) -> None:
        super().__init__()
        self.base = Path(tempfile.mkdtemp()).resolve()
        given = {"SWARM_STATE_DIR": self.base / "state", "SWARM_DB_PATH": self.base / "swarm.db", "HOME": self.base}
        self.patches = [
            mock.patch.dict(os.environ, {name: str(value) for name, value in given.items()}),
            mock.patch.dict(os.environ, ALONE),
            # Moments in this test are apart for the clock of file times, and no call runs beside another one.
            mock.patch.object(journal, "SLACK_NS", 0),
            mock.patch.object(seen, "APART_NS", 0),
            mock.patch.object(traces, "OWN_NS", 0),
            mock.patch.object(meetings, "WAIT_SECONDS", 0),
            mock.patch.object(budget, "SECONDS", AMPLE),
            mock.patch.object(walk, "SECONDS", AMPLE),
            mock.patch.object(walk, "SECONDS_TO_PARSE", AMPLE),
            mock.patch.object(sweeps, "SECONDS", AMPLE),
            mock.patch.object(committed, "SECONDS", AMPLE),
        ]
        for patch in self.patches:
            patch.start()
        ready_store()
        self.work = checkout(self.base / "work", *FILES)
        self.players = [Player(runtime, self.work) for runtime in ("codex", "claude-code")]
        for player in self.players:
            self._check(player, "other.md")  # each session works beside another one from the beginning
        self.count = 0
        # [line, author (None: committed), the one who has removed it (None: it is there)]
        self.lines: dict[str, list[list]] = {
            name: [[text, None, None] for text in ("alpha\n", "beta\n", "gamma\n")] for name in FILES
        }
        self.undo_ids: list[str] = []
        self.before: dict[str, str] = {}  # undo -> contents before it, while nothing else has happened

    def teardown(self) -> None:
        for patch in reversed(self.patches):
            patch.stop()
        shutil.rmtree(self.base)

    # ------------------------------------------------------------------------------------------ the model

    def _text(self, name: str, without: int | None = None) -> str:
        found = []
        for text, author, remover in self.lines[name]:
            if author is not None and author == without:
                continue
            if remover is None or remover == without:
                found.append(text)
        return "".join(found)

    def _texts(self, without: int | None = None) -> dict[str, str]:
        return {name: self._text(name, without) for name in FILES}

    def _on_disk(self) -> dict[str, str]:
        return {name: (self.work / name).read_text() for name in FILES}

    def _add(self, name: str, place: int, author: int) -> None:
        self.count += 1
        self.lines[name].insert(place % (len(self.lines[name]) + 1), [f"<{self.count}>\n", author, None])

    def _remove(self, name: str, place: int, author: int) -> None:
        own = [one for one in self.lines[name] if one[2] is None and one[1] in (None, author)]
        if own:
            own[place % len(own)][2] = author

    # ------------------------------------------------------------------------------------------ what happens

    def _check(self, player: Player, name: str, agent: str = "") -> None:
        if player.runtime == "claude-code":
            tool, given = "Edit", {"file_path": str(self.work / name), "old_string": "a", "new_string": "b"}
        else:
            body = f"*** Begin Patch\n*** Update File: {name}\n@@\n-a\n+b\n*** End Patch"
            tool, given = "apply_patch", {"command": body}
        player.told(tool, given, agent)

    def _write(self, name: str) -> None:
        _tick(self.base)
        (self.work / name).write_text(self._text(name))
        _tick(self.base)
        self.before = {}

    @rule(
        number=st.integers(0, 1), name=NAMES, place=NUMBERS, adds=st.booleans(), agent=st.sampled_from(["", "helper"])
    )
    def session_edits(self, number: int, name: str, place: int, adds: bool, agent: str) -> None:
        self._edit(number, name, place, adds, agent)

    def _edit(self, number: int, name: str, place: int, adds: bool, agent: str = "") -> None:
        self._check(self.players[number], name, agent)
        (self._add if adds else self._remove)(name, place, number)
        self._write(name)

    @rule(edits=st.lists(st.tuples(NUMBERS, NAMES, NUMBERS, st.booleans()), min_size=2, max_size=4))
    def sessions_edit_in_turn(self, edits: list[tuple[int, str, int, bool]]) -> None:
        for number, name, place, adds in edits:
            self._edit(number % 2, name, place, adds)

    @rule(name=NAMES, place=NUMBERS, adds=st.booleans())
    def person_edits(self, name: str, place: int, adds: bool) -> None:
        for player in self.players:
            player.runs("true")
            player.check("Bash", {"command": "true"}, "helper")
        (self._add if adds else self._remove)(name, place, PERSON)
        self._write(name)
        self._looks()

    @precondition(lambda self: self.count % 4 == 3)
    @rule()
    def person_commits(self) -> None:
        git(self.work, "commit", "-qam", "more", "--allow-empty")
        for name in FILES:
            self.lines[name] = [[text, None, None] for text, _author, remover in self.lines[name] if remover is None]
        self.before = {}
        _tick(self.base)

    @precondition(lambda self: self.count)
    @rule(number=st.integers(0, 1), kill=st.sampled_from([None, 0, 1, 3, 5, 6, 7]))
    def undoes(self, number: int, kill: int | None) -> None:
        self._edit(number, FILES[number], kill or 0, True)
        self._edit(1 - number, FILES[number], 1, True)
        self._looks()
        present, wanted = self._on_disk(), self._texts(without=number)
        player = self.players[number]
        whose = (player.runtime, player.session_id)
        with Store() as store:
            undoing = Undoing(store, None, str(self.work))
            try:
                plan = undoing.plan(whose, [], 0, False)
            except NotUndone:
                assert self._on_disk() == present
                return
            assert {one.path for one in plan.files} == {
                str(self.work / name) for name in FILES if wanted[name] != present[name]
            }
            if not plan.files:
                return
            if kill is not None:
                self._killed(undoing, plan, whose, kill)
                found = self._on_disk()
                assert found in (present, wanted)
                if found == present:
                    return
            else:
                record = undoing.do(plan, whose)
                assert self._on_disk() == wanted
                back = undoing.do(undoing.plan_back(record, [], False), whose, record.id)
                assert self._on_disk() == present, "the undo of an undo"
                undoing.do(undoing.plan_back(back, [], False), whose, back.id)
                assert self._on_disk() == wanted
        for name in FILES:
            self.lines[name] = [
                [text, author, None if remover == number else remover]
                for text, author, remover in self.lines[name]
                if author is None or author != number
            ]
        _tick(self.base)

    def _killed(self, undoing: Undoing, plan: object, whose: tuple[str, str], kill: int) -> None:
        """Let the undo die at a step as a killed process does: without any word, and without putting things back."""
        left, real = [kill], writing.write

        def reached(_word: str) -> None:
            if not left[0]:
                raise Killed
            left[0] -= 1

        with (
            mock.patch("swarm_mcp.changes.undoing.write", lambda record: real(record, reached)),
            mock.patch.object(writing, "_put_back", lambda files: []),
            mock.patch.object(writing.Record, "forget", lambda record: None),
        ):
            try:
                undoing.do(plan, whose)  # type: ignore[arg-type]
            except Killed:
                pass  # as was to be
        writing.recover()

    def _looks(self) -> None:
        """Let each session make another call, which ends its earlier ones."""
        for player in self.players:
            player.runs("true")
            player.check("Bash", {"command": "true"}, "helper")

    # ------------------------------------------------------------------------------------------ what holds

    @invariant()
    def files_are_as_the_model_says(self) -> None:
        assert self._on_disk() == self._texts()

    @invariant()
    def no_hook_has_failed(self) -> None:
        assert mistakes() == []


def _tick(folder: Path) -> None:
    """Wait for the next tick of the kernel's file times."""
    with tempfile.TemporaryFile(dir=folder) as probe:
        before = os.fstat(probe.fileno()).st_mtime_ns
        while os.fstat(probe.fileno()).st_mtime_ns == before:
            os.utime(probe.fileno())


TestUndos = Undos.TestCase
TestUndos.settings = settings(
    derandomize=True,
    max_examples=12,
    stateful_step_count=12,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
)
