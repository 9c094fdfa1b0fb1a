"""The timeline as a drawing, and the files that sessions have edited without a lock."""

import asyncio
import time

import pytest
from support.fixtures import time_limit

from swarm_mcp.answers.timeline import Happening, Timeline
from swarm_mcp.answers.work import Edit
from swarm_mcp.view.overview.now import NOTHING, Hold, Line
from swarm_mcp.view.page import live
from swarm_mcp.view.page.live import Edited
from swarm_mcp.view.page.rendering import MOST_LANES, MOST_ROWS, ROW, THINNEST, picture

SINCE, UNTIL = 1000, 2000


def event(number: int, at: int, what: str, who: str, file: str = "/s/f", other: str = "", **details) -> Happening:
    waited = details.pop("waited", 0.0)
    return Happening(number, "/s", at, what, who, who, file, other, other, waited, "", details)


def drawn(*events: Happening, holds=(), waiting=(), now: int = UNTIL):
    return picture(Timeline(SINCE, UNTIL, list(events), False), holds, waiting, now)


def bars(lane) -> list[tuple]:
    return [(one.kind, one.x, one.width) for one in lane.bars]


def test_a_lock_is_a_bar_from_when_it_was_had_until_it_was_given_back():
    found = drawn(
        event(1, 1100, "acquired", "ann"),
        event(2, 1400, "released", "ann", released=1),
        event(3, 1500, "acquired", "ann", mode="shared"),
    )
    (lane,) = found.lanes
    assert bars(lane) == [("held", 10.0, 30.0), ("shared", 50.0, 50.0)]


def test_what_was_had_before_begins_at_the_edge():
    ended, renewed = drawn(
        event(1, 1500, "lapsed", "ann", released=1),
        event(2, 1600, "renewed", "bob"),
        event(3, 1700, "released", "bob", released=1),
    ).lanes
    assert bars(ended) == [("held", 0.0, 50.0)] and [one.kind for one in ended.marks] == ["lapsed"]
    assert bars(renewed) == [("held", 0.0, 70.0)]


def test_what_is_held_all_along_has_no_event_and_is_there():
    hold = Hold("ann", "ann", "", "exclusive", "mine", 500, None, "id")
    late = hold._replace(instance_id="bob", since=UNTIL + 5)
    (lane,) = drawn(holds=[("/s", "/s/f", hold), ("/s", "/s/g", late)]).lanes
    assert bars(lane) == [("held", 0.0, 100.0)] and lane.bars[0].note == "mine"
    (lane,) = drawn(event(1, 1500, "acquired", "ann"), holds=[("/s", "/s/f", hold)]).lanes
    assert bars(lane) == [("held", 50.0, 50.0)]


def test_a_wait_is_a_bar_until_the_lock_was_had_or_until_now():
    (lane,) = drawn(event(1, 1500, "acquired", "ann", waited=200.0)).lanes
    assert bars(lane) == [("waited", 30.0, 20.0), ("held", 50.0, 50.0)]
    line = Line(1, "/s", "ann", "ann", "", "exclusive", ("/s/f",), 100.0, None, False, ())
    (lane,) = drawn(waiting=[line]).lanes
    assert bars(lane) == [("waited", 90.0, 10.0)]


@pytest.mark.parametrize(
    "one, kind",
    [
        (event(9, 1500, "acquired", "bob", other="ann", **{"from": "ann"}), "given"),
        (event(9, 1500, "stolen", "bob", other="ann", holder="ann"), "stolen"),
    ],
)
def test_a_lock_that_goes_over_is_a_line_between_two_lanes(one: Happening, kind: str):
    found = drawn(event(1, 1100, "acquired", "ann"), one)
    (passage,) = found.passages
    ann, bob = found.lanes
    assert (passage.kind, passage.x) == (kind, 50.0)
    assert ann.y < passage.begin < ann.y + ann.height == bob.y < passage.end < bob.y + bob.height
    assert drawn(one).passages == []  # its lane is missing


def test_bars_of_one_time_stand_below_each_other_and_later_ones_beside():
    (lane,) = drawn(*(event(n, 1100, "acquired", "ann", f"/s/{n}") for n in range(20))).lanes
    assert len({one.y for one in lane.bars}) == MOST_ROWS
    assert lane.height == drawn(event(1, 1100, "acquired", "ann")).lanes[0].height + (MOST_ROWS - 1) * ROW
    one_after_another = [
        step
        for n in range(20)
        for step in (event(n, 1000 + 10 * n, "acquired", "ann"), event(n, 1010 + 10 * n, "released", "ann", released=1))
    ]
    (lane,) = drawn(*one_after_another).lanes
    assert len({one.y for one in lane.bars}) == 1


def test_everything_stays_within_the_picture():
    found = drawn(
        event(1, UNTIL, "acquired", "ann"), event(2, SINCE, "denied", "ann"), event(3, UNTIL, "denied", "ann"),
    )  # fmt: skip
    (lane,) = found.lanes
    assert all(one.x >= 0 and one.width >= THINNEST and one.x + one.width <= 100.01 for one in lane.bars)
    assert [one.x for one in lane.marks] == [0.0, 100.0] and found.height == lane.y + lane.height
    assert 2 <= len(found.ticks) <= 12 and all(0 <= one.x <= 100 for one in found.ticks)


def test_of_very_many_sessions_those_that_did_most_have_lanes():
    busy = [event(n, 1100, "denied", "busy") for n in range(3)]
    found = drawn(*(event(n, 1100, "denied", f"s{n}") for n in range(MOST_LANES + 10)), *busy)
    assert len(found.lanes) == MOST_LANES and found.more == 11
    assert "busy" in [lane.instance_id for lane in found.lanes]


def test_of_a_day_and_of_a_minute_there_are_a_few_ticks():
    for length in (60, 300, 1800, 3600, 21600, 86400):
        ticks = picture(Timeline(SINCE, SINCE + length, [], False), (), (), 0).ticks
        assert 4 <= len(ticks) <= 10, length


async def known(edited: Edited) -> None:
    """Wait until the edits of the scope are known."""
    end = time.monotonic() + time_limit(30)
    while (await edited.of(["shop"]))["shop"] is None:
        assert time.monotonic() < end


def test_a_write_that_is_made_later_than_it_is_noted_is_found_all_the_same(ground, monkeypatch):
    journal = {"journal": (100, time.time_ns())}
    there: list[Edit] = []
    monkeypatch.setattr(live, "journal_marks", lambda _scope: journal)
    monkeypatch.setattr(live, "work", lambda *_: NOTHING._replace(edits=list(there)))

    async def found():
        told = asyncio.Event()
        edited = Edited(ground.store, "", told.set)
        try:
            await known(edited)
            told.clear()
            there.append(Edit("shop/f", "1", "ann", 1, "Edit"))
            await asyncio.wait_for(told.wait(), 60)
            return await edited.of(["shop"])
        finally:
            edited.close()

    assert asyncio.run(found()) == {"shop": NOTHING._replace(edits=there)}


def test_nobody_is_asked_again_where_nothing_was_written_lately(ground, monkeypatch, limits):
    asked = []
    limits(live, AGAIN_SECONDS=0.0)
    monkeypatch.setattr(live, "journal_marks", lambda _scope: {"journal": (100, 0)})
    monkeypatch.setattr(live, "work", lambda *_: asked.append(1) or NOTHING)

    async def play():
        edited = Edited(ground.store, "", lambda: None)
        try:
            await known(edited)
            for _ in range(20):
                await asyncio.sleep(0.005)
        finally:
            edited.close()

    asyncio.run(play())
    assert asked == [1]
