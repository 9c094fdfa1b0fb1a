"""A call that its client cancels in the moment of its grant: the grant is put back, in either order."""

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.altered import Failing
from support.fixtures import Ground
from support.serving import ABOUT
from support.toolbox import TOOLS

from swarm_mcp.domain.session import Session
from swarm_mcp.locking import acquisition as lock_acquisition
from swarm_mcp.locking.acquisition import LockWait
from swarm_mcp.mcp.exchange import Exchange
from swarm_mcp.mcp.protocol import Notification, Request
from swarm_mcp.mcp.server import Call as RequestCall
from swarm_mcp.mcp.server import Connection, Reply, Server
from swarm_mcp.mcp.streams import Incoming, Outgoing
from swarm_mcp.server.calling_session import CallingSession
from swarm_mcp.server.calls import WAIT, WORKERS, Calls
from swarm_mcp.server.store_watcher import StoreWatcher
from swarm_mcp.store.changes import Changes

TURNS = 8  # of the event loop, in which a grant comes from its worker thread to the waiting call


def drain(pool: ThreadPoolExecutor) -> None:
    """Wait until all that the workers have begun is done: then each of them is at the barrier."""
    barrier = threading.Barrier(WORKERS)
    for work in [pool.submit(barrier.wait) for _ in range(WORKERS)]:
        work.result()


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
            calls.lost(await asked)  # it was made before the cancellation; the connection then reports it as lost
        except asyncio.CancelledError:
            return True
        finally:
            await loop.run_in_executor(None, drain, calls._workers[WAIT])
            for _ in range(TURNS):  # in which the end of a call becomes known to those who wait for it
                await asyncio.sleep(0)
            await asyncio.gather(*calls._background)
            await loop.run_in_executor(None, calls.finish, 60)
        return False

    was_cancelled = asyncio.run(play())
    assert was_cancelled or turns > 1
    assert ground.sql("SELECT file FROM context WHERE type = 'lock'") == []


@pytest.mark.parametrize("turns", range(TURNS))
def test_every_answer_is_either_sent_or_lost(turns: int) -> None:
    """The client cancels so many turns of the loop after the answer was made; the request after it is not affected."""

    async def play() -> tuple[list[str], bytes]:
        told: list[str] = []
        made = asyncio.Event()

        async def answer(call: RequestCall) -> Reply:
            if call.params["name"] == "first":
                await made.wait()
            name = call.params["name"]
            return Reply({}, lambda: told.append(f"{name} sent"), lambda: told.append(f"{name} lost"))

        reads, writes = os.pipe()
        connection = Connection(Server({"name": "s", "version": "1"}, {}, {"tools/call": answer}))
        connection.begin(Request(0, "initialize", ABOUT))
        exchange = Exchange(connection, Incoming(os.open(os.devnull, os.O_RDONLY)), Outgoing(writes))
        exchange.take(Request(7, "tools/call", {"name": "first"}))
        await asyncio.sleep(0)
        made.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        exchange.take(Notification("notifications/cancelled", {"requestId": "7"}))
        exchange.take(Request(7, "tools/call", {"name": "second"}))
        await exchange.run()
        os.close(writes)
        with os.fdopen(reads, "rb") as stream:
            return told, stream.read()

    told, written = asyncio.run(play())
    assert "second sent" in told and len([one for one in told if one.startswith("first")]) <= 1
    assert ("first sent" not in told) or written.count(b"\n") == 2, "what counts as sent was written"


@pytest.mark.parametrize("moment", ["while it is confirmed", "on its way out"])
def test_a_command_that_is_interrupted_in_the_moment_of_its_grant_leaves_no_lock(
    moment: str, ground: Ground, failing: Failing
) -> None:
    me = Session(ground.session("1"))
    ground.lock(me, "mine.txt")

    if moment == "while it is confirmed":
        failing(lock_acquisition, "_confirmed", KeyboardInterrupt)
    else:
        failing(Changes, "__exit__", KeyboardInterrupt)
    with ground.store() as store:
        wanted = lock_acquisition.requested(store, me, ["mine.txt", "f.txt"], None, None, note="n")
        with pytest.raises(KeyboardInterrupt):
            lock_acquisition.acquire(store, me, wanted, 5.0)
    assert [row["file"] for row in ground.sql("SELECT file FROM context")] == [f"{ground.scope}/mine.txt"]


@pytest.mark.parametrize("turns", range(TURNS))
def test_a_wait_that_is_cancelled_in_the_moment_of_a_commit_ends(turns: int) -> None:
    """It went on, and answered the cancelled call later: with mail that then counted as read."""

    async def play() -> None:
        watcher = StoreWatcher()
        waiting = asyncio.ensure_future(watcher.wait_beyond(0, 60))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        watcher._count()
        for _ in range(turns):
            await asyncio.sleep(0)
        is_cancelled = waiting.cancel()
        await asyncio.wait({waiting})
        assert waiting.cancelled() == is_cancelled

    asyncio.run(play())
