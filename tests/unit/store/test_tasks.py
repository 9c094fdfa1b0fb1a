"""The life of a task: its takers, its notices, its locks, its visibility."""

import json
from pathlib import Path

import pytest
from support.altered import Listening
from support.fixtures import Ground
from support.listings import rows_of
from support.task_fixtures import begun, events, mail, refused, request, status

from swarm_mcp.domain import STATUSES, TASK_COLUMNS, TERMINAL, Session
from swarm_mcp.store import Store
from swarm_mcp.store.database import Database
from swarm_mcp.store.values import entry_in, names_entry

# The contract's rule: status -> the sessions that may end a task of that status, and the ways.
DONE_OR_FAILED = {"claimed": ("assignee",), "in_progress": ("assignee",)}
CANCELLED = dict.fromkeys(set(STATUSES) - set(TERMINAL), ("requester", "assignee"))


@pytest.mark.parametrize("before", STATUSES)
@pytest.mark.parametrize("target", TERMINAL)
@pytest.mark.sampled
def test_who_may_end_a_task(ground: Ground, before: str, target: str, store: Store) -> None:
    people = {who: ground.session(who) for who in ("requester", "assignee", "stranger")}
    allowed = CANCELLED.get(before, ()) if target == "cancelled" else DONE_OR_FAILED.get(before, ())
    for who, row in people.items():
        task = request(store, people["requester"], assignee=people["assignee"]["id"])
        ground.sql("UPDATE tasks SET status = ? WHERE id = ?", before, task["id"])
        if who in allowed:
            ended = store.tasks.end(row, task["id"], target, "why")
            assert ended["task"]["status"] == status(store, task) == target
            (last,) = events(store, task, "task.updated")
            assert last["actor"] == row["id"]
            assert last["payload"] == {"status": target, "prior_status": before, "result": "why"}
        else:
            with refused("already|Only|must be claimed|blocked|approval"):
                store.tasks.end(row, task["id"], target)
            assert status(store, task) == before
            assert events(store, task, "task.updated") == []


def test_a_task_has_the_contracts_columns_in_its_order(ground: Ground, planner: Session, worker: Session) -> None:
    with ground.store() as store:
        task = request(store, planner, files=["src/a.py", "src/a.py"], priority=3, assignee=worker["id"])
        assert store.tasks.get(planner["scope"], task["id"]) == task
        store.database.change("ALTER TABLE tasks ADD COLUMN theirs TEXT DEFAULT 'x'")
        shown = store.tasks.seen(worker, task["id"])
    assert shown == task
    assert tuple(task) == TASK_COLUMNS
    assert tuple(row["name"] for row in ground.sql("PRAGMA table_info(tasks)"))[: len(TASK_COLUMNS)] == TASK_COLUMNS
    assert (task["files"], task["status"], task["priority"]) == ([f"{ground.scope}/src/a.py"], "claimed", 3)
    (stored,) = ground.sql("SELECT files, depends_on, changed_at FROM tasks")
    assert json.loads(stored["files"]) == task["files"]
    assert stored["depends_on"] is None
    assert stored["changed_at"] // 1000 in range(task["created_at"], task["created_at"] + 3), "ms"


@pytest.mark.parametrize("junk", ["[", '{"a": 1}', "5", "\xff", "[" * 5000])
def test_lists_that_another_program_spoilt_hide_no_task(
    ground: Ground, store: Store, planner: Session, worker: Session, junk: str
) -> None:
    task = request(store, planner)
    ground.sql("UPDATE tasks SET files = ?, depends_on = ?", junk, junk)
    assert rows_of(store.tasks.walk(planner))[0]["files"] is None
    assert store.tasks.claim_next(worker)["task"]["id"] == task["id"]
    assert store.tasks.end(worker, task["id"], "done")["task"]["status"] == "done"


