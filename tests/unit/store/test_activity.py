"""Waiting for something to happen: by the store, by the tool over real pipes, and the situation at a glance."""

import asyncio
import json
import threading
import time
import types
from collections.abc import Callable

import pytest
from support.fixtures import Ground, Sleeper, wait_for
from support.query_plans import scans
from support.serving import Server

from swarm_mcp.domain import Message
from swarm_mcp.server.tool import WaitingCall
from swarm_mcp.server.tools.activity import SWEEP_SECONDS, TOOLS
from swarm_mcp.sessions.summary import status_summary
from swarm_mcp.store import Store, messages
from swarm_mcp.store.activity import EVENTS_AT_ONCE, LOCKS_TOLD
from swarm_mcp.store.database import Database
from swarm_mcp.store.task_reading import ENDED_SHOWN, SHOWN

pytestmark = pytest.mark.slow


class Onlooker:
    """A session in the midst of others, and its news since the last look."""

    def __init__(self, ground: Ground, label: str = "identity:p onlooker"):
        self.ground = ground
        self.me = ground.session("onlooker", label)
        self.peer = ground.session("peer", "identity:p peer")
        self.stranger = ground.session("stranger", "identity:q secret-name")
        with ground.store() as store:
            self.moment = store.activity.moment(self.me)

    def news(self):
        with self.ground.store() as store:
            found = store.activity.since(self.me, self.moment)
        self.moment = found.moment
        return found

    def changes(self) -> list[str]:
        return self.news().changes

    def task(self, requester: dict, title: str = "T", **given) -> str:
        with self.ground.store() as store:
            return store.tasks.request(requester, {"type": "fix", "title": title, **given})["task"]["id"]


@pytest.fixture
def onlooker(ground: Ground) -> Onlooker:
    return Onlooker(ground)


def test_a_file_that_is_locked_or_released(onlooker: Onlooker):
    ground, file = onlooker.ground, f"{onlooker.ground.scope}/f"
    ground.lock(onlooker.peer, "f")
    news = onlooker.news()
    assert news.changes == ["lock_updates"]
    assert news.locks == ({"file": file, "change": "acquired", "instance_id": onlooker.peer["id"]},)
    with ground.store() as store:
        store.locks.release(onlooker.peer, "f")
    assert onlooker.news().locks == ({"file": file, "change": "released", "instance_id": onlooker.peer["id"]},)
    ground.lock(onlooker.peer, "f")
    with ground.store() as store:
        store.locks.release(onlooker.peer, "f")
    assert [lock["change"] for lock in onlooker.news().locks] == ["released"], "what became of it in the end"


def test_ones_own_doing_is_no_news(onlooker: Onlooker):
    ground, me = onlooker.ground, onlooker.me
    task = onlooker.task(me)
    ground.lock(me, "f")
    with ground.store() as store:
        store.tasks.claim(me, task)
        store.kv.put(me, "k", "v")
        store.locks.release(me, "f")
        store.messages.send(me, onlooker.peer["id"], "x")
    ground.session("onlooker", me["label"])  # the same session renews itself
    assert onlooker.changes() == []
    onlooker.task(me)
    onlooker.task(onlooker.peer)
    assert onlooker.changes() == ["task_updates"], "one's own beside another's hides nothing"


def test_strangers_are_no_news_but_for_their_locks(onlooker: Onlooker):
    ground, stranger = onlooker.ground, onlooker.stranger
    onlooker.task(stranger)
    with ground.store() as store:
        store.kv.put(stranger, "theirs", "v")
    another = ground.session("another", "identity:q another")
    assert onlooker.changes() == []
    ground.lock(another, "f", "secret-note")
    news = onlooker.news()
    assert news.locks == ({"file": f"{ground.scope}/f", "change": "acquired", "instance_id": None},)
    with ground.store() as store:
        store.instances.remove(another["id"])
    news = onlooker.news()
    assert (news.changes, news.locks[0]["instance_id"]) == (["lock_updates"], None), "unnamed after it has left too"


