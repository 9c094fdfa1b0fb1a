"""Verbs of the store that no other test shows: each part, and its face."""

import inspect
import os
import re
from pathlib import Path

import pytest
from support.fixtures import Sleeper
from support.listings import rows_of

import swarm_mcp
from swarm_hook_core.process import start_time
from swarm_mcp.domain.lock import SHARED
from swarm_mcp.domain.record import Record
from swarm_mcp.domain.run import ENDED
from swarm_mcp.domain.session import DETACHED, RUN_RUNTIME
from swarm_mcp.errors import LockRefused, Refused, SwarmError
from swarm_mcp.locking.acquisition import LockWait
from swarm_mcp.store import store as faces
from swarm_mcp.store.lock_request import reach_of, request
from swarm_mcp.store.sessions import Registration


@pytest.fixture
def join(store, ground):
    """Register a session by its name, also its label."""

    def register(name: str, label: str = "", scope: str = "", client=(0, "")):
        client = client if client[0] else (os.getpid(), start_time(os.getpid()))
        facts = {"runtime": "codex", "session_id": name, "lease_seconds": 86400, "client": client}
        return store.instances.register(Registration(scope or ground.scope, label=label or name, **facts))

    return register


@pytest.fixture
def pair(join):
    return join("ann"), join("bob")


def mail(store, session) -> list[str]:
    taken = store.messages.take(session)
    store.messages.acknowledge([one.id for one in taken])
    return [one.content for one in taken]


@pytest.mark.parametrize("part", faces.Store.__annotations__)
def test_every_verb_is_a_function_with_a_docstring_of_a_transaction(part, store):
    kind = type(getattr(store, part))
    for name, verb in vars(kind).items():
        if isinstance(verb, faces.verb):
            function = getattr(kind, name)
            first, *_ = inspect.signature(function).parameters
            assert first in ("tx", "db") and function.__doc__, f"{part}.{name}"


def test_a_verb_takes_what_its_function_takes_after_the_transaction(store):
    assert list(inspect.signature(store.locks.release).parameters) == ["instance", "file", "agent", "fence"]


def test_a_store_answers_for_itself(store):
    store.check_reading()
    store.check_writing()
    store.refresh()
    assert (
        store.exists()
        and store.described()["backend"]
        and store.here
        and store.journal()
        and store.now() > 1_600_000_000
    )


def test_a_row_cannot_be_changed(store, pair):
    row = store.instances.get(pair[0].id)
    assert isinstance(row, Record) and row.label == row["label"] == "ann" and row.get("nothing") is None
    for change in (
        lambda: row.update(label="x"),
        lambda: row.__setitem__("label", "x"),
        lambda: setattr(row, "label", 1),
    ):
        with pytest.raises(TypeError):
            change()
    assert row.replace(label="x").label == "x" and row.label == "ann"
    with pytest.raises(AttributeError):
        _ = row.nothing


def test_a_session_is_open_in_several_clients_and_ends_with_the_last(store, join):
    with Sleeper() as one, Sleeper() as two:
        row = join("ann", client=one.identity)
        assert join("ann", client=two.identity).id == row.id
        assert {found.id for client in (one, two) for found in store.instances.of_client(*client.identity)} == {row.id}
        assert store.instances.is_session(row.id) and [one.id for one in store.instances.of_session_id("ann")] == [
            row.id
        ]
        assert not store.instances.end_session(row, two.identity) and store.instances.live(row.id)
        assert store.instances.of_client(*two.identity) == []
        assert store.instances.end_session(row, one.identity) and store.instances.get(row.id) is None


def test_a_session_takes_the_row_that_waits_for_it(store, ground, join):
    reserved = store.instances.register(Registration(ground.scope, label="kept", preassigned_id="reserved"))
    ann, bob = join("ann"), join("bob")
    store.locks.acquire(ann, "f")
    task = store.tasks.request(bob, {"title": "t", "assignee": ann.id})["task"]
    adopted = store.instances.adopt(ann, reserved.id)
    assert (adopted.id, adopted.label) == ("reserved", "kept")
    assert [lock.file for lock in store.locks.of("reserved")] == [f"{ground.scope}/f"]
    assert store.tasks.get(ground.scope, task.id).assignee == "reserved" and store.instances.get(ann.id) is None
    assert store.instances.of_session("codex", "ann").id == "reserved"
    assert store.instances.adopt(bob, "reserved") is None, "it is a session's now"
    assert store.instances.adopt(bob, "nobody") is None
    early = Registration(ground.scope, runtime="codex", session_id="cid", preassigned_id="early", lease_seconds=60)
    assert store.instances.register(early).id == "early"