def test_changed_at_grows_with_every_change_of_a_scope(planner: Session, worker: Session, store: Store) -> None:
    seen = [0]
    for _ in range(20):
        task = request(store, planner)
        seen.append(task["changed_at"])
        seen.append(store.tasks.claim(worker, task["id"])["task"]["changed_at"])
        store.tasks.report_progress(worker, task["id"], "on it")
        seen.append(store.tasks.get(planner["scope"], task["id"])["changed_at"])
        seen.append(store.tasks.end(worker, task["id"], "failed")["task"]["changed_at"])
    assert seen == sorted(set(seen))


@pytest.mark.parametrize("late", [2**63 - 1, 10**16, "soon"])
def test_a_time_far_ahead_stops_no_change_of_its_scope(
    ground: Ground, store: Store, planner: Session, late: object
) -> None:
    request(store, planner)
    ground.sql("UPDATE tasks SET changed_at = ?", late)
    first = store.tasks.claim(planner, request(store, planner)["id"])["task"]
    then = store.tasks.end(planner, first["id"], "done")["task"]
    assert abs(then["changed_at"] - store.database.now_ms()) < 60_000
    assert first["changed_at"] < then["changed_at"]


def test_an_idempotency_key_makes_one_task(ground: Ground, planner: Session, store: Store) -> None:
    first = store.tasks.request(planner, {"type": "fix", "title": "one", "idempotency_key": "k"})
    again = store.tasks.request(planner, {"type": "test", "title": "two", "idempotency_key": "k", "priority": 9})
    assert (first["existing"], again["existing"]) == (False, True)
    assert again["task"] == first["task"]
    # A blank key is no key.
    assert request(store, planner, idempotency_key=" ")["id"] != request(store, planner, idempotency_key=" ")["id"]
    assert len(ground.sql("SELECT 1 FROM tasks")) == 3


def test_a_known_key_asks_for_nothing_else(store: Store, planner: Session) -> None:
    first = request(store, planner, idempotency_key="k")
    junk = {"type": "zzz", "title": "", "assignee": "nobody", "depends_on": ["nope"], "files": [""]}
    again = store.tasks.request(planner, {**junk, "priority": 10**30, "idempotency_key": " k "})
    assert again == {"task": first, "existing": True, "notices": []}


def test_a_key_of_another_identity_gives_nothing_away(ground: Ground, store: Store) -> None:
    owner, stranger = ground.session("o", "identity:home"), ground.session("s", "identity:work")
    request(store, owner, "SECRET", description="SECRET", idempotency_key="k")
    with refused("that of a task of another identity") as answer:
        request(store, stranger, "mine", idempotency_key="k")
    assert list(answer) == ["error"] and "SECRET" not in answer["error"]
    friend = ground.session("f", "identity:home")
    assert request(store, friend, idempotency_key="k")["title"] == "SECRET"


@pytest.mark.parametrize("field", ["depends_on", "parent_task_id", "review_of_task_id", "fixes_task_id"])
def test_a_task_names_only_what_its_requester_may_see(ground: Ground, field: str, store: Store) -> None:
    owner, stranger = ground.session("o", "identity:home"), ground.session("s", "identity:work")
    hidden = request(store, owner)["id"]
    named = {field: [hidden] if field == "depends_on" else hidden}
    with refused(f"task {hidden} not found in scope"):
        request(store, stranger, **named)
    with refused("Validation failed") as answer:
        store.tasks.request_batch(stranger, [{"type": "fix", "title": "t", **named}])
    assert [detail["field"] for detail in answer["details"]] == [field]
    assert request(store, owner, **named)["id"] != hidden


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"depends_on": ["nope"]}, "Dependency task nope not found in scope"),
        ({"parent_task_id": "nope"}, "Parent task nope not found"),
        ({"review_of_task_id": "nope"}, "task nope not found"),
        ({"fixes_task_id": "nope"}, "task nope not found"),
        ({"assignee": "nobody"}, "Instance nobody is not active in this scope"),
        ({"title": "  "}, "needs a title"),
        ({"type": "zzz"}, "Invalid task type"),
        ({"priority": 10**30}, "priority"),
        ({"files": [""]}, "not the path of a file"),
        ({"files": ["a\0b"]}, "not the path of a file"),
        ({"files": ["x" * 5000]}, "not the path of a file"),
    ],
)
def test_a_request_that_cannot_be_met_leaves_nothing(store: Store, planner: Session, spec: dict, words: str) -> None:
    with refused(words):
        request(store, planner, **spec)
    assert store.database.rows("SELECT 1 FROM tasks UNION ALL SELECT 1 FROM events WHERE type LIKE 'task.%'") == []


