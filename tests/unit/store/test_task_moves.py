"""A session that moves to another scope: its leftovers, and its finds there."""

from pathlib import Path

import pytest
from support.fixtures import Ground, Sleeper
from support.listings import rows_of
from support.task_fixtures import begun, mail, refused, request, status

from swarm_mcp.domain.session import Session
from swarm_mcp.store import Store


@pytest.fixture
def elsewhere(tmp_path: Path) -> str:
    folder = tmp_path / "elsewhere"
    (folder / ".git").mkdir(parents=True)
    return str(folder)


def test_who_was_started_anew_elsewhere_has_left(ground: Ground, elsewhere: str) -> None:
    planner, waiting = ground.session("p"), ground.session("waiting")
    with Sleeper() as before, Sleeper() as after, ground.store() as store:
        worker = ground.session("w", client=before.identity)
        doing, given = begun(store, planner, worker), request(store, planner, assignee=worker["id"])
        gate = request(store, planner, assignee=worker["id"], approval_required=True)
        store.locks.acquire(worker, "f")
        with pytest.raises(Exception, match="locked"):
            store.locks.acquire(waiting, "f")
        before.end()  # otherwise it would be a further client of the session
        moved = ground.session("w", directory=elsewhere, client=after.identity)
        assert (moved["id"], moved["scope"]) == (worker["id"], elsewhere)
        now = {task["id"]: (task["status"], task["assignee"]) for task in rows_of(store.tasks.walk(planner))}
        assert now == {
            doing["id"]: ("open", None),
            given["id"]: ("open", None),
            gate["id"]: ("approval_required", None),
        }
        assert store.locks.of(worker["id"]) == []
        (told,) = mail(store, waiting)
        assert "is free" in told and "works elsewhere now" in told
        with refused("Task not found"):
            store.tasks.end(moved, doing["id"], "done")
        assert store.tasks.claim(waiting, doing["id"], ignore_unread=True)["task"]["assignee"] == waiting["id"]


def test_who_only_changed_its_folder_goes_on(ground: Ground, planner: Session, elsewhere: str) -> None:
    with Sleeper() as client, ground.store() as store:
        worker = ground.session("w", client=client.identity)
        doing, given = begun(store, planner, worker), request(store, planner, assignee=worker["id"])
        asked = request(store, worker, "asked")
        store.locks.acquire(worker, "f")
        moved = ground.session("w", directory=elsewhere, client=client.identity)
        assert moved["scope"] == elsewhere != worker["scope"]
        assert [Path(lock["file"]).name for lock in store.locks.of(worker["id"])] == ["f"]
        assert store.tasks.seen(moved, doing["id"])["status"] == "in_progress"
        store.tasks.report_progress(moved, doing["id"], "half")
        assert store.tasks.end(moved, doing["id"], "done", "found it")["task"]["status"] == "done"
        assert store.tasks.claim(moved, given["id"], ignore_unread=True)["task"]["status"] == "in_progress"
        assert store.tasks.end(moved, asked["id"], "cancelled")["task"]["status"] == "cancelled"
        assert any("found it" in text for text in mail(store, planner))
        # Others' tasks of the old scope are hidden from it.
        with refused("Task not found"):
            store.tasks.claim(moved, request(store, planner)["id"])


def test_word_of_a_task_finds_a_session_where_it_is(ground: Ground, elsewhere: str) -> None:
    worker = ground.session("w")
    with Sleeper() as client, ground.store() as store:
        planner = ground.session("p", client=client.identity)
        early = begun(store, planner, worker, "early")
        late = begun(store, planner, worker, "late")
        store.tasks.end(worker, early["id"], "done", "before")
        moved = ground.session("p", directory=elsewhere, client=client.identity)
        ended = store.tasks.end(worker, late["id"], "done", "after")
        assert [recipient for recipient, _ in ended["notices"]] == [planner["id"]]
        inbox = [message["content"] for message in store.messages.take(moved)]
        assert [text.rpartition(" ")[2] for text in inbox] == ['"before"', '"after"']


def test_nobody_writes_to_a_session_that_another_program_has_removed(
    ground: Ground, store: Store, planner: Session, worker: Session
) -> None:
    first = begun(store, planner, planner)
    waiting = request(store, planner, assignee=worker["id"], depends_on=[first["id"]])
    ground.sql("DELETE FROM instances WHERE id = ?", worker["id"])
    ground.sql("DELETE FROM messages")
    assert store.tasks.end(planner, first["id"], "done")["unblocked"] == []
    assert status(store, waiting) == "claimed" and ground.sql("SELECT * FROM messages") == []