def test_a_session_that_was_made_for_its_locks_goes_with_them(store, join):
    row = store.instances.register(
        Registration("/", runtime=DETACHED, session_id="hold", lease_seconds=600, client=(0, ""))
    )
    store.instances.forget(join("ann").id)
    store.locks.acquire(row, "/f")
    store.instances.forget(row.id)
    assert store.instances.get(row.id) and len(store.instances.in_scope(row.scope)) == 1
    store.locks.release(row, "/f")
    store.instances.forget(row.id)
    assert store.instances.get(row.id) is None


@pytest.mark.parametrize(
    ("held", "asked", "meets"),
    [
        ("f", "f", True), ("f", "./x/../f", True), ("f", "g", False), ("src/", "src/a.py", True),
        ("src/a.py", "src/", True), ("src/", "src2/a.py", False), ("*.sql", "deep/x.sql", True),
        ("src/*.sql", "deep/src/x.sql", False),
        ("**/*.sql", "deep/x.sql", True), ("db/*.sql", "db/*.txt", False), ("db/*", "db/a*", True),
    ],
)  # fmt: skip
def test_locks_meet_by_what_they_reach(store, pair, held, asked, meets):
    ann, bob = pair
    (lock,) = store.locks.acquire_all(ann, request(ann, [held], note="why"))
    if meets:
        with pytest.raises(LockRefused) as refused:
            store.locks.acquire_all(bob, request(bob, [asked]))
        assert refused.value.active["instance_id"] == ann.id
        assert store.locks.in_the_way(bob, request(bob, [asked])).id == lock.id
    else:
        assert store.locks.acquire_all(bob, request(bob, [asked]))[0].fence > lock.fence
    assert [one.id for one in store.locks.meeting(reach_of(ann, held))][0] == lock.id


def test_asking_again_keeps_the_grant_and_a_release_names_it(store, pair):
    ann, _bob = pair
    first = store.locks.acquire(ann, "f", "a")
    again = store.locks.acquire(ann, "f", "b")
    assert again.fence == first.fence and [lock.content for lock in store.locks.of(ann.id)] == ["b"]
    with pytest.raises(LockRefused):
        store.locks.acquire(ann, "f", exclusive=True)
    with pytest.raises(Refused, match="no longer good"):
        store.locks.release(ann, "f", fence=first.fence + 1)
    assert store.locks.fences_held(ann.id, [first.fence, 99]) == {first.fence}
    assert (store.locks.release(ann, "f", fence=first.fence), store.locks.release(ann, "f")) == (1, 0)
    assert store.locks.acquire(ann, "f").fence > first.fence


def test_locks_are_found_by_the_names_of_what_they_are_on(store, pair, ground):
    ann, bob = pair
    for name in ("src/", "src/deep/a", "other", "*.md"):
        store.locks.acquire(ann, f"{ground.scope}/{name}")
    store.locks.acquire(bob, f"{ground.scope}/b")
    found = store.locks.by_name([f"{ground.scope}/{name}" for name in ("b", "src", "none", "src")])
    assert [os.path.relpath(lock.file, ground.scope) for lock in found] == ["src", "*.md", "b"]
    assert [lock.pattern for lock in store.locks.by_name(())] == ["/*.md"]


def test_the_foremost_locks_are_ones_own_then_those_waited_for(store, join, ground):
    ann, bob, cid = join("ann"), join("bob"), join("cid")
    for number in range(6):
        store.locks.acquire(ann if number in (0, 4) else bob, f"{ground.scope}/{number}")
    assert LockWait(cid, request(cid, [f"{ground.scope}/2"]), None).advance(store) is None
    found, shown = store.locks.foremost(ground.scope, "", 4, ann.id, store.queue.lengths())
    assert (found, [os.path.basename(lock["file"]) for lock in shown]) == (6, list("4025"))
    assert store.locks.foremost(ground.scope, "", 1, "", {})[1][0]["file"] == f"{ground.scope}/5"
    assert store.locks.foremost("/empty", "", 4, ann.id, {}) == (0, [])