def test_more_than_anybody_reads(onlooker: Onlooker):
    ground = onlooker.ground
    ground.sql(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
        " INSERT INTO events (scope, type, actor, subject) SELECT ?, 'context.lock_acquired', ?, '/f' || i FROM n",
        EVENTS_AT_ONCE + 50, ground.scope, onlooker.peer["id"],
    )  # fmt: skip
    news = onlooker.news()
    assert news.changes == ["lock_updates"]
    assert len(news.locks) == LOCKS_TOLD and news.locks[-1]["file"] == f"/f{EVENTS_AT_ONCE + 50}"
    assert onlooker.changes() == []


def test_asking_for_news_looks_through_no_table(onlooker: Onlooker):
    onlooker.ground.lock(onlooker.peer, "f")
    onlooker.task(onlooker.peer)
    with onlooker.ground.store() as store:
        assert scans(store, lambda: store.activity.since(onlooker.me, onlooker.moment)) == set()


def many_tasks(ground: Ground, status: str, number: int = 3000) -> None:
    ground.sql(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) INSERT INTO tasks"
        " (id, scope, type, title, requester, status, priority, changed_at)"
        " SELECT ? || i, ?, 'fix', '', '', ?, 9, i FROM n",
        number, status, ground.scope, status,
    )  # fmt: skip


def test_an_answer_about_tasks_stays_small_and_has_what_changed(onlooker: Onlooker):
    ground, me = onlooker.ground, onlooker.me
    for status in ("open", "done", "blocked"):
        many_tasks(ground, status)
    with ground.store() as store:
        before = store.activity.moment(me).task + 1
        made = onlooker.task(onlooker.peer, "less urgent than all the others")
        seen = store.tasks.glance(me, before)
        shown = {status: len(seen[status]) for status in ("open", "done", "blocked", "failed")}
        assert shown == {"open": SHOWN + 1, "done": ENDED_SHOWN, "blocked": SHOWN, "failed": 0}
        assert seen["open"][-1]["id"] == made
        assert seen["done"][0]["id"] == "done3000", "the newest endings"
        assert seen["not_shown"] == {"open": 3000 - SHOWN, "done": 3000 - ENDED_SHOWN, "blocked": 3000 - SHOWN}
        assert seen["terminal_counts"] == {"done": 3000, "failed": 0, "cancelled": 0}


def test_a_few_tasks_are_shown_as_ever(onlooker: Onlooker):
    ground, me = onlooker.ground, onlooker.me
    for title in ("a", "b"):
        onlooker.task(onlooker.peer, title)
    onlooker.task(onlooker.stranger, "secret")
    with ground.store() as store:
        ended = onlooker.task(me, "c")
        store.tasks.claim(me, ended)
        store.tasks.end(me, ended, "done", "r")
        assert store.tasks.glance(me) == store.tasks.current(me)
        assert store.tasks.glance(me, 0) == store.tasks.current(me)


@pytest.fixture
def server(ground: Ground):
    with Server(ground) as running:
        running.me = running.value("register", {"directory": ground.scope, "label": "identity:p waiter"})
        running.value("swarm_status")  # the first one loads modules for the rest
        yield running


def wait(server: Server, seconds: int = 10) -> int:
    number = server.begin("tools/call", {"name": "wait_for_activity", "arguments": {"timeout_seconds": seconds}})
    time.sleep(0.4)
    return number


def answer(server: Server, number: int) -> dict:
    result = server.answer_to(number)
    assert not result.get("isError"), result
    return result["structuredContent"]


def poll(server: Server) -> list[dict]:
    return json.loads(server.call("poll_messages")["content"][0]["text"])


@pytest.mark.parametrize("seconds", [1, 2])
def test_a_timeout_is_kept(server: Server, seconds: int):
    begun = time.monotonic()
    value = server.value("wait_for_activity", {"timeout_seconds": seconds})
    assert seconds <= time.monotonic() - begun
    assert value["changes"] == [] and value["timeout"] is True and value["message"]