def test_work_is_handed_to_live_sessions_of_the_same_scope_and_circle(ground: Ground, tmp_path: Path) -> None:
    planner, foreign = ground.session("p", "identity:work"), ground.session("f", "identity:home")
    elsewhere = ground.session("e", directory=str(tmp_path / "other"))
    late = ground.session("late")
    ground.backdate(late, 100000)
    with ground.store() as store:
        with refused("another identity"):
            request(store, planner, assignee=foreign["id"])
        for row in (elsewhere, late):
            with refused("not active"):
                request(store, planner, assignee=row["id"])
        # A session without identity is no stranger to any.
        assert request(store, planner, assignee=ground.session("n")["id"])["status"] == "claimed"


def test_new_work_is_announced_to_its_assignee_only(store: Store, planner: Session, worker: Session) -> None:
    given = store.tasks.request(planner, {"type": "test", "title": "Look", "assignee": worker["id"]})
    ((recipient, text),) = given["notices"]
    assert (recipient, [text]) == (worker["id"], mail(store, worker))
    assert text.startswith(f"[task:{given['task']['id']}] [auto] ") and '"Look"' in text
    request(store, planner, "mine", assignee=planner["id"])
    request(store, planner, "anybody's")
    quiet = store.tasks.request(planner, {"type": "test", "title": "q", "assignee": worker["id"]}, notify=False)
    assert quiet["notices"] == []
    assert (mail(store, planner), len(mail(store, worker))) == ([], 1)


def test_an_approved_task_goes_where_it_belongs(store: Store, planner: Session, worker: Session) -> None:
    first = request(store, planner)
    for spec, then in (
        ({}, "open"),
        ({"assignee": worker["id"]}, "claimed"),
        ({"assignee": planner["id"]}, "claimed"),
        ({"depends_on": [first["id"]]}, "blocked"),
    ):
        task = request(store, planner, approval_required=True, **spec)
        assert task["status"] == "approval_required"
        with refused("approv"):
            store.tasks.claim(worker, task["id"], ignore_unread=True)
        approved = store.tasks.approve(planner, task["id"])
        assert approved["task"]["status"] == status(store, task) == then
        (event,) = events(store, task, "task.approved")
        newest = store.database.row("SELECT max(id) AS id FROM events WHERE type = 'task.approved'")
        assert newest and store.tasks.approval_of(task) == newest.id
        assert (event["actor"], event["payload"]["status"]) == (None, then)
        assert bool(approved["notices"]) is (spec.get("assignee") == worker["id"])
        with refused(f"Task is {then}, not approval_required"):
            store.tasks.approve(planner, task["id"])


