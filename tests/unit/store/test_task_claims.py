"""Taking work: order, filters, the mail that comes first, one winner, and a cost that does not grow."""

import pytest
from support.fixtures import Ground, Sleeper
from support.listings import rows_of
from support.query_plans import scans
from support.task_fixtures import begun, events, read_mail, refused, request, status

from swarm_mcp.domain import Session
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow


def test_a_claimed_task_is_in_progress_and_ones_own(ground: Ground, store: Store) -> None:
    planner, worker, other = ground.session("p"), ground.session("w"), ground.session("o")
    free, given = request(store, planner), request(store, planner, assignee=worker["id"])
    for task, before in ((free, "open"), (given, "claimed")):
        with refused("assigned to another session") if before == "claimed" else refused("not found"):
            store.tasks.claim(other, task["id"] if before == "claimed" else "nope")
        claimed = store.tasks.claim(worker, task["id"], ignore_unread=True)
        assert claimed["prior_status"] == before
        assert (claimed["task"]["status"], claimed["task"]["assignee"]) == ("in_progress", worker["id"])
        assert store.tasks.get(planner["scope"], task["id"]) == claimed["task"]
        *_, last = events(store, task)
        assert (last["type"], last["actor"]) == ("task.claimed", worker["id"])
        assert last["payload"] == {"prior_status": before, "status": "in_progress"}
        for row in (worker, other):
            with refused("Task is already in_progress"):
                store.tasks.claim(row, task["id"], ignore_unread=True)


def test_a_session_that_has_gone_claims_nothing(store: Store, planner: Session, worker: Session) -> None:
    task = request(store, planner)
    store.instances.remove(worker["id"])
    with pytest.raises(Exception, match="no longer registered"):
        store.tasks.claim(worker, task["id"])
    with pytest.raises(Exception, match="no longer registered"):
        store.tasks.claim_next(worker)
    assert status(store, task) == "open"


def test_the_next_task_is_ones_own_then_the_most_urgent_then_the_oldest(
    ground: Ground, store: Store, planner: Session, worker: Session
) -> None:
    plan = [("old", 0, None), ("new", 0, None), ("urgent", 9, None), ("mine", -5, worker), ("later", -1, None)]
    for age, (title, priority, who) in enumerate(plan):
        task = request(store, planner, title, priority=priority, assignee=who and who["id"])
        ground.sql("UPDATE tasks SET created_at = created_at + ? WHERE id = ?", age, task["id"])
    request(store, planner, "not yours", priority=99, assignee=planner["id"])
    request(store, planner, "not yet", priority=99, approval_required=True)
    order = ["mine", "urgent", "old", "new", "later"]
    assert [task["title"] for task in store.tasks.claimable(worker)] == order
    assert [task["title"] for task in store.tasks.claimable(worker, 2)] == order[:2]
    read_mail(store, worker)
    for title in order:
        begun_now = store.tasks.claim_next(worker)
        assert begun_now["task"]["title"] == title
        assert begun_now["prior_status"] == ("claimed" if title == "mine" else "open")
        *_, last = events(store, begun_now["task"])
        assert last["payload"]["claim_next"] is True
    with refused("No claimable task found"):
        store.tasks.claim_next(worker)


def test_the_search_narrows_to_types_and_files_however_deep_the_queue(
    ground: Ground, store: Store, planner: Session, worker: Session
) -> None:
    wanted = request(store, planner, "wanted", type="review", files=["src/a.py", "src/b.py"], priority=-9)
    with store.database.writing():
        for number in range(450):  # more than a page of any size that comes to mind
            store.database.change(
                "INSERT INTO tasks (id, scope, type, title, requester, files) VALUES (?, ?, 'fix', 't', ?, ?)",
                (f"t{number}", ground.scope, planner["id"], None if number % 2 else '["/elsewhere"]'),
            )
    for types, files in (
        (["research"], None),
        (None, ["src/c.py"]),
        (["review"], ["src/c.py"]),
        (["fix"], ["src/a.py"]),
    ):
        with refused("No claimable"):
            store.tasks.claim_next(worker, types, files)
    last = request(store, planner, "last", type="test", priority=-10)
    claimed = store.tasks.claim_next(worker, ["review", "test"], [f"{ground.scope}/src/b.py", "other"])
    assert claimed["task"]["id"] == wanted["id"]
    assert store.tasks.claim_next(worker, ["test", "review", "test"])["task"]["id"] == last["id"]
    assert store.tasks.claim_next(worker, None, ["/elsewhere"])["task"]["type"] == "fix"