def test_the_newest_locks_of_some_sessions(store, join, ground):
    ann, bob, cy = join("ann"), join("bob"), join("cy")
    rows = [store.locks.acquire(one, f"f{number}") for number, one in enumerate((cy, ann, bob, ann))]
    files = [lock["file"][-2:] for lock in store.locks.recent_of([ann.id, bob.id], "", 10)]
    assert files == ["f3", "f2", "f1"]
    files = [lock["file"][-2:] for lock in store.locks.recent_of([ann.id, bob.id], "", 2, [rows[0].id])]
    assert files == ["f0", "f3"]
    assert store.locks.counts_of([ann.id, cy.id, "nobody"], 10) == {ann.id: 2, cy.id: 1, "nobody": 0}
    assert store.locks.counts_of([ann.id], 1) == {ann.id: 1}


def test_what_is_known_of_a_lock_is_said_to_its_circle(store, join, ground):
    holder = join("holder", "identity:a me")
    lock = store.locks.acquire(holder, "src/", "why")
    file = f"{ground.scope}/src/f"
    assert store.locks.path_of(holder, "src/../src/f") == file
    assert [one.id for one in store.locks.covering(reach_of(holder, "src/f"))] == [lock.id]
    assert store.locks.covering(reach_of(holder, ".")) == []
    (found,) = store.locks.on(file)
    known, hidden = store.locks.describe(found, "a"), store.locks.active_on(file, "b")
    assert (known["instance_id"], known["content"], known["owner"]["label"]) == (holder.id, "why", "identity:a me")
    assert hidden["hidden"] and "why" not in str(hidden) and holder.id not in str(hidden)
    assert store.locks.listed(found, "a")["owner_label"] == "identity:a me" and store.locks.active_on("/x", "") is None
    hidden = {"file": found.file, "content": "", "owner_label": None, "instance_id": holder.id}
    assert store.instances.held_beside(join("stranger", "identity:b"), 5, "b") == (1, [hidden])
    shown = {**hidden, "content": "why", "owner_label": "identity:a me"}
    assert store.instances.held_beside(join("reader", "identity:a"), 5, "a") == (1, [shown])
    assert store.instances.held_beside(holder, 5, "a") == (0, [])


def test_what_only_a_person_may_do_is_an_event_and_what_is_lowered_is_told(store, pair):
    ann, bob = pair
    before = store.events_so_far()
    assert store.protection.attempted(ann.scope, ann.id, "swarm-mcp auto off") is True
    assert store.protection.attempted(ann.scope, ann.id, "swarm-mcp auto off") is False, "the same, just now"
    assert store.protection.attempted(ann.scope, None, "sqlite3 x", "/s/swarm.db", "Bash") is True
    store.protection.lowered(ann.scope, bob.id, "auto", "the level is off now")
    assert [("off now" in text) for text in mail(store, ann)] == [True] and mail(store, bob) == []
    found = store.activity.timeline(ann.scope, 0, store.now() + 1, 9, ("protection",))
    kinds = [(row.type, row.actor, row.subject) for row in found]
    assert kinds == [
        ("protection.lowered", bob.id, "auto"), ("protection.attempted", None, "/s/swarm.db"),
        ("protection.attempted", ann.id, "swarm-mcp auto off"),
    ]  # fmt: skip
    assert store.events_so_far() >= before + 3


def test_a_held_file_that_changes_is_written_down_and_told_once(store, pair):
    ann, bob = pair
    file = f"{ann.scope}/f"
    change = {"file": file, "holder_id": ann.id, "kind": "changed", "kept": "/kept/1", "at": store.now()}
    assert store.breaches.report(bob, "Bash", "make", [change]) == [], "nobody holds it"
    store.locks.acquire(ann, "f")
    (number,) = store.breaches.report(bob, "Bash", "make", [change])
    assert store.breaches.report(bob, "Bash", "make", [change]) == [], "told already"
    (word,) = mail(store, ann)
    assert file in word
    (row,) = store.breaches.of(file, [])
    assert (row.id, row.writer_id, row.holder_id, row.kept, row.command) == (number, bob.id, ann.id, "/kept/1", "make")
    restored = store.breaches.restored(bob, file, "/kept/2", "/kept/1", ann.scope)
    assert [one.id for one in store.breaches.known(ann.scope)] == [restored, number]
    assert len(mail(store, ann)) == 1 and store.breaches.known("/elsewhere") == []
    assert [one.id for one in store.breaches.of("/other/name", [row.path_key])] == [restored, number]