def test_progress_is_the_assignees_and_keeps_what_is_not_said(store: Store, planner: Session, worker: Session) -> None:
    task = request(store, planner, assignee=worker["id"])
    with refused("claimed, not in_progress"):
        store.tasks.report_progress(worker, task["id"], "x")
    store.tasks.claim(worker, task["id"])
    with refused("Only the assignee"):
        store.tasks.report_progress(planner, task["id"], "x")
    first = store.tasks.report_progress(worker, task["id"], "half", "waiting", 7)
    assert first == {
        "progress_summary": "half",
        "progress_updated_at": first["progress_updated_at"],
        "blocked_reason": "waiting",
        "expected_next_update_at": 7,
    }
    kept = store.tasks.report_progress(worker, task["id"], "more")
    assert (kept["blocked_reason"], kept["expected_next_update_at"]) == ("waiting", 7)
    cleared = store.tasks.report_progress(worker, task["id"], "more", None, None)
    assert (cleared["blocked_reason"], cleared["expected_next_update_at"]) == (None, None)
    *_, last = events(store, task, "task.progress")
    assert set(last["payload"]) == {"summary", "blocked_reason", "expected_next_update_at", "progress_updated_at"}
    store.tasks.report_progress(worker, task["id"], "again", "why", 9)
    ended = store.tasks.end(worker, task["id"], "done")["task"]
    progress = ("progress_summary", "progress_updated_at", "blocked_reason", "expected_next_update_at")
    assert [ended[name] for name in progress] == [None] * 4
    assert store.tasks.get(planner["scope"], task["id"]) == ended
    with refused("Unix seconds"):
        store.tasks.report_progress(worker, task["id"], "x", None, 10**40)


def test_the_requester_hears_of_the_end_unless_cancelled(store: Store, planner: Session, worker: Session) -> None:
    for how, told in (("done", 1), ("failed", 1), ("cancelled", 0)):
        task = begun(store, planner, worker, "Do\nit")
        before = len(mail(store, planner))
        ended = store.tasks.end(worker, task["id"], how, "as asked")
        assert len(ended["notices"]) == told == len(mail(store, planner)) - before
        if told:
            ((recipient, text),) = ended["notices"]
            assert recipient == planner["id"] and "as asked" in text and '"Do it"' in text
            assert how in text.lower() and text.startswith(f"[task:{task['id']}] [auto] ")
    assert store.tasks.end(planner, begun(store, planner, planner)["id"], "done")["notices"] == []
    # A requester that has left is not written to.
    task = begun(store, planner, worker)
    store.instances.remove(planner["id"])
    assert store.tasks.end(worker, task["id"], "done")["notices"] == []


def test_a_completion_is_a_record(ground: Ground, store: Store) -> None:
    planner, worker = ground.session("p"), ground.session("w", directory=f"{ground.scope}/sub")
    (ground.repo / "sub").mkdir()
    task = begun(store, planner, worker)
    tests = [{"command": "pytest", "status": "passed"}, {"status": "skipped", "notes": "no net"}]
    record = {"summary": "größer", "files_changed": ["a.py", f"{ground.scope}/sub/a.py"], "tests": tests}
    done = store.tasks.complete(worker, task["id"], record)
    assert done["result"] == {
        "summary": "größer",
        "files_changed": [f"{ground.scope}/sub/a.py"],
        "tests": tests,
        "followups": [],
    }
    text = store.tasks.get(planner["scope"], task["id"])["result"]
    assert json.loads(text) == done["result"]
    assert text.startswith('{"summary":"größer","files_changed":[')
    assert done["notices"][0][1].endswith('"größer"')
    other = begun(store, planner, worker)
    failed = store.tasks.complete(worker, other["id"], {"summary": "no", "followups": ["x"]}, "failed")
    assert (failed["task"]["status"], failed["result"]["followups"]) == ("failed", ["x"])
    third = begun(store, planner, worker)
    with refused("NaN"):
        store.tasks.complete(worker, third["id"], {"summary": "s", "tracker_update": {"n": float("nan")}})