@pytest.mark.parametrize("which", ["claim", "claim_next"])
def test_unread_mail_comes_before_new_work(store: Store, planner: Session, worker: Session, which: str) -> None:
    task = request(store, planner)
    store.messages.send(planner, worker["id"], "first")
    latest = store.messages.send(planner, worker["id"], f"[task:{task['id']}] read this before you begin")

    def claim(ignore: bool = False) -> dict:
        if which == "claim":
            return store.tasks.claim(worker, task["id"], ignore)
        return store.tasks.claim_next(worker, ignore_unread=ignore)

    with refused(f"2 unread messages, the latest #{latest} from {planner['id']}") as answer:
        claim()
    assert answer == {
        "error": answer["error"],
        "unread_message_count": 2,
        "latest_message_id": latest,
        "latest_message_sender": planner["id"],
    }
    assert status(store, task) == "open"
    store.messages.acknowledge([store.messages.take(worker, 1)[0]["id"]])
    with refused("1 unread message, "):
        claim()
    assert claim(ignore=True)["task"]["id"] == task["id"]


def test_mail_that_is_being_handed_out_is_no_reason_to_wait(store: Store, planner: Session, worker: Session) -> None:
    task = request(store, planner)
    store.messages.send(planner, worker["id"], "hello")
    store.messages.take(worker, 50)  # the client has the answer and claims before we have noted that
    assert store.tasks.claim(worker, task["id"])


@pytest.mark.parametrize("which", ["claim", "claim_next"])
@pytest.mark.parametrize("kind", ["request", "approve", "unblock", "batch", "departure"])
def test_the_notice_of_a_task_does_not_keep_it_from_being_claimed(
    ground: Ground, store: Store, kind: str, which: str
) -> None:
    planner, worker = ground.session("p"), ground.session("w")
    spec = {"type": "fix", "title": "T", "assignee": worker["id"]}
    if kind == "batch":
        task = store.tasks.request_batch(planner, [spec])["tasks"][0]
    elif kind == "departure":
        third = ground.session("third")
        task = begun(store, planner, third)
        store.instances.remove(third["id"], "reclaimed")
        read_mail(store, planner)
    elif kind == "unblock":
        first = begun(store, planner, planner)
        task = request(store, planner, assignee=worker["id"], depends_on=[first["id"]])
        store.tasks.end(planner, first["id"], "done")
    elif kind == "approve":
        task = request(store, planner, assignee=worker["id"], approval_required=True)
        store.tasks.approve(planner, task["id"])
    else:
        task = request(store, planner, assignee=worker["id"])
    assert store.messages.unread_count(worker) >= 1
    other = request(store, planner, "other", priority=-1)
    with refused("unread"):
        store.tasks.claim(worker, other["id"])
    claimed = store.tasks.claim(worker, task["id"]) if which == "claim" else store.tasks.claim_next(worker)
    assert claimed["task"]["id"] == task["id"]