def test_one_dispatch_at_a_time_starts_a_worker(store, pair):
    ann, bob = pair
    task = store.tasks.request(ann, {"title": "t"})["task"]
    lock = store.spawn_locks.take(ann, "/__swarm/spawn/any/1", task.id, "worker")
    assert store.spawn_locks.take(bob, lock.file, task.id, "other") is None
    assert store.spawn_locks.holder(ann.scope, lock.file).id == lock.id
    assert store.spawn_locks.worker_of(lock) is None and list(store.locks.held(ann.scope)) == [], "it is no file"
    store.spawn_locks.started(lock, {"instance_id": bob.id})
    assert store.spawn_locks.worker_of(store.spawn_locks.holder(ann.scope, lock.file)).id == bob.id
    store.tasks.end(ann, task.id, "cancelled")
    again = store.spawn_locks.take(bob, lock.file, task.id, "other")
    assert again.id != lock.id
    store.spawn_locks.release(again, "over")
    assert store.spawn_locks.holder(ann.scope, lock.file) is None


def test_who_waits_is_told_who_holds_and_who_goes_before(store, join, ground):
    ann, bob, cy = join("ann"), join("bob"), join("cy")
    for reader in (ann, bob):
        store.locks.acquire_all(reader, request(reader, ["f"], mode=SHARED))
    waits = [LockWait(cy, request(cy, ["f"]), 60), LockWait(ann, request(ann, ["f"], mode=SHARED), 60)]
    late = join("late")
    waits.append(LockWait(late, request(late, ["f", "g"]), 60))
    assert [wait.advance(store) is None for wait in waits] == [True, False, True]
    first, last = store.queue.waiting()
    assert {one.instance_id for one in store.queue.obstacles(first)} == {ann.id, bob.id}
    *held, before = store.queue.obstacles(last)
    assert {one.instance_id for one in held} == {ann.id, bob.id}
    assert (before.instance_id, before.ticket) == (cy.id, first.ticket)
    assert len(store.queue.obstacles(last, 1)) == 2


def test_what_lapsed_and_went_to_another_is_known(store, pair, join, clocks):
    ann, bob = pair
    clocks.stop("boot")
    assert store.leases.next_due() is None and not store.leases.is_due(ann.id)
    store.locks.acquire_all(ann, request(ann, ["f"], ttl=60))
    assert 0 < store.leases.next_due() <= 60 and not store.leases.is_due(ann.id)
    clocks.ahead(boot=30)
    assert store.leases.is_due(ann.id) and not store.leases.is_due(bob.id)
    clocks.ahead(boot=70)
    assert store.leases.some() and store.leases.overtaken(ann.id) == []
    fence = store.locks.acquire(bob, "f").fence
    (lapse,) = store.leases.overtaken(ann.id)
    assert (lapse.file, lapse.taken_by, lapse.taken_fence) == (f"{ann.scope}/f", bob.id, fence)
    store.locks.release(bob, "f")
    store.locks.acquire(join("cid"), "f")
    assert store.leases.overtaken(ann.id) == [lapse], "the first one to take it counts"
    (notice,) = store.notices.take(ann)
    assert "lapsed" in notice.text and "bob" in notice.text
    store.messages.acknowledge([notice.id])
    assert store.notices.take(ann) == mail(store, ann) == []