def test_a_result_nested_without_end_is_refused_in_words(store: Store, planner: Session) -> None:
    nest: dict = {}
    for _ in range(100_000):
        nest = {"a": nest}
    task = begun(store, planner, planner)
    with refused("deeply nested"):
        store.tasks.complete(planner, task["id"], {"summary": "s", "tracker_update": nest})
    assert status(store, task) == "in_progress"


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("linear:ABC-1", "ABC-1"),
        ("see (linear:eng-12).", "ENG-12"),
        ("https://linear.app/acme/issue/ENG-7/some-title", "ENG-7"),
        ("linear.app/acme/issue/ENG-7", "ENG-7"),
        ("Read files as UTF-8", ""),
        ("SHA-256 and ISO-8601, GPT-4, ENG-12, COVID-19", ""),
        ("https://linear.app/docs", ""),
        ("nonlinear:ABC-1", ""),
        ("linear: ABC-1", ""),
        ("linear algebra in R-2", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_only_what_says_so_names_a_tracker_entry(text: str | None, entry: str) -> None:
    assert entry_in(text) == entry
    assert names_entry(text) is bool(entry)


@pytest.mark.parametrize(
    "spec",
    [
        {"tracker_required": True},
        {"title": "fix linear:ENG-1"},
        {"description": "https://linear.app/a/issue/ENG-1"},
        {"idempotency_key": "linear:ENG-1"},
    ],
)
def test_a_tracked_task_ends_with_word_of_its_entry(
    store: Store, planner: Session, worker: Session, spec: dict
) -> None:
    task = begun(store, planner, worker, **spec)
    assert task["tracker_required"] == 1
    for empty in ({}, {"tracker_update": "  "}, {"tracker_update_skipped": {}}):
        with refused("tracker_update"):
            store.tasks.complete(worker, task["id"], {"summary": "s", **empty})
    assert status(store, task) == "in_progress"
    said = store.tasks.complete(worker, task["id"], {"summary": "s", "tracker_update_skipped": "no mcp"})
    assert list(said["result"]) == ["summary", "files_changed", "tests", "tracker_update_skipped", "followups"]


@pytest.mark.parametrize("by", ["worker", "planner"])
def test_the_end_of_a_task_releases_what_was_locked_for_it_and_no_more(ground: Ground, store: Store, by: str) -> None:
    planner, worker, peer = ground.session("planner"), ground.session("worker"), ground.session("peer")
    (ground.repo / "link").symlink_to(ground.repo / "declared")
    task = begun(store, planner, worker, files=["declared", "peers", "linked"])
    other = begun(store, planner, worker)
    for who, file, tag in (
        (worker, "declared", None),
        (worker, "tagged", task["id"]),
        (worker, "unrelated", None),
        (worker, "linked", other["id"]),  # declared here, but taken for another task that goes on
        (worker, "/__swarm/spawn/x", None),
        (peer, "peers", None),
        (peer, "peer-tagged", task["id"]),
        (planner, "planners", None),
    ):
        store.locks.acquire(who, file, task_id=tag)
    store.tasks.end({"worker": worker, "planner": planner}[by], task["id"], "cancelled")
    left = {Path(row["file"]).name for row in store.database.rows("SELECT file FROM context")}
    assert left == {"unrelated", "linked", "x", "peers", "peer-tagged", "planners"}
    released = store.database.rows("SELECT actor, subject, payload FROM events WHERE type = 'context.lock_released'")
    assert {Path(row["subject"]).name for row in released} == {"declared", "tagged"}
    for row in released:
        assert row["actor"] == worker["id"]
        payload = json.loads(row["payload"])
        told = {name: payload[name] for name in ("released", "reason", "task_id")}
        assert told == {"released": 1, "reason": "task_terminal", "task_id": task["id"]}


def test_a_task_ends_however_many_files_it_names(ground: Ground, store: Store, listening: Listening) -> None:
    """Not each in a variable of its own: a SQLite may allow no more than 32 766, an old one 999."""
    planner = ground.session("p")
    names = [f"f{number}" for number in range(1200)]
    store.locks.acquire(planner, "f1100")
    executed = listening(Database, "_execute")
    before = [request(store, planner)["id"] for _ in range(3)]
    request(store, planner, files=names)
    task = store.tasks.claim_next(planner, files=["nope", *names])["task"]
    assert store.tasks.end(planner, task["id"], "done")["task"]["status"] == "done"
    assert store.locks.of(planner["id"]) == []
    request(store, planner, depends_on=before)
    assert max(len(call.given[2]) for call in executed) < 40  # the columns of a task


def test_a_cascade_releases_the_locks_of_each_task_it_cancels(store: Store, planner: Session, worker: Session) -> None:
    first = begun(store, planner, worker, "first")
    gate = request(store, planner, "gate", assignee=worker["id"], approval_required=True, depends_on=[first["id"]])
    second = request(store, planner, "second", assignee=worker["id"], files=["g"], depends_on=[first["id"]])
    third = request(store, planner, "third", assignee=worker["id"], depends_on=[second["id"]])
    for file, tag in (("tagged", third["id"]), ("g", None), ("gated", gate["id"]), ("kept", None)):
        store.locks.acquire(worker, file, task_id=tag)
    store.tasks.end(worker, first["id"], "failed")
    assert {status(store, task) for task in (second, third, gate)} == {"cancelled"}
    assert [Path(lock["file"]).name for lock in store.locks.of(worker["id"])] == ["kept"]


def test_locks_end_with_a_task_that_its_approval_cancels(
    ground: Ground, store: Store, planner: Session, worker: Session
) -> None:
    first = request(store, planner)
    gate = request(store, planner, assignee=worker["id"], approval_required=True, depends_on=[first["id"]])
    store.locks.acquire(worker, "f", task_id=gate["id"])
    ground.sql("UPDATE tasks SET status = 'failed' WHERE id = ?", first["id"])  # by a program that cascades nothing
    assert store.tasks.approve(planner, gate["id"])["task"]["status"] == "cancelled"
    assert store.locks.of(worker["id"]) == []


def test_a_declared_file_is_released_under_any_of_its_names(
    ground: Ground, store: Store, planner: Session, worker: Session
) -> None:
    (ground.repo / "real").mkdir()
    (ground.repo / "link").symlink_to(ground.repo / "real")
    task = begun(store, planner, worker, files=["link/f"])
    store.locks.acquire(worker, "real/f")
    store.tasks.end(worker, task["id"], "done")
    assert store.locks.of(worker["id"]) == []


def test_the_tasks_of_a_session_that_leaves_are_open_again(ground: Ground, store: Store) -> None:
    planner, worker = ground.session("p", "planner"), ground.session("w", "worker")
    first = request(store, planner, "first")
    doing, given = begun(store, planner, worker, "doing"), request(store, planner, "given", assignee=worker["id"])
    waiting = request(store, planner, "waiting", assignee=worker["id"], depends_on=[first["id"]])
    gate = request(store, planner, "gate", assignee=worker["id"], approval_required=True)
    done = begun(store, planner, worker, "done")
    store.tasks.end(worker, done["id"], "done")
    ground.sql("UPDATE messages SET read = 1")
    store.instances.remove(worker["id"], "reclaimed")
    now = {task["title"]: (task["status"], task["assignee"]) for task in rows_of(store.tasks.walk(planner))}
    assert now == {
        "first": ("open", None),
        "doing": ("open", None),
        "given": ("open", None),
        "waiting": ("blocked", None),
        "gate": ("approval_required", None),
        "done": ("done", worker["id"]),
    }
    for task, before in ((doing, "in_progress"), (given, "claimed")):
        *_, last = events(store, task)
        assert (last["type"], last["actor"], last["payload"]["prior_status"]) == ("task.updated", "system", before)
    (text,) = [message["content"] for message in store.messages.peek(planner)]
    assert text.startswith("[auto] ") and "worker" in text and doing["id"] in text and given["id"] in text
    (told,) = store.database.rows("SELECT actor, subject, payload FROM events WHERE type = 'message.broadcast'")
    payload = json.loads(told["payload"])
    assert (told["actor"], told["subject"]) == ("system", None)
    assert (payload["recipients"], payload["released_tasks"], payload["content"]) == (1, 2, text)
    assert (waiting["status"], gate["status"]) == ("blocked", "approval_required")


def test_the_next_session_does_not_inherit_that_the_last_was_stuck(
    ground: Ground, store: Store, planner: Session, worker: Session
) -> None:
    task = begun(store, planner, worker)
    store.tasks.report_progress(worker, task["id"], "half", "no access", 5)
    store.instances.remove(worker["id"])
    task = store.tasks.get(ground.scope, task["id"])
    assert (task["status"], task["progress_summary"]) == ("open", "half")
    assert (task["blocked_reason"], task["expected_next_update_at"]) == (None, None)


def test_the_departed_is_not_named_to_another_identity(ground: Ground, store: Store) -> None:
    worker, friend = ground.session("w", "identity:work"), ground.session("f", "identity:work friend")
    stranger = ground.session("s", "identity:home")
    begun(store, friend, worker)
    store.instances.remove(worker["id"], "reclaimed")
    assert (len(mail(store, friend)), mail(store, stranger)) == (1, [])


def test_a_task_is_seen_within_its_requesters_identity(ground: Ground, store: Store) -> None:
    mine, friend = ground.session("m", "identity:work"), ground.session("f", "identity:work x")
    stranger, nobody = ground.session("s", "identity:home"), ground.session("n")
    task = request(store, mine)
    for viewer, sees in ((mine, True), (friend, True), (nobody, True), (stranger, False)):
        assert bool(store.tasks.seen(viewer, task["id"])) is sees
        assert bool(rows_of(store.tasks.walk(viewer))) is sees
        assert bool(store.tasks.current(viewer)["open"]) is sees
        assert bool(store.tasks.claimable(viewer)) is sees
    for refusing in (
        lambda: store.tasks.claim(stranger, task["id"]),
        lambda: store.tasks.end(stranger, task["id"], "cancelled"),
        lambda: store.tasks.approve(stranger, task["id"]),
        lambda: store.tasks.report_progress(stranger, task["id"], "x"),
    ):
        with refused("Task not found"):
            refusing()
    with refused("No claimable"):
        store.tasks.claim_next(stranger)


def test_a_task_of_another_identity_can_be_claimed_where_that_is_allowed(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    mine, stranger = ground.session("m", "identity:work"), ground.session("s", "identity:home")
    task = request(store, mine)
    monkeypatch.setenv("SWARM_MCP_ALLOW_CROSS_IDENTITY", "1")
    assert store.tasks.claim(stranger, task["id"])["task"]["assignee"] == stranger["id"]


def test_the_assignee_speaks_for_a_requester_that_has_left_and_then_nobody(ground: Ground, store: Store) -> None:
    mine, worker = ground.session("m", "identity:work"), ground.session("w", "identity:work")
    stranger = ground.session("s", "identity:home")
    task, unclaimed = begun(store, mine, worker), request(store, mine)
    store.instances.remove(mine["id"])
    assert store.tasks.seen(stranger, task["id"]) is None
    # Its identity has no session left; hidden, it would be stuck.
    assert store.tasks.seen(stranger, unclaimed["id"])
    assert store.tasks.claim_next(stranger)["task"]["id"] == unclaimed["id"]
    store.instances.remove(worker["id"])
    assert [row["id"] for row in rows_of(store.tasks.walk(stranger, "open"))] == [task["id"]]


def test_a_listing_is_filtered_and_in_order_of_urgency(
    ground: Ground, store: Store, planner: Session, worker: Session
) -> None:
    for title, priority in (("low", -1), ("first", 0), ("high", 5), ("second", 0)):
        task = request(store, planner, title, priority=priority)
        ground.sql("UPDATE tasks SET created_at = created_at + ? WHERE id = ?", len(title), task["id"])
    assert [task["title"] for task in rows_of(store.tasks.walk(planner))] == ["high", "first", "second", "low"]
    held = store.tasks.claim_next(worker)["task"]
    assert [task["id"] for task in rows_of(store.tasks.walk(planner, assignee=worker["id"]))] == [held["id"]]
    assert len(rows_of(store.tasks.walk(planner, "open", requester=planner["id"]))) == 3
    assert rows_of(store.tasks.walk(planner, "open", requester=worker["id"])) == []
