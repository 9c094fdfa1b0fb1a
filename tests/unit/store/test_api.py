"""Verbs of the store that no other test shows: each part, and its face."""

import inspect
import os
import re
from pathlib import Path

import pytest
from support.listings import rows_of

import swarm_mcp
from swarm_hook_core.process import start_time
from swarm_mcp.domain import Record
from swarm_mcp.locking.acquisition import LockWait
from swarm_mcp.store import store as faces
from swarm_mcp.store.lock_request import request
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


def test_a_store_answers_for_itself(store):
    store.check_reading()
    store.check_writing()
    store.refresh()
    assert store.exists() and store.described()["backend"] and store.here and store.journal()
    assert store.now() > 1_600_000_000


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
    of_hooks = [package / name for name in ("hooks/session_hooks.py", "cli/commands/sessions.py")]
    others = [path for path in package.rglob("*.py") if path.relative_to(package).parts[0] != "store"]
    for name in ("agent_client", "server", "parts", "store_documents", "store_rows"):
        others.remove(package / "team" / f"{name}.py")
    found = {path: {one[0] for one in words.finditer(path.read_text())} for path in others}
    assert {path: these for path, these in found.items() if these} == {path: {"store.database"} for path in of_hooks}
