"""A call that its client cancels in the moment of its grant: what it has taken is put back, whichever comes first."""

from __future__ import annotations

import asyncio
import json

import pytest
from support.fixtures import Ground
from support.toolbox import TOOLS

from swarm_mcp import lock_acquisition
from swarm_mcp.domain.session import Session
from swarm_mcp.lock_acquisition import LockWait
from swarm_mcp.server.calling_session import CallingSession
from swarm_mcp.server.calls import Calls
from swarm_mcp.server.handshake_cache import HandshakeCache
from swarm_mcp.server.open_requests import OpenRequests
from swarm_mcp.server.stdio import Backlog
from swarm_mcp.server.tool import Answer
from swarm_mcp.store.changes import Changes

TURNS = 8  # of the event loop, in which a grant comes from its worker thread to the one that has asked


@pytest.mark.parametrize("turns", range(TURNS))
def test_a_wait_that_is_cancelled_in_the_moment_of_its_grant_leaves_no_lock(
    turns: int, ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cancellation comes so many turns of the loop after the store has granted the lock."""
    holder, waiter = ground.session("1"), ground.session("2")
    ground.lock(holder, "f.txt")
    session = CallingSession()
    session.instance = lambda store, _meta: store.instances.live(waiter["id"])
    calls = Calls(session, TOOLS)
    advance = LockWait.advance

    async def play() -> bool:
        loop = asyncio.get_running_loop()
        asked = asyncio.ensure_future(calls.use("lock_file", {"file": "f.txt", "wait_seconds": 60}, {}))

        def cancel_after(left: int) -> None:
            if left:
                loop.call_soon(cancel_after, left - 1)
            else:
                asked.cancel()

        def granted(wait: LockWait, store):
            taken = advance(wait, store)
            if taken is None:
                store.locks.release(store.instances.live(holder["id"]), "f.txt")
                taken = advance(wait, store)
            assert taken is not None
            loop.call_soon_threadsafe(cancel_after, turns)
            return taken

        monkeypatch.setattr(LockWait, "advance", granted)
        try:
            calls.lost(await asked)  # it was made before; the connection then learns that nobody wants it
        except asyncio.CancelledError:
            return True
        finally:
            for kind in calls._workers.values():
                await loop.run_in_executor(None, lambda pool=kind: [pool.submit(int).result() for _ in range(8)])
            await asyncio.sleep(0)
            await loop.run_in_executor(None, calls.finish, 30)
        return False

    was_cancelled = asyncio.run(play())
    assert was_cancelled or turns > 1
    assert ground.sql("SELECT file FROM context WHERE type = 'lock'") == []


@pytest.mark.parametrize("order", ["cancelled, made", "made, cancelled", "cancelled, asked again, made"])
def test_an_answer_to_a_cancelled_request_is_lost_whichever_comes_first(order: str) -> None:
    async def play() -> list[Answer]:
        lost: list[Answer] = []
        requests = OpenRequests(
            HandshakeCache(), [], lambda _: None, lambda _: True, lambda _: None, lost.append, Backlog()
        )
        ask = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "lock_file"}})
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        answer = Answer({}, on_lost=lambda _store: None)
        assert requests.admit(ask)
        for step in order.split(", "):
            if step == "cancelled":
                assert requests.admit(json.dumps(cancel))
            elif step == "made":
                requests.expect(7, answer)
            else:
                assert requests.admit(ask)
        return lost

    assert len(asyncio.run(play())) == (0 if "again" in order else 1)


@pytest.mark.parametrize("moment", ["while it is confirmed", "on its way out"])
def test_a_command_that_is_interrupted_in_the_moment_of_its_grant_leaves_no_lock(
    moment: str, ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = Session(ground.session("1"))
    ground.lock(me, "mine.txt")

    def interrupted(*_words: object) -> None:
        raise KeyboardInterrupt

    if moment == "while it is confirmed":
        monkeypatch.setattr(lock_acquisition, "_confirmed", interrupted)
    else:
        monkeypatch.setattr(Changes, "__exit__", interrupted)
    with ground.store() as store:
        wanted = lock_acquisition.requested(store, me, ["mine.txt", "f.txt"], None, None, note="n")
        with pytest.raises(KeyboardInterrupt):
            lock_acquisition.acquire(store, me, wanted, 5.0)
    assert [row["file"] for row in ground.sql("SELECT file FROM context")] == [f"{ground.scope}/mine.txt"]