def test_a_message_is_handed_over_once(store, pair):
    ann, bob = pair
    for _ in range(2):
        store.messages.hand_over(ann, bob.id, "the task", "the task, in short", read_too=False)
    assert mail(store, bob) == ["the task"]
    store.messages.hand_over(ann, bob.id, "the task, in short", "the task", read_too=True)
    assert mail(store, bob) == []
    store.messages.hand_over(ann, bob.id, "the task", "", read_too=False)
    store.messages.write_down(ann.scope, ann.id, bob.id, "typed into its terminal")
    assert store.messages.counts(ann.scope, 0) == {"unread": 1, "recent": 3}
    assert mail(store, bob) == ["the task"]
    assert [one.content for one in rows_of(store.messages.walk(ann.scope))[:1]] == ["typed into its terminal"]


def ask(store, who, title: str, **more):
    return store.tasks.request(who, {"type": "fix", "title": title, **more})["task"]


def test_who_does_what_at_a_glance(store, pair):
    ann, bob = pair
    mine, theirs, done = ask(store, ann, "mine"), ask(store, ann, "theirs", assignee=bob.id), ask(store, ann, "done")
    store.tasks.claim(ann, mine.id)
    store.tasks.end(ann, done.id, "cancelled")
    assert [task.id for task in store.tasks.unfinished_of(ann)] == [mine.id]
    assert [task.id for task in store.tasks.at_work_beside(ann, 5)] == [theirs.id]
    assert store.tasks.current(ann)["terminal_counts"] == {"done": 0, "failed": 0, "cancelled": 1}
    assert "cancelled" not in store.tasks.current(ann, include_terminal=False)
    assert [task.id for task in store.tasks.glance(ann)["in_progress"]] == [mine.id]
    ended = store.tasks.complete(ann, mine.id, {"summary": "well", "followups": ["more"]})
    assert ended["result"]["followups"] == ["more"] and '"summary":"well"' in ended["task"].result.replace(": ", ":")


def test_a_run_takes_its_childs_session_in_and_back(store, ground):
    supervisor, child = (os.getpid(), start_time(os.getpid())), (os.getppid(), start_time(os.getppid()))
    row = store.instances.register(
        Registration(ground.scope, runtime=RUN_RUNTIME, session_id="run-1", client=supervisor, lease_seconds=600)
    )
    facts = {"id": "run-1", "scope": ground.scope, "instance_id": row.id, "harness": "claude", "cwd": "/"}
    owner = {"host": store.here, "supervisor_pid": supervisor[0], "supervisor_start": supervisor[1]}
    store.runs.begin({**facts, **owner, "task_id": "task-1"})
    assert store.runs.admit(row.id, child).client_pid == child[0] and store.runs.admit("other", child) is None
    with Sleeper() as another:
        assert store.runs.admit(row.id, another.identity) is None, "one child at a time"
    assert not store.instances.end_session(row) and store.runs.get("run-1").client_pid is None
    assert store.instances.get(row.id) and store.instances.of_session(RUN_RUNTIME, "run-1").id == row.id
    assert store.runs.session_of("task-1", "claude") is None
    store.runs.update("run-1", session_params={"session": "s"}, state=ENDED)
    assert store.runs.session_of("task-1", "claude") == {"session": "s"}
    assert [run.id for run in store.runs.of_task(ground.scope, "task-1")] == ["run-1"] and not store.runs.take_back("x")


def test_a_pane_keeps_its_names_when_it_is_moved(store, pair):
    ann, bob = pair
    store.panes.republish(ann, {"HERDR_PANE_ID": "p1"})
    known = store.panes.published(ann.id)
    assert (known["handle"], known["backend"]) == ("p1", "herdr") and store.panes.published(bob.id) == {}
    assert store.panes.repair(ann, known, {"pane_id": "p2", "workspace_id": "w", "tab_id": ""})
    assert not store.panes.repair(ann, known, {"pane_id": "p3", "workspace_id": "", "tab_id": ""}), "out of date"
    store.panes.republish(ann, {"HERDR_PANE_ID": "p1"})
    moved = store.panes.published(ann.id)
    assert (moved["handle"], moved["handle_aliases"]) == ("p2", ["p1"]), "the environment keeps the first name"
    assert store.panes.with_session({"id": ann.id})["workspace_handle"] == "p2"
    assert store.panes.with_lock({"instance_id": ann.id})["pane_id"] == "p2"
    assert store.panes.with_lock({"instance_id": bob.id}) == {"instance_id": bob.id}


