"""The search for the authors of the uncommitted lines that make a command fail: small programs and real ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from support.breakages import Breakage
from support.world import World

from swarm_mcp.changes.tries.trial import FLAKY, GREEN, HEAD, LINES, Failure, Search, failure, smallest


def test_the_culprits_of_a_hundred_breakages_are_named_and_mostly_no_others() -> None:
    exact, runs = 0, {2: 0, 3: 0, 4: 0}
    for seed in range(100):
        one = Breakage(seed)
        found = Search(one.owners, lambda some, one=one: [one.run(each) for each in some]).result()
        assert found.kind == LINES and set(one.culprits) <= {*found.culprits, *found.needed}, seed
        exact += set(found.culprits) == set(one.culprits)
        runs[len(one.owners)] = max(runs[len(one.owners)], found.runs)
    assert exact >= 90
    assert runs[2] <= 5 and runs[4] <= 10, runs  # the first content runs twice: a flaky one blames no author


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_search_asks_for_no_content_twice_but_the_first(jobs: int) -> None:
    asked: list[frozenset[str]] = []

    def ask(some: Sequence[frozenset[str]]) -> list[Failure]:
        asked.extend(some)
        return [failure(int("b" in one), b"error: b") for one in some]

    found = Search(["a", "b", "c"], ask, jobs).result()
    assert (found.kind, found.culprits, found.needed) == (LINES, ["b"], [])
    assert len(asked) == found.runs and len(set(asked)) == found.runs - 1


@pytest.mark.parametrize(("outcomes", "kind"), [([0], GREEN), ([0, 1], FLAKY), ([1], HEAD)])
def test_green_flaky_and_red_at_the_last_commit(outcomes: list[int], kind: str) -> None:
    count = iter([*outcomes, *outcomes * 20])
    found = Search(["a", "b"], lambda some: [failure(next(count), b"failed") for _one in some]).result()
    assert (found.kind, found.culprits) == (kind, ())


def test_failures_are_equal_but_for_numbers_addresses_times_and_what_passed() -> None:
    one = failure(1, b"ok 3\nE  <A at 0x7f12>\nFAILED t.py::x - assert 3 == 4\n1 failed, 20 passed in 0.31s\n")
    other = failure(1, b"E  <A at 0x9f>\nFAILED t.py::x - assert 5 == 4\n1 failed, 2 passed in 12s\n")
    assert one == other != failure(1, b"FAILED t.py::x - NameError\n") != failure(2, b"")


def test_the_smallest_set_of_changes() -> None:
    assert sorted(smallest(range(20), lambda some: {3, 17} <= set(some))) == [3, 17]


@pytest.mark.slow
@pytest.mark.thorough
def test_two_agents_and_a_person(tmp_path: Path) -> None:
    world = World(tmp_path, "calc", "test")
    me, peer = world.session("codex"), world.session("codex")
    world.write("calc", "alpha\nbeta\ngamma\n")
    world.write(
        "test",
        "test\nif grep -q PEER calc; then echo error: PEER; exit 2; fi\n! grep -q 'ME' calc || grep alpha calc\n",
    )
    world.commit()
    peer.edit("calc", "gamma", "gamma\nfine\nmore\nPEER")
    me.edit("calc", "alpha", "alpha\nME")
    world.write("notes", "of a person\n")

    def told(*more: str) -> tuple[int, str]:
        done = world.ground.swarm("try", "--whose", "--as", me.id, *more, "--", "sh", "test")
        return done.code, done.out

    name = world.ground.swarm("diff", "--session", peer.id, "--stat").out.split("  ")[0]
    assert told() == (1, f"red with {name}'s lines of calc; green without them (6 runs)\n")
    code, out = told("--lines", "--jobs", "2")
    assert code == 1 and out.splitlines()[1:] == ["calc:5-7"]
    peer.edit("calc", "PEER\n", "")
    assert told() == (0, "green here: no uncommitted lines make it fail (2 runs)\n")
    world.write("test", "false\n")
    world.commit()
    assert told()[1].startswith("red already at the last commit")
