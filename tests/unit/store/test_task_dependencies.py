"""Dependencies of tasks: unblocking, cascades, batches that refer to each other, and dependencies that have gone."""

import time

import pytest
from support.fixtures import Ground, time_limit
from support.task_fixtures import begun, events, mail, refused, request, status

from swarm_mcp.domain import Session
from swarm_mcp.store import Store, tasks


def test_a_task_begins_when_all_it_waits_for_is_done(store: Store, planner: Session, worker: Session) -> None:
    first, second = begun(store, planner, worker, "1"), begun(store, planner, worker, "2")
    needs = [first["id"], second["id"], first["id"]]
    free = request(store, planner, "free", depends_on=needs)
    given = request(store, planner, "given", depends_on=needs, assignee=planner["id"])
    gated = request(store, planner, "gated", depends_on=needs, approval_required=True)
    assert (free["status"], given["status"], gated["status"]) == ("blocked", "blocked", "approval_required")
    assert free["depends_on"] == [first["id"], second["id"]]
    for task in (free, given):
        with refused("blocked: it waits for"):
            store.tasks.claim(planner, task["id"], ignore_unread=True)
    assert store.tasks.end(worker, first["id"], "done")["unblocked"] == []
    assert status(store, free) == "blocked"
    ended = store.tasks.end(worker, second["id"], "done")
    assert [status(store, task) for task in (free, given, gated)] == ["open", "claimed", "approval_required"]
    ((recipient, text),) = ended["unblocked"]
    assert recipient == planner["id"] and given["id"] in text and text == mail(store, planner)[-1]
    (event,) = events(store, given, "task.cascade")
    assert (event["type"], event["actor"]) == ("task.cascade.unblocked", "system")
    assert event["payload"] == {"trigger": second["id"], "status": "claimed", "prior_status": "blocked"}
    # Done dependencies hold nothing up, now or after approval.
    assert request(store, planner, depends_on=needs)["status"] == "open"
    assert store.tasks.approve(planner, gated["id"])["task"]["status"] == "open"


@pytest.mark.parametrize("how", ["failed", "cancelled"])
def test_what_depends_on_a_failure_is_cancelled_all_the_way_down(
    store: Store, planner: Session, worker: Session, how: str
) -> None:
    root = begun(store, planner, worker, "root")
    child = request(store, planner, "child", depends_on=[root["id"]])
    gate = request(store, planner, "gate", depends_on=[root["id"]], approval_required=True)
    grandchild = request(store, planner, "grandchild", depends_on=[child["id"], gate["id"]], assignee=worker["id"])
    unrelated = request(store, planner, "unrelated", depends_on=[begun(store, planner, worker)["id"]])
    before = len(mail(store, worker))
    ended = store.tasks.end(worker, root["id"], how)
    assert ended["unblocked"] == []
    for task in (child, gate, grandchild):
        now = store.tasks.get(planner["scope"], task["id"])
        assert now["status"] == "cancelled" and now["result"].startswith("[auto] ")
        (event,) = events(store, task, "task.cascade")
        assert (event["type"], event["actor"]) == ("task.cascade.cancelled", "system")
        assert set(event["payload"]) == {"trigger", "reason", "result", "prior_status", "dependency_status"}
        assert event["payload"]["reason"] == "dependency_failed"
    assert root["id"] in store.tasks.get(planner["scope"], child["id"])["result"]
    assert events(store, child, "task.cascade")[0]["payload"]["dependency_status"] == how
    assert status(store, unrelated) == "blocked"
    assert len(mail(store, worker)) == before
    # A later request is cancelled from the start, silently.
    late = store.tasks.request(planner, {"type": "fix", "title": "late", "depends_on": [child["id"]]})
    assert (late["task"]["status"], late["notices"]) == ("cancelled", [])
    assert child["id"] in late["task"]["result"]
    for_worker = {"type": "fix", "title": "late", "depends_on": [child["id"]], "assignee": worker["id"]}
    assert store.tasks.request(planner, for_worker)["notices"] == []


