"""Files that sessions have edited without a lock: a write is noted before it is made, and seen once it is."""

import asyncio
import time

from support.fixtures import time_limit

from swarm_mcp.answers.edits import Edit
from swarm_mcp.view.overview.work import NOTHING
from swarm_mcp.view.page import changes
from swarm_mcp.view.page.changes import Edited


async def known(edited: Edited) -> None:
    """Wait until the edits of the scope are known."""
    end = time.monotonic() + time_limit(30)
    while (await edited.of(["shop"]))["shop"] is None:
        assert time.monotonic() < end


def test_a_write_that_is_made_later_than_it_is_noted_is_found_all_the_same(ground, monkeypatch):
    journal = {"journal": (100, time.time_ns())}
    there: list[Edit] = []
    monkeypatch.setattr(changes, "journal_marks", lambda _scope: journal)
    monkeypatch.setattr(changes, "work", lambda *_: NOTHING._replace(edits=list(there)))

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
    limits(changes, AGAIN_SECONDS=0.0)
    monkeypatch.setattr(changes, "journal_marks", lambda _scope: {"journal": (100, 0)})
    monkeypatch.setattr(changes, "work", lambda *_: asked.append(1) or NOTHING)

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