def test_mail_that_waits_is_given_at_once_and_once(ground: Ground, server: Server, store: Store):
    peer = ground.session("peer", "identity:p peer")
    store.messages.send(peer, server.me["id"], "hello")
    value = server.value("wait_for_activity", {"timeout_seconds": 0})
    assert list(value) == ["changes", "messages", "tasks"] and value["changes"] == ["new_messages"]
    (message,) = value["messages"]
    assert set(message) == {"id", "sender", "content", "created_at"} and message["content"] == "hello"
    assert set(value["tasks"]) == {
        "open", "claimed", "in_progress", "done", "failed", "cancelled", "blocked", "approval_required",
        "terminal_counts",
    }  # fmt: skip
    wait_for(lambda: ground.sql("SELECT read FROM messages") == [{"read": 1}])
    assert poll(server) == []
    assert server.value("wait_for_activity", {"timeout_seconds": 1})["changes"] == []


def test_each_kind_of_change_comes_with_what_it_changed(ground: Ground, server: Server, store: Store):
    peer = ground.session("peer", "identity:p peer")
    number = wait(server)
    store.messages.send(peer, server.me["id"], "hello")
    value = answer(server, number)
    assert list(value) == ["changes", "messages"] and value["messages"][0]["content"] == "hello"

    number = wait(server)
    task = store.tasks.request(peer, {"type": "fix", "title": "T"})["task"]
    value = answer(server, number)
    assert list(value) == ["changes", "tasks"] and value["tasks"]["open"][0]["id"] == task["id"]

    number = wait(server)
    third = ground.session("third", "identity:p third")
    value = answer(server, number)
    assert list(value) == ["changes", "instances"]
    assert {row["id"] for row in value["instances"]} == {server.me["id"], peer["id"], third["id"]}

    number = wait(server)
    store.kv.put(peer, "k", "v")
    assert answer(server, number) == {"changes": ["kv_updates"]}

    number = wait(server)
    ground.lock(peer, "f")
    locks = [{"file": f"{ground.scope}/f", "change": "acquired", "instance_id": peer["id"]}]
    assert answer(server, number) == {"changes": ["lock_updates"], "locks": locks}


@pytest.mark.thorough
def test_it_waits_for_ever_where_no_timeout_is_set(ground: Ground, server: Server):
    peer = ground.session("peer", "identity:p peer")
    number = wait(server, 0)
    assert server.next_message(2 * SWEEP_SECONDS + 0.5) is None
    ground.lock(peer, "f")
    assert answer(server, number)["changes"] == ["lock_updates"]


def test_a_killed_holder_is_noticed_while_waiting(ground: Ground, server: Server):
    with Sleeper() as client:
        peer = ground.session("peer", "identity:p peer", client=client.identity)
        ground.lock(peer, "f")
        assert server.value("lock_file", {"file": "f"})["error"]
        number = wait(server)
    value = answer(server, number)
    assert value["changes"] == ["new_messages", "instance_changes", "lock_updates"]
    assert "is gone" in value["messages"][0]["content"]


def test_a_cancelled_wait_ends_and_loses_no_mail(ground: Ground, server: Server, store: Store):
    peer = ground.session("peer", "identity:p peer")
    number = wait(server, 0)
    server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
    assert server.ask("ping") == {}  # messages are read in order: the request is cancelled by now
    store.messages.send(peer, server.me["id"], "after the cancel")
    assert ground.sql("SELECT * FROM swarm_deliveries") == [], "nobody took it"
    assert [message["content"] for message in poll(server)] == ["after the cancel"]