def test_the_task_of_a_session_that_died_unnoticed_can_be_taken_over(ground: Ground) -> None:
    planner, third = ground.session("p"), ground.session("t")
    with Sleeper() as client:
        worker = ground.session("w", client=client.identity)
        with ground.store() as store:
            task, other = begun(store, planner, worker, "one"), begun(store, planner, worker, "two")
            with refused("No claimable"):
                store.tasks.claim_next(third)
            client.end()
            assert store.tasks.claim_next(third)["task"]["id"] in (task["id"], other["id"])
            assert store.instances.get(worker["id"]) is None
            assert len(rows_of(store.tasks.walk(planner, "open"))) == 1


def test_a_task_claimed_by_name_is_taken_from_the_dead_too(ground: Ground) -> None:
    planner, third = ground.session("p"), ground.session("t")
    with Sleeper() as client:
        worker = ground.session("w", client=client.identity)
        with ground.store() as store:
            task = begun(store, planner, worker)
            client.end()
            assert store.tasks.claim(third, task["id"])["task"]["assignee"] == third["id"]
            # The row of a holder that another program has removed without its tasks.
            lost = begun(store, planner, planner)
            ground.sql("UPDATE tasks SET assignee = 'nobody' WHERE id = ?", lost["id"])
            assert store.tasks.claim(third, lost["id"], ignore_unread=True)["prior_status"] == "open"


def test_what_belongs_to_nobody_can_be_claimed(ground: Ground) -> None:
    """Another program's rows: open for an unknown session, or in progress without a worker."""
    planner, worker, live = ground.session("p"), ground.session("w"), ground.session("live")
    rows = [("open", "ghost"), ("claimed", None), ("in_progress", None), ("claimed", "ghost"), ("in_progress", "gone")]
    for how in ("by name", "next"):
        ground.sql("DELETE FROM tasks")
        for number, (status_, assignee) in enumerate(rows):
            ground.add(
                "tasks", id=f"{how}{number}", scope=ground.scope, type="fix", title="t", requester=planner["id"],
                status=status_, assignee=assignee,
            )  # fmt: skip
        with ground.store() as store:
            begun(store, planner, live)
            for number in range(len(rows)):
                name = f"{how}{number}"
                task = (store.tasks.claim(worker, name) if how == "by name" else store.tasks.claim_next(worker))["task"]
                assert (task["assignee"], task["status"]) == (worker["id"], "in_progress")
            with refused("No claimable"):
                store.tasks.claim_next(worker)


def test_an_open_task_of_a_live_session_is_that_sessions(ground: Ground, store: Store) -> None:
    planner, worker, other = ground.session("p"), ground.session("w"), ground.session("o")
    task = request(store, planner)
    ground.sql("UPDATE tasks SET assignee = ?", worker["id"])  # as another program may leave it
    with refused("assigned to another session"):
        store.tasks.claim(other, task["id"])
    with refused("No claimable"):
        store.tasks.claim_next(other)
    assert store.tasks.claim(worker, task["id"])["prior_status"] == "open"


def test_an_open_task_is_reserved_for_one_worker(ground: Ground, store: Store) -> None:
    planner, worker, late = ground.session("p"), ground.session("w"), ground.session("l")
    task = request(store, planner)
    reserved = store.tasks.reserve(task["id"], worker)
    assert (reserved["status"], reserved["assignee"]) == ("claimed", worker["id"])
    *_, last = events(store, task)
    assert (last["type"], last["actor"]) == ("task.reserved", worker["id"])
    assert last["payload"] == {"prior_status": "open", "status": "claimed"}
    with refused("already claimed"):
        store.tasks.reserve(task["id"], late)
    assert store.tasks.claim(worker, task["id"])


def test_a_claim_looks_through_no_table(store: Store, planner: Session, worker: Session) -> None:
    """Its cost does not grow with the tasks that have ended, that others hold, or that are of other types."""
    for spec in ({"type": "test"}, {"type": "fix"}, {"type": "fix", "assignee": worker.id}):
        request(store, planner, **spec)
    for types in (["test"], None, None):
        assert scans(store, lambda types=types: store.tasks.claim_next(worker, types, ignore_unread=True)) == set()
