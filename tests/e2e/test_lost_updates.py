"""Two agents of both clients work in the same ten files and never take a lock: `make bench` does it at length."""

import pytest

from .busy_agents import Outcome, work_together
from .client import Client

pytestmark = pytest.mark.ways("install")

EDITS = 40


def work(both: dict[str, Client], level: str, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    """Return the result of two agents' work at this level."""
    ground = both["codex"].ground
    monkeypatch.setitem(ground.env, "SWARM_AUTO", level)
    came = work_together(ground, 2, EDITS)
    assert (came.edits, came.given_up) == (EDITS, 0), came
    return came


def test_at_keep_only_who_was_told_takes_an_edit_away(both: dict[str, Client], monkeypatch: pytest.MonkeyPatch) -> None:
    came = work(both, "keep", monkeypatch)
    assert [loss for loss in came.losses if not loss.told] == []


def test_at_turn_nothing_is_lost(both: dict[str, Client], monkeypatch: pytest.MonkeyPatch) -> None:
    assert work(both, "turn", monkeypatch).losses == []