@pytest.mark.parametrize("late", [False, True], ids=["before the take", "during the take"])
def test_mail_taken_for_a_cancelled_wait_is_put_back(ground: Ground, monkeypatch: pytest.MonkeyPatch, late: bool):
    me, peer = ground.session("me"), ground.session("peer")
    with ground.store() as store:
        store.messages.send(peer, me["id"], "m")
    reached, go_on = threading.Event(), threading.Event()

    right = messages.take

    def take(db: Database, instance: dict, limit: int = 50) -> list[Message]:
        rows = right(db, instance, limit) if late else []
        reached.set()
        assert go_on.wait(60)
        return rows if late else right(db, instance, limit)

    monkeypatch.setattr(messages, "take", take)

    class Waiting(WaitingCall):
        def __init__(self) -> None:
            self.undo: list[Callable[..., object]] = []

        def when_cancelled(self, function: Callable[..., object]) -> None:
            self.undo.append(function)

        async def run(self, function):
            return await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, self.carry_out, function))

        def carry_out(self, function):
            with ground.store() as store:
                return function(types.SimpleNamespace(store=store, member=lambda: me))

    async def cancel_it() -> None:
        waiting = Waiting()
        call = asyncio.create_task(TOOLS[-1].call(waiting, {"timeout_seconds": 0}))
        await asyncio.to_thread(reached.wait, 10)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        undone = [asyncio.create_task(waiting.run(function)) for function in waiting.undo]
        go_on.set()
        await asyncio.gather(*undone)
        await asyncio.gather(*(task for task in asyncio.all_tasks() if task is not asyncio.current_task()))

    asyncio.run(cancel_it())
    assert ground.sql("SELECT * FROM swarm_deliveries") == []
    with ground.store() as store:
        assert len(right(store.database, me)) == 1


def status(ground: Ground, me: dict) -> dict:
    with ground.store() as store:
        return status_summary(store, me)


def codes(value: dict) -> list[tuple[str, str]]:
    return sorted({(warning["code"], warning["severity"]) for warning in value["warnings"]})


def test_a_quiet_scope(ground: Ground):
    me = ground.session("me", "identity:p role:planner")
    peer = ground.session("peer", "identity:p role:implementer")
    ground.session("stranger", "identity:q secret-name")
    value = status(ground, me)
    assert list(value) == [
        "instance", "peers", "planner_owner", "unread_messages", "task_counts", "assigned_tasks", "claimable_tasks",
        "active_peer_tasks", "held_locks", "blocking_locks", "warnings", "next_action",
    ]  # fmt: skip
    assert value["instance"] == {
        "id": me["id"], "label": "identity:p role:planner", "role": "planner", "scope": ground.scope,
        "directory": ground.scope, "file_root": ground.scope,
    }  # fmt: skip
    assert [row["id"] for row in value["peers"]] == [peer["id"]]
    assert value["planner_owner"]["instance_id"] == me["id"] and value["planner_owner"]["is_me"] is True
    assert status(ground, peer)["planner_owner"]["is_me"] is False
    assert set(value["task_counts"].values()) == {0} and len(value["task_counts"]) == 8
    assert value["next_action"]["tool"] == "wait_for_activity" and value["warnings"] == []


def test_what_to_do_next(ground: Ground, store: Store):
    me, peer = ground.session("me", "role:planner"), ground.session("peer", "peer")

    def next_tool() -> tuple[str, str | None]:
        action = status_summary(store, me)["next_action"]
        return action["tool"], action.get("task_id")

    def request(title: str, **given) -> str:
        return store.tasks.request(peer, {"type": "fix", "title": title, **given})["task"]["id"]

    approval = request("approve me", approval_required=True)
    assert next_tool() == ("list_tasks", None)
    opened = request("open")
    assert next_tool() == ("claim_next_task", None)
    given = request("given", assignee=me["id"])
    store.messages.acknowledge([message["id"] for message in store.messages.take(me)])
    assert next_tool() == ("claim_task", given)
    store.tasks.claim(me, opened)
    assert next_tool() == ("complete_task", opened)
    store.messages.send(peer, me["id"], "x")
    assert next_tool() == ("poll_messages", None)
    value = status_summary(store, me)
    assert [message["content"] for message in value["unread_messages"]] == ["x"]
    assert len(status_summary(store, me)["unread_messages"]) == 1, "looking marks nothing"
    assert {task["id"] for task in value["assigned_tasks"]} == {opened, given}
    assert value["task_counts"]["approval_required"] == 1 and approval
    assert status_summary(store, peer)["next_action"]["tool"] == "wait_for_activity", "no planner, so no list_tasks"


