"""Killed at any point, a process leaves a whole store: all it was told is there, and nothing half done."""

import shutil

import pytest
from support import many_processes as crowd
from support.fixtures import Ground

pytestmark = pytest.mark.slow

PARTS = 3
RANDOM_KILLS = 40


@pytest.mark.parametrize("part", [1, *(pytest.param(part, marks=pytest.mark.thorough) for part in range(2, PARTS + 1))])
def test_killed_before_each_statement(ground: Ground, part: int):
    assert _kill_at_each(ground, part, PARTS)["kills"] > 50


def test_killed_before_each_statement_with_a_rollback_journal(ground: Ground, rollback_journal):
    assert _kill_at_each(ground, 1, 7)["kills"] > 20
    assert ground.sql("PRAGMA journal_mode")[0]["journal_mode"] == "delete"


def _kill_at_each(ground: Ground, part: int, parts: int) -> dict:
    ground.store().close()
    empty = str(ground.folder / "empty.db")
    shutil.copy(ground.database, empty)
    body = "from support import crashing\ngate()\nreport(crashing.each_statement(*arguments))"
    (member,) = crowd.run(body, [[ground.database, empty, ground.scope, part, parts]])
    assert (member.code, member.err) == (0, "")
    (report,) = member.reports
    assert report["wrong"] == []
    return report


@pytest.mark.parametrize("seed", (1, 2))
def test_killed_at_any_moment(ground: Ground, seed: int):
    ground.store().close()
    body = "from support import crashing\ngate()\nreport(crashing.at_any_moment(*arguments))"
    (member,) = crowd.run(body, [[ground.database, ground.scope, RANDOM_KILLS, seed]])
    assert (member.code, member.err) == (0, "")
    (report,) = member.reports
    assert report["wrong"] == []
    assert report["kills"] > RANDOM_KILLS and report["acknowledged"] > RANDOM_KILLS
