"""A batch of tasks that refer to each other: all of it or nothing."""

import pytest
from support.fixtures import Ground
from support.task_fixtures import begun, mail, refused, request

from swarm_mcp.domain.session import Session
from swarm_mcp.store import Store


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


def test_a_batch_hands_nothing_across_identities(ground: Ground) -> None:
    planner, stranger = ground.session("p", "identity:work"), ground.session("s", "identity:home")
    with ground.store() as store:
        with refused("Validation failed") as answer:
            store.tasks.request_batch(planner, [implement(assignee=stranger["id"])])
        assert "another identity" in answer["details"][0]["message"]


@pytest.mark.parametrize("count", [0, 51])
def test_a_batch_has_a_size(store: Store, planner: Session, count: int) -> None:
    with refused("1 to 50"):
        store.tasks.request_batch(planner, [implement()] * count)
    assert len(store.tasks.request_batch(planner, [implement()] * 50)["tasks"]) == 50