def test_a_chain_of_a_thousand_is_cancelled_without_a_deep_stack(
    ground: Ground, store: Store, planner: Session
) -> None:
    root = request(store, planner)
    with store.database.writing():
        before = root["id"]
        for number in range(1500):
            store.database.change(
                "INSERT INTO tasks (id, scope, type, title, requester, status, depends_on)"
                " VALUES (?, ?, 'fix', 't', ?, 'blocked', ?)",
                (f"t{number}", ground.scope, planner["id"], f'["{before}"]'),
            )
            before = f"t{number}"
    begin = time.monotonic()
    store.tasks.end(planner, root["id"], "cancelled")
    took = time.monotonic() - begin
    assert store.database.rows("SELECT status, count(*) AS n FROM tasks GROUP BY status") == [
        {"status": "cancelled", "n": 1501}
    ]
    assert took < time_limit(60), "looking through all of them for each would take longer by far"


def test_a_circle_that_another_program_made_does_not_hang(ground: Ground, store: Store, planner: Session) -> None:
    root = request(store, planner)
    first = request(store, planner, depends_on=[root["id"]])
    second = request(store, planner, depends_on=[first["id"]])
    ground.sql("UPDATE tasks SET depends_on = ? WHERE id = ?", f'["{root["id"]}","{second["id"]}"]', first["id"])
    store.tasks.end(planner, root["id"], "cancelled")
    assert [status(store, task) for task in (first, second)] == ["cancelled", "cancelled"]


def test_a_deleted_dependency_counts_as_done_when_the_last_one_ends(
    ground: Ground, store: Store, planner: Session, worker: Session
) -> None:
    old, last = begun(store, planner, worker), begun(store, planner, worker)
    task = request(store, planner, depends_on=[old["id"], last["id"]], assignee=planner["id"])
    store.tasks.end(worker, old["id"], "done")
    ground.sql("DELETE FROM tasks WHERE id = ?", old["id"])
    assert store.tasks.end(worker, last["id"], "done")["unblocked"]
    assert status(store, task) == "claimed"


def test_upkeep_lets_go_of_what_waits_for_the_deleted(
    ground: Ground, store: Store, planner: Session, worker: Session, tmp_path
) -> None:
    far = ground.session("far", directory=str(tmp_path / "far"))
    old, going = begun(store, planner, worker), begun(store, planner, worker)
    free = request(store, planner, depends_on=[old["id"]])
    given = request(store, planner, depends_on=[old["id"]], assignee=worker["id"])
    waits = request(store, planner, depends_on=[old["id"], going["id"]])
    gate = request(store, planner, depends_on=[old["id"]], approval_required=True)
    old_far = begun(store, far, far)
    far_free = request(store, far, depends_on=[old_far["id"]])
    ground.sql("DELETE FROM tasks WHERE id IN (?, ?)", old["id"], old_far["id"])
    with store.database.writing():
        ((recipient, text),) = tasks.settle_vanished(store.database, ground.scope)
    assert (recipient, text) == (worker["id"], mail(store, worker)[-1])
    assert [status(store, task) for task in (free, given, waits, gate, far_free)] == [
        "open", "claimed", "blocked", "approval_required", "blocked",
    ]  # fmt: skip
    (event,) = events(store, free, "task.cascade")
    assert (event["type"], event["payload"]["trigger"]) == ("task.cascade.unblocked", old["id"])
    with store.database.writing():
        assert tasks.settle_vanished(store.database, None) == []
    assert status(store, far_free) == "open"
    with store.database.writing():
        assert tasks.settle_vanished(store.database, None) == []
    assert len(events(store, free, "task.cascade")) == 1, "once is enough"


def test_upkeep_mends_what_another_program_left_undone(
    ground: Ground, store: Store, planner: Session, worker: Session
) -> None:
    done, failed = begun(store, planner, worker), begun(store, planner, worker)
    after_done = request(store, planner, depends_on=[done["id"]])
    after_failed = request(store, planner, depends_on=[failed["id"]])
    further = request(store, planner, depends_on=[after_failed["id"]])
    ground.sql("UPDATE tasks SET status = 'done' WHERE id = ?", done["id"])
    ground.sql("UPDATE tasks SET status = 'failed' WHERE id = ?", failed["id"])
    with store.database.writing():
        tasks.settle_vanished(store.database, ground.scope)
    assert [status(store, task) for task in (after_done, after_failed, further)] == [
        "open",
        "cancelled",
        "cancelled",
    ]


