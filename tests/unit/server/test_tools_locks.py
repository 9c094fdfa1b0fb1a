"""The tools about locks and values, the session of a call, and calls that are cancelled at their grant."""

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.altered import Failing
from support.fixtures import Ground
from support.serving import ABOUT
from support.toolbox import TOOLS, Hands

from swarm_mcp.agents.harness.environment import without_session
from swarm_mcp.domain import Session
from swarm_mcp.locking import acquisition as lock_acquisition
from swarm_mcp.locking.acquisition import LockWait
from swarm_mcp.mcp.exchange import Exchange
from swarm_mcp.mcp.protocol import Notification, Request
from swarm_mcp.mcp.server import Call as RequestCall
from swarm_mcp.mcp.server import Connection, Reply, Server
from swarm_mcp.mcp.streams import Incoming, Outgoing
from swarm_mcp.server.calling_session import CallingSession, with_session
from swarm_mcp.server.calls import WAIT, WORKERS, Calls, StoreWatcher
from swarm_mcp.store import Store
from swarm_mcp.store.changes import Changes
from swarm_mcp.store.values import LONGEST_KEY, LONGEST_VALUE

ACTIVE = ["id", "instance_id", "file", "type", "content", "created_at", "owner", "active_tasks"]
OWNER = ["id", "label", "heartbeat", "heartbeat_age_seconds", "stale", "reclaimable", "active"]


@pytest.fixture
def hands(ground: Ground) -> tuple[Hands, Hands, Hands]:
    """Two sessions of identity p and one of q."""
    labels = (("1", "identity:p one"), ("2", "identity:p two"), ("3", "identity:q secret-name"))
    return tuple(Hands(ground, ground.session(name, label)) for name, label in labels)


def test_the_pane_of_the_holder_is_shown_where_it_published_one(ground: Ground, hands: tuple[Hands, Hands, Hands]):
    _, peer, stranger = hands
    argv = [
        "register",
        "--runtime",
        "codex",
        "--session-id",
        "9",
        "--label",
        "identity:p",
        "--lease-seconds",
        "60",
        "--pane",
        "p_5",
    ]
    holder = ground.swarm(*argv, "--json").json
    ground.lock(holder, "f")
    for active in (peer.value("lock_file", file="f")["active"], peer.value("get_file_lock", file="f")["active"]):
        assert [name for name in active if name != "fence"] == [*ACTIVE[:-1], "workspace", ACTIVE[-1]]
        assert list(active["owner"]) == [*OWNER, "workspace_backend", "workspace_handle", "pane_id"]
        assert (active["owner"]["workspace_backend"], active["owner"]["pane_id"]) == ("herdr", "p_5")
        workspace = active["workspace"]
        assert workspace["key"] == f"identity/workspace/herdr/{holder['id']}"
        assert (workspace["backend"], workspace["handle_kind"], workspace["handle"]) == ("herdr", "pane", "p_5")
    assert "p_5" not in str(stranger.answer("get_file_lock", file="f").value)


@pytest.mark.parametrize("label", ["identity:q", "", None])
@pytest.mark.parametrize("where", ["/", "above", "here"])
@pytest.mark.sampled
def test_strangers_above_ones_folder_block_nobodys_locks(ground: Ground, hands, label: str | None, where: str):
    """A session of another identity, or without one, registered at an ancestor, once blocked all locks below it."""
    mine, *_ = hands
    folder = {"/": "/", "above": str(ground.folder), "here": ground.scope}[where]
    ground.session("above", label or "", directory=folder, scope=ground.scope)
    if label is None:
        ground.stranger("foreign", folder, scope=ground.scope, label=None)
    assert mine.value("lock_file", file="deep/in/here.py")["ok"] is True
    assert mine.value("lock_file", file=f"{ground.folder}/outside.py")["ok"] is True
    assert ground.swarm("lock", "by-command.py", "--as", mine.row["id"]).code == 0


@pytest.mark.thorough
def test_keys_and_values_have_an_end(ground: Ground):
    mine = Hands(ground, ground.session("1", "identity:p one"))
    assert mine.text("kv_set", key="k", value="ä" * (LONGEST_VALUE // 2)) == 'Set "k"'
    item = f'"{"x" * (LONGEST_VALUE // 2)}"'
    assert mine.text("kv_append", key="list", value=item) == 'Appended to "list" (1 items)'
    too_much = (
        ("kv_set", "k", "ä" * LONGEST_VALUE),
        ("kv_append", "list", item),
        ("kv_append", "l", f"[{item},{item}]"),
    )
    for name, key, value in too_much:
        answer = mine.answer(name, key=key, value=value)
        assert answer.is_error and f"at most {LONGEST_VALUE} bytes" in answer.text and len(str(answer)) < 600
    assert mine.value("kv_get", key="k")["value"].endswith("ä") and mine.text("kv_get", key="l").endswith("not found")
    assert mine.answer("kv_set", key="k" * (LONGEST_KEY + 1), value="v").is_error


SETTING = "SWARM_MCP_SESSION_ARGUMENT"


def test_a_server_that_the_plugin_has_started_heeds_the_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTING, "1")
    given = {"file": "f", "_session": "ses_1"}
    assert with_session(given, {"progressToken": 1}) == ({"file": "f"}, {"progressToken": 1, "sessionId": "ses_1"})
    assert with_session({"_session": 7}, {}) == ({}, {})
    assert with_session({"file": "f"}, {"sessionId": "x"}) == ({"file": "f"}, {"sessionId": "x"})


def test_every_other_passes_over_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SETTING, raising=False)
    assert with_session({"_session": "ses_1", "file": "f"}, {}) == ({"file": "f"}, {})
    assert without_session({SETTING: "1", "HOME": "/h"}) == {"HOME": "/h"}, "a worker's server is another"


TURNS = 8  # of the event loop, in which a grant comes from its worker thread to the waiting call


def drain(pool: ThreadPoolExecutor) -> None:
    """Wait until all that the workers have begun is done: then each of them is at the barrier."""
    barrier = threading.Barrier(WORKERS)
    for work in [pool.submit(barrier.wait) for _ in range(WORKERS)]:
        work.result()


@pytest.mark.parametrize("turns", range(TURNS))
@pytest.mark.sampled
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
    moment: str, ground: Ground, failing: Failing, store: Store
) -> None:
    me = Session(ground.session("1"))
    ground.lock(me, "mine.txt")

    if moment == "while it is confirmed":
        failing(lock_acquisition, "_confirmed", KeyboardInterrupt)
    else:
        failing(Changes, "__exit__", KeyboardInterrupt)
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
