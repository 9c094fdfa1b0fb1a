"""The number of workers at once, the tracker of their work, and foreign names that are never executed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import supervised
from support.altered import Clocks
from support.fixtures import Ground
from support.requirement import requirement
from support.supervised import GATEWAY, dispatch, over, reaches

from swarm_mcp.agents.dispatch import standing
from swarm_mcp.agents.dispatch.request import Parent, Work, decide, provider_of
from swarm_mcp.agents.dispatch.standing import Slot

HOLDER = """
import sys
sys.path[:0] = {path!r}
from swarm_mcp.agents.dispatch.standing import Slot
slot = Slot()
print(slot.take(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def cap(monkeypatch: pytest.MonkeyPatch):
    """Set how many may run at once; every slot that a test makes is given back at its end."""
    made: list[Slot] = []

    def of(most: object, count: int, within: str = "") -> list[Slot]:
        monkeypatch.setenv("SWARM_MAX_WORKERS", str(most))
        made.extend(Slot(within) for _ in range(count))
        return made[-count:]

    yield of
    for slot in made:
        slot.release()


@requirement("A-28")
def test_no_more_than_the_cap(cap) -> None:
    one, two, three = cap(2, 3)
    assert [slot.take() for slot in (one, two, three)] == [True, True, False]
    assert one.take(), "whoever has a place keeps it"
    one.release()
    one.release()
    assert three.take() and not one.take()


def test_the_oldest_ticket_is_served_first(cap) -> None:
    holder, *waiting = cap(1, 4)
    assert holder.take()
    assert [slot.take() for slot in waiting] == [False, False, False]
    holder.release()
    assert [slot.take() for slot in reversed(waiting)] == [False, False, True]
    waiting[0].release()
    waiting[1].release()  # it gives up
    assert waiting[2].take()


def test_a_stopped_waiter_blocks_nobody(cap, clocks: Clocks) -> None:
    """A silent waiter is passed over, and is first again once it asks."""
    holder, stopped, waiting, late = cap(1, 4)
    assert [slot.take() for slot in (holder, stopped, waiting)] == [True, False, False]
    holder.release()
    assert not waiting.take()
    clocks.stop("wall")
    clocks.ahead(wall=standing.SILENT_SECONDS + 1)
    assert waiting.take()
    assert [slot.take() for slot in (late, stopped)] == [False, False]
    waiting.release()
    assert not late.take() and stopped.take()


@pytest.mark.parametrize(("value", "most"), [("", 4), ("7", 7), ("0", 0), ("-1", 4), ("many", 4), ("²", 4)])
def test_the_cap_as_it_is_set(monkeypatch: pytest.MonkeyPatch, value: str, most: int) -> None:
    monkeypatch.setenv("SWARM_MAX_WORKERS", value)
    assert standing.most_slots() == most


def test_without_a_cap_nobody_waits_and_nothing_is_written(cap) -> None:
    assert all(slot.take() for slot in cap(0, 20))
    assert not Path(os.environ["SWARM_STATE_DIR"]).exists()


def test_a_worker_has_a_place_for_one_of_its_own(cap) -> None:
    (outer,) = cap(1, 1)
    assert outer.take()
    first, second = cap(1, 2, within="w1")
    (stranger,) = cap(1, 1, within="w2")
    assert (first.take(), second.take(), stranger.take()) == (True, False, True)
    first.release()
    assert second.take()
    standing.forget("w1")
    standing.forget("w1")
    folder = Path(os.environ["SWARM_STATE_DIR"], "slots")
    assert sorted(path.name for path in folder.iterdir()) == ["1", "line", "within-w2"]


def test_a_killed_worker_leaves_neither_slot_nor_ticket(cap) -> None:
    cap(1, 1)
    program = [sys.executable, "-c", HOLDER.format(path=sys.path)]
    processes = [subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(1)]
    try:
        assert processes[0].stdout.readline() == b"True\n"
        processes.append(subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        assert processes[1].stdout.readline() == b"False\n"
        (mine,) = cap(1, 1)
        assert not mine.take()
        line = Path(os.environ["SWARM_STATE_DIR"], "slots", "line")
        assert len(list(line.iterdir())) == 2
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert mine.take(), "the one before has gone from the line, and the holder from its place"
    assert list(line.iterdir()) == []


# `$TRAP` is a path in the environment of all that is started here.
COMMANDS = ["#(touch $TRAP)", "$(touch $TRAP)", "`touch $TRAP`", "#{l:x}", "##(touch $TRAP)", "%H", "%%", "$HOME", "!!"]
SIGNS = ["'", '"', "\n", ";", "\\", "\t", "\x1b]2;titled\x07", "\x1b[2J", "\x9b31m", "\u202e", "~", "*", "&", "|", "é"]
ALL = "a" + "".join([*COMMANDS, *SIGNS]) + "b"


@pytest.mark.parametrize("odd", [ALL, "-x;"], ids=["every sign", "like a flag"])
def test_a_worker_is_started_by_odd_names(ground: Ground, tmp_path: Path, monkeypatch, odd: str) -> None:
    trap = tmp_path / "sprung"
    monkeypatch.setenv("TRAP", str(trap))
    lead = ground.session("lead", GATEWAY)
    folder = ground.repo / odd
    folder.mkdir()
    (folder / "said").write_text(odd)
    try:
        given = {"name": odd, "label": "odd:" + "".join(odd.split()), "cwd": str(folder)}
        answer = dispatch(ground, lead, odd, "cat said; pwd > here; echo fine", **given)
        assert answer["status"] == "spawned", answer
        reaches(ground, answer, "done")
        over(ground, answer)
    finally:
        supervised.end_all(ground)
    assert (folder / "here").read_text() == f"{folder}\n"
    assert not trap.exists()


LINEAR = {"provider": "linear", "mcp": "linear"}
ENTRY = {"identifier": "ENG-7", "url": "https://tracker.example/ENG-7", "linked_at": 1}
LONG = "w" * 61


def work(**given) -> Work:
    return Work(**{"identity": "p", "tracker": LINEAR, "type": "implement", "title": "Fix it", **given})


def test_a_denial_without_a_tracker_has_the_recorded_shape() -> None:
    decision = decide(work(tracker=None))
    assert decision == {"promote": False, "reason": "no_tracker_configured", "identity": "p", "provider": None}
    assert list(decision) == ["promote", "reason", "identity", "provider"]


# Each work would satisfy every later rule too: one that is out of its place shows.
CASES = [
    ("missing_identity_label", {"identity": "", "promote": True, "identifier": "ENG-1"}),
    ("no_tracker_configured", {"tracker": {"mcp": "linear"}, "promote": True}),
    ("identity_mismatch", {"tracker": {**LINEAR, "identity": "identity:other"}, "promote": True, "identifier": "E-1"}),
    ("operator_suppressed", {"promote": False, "identifier": "ENG-1", "files": ("/__swarm/spawn/x",), "title": LONG}),
    ("synthetic_resource", {"files": ("/__swarm/spawn/x", "/__swarm/y"), "promote": True, "mentioned": "ENG-2"}),
    ("parent_routine_skipped", {"parent": Parent(False), "type": "review", "title": LONG}),
    ("type_not_promotable", {"type": "review", "tracker": {**LINEAR, "default_promotion": "always"}}),
    ("type_not_promotable", {"type": "other", "title": LONG}),
    ("type_not_promotable", {"tracker": {**LINEAR, "promotable_types": ["fix"]}, "title": LONG}),
    ("repo_explicit_only", {"tracker": {**LINEAR, "default_promotion": "explicit-only"}, "title": LONG}),
    ("trivial_inline_edit", {"files": ("/a",), "description": "d" * 80, "title": "t" * 60}),
]


@pytest.mark.parametrize(("reason", "given"), CASES)
def test_it_is_not_promoted(reason: str, given: dict) -> None:
    decision = decide(work(**given))
    assert (decision["promote"], decision["reason"]) == (False, reason)
    assert "mode" not in decision and "identifier" not in decision


@pytest.mark.parametrize(
    ("reason", "mode", "precedence", "given"),
    [
        ("explicit_identifier", "link", "operator", {"identifier": "ENG-1", "promote": True, "mentioned": "ENG-2"}),
        ("explicit_identifier", "link", "operator", {"identifier": "ENG-1", "files": ("/__swarm/x",)}),
        ("operator_requested", "create", "operator", {"promote": True, "mentioned": "ENG-2", "parent": Parent(False)}),
        ("explicit_identifier", "link", "task", {"mentioned": "ENG-2", "parent": Parent(True, ENTRY)}),
        ("parent_binding_inherited", "link", "parent", {"parent": Parent(True, ENTRY), "type": "review"}),
        ("repo_default_always", "create", "repository", {"tracker": {**LINEAR, "default_promotion": "always"}}),
        ("medium_or_larger", "create", "size", {"files": ("/a", "/b")}),
        ("medium_or_larger", "create", "size", {"description": "d" * 81}),
        ("medium_or_larger", "create", "size", {"title": LONG}),
        ("medium_or_larger", "create", "size", {"title": LONG, "parent": Parent(True)}),
        ("medium_or_larger", "create", "size", {"title": LONG, "type": "test"}),
        ("medium_or_larger", "create", "size", {"title": LONG, "tracker": {**LINEAR, "identity": "p"}}),
        ("medium_or_larger", "create", "size", {"title": LONG, "tracker": {**LINEAR, "default_promotion": "often"}}),
        ("medium_or_larger", "create", "size", {"title": LONG, "tracker": "linear:linear-server"}),
    ],
)  # fmt: skip
def test_it_is_promoted(reason: str, mode: str, precedence: str, given: dict) -> None:
    decision = decide(work(**given))
    assert (decision["promote"], decision["reason"]) == (True, reason)
    assert (decision["mode"], decision["precedence"]) == (mode, precedence)
    assert (decision["identity"], decision["provider"]) == ("p", "linear")
    assert ("identifier" in decision) == (mode == "link")


def test_a_part_shares_its_parents_entry() -> None:
    decision = decide(work(parent=Parent(True, ENTRY)))
    assert (decision["identifier"], decision["existing_binding"]) == ("ENG-7", ENTRY)


@pytest.mark.parametrize(
    ("tracker", "provider"),
    [
        ({"provider": "jira"}, "jira"),
        ({"provider": " linear "}, "linear"),
        ("linear", "linear"),
        ("github:gh-server", "github"),
        ("", ""),
        (None, ""),
        ([], ""),
        ({"provider": 3}, ""),
        ({"provider": "a/b"}, ""),
        (":server", ""),
    ],
)
def test_the_provider_of_a_configured_tracker(tracker: object, provider: str) -> None:
    assert provider_of(tracker) == provider