@pytest.mark.parametrize("how", ["clean", "some"])
def test_upkeep_cancels_what_depends_on_a_failure_before_it_forgets_that(
    ground: Ground, store: Store, how: str
) -> None:
    planner = ground.session("p")
    first = begun(store, planner, planner, "first")
    second = request(store, planner, "second", depends_on=[first["id"]])
    third = request(store, planner, "third", depends_on=[second["id"]])
    # Another program let it fail silently, a week ago.
    ground.sql("UPDATE tasks SET status = 'failed', updated_at = updated_at - 604800 WHERE id = ?", first["id"])
    ground.sql("DELETE FROM swarm_upkeep")
    store.cleanup.clean(ground.scope) if how == "clean" else store.cleanup.some()
    assert store.tasks.get(ground.scope, first["id"]) is None
    assert (status(store, second), status(store, third)) == ("cancelled", "cancelled")


@pytest.mark.parametrize("junk", ['{"a": "FIRST"}', '["FIRST", 5, null]', "FIRST", '"FIRST"'])
def test_a_cascade_passes_over_what_is_no_list(ground: Ground, store: Store, planner: Session, junk: str) -> None:
    first = begun(store, planner, planner)
    second = request(store, planner, depends_on=[first["id"]])
    odd = request(store, planner, depends_on=[first["id"]])
    ground.sql("UPDATE tasks SET depends_on = ? WHERE id = ?", junk.replace("FIRST", first["id"]), odd["id"])
    store.tasks.end(planner, first["id"], "failed")
    assert status(store, second) == "cancelled"
    assert status(store, odd) == ("cancelled" if junk.startswith("[") else "blocked")


def test_an_id_that_json_spells_in_another_way_is_still_found(ground: Ground, planner: Session, store: Store) -> None:
    first, second = begun(store, planner, planner), request(store, planner)
    ground.sql("UPDATE tasks SET id = 'é/1' WHERE id = ?", first["id"])
    ground.sql("""UPDATE tasks SET status = 'blocked', depends_on = '["\\u00e9\\/1"]' WHERE id = ?""", second["id"])
    store.tasks.end(planner, "é/1", "done")
    assert status(store, second) == "open"


def implement(title: str = "t", **spec) -> dict:
    return {"type": "implement", "title": title, **spec}


def test_items_name_earlier_ones_by_number(store: Store, planner: Session, worker: Session) -> None:
    outside = begun(store, planner, worker)
    made = store.tasks.request_batch(
        planner,
        [
            implement("1", idempotency_key="b1"),
            implement("2", depends_on=["$1", outside["id"], "$1"], review_of_task_id="$1"),
            implement("3", fixes_task_id="$2", parent_task_id="$1", assignee=worker["id"]),
        ],
    )
    one, two, three = (store.tasks.get(planner["scope"], task["id"]) for task in made["tasks"])
    assert made["tasks"] == [
        {"id": one["id"], "status": "open", "idempotency_key": "b1", "new": True},
        {"id": two["id"], "status": "blocked", "new": True},
        {"id": three["id"], "status": "claimed", "new": True},
    ]
    assert two["depends_on"] == [one["id"], outside["id"]]
    assert (two["review_of_task_id"], three["fixes_task_id"], three["parent_task_id"]) == (
        one["id"], two["id"], one["id"],
    )  # fmt: skip
    created = store.database.rows(
        "SELECT json_extract(payload, '$.batch_index') AS n FROM events WHERE type = 'task.created'"
    )
    assert [row["n"] for row in created] == [None, 0, 1, 2]


