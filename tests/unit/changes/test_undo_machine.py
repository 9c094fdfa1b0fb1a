"""Two sessions, an agent of one, and a person in two files, against a model that knows the author of each line.

The undo of a session leaves the lines of all others, byte for byte, and brings back the committed lines that the session removed. The undo of an
undo is where one was. A refused undo, and one that is killed, changes nothing or is complete.
"""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from support.authors import FILES, Authors, settings_of, tick

from swarm_mcp.changes import writing
from swarm_mcp.changes.undoing import NotUndone, Undoing
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow


class Killed(BaseException):
    """The process was killed."""


class Undos(Authors):
    """Undos of either session, at any time."""

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
        tick(self.base)

    def _killed(self, undoing: Undoing, plan: object, whose: tuple[str, str], kill: int) -> None:
        """Let the undo die at a step as a killed process does: without any word, and without putting things back."""
        left, real = [kill], writing.write

        def reached(_word: str) -> None:
            if not left[0]:
                raise Killed
            left[0] -= 1

        with (
            mock.patch("swarm_mcp.changes.undoing.write", lambda record, _look: real(record, reached)),
            mock.patch.object(writing, "_put_back", lambda files: []),
            mock.patch.object(writing.Record, "forget", lambda record: None),
        ):
            try:
                undoing.do(plan, whose)  # type: ignore[arg-type]
            except Killed:
                pass  # as was to be
        writing.recover()


TestUndos = Undos.TestCase
TestUndos.settings = settings_of(8, 12)