def test_every_warning(ground: Ground, store: Store):
    me, peer = ground.session("me", "me"), ground.session("peer", "peer")
    past = int(time.time()) - 600

    def task(assignee: dict, title: str, **given) -> str:
        made = store.tasks.request(assignee, {"type": "fix", "title": title, **given})["task"]["id"]
        store.tasks.claim(assignee, made, True)
        return made

    mine = task(me, "mine", files=["a", "b", "c"])
    bare = task(me, "bare")
    theirs = task(peer, "theirs", files=["b"])
    ground.sql("UPDATE tasks SET blocked_reason = 'stuck', expected_next_update_at = ? WHERE id = ?", past, mine)
    ground.sql("UPDATE tasks SET expected_next_update_at = ? WHERE id = ?", past, theirs)
    ground.lock(peer, "a")
    ground.lock(me, "b")
    ground.lock(me, "unrelated")
    value = status_summary(store, me)
    assert codes(value) == [
        ("active_task_file_overlap", "warning"),
        ("expected_progress_update_overdue", "info"),
        ("file_locked_by_peer", "warning"),
        ("held_lock_without_active_task_file", "info"),
        ("in_progress_task_without_files", "info"),
        ("missing_lock_for_in_progress_task", "warning"),
        ("peer_progress_update_overdue", "info"),
        ("task_reported_blocked", "warning"),
    ]
    about = {w["code"]: w for w in value["warnings"]}
    scope = ground.scope
    assert about["task_reported_blocked"]["task_id"] == mine and "stuck" in about["task_reported_blocked"]["message"]
    locked = about["file_locked_by_peer"]
    assert (locked["file"], locked["instance_id"]) == (f"{scope}/a", peer["id"])
    assert about["missing_lock_for_in_progress_task"]["file"] == f"{scope}/c"
    assert about["active_task_file_overlap"]["file"] == f"{scope}/b"
    assert about["in_progress_task_without_files"]["task_id"] == bare
    assert about["peer_progress_update_overdue"]["task_id"] == theirs
    assert about["held_lock_without_active_task_file"]["file"] == f"{scope}/unrelated"
    assert [task["id"] for task in value["active_peer_tasks"]] == [theirs]
    assert [lock["file"] for lock in value["blocking_locks"]] == [f"{scope}/a"]
    assert sorted(lock["file"] for lock in value["held_locks"]) == [f"{scope}/b", f"{scope}/unrelated"]


def test_a_file_that_one_was_refused_is_in_ones_way(ground: Ground, server: Server):
    peer = ground.session("peer", "identity:q secret-name")
    ground.lock(peer, "f", "secret-note")
    assert server.value("lock_file", {"file": "f"})["error"]
    hidden = {"hidden": True, "reason": "cross_identity", "file": f"{ground.scope}/f"}
    assert server.value("swarm_status")["blocking_locks"] == [hidden]


def test_strangers_tasks_are_neither_shown_nor_counted(ground: Ground, store: Store):
    me = ground.session("me", "identity:p me")
    stranger = ground.session("stranger", "identity:q secret-name")
    task = store.tasks.request(stranger, {"type": "fix", "title": "secret-title", "files": ["f"]})["task"]["id"]
    assert status(ground, me)["task_counts"]["open"] == 0
    store.tasks.claim(stranger, task)
    value = status(ground, me)
    assert "secret" not in str(value) and set(value["task_counts"].values()) == {0}