def test_each_assignee_gets_one_message_about_what_is_new(ground: Ground, store: Store) -> None:
    planner, worker, other = ground.session("p"), ground.session("w"), ground.session("o")
    known = request(store, planner, "known", assignee=worker["id"], idempotency_key="k")
    lost = request(store, planner)
    store.tasks.end(planner, lost["id"], "cancelled")
    before = len(mail(store, worker))
    made = store.tasks.request_batch(
        planner,
        [
            implement("a", assignee=worker["id"]),
            implement("b", assignee=worker["id"], depends_on=["$1"]),
            implement("c", assignee=other["id"]),
            implement("d", assignee=planner["id"]),
            implement("known", assignee=worker["id"], idempotency_key="k"),
            implement("dead", assignee=worker["id"], depends_on=[lost["id"]]),
        ],
    )
    assert [task["status"] for task in made["tasks"]] == [
        "claimed", "blocked", "claimed", "claimed", "claimed", "cancelled",
    ]  # fmt: skip
    assert [task["new"] for task in made["tasks"]] == [True, True, True, True, False, True]
    assert made["tasks"][4]["id"] == known["id"]
    assert [recipient for recipient, _ in made["notices"]] == [worker["id"], other["id"]]
    text = made["notices"][0][1]
    assert mail(store, worker)[before:] == [text] and text.startswith("[auto] 2 ")
    named = [task["id"] in text for task in made["tasks"]]
    assert named == [True, True, False, False, False, False]
    # Such a notice is about each of its tasks, and blocks no claim of one of them or of another.
    store.messages.acknowledge([message["id"] for message in store.messages.peek(worker)][:before])
    with refused("unread"):
        store.tasks.claim(worker, known["id"])
    assert store.tasks.claim(worker, made["tasks"][0]["id"])


def test_what_a_batch_needs_may_have_been_there_before(store: Store, planner: Session) -> None:
    first = store.tasks.request_batch(planner, [implement("1", idempotency_key="k")])
    again = store.tasks.request_batch(
        planner, [implement("x", idempotency_key="k", assignee="nobody"), implement("2", depends_on=["$1"])]
    )
    assert again["tasks"][0] == {**first["tasks"][0], "new": False}, "and is not looked at again"
    assert store.tasks.get(planner["scope"], again["tasks"][1]["id"])["depends_on"] == [first["tasks"][0]["id"]]


@pytest.mark.parametrize(
    ("specs", "faults"),
    [
        ([implement(depends_on=["$1"])], [(0, "depends_on", "$1 is a self-reference")]),
        ([implement(depends_on=["$2"]), implement()], [(0, "depends_on", "$2 is a forward reference")]),
        ([implement(), implement(parent_task_id="$7")], [(1, "parent_task_id", "$7 is out of range")]),
        ([implement(fixes_task_id="$0")], [(0, "fixes_task_id", "$0 is out of range")]),
        ([implement(depends_on=["$" + "9" * 30])], [(0, "depends_on", "is out of range")]),
        ([implement(depends_on=["$x"])], [(0, "depends_on", "$x not found")]),
        ([implement(review_of_task_id="gone")], [(0, "review_of_task_id", "gone not found")]),
        ([implement(assignee="nobody")], [(0, "assignee", "nobody is not active")]),
        ([implement(title=" ")], [(0, "title", "needs a title")]),
        ([implement(), implement(files=[""])], [(1, "files", "not the path")]),
        (
            [implement(idempotency_key="k"), implement(), implement(idempotency_key="k")],
            [(2, "idempotency_key", "task 1")],
        ),
        (
            [implement(title=""), implement(depends_on=["$1"]), implement(assignee="x"), implement(depends_on=["y"])],
            [(0, "title", "title"), (2, "assignee", "x is"), (3, "depends_on", "y not found")],
        ),
    ],
)
def test_a_fault_leaves_nothing_of_the_batch_and_all_faults_are_named(
    ground: Ground, store: Store, specs: list[dict], faults: list[tuple]
) -> None:
    planner, worker = ground.session("p"), ground.session("w")
    with refused("Validation failed") as answer:
        store.tasks.request_batch(planner, [implement("fine", assignee=worker["id"]), *specs][1:])
    assert set(answer) == {"error", "details"}
    assert [(fault["task_index"], fault["field"]) for fault in answer["details"]] == [fault[:2] for fault in faults]
    for fault, (*_, words) in zip(answer["details"], faults):
        assert set(fault) == {"task_index", "field", "message"} and words in fault["message"]
    with refused("Validation failed"):
        store.tasks.request_batch(planner, [implement("fine", assignee=worker["id"]), implement(assignee="nobody")])
    assert store.database.rows("SELECT id FROM tasks") == []
    assert store.database.rows("SELECT id FROM events WHERE type LIKE 'task%'") == []
    assert mail(store, worker) == []


@pytest.mark.parametrize("count", [0, 51])
def test_a_batch_has_a_size(store: Store, planner: Session, count: int) -> None:
    with refused("1 to 50"):
        store.tasks.request_batch(planner, [implement()] * count)
    assert len(store.tasks.request_batch(planner, [implement()] * 50)["tasks"]) == 50
