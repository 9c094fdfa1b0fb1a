"""Planted faults of owners: each is found by a short schedule of ``support.owners_machine``, and by the machine itself."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis.errors import FlakyFailure
from hypothesis.stateful import run_state_machine_as_test
from support.authors import settings_of
from support.owner_faults import FAULTS, planted
from support.owners_machine import Owners

pytestmark = pytest.mark.slow

MOST = 120  # runs of the machine; each fault has been found in fewer
NOTES, DEEP = "notes.md", "sub/deep.md"
CLAUDE, CODEX, OPENCODE = 0, 1, 2  # the first sessions


def step(rule: str, place: int = -1, **given: Any) -> tuple[str, dict[str, Any]]:
    if place >= 0:
        given["place"] = place
    return rule, given


def call(place: int, way: str, name: str, is_formatted: bool = False) -> tuple[str, dict[str, Any]]:
    return step("makes_a_call", place, way=way, name=name, at=1, is_formatted=is_formatted)


def saves(name: str, adds: bool = True) -> tuple[str, dict[str, Any]]:
    return step("person_saves", name=name, at=1, adds=adds)


SCHEDULES = {
    "grace": [step("spans", is_endless=False), call(CLAUDE, "appends", NOTES), saves(NOTES)],
    "unseen_end": [step("spans", is_endless=True), call(OPENCODE, "appends", NOTES), saves(NOTES)],
    "ownerless_removal": [step("spans", is_endless=False), call(CLAUDE, "removes", NOTES)],
    "pause": [
        step("spans", is_endless=False), call(CLAUDE, "builds", NOTES), saves(DEEP),
        step("sweeps", CLAUDE, name=DEEP, words="git checkout NAME"),
    ],
    "refused_goes_on": [
        step("spans", is_endless=True), step("begins", CLAUDE, way="appends", name=NOTES, at=1),
        step("ends", CLAUDE, is_told=False), saves(NOTES),
    ],
    "follows_links": [
        step("spans", is_endless=False), call(CLAUDE, "adds", DEEP),
        step("undoes", CLAUDE, is_back=False, is_linked=True),
    ],
    "restore_keeps_nothing": [
        step("spans", is_endless=False), call(CLAUDE, "adds", NOTES), saves(NOTES), step("person_restores", name=NOTES),
    ],
}  # fmt: skip


def plays(steps: list[tuple[str, dict[str, Any]]]) -> None:
    """Play a schedule; raise AssertionError if something does not hold after one of its steps."""
    machine = Owners()
    try:
        for rule, given in steps:
            getattr(machine, rule)(**given)
            machine.all_owners_together_are_the_diff()
            machine.each_line_names_its_author()
            machine.no_hook_has_failed()
    finally:
        machine.teardown()


@pytest.mark.parametrize("fault", SCHEDULES)
@pytest.mark.sampled
def test_a_schedule_shows_a_planted_fault(fault: str) -> None:
    plays(SCHEDULES[fault])
    with planted(fault), pytest.raises(AssertionError):
        plays(SCHEDULES[fault])


@pytest.mark.thorough
@pytest.mark.parametrize("fault", FAULTS)
def test_the_machine_finds_a_planted_fault(fault: str) -> None:
    with planted(fault), pytest.raises((AssertionError, FlakyFailure)):
        run_state_machine_as_test(Owners, settings=settings_of(MOST, 24))