def test_orders_to_a_user_interface_stand_in_line(store, pair):
    ann, _bob = pair
    first = store.ui_commands.enqueue(ann.scope, ann.id, "spawn_shell", {"cwd": "/"})
    second = store.ui_commands.enqueue(ann.scope, None, "send_prompt", {"text": "hi"})
    assert (first.status, first.payload, store.ui_commands.get(first.id)) == ("pending", {"cwd": "/"}, first)
    assert [one.id for one in store.ui_commands.recent(ann.scope)] == [second.id, first.id]
    assert [one.id for one in store.ui_commands.recent(ann.scope, "pending", 1)] == [second.id]
    assert store.ui_commands.recent(ann.scope, "done") == store.ui_commands.recent("/elsewhere") == []
    assert store.ui_commands.outcome(first.id, 0).status == "pending" and store.ui_commands.get(99) is None
    for wrong in (lambda: store.ui_commands.recent(ann.scope, "lost"), lambda: store.ui_commands.outcome(99, 0)):
        with pytest.raises(SwarmError):
            wrong()


def test_a_feed_tells_an_onlooker_what_its_circle_does(store, join, ground):
    ann, bob = join("ann", "identity:a"), join("bob", "identity:b")
    own, far = store.activity.feed(ground.scope, "a"), store.activity.feed("/elsewhere", "a")
    store.kv.put(ann, "k", "v")
    store.kv.put(bob, "secret", "v")
    store.locks.acquire(ann, "f")
    told = own.read()
    assert [event.get("type") for event in told] == ["kv.set", None, "context.lock_acquired"]
    assert told[0]["actor_label"] == "identity:a" and "secret" not in str(told) and own.read() == far.read() == []
    assert len(store.activity.feed(ground.scope, "a", told[0]["id"]).read()) == 2
    known = store.activity.acquaintance("identity:a")
    assert known.may_meet(ann.id) and not known.may_meet(bob.id) and known.label_of(bob.id) == "identity:b"
    assert [event.subject for event in store.activity.of_sessions([bob.id])] == [bob.id]


def test_what_happened_to_locks_and_sessions_in_a_while(store, pair, join):
    ann, _bob = pair
    store.locks.acquire(ann, "f")
    store.tasks.request(ann, {"type": "fix", "title": "t"})
    store.locks.release(ann, "f")
    now = store.now()
    names = [event.type for event in store.activity.timeline(ann.scope, now - 60, now, 10)]
    assert names == [
        "context.lock_released", "context.lock_acquired", "instance.registered", "instance.registered",
    ]  # fmt: skip
    assert [event.type for event in store.activity.timeline("", now - 60, now, 1)] == names[:1]
    assert store.activity.timeline("/elsewhere", now - 60, now, 10) == []
    assert store.activity.timeline("", now - 60, now - 30, 10) == []


def test_where_sessions_are(store, join, ground):
    join("ann")
    assert store.instances.scopes(10) == [ground.scope]
    join("bob", scope="/elsewhere")
    assert sorted(store.instances.scopes(10)) == sorted([ground.scope, "/elsewhere"])
    assert len(store.instances.scopes(1)) == 1


def test_nobody_but_the_store_knows_what_it_is_kept_in():
    """No SQL, and no way around the interface, in the coordinator outside of the store's own package.

    The team's own rows in it, and the set-up of its server, are exempt; what hooks of a session's life load calls the
    store's functions of a `Database`, without the interface.
    """
    package = Path(swarm_mcp.__file__).parent
    words = re.compile(r"\bSELECT .* FROM\b|\bPRAGMA\b|INSERT INTO|DELETE FROM|\bstore\.(database|_\w+)")
    of_hooks = [
        package / name for name in ("hooks/session_hooks.py", "sessions/scope_summary.py", "cli/commands/sessions.py")
    ]
    others = [path for path in package.rglob("*.py") if path.relative_to(package).parts[0] != "store"]
    for name in ("migrations", "outbox", "parts", "shared_rows", "store_documents", "store_rows"):
        others.remove(package / "team" / f"{name}.py")
    found = {path: {one[0] for one in words.finditer(path.read_text())} for path in others}
    assert {path: these for path, these in found.items() if these} == {path: {"store.database"} for path in of_hooks}
