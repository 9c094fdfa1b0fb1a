"""A release by the number of the grant: the path is not resolved again, and no other lock is lost."""

import os
from pathlib import Path

import pytest
from support.altered import Call, Listening
from support.fixtures import Ground
from support.query_plans import scans

from swarm_hook_core import paths
from swarm_mcp.errors import Refused
from swarm_mcp.store import Store
from swarm_mcp.store import locks as store_locks


@pytest.fixture
def resolved(listening: Listening) -> list[Call]:
    """The calls for paths that a release has resolved."""
    return listening(store_locks, "reach_of")


@pytest.mark.parametrize("file", ["src/a.py", "src", "src/*.py", "/__swarm/mutex", "missing/b.py"])
def test_a_process_releases_its_own_grant_unresolved(ground: Ground, resolved: list[Call], file: str):
    me = ground.session("1")
    with Store() as store:
        lock = store.locks.acquire(me, file)
        assert store.locks.release(me, file, "", lock.fence) == 1
        assert resolved == [] and store.locks.of(me.id) == []
        with pytest.raises(Refused):
            store.locks.release(me, file, "", lock.fence)


def test_a_link_that_leads_elsewhere_since_keeps_no_lock(ground: Ground, resolved: list[Call]):
    me, link = ground.session("1"), Path(ground.scope, "link")
    for name in ("one", "two"):
        Path(ground.scope, name).mkdir()
    link.symlink_to("one")
    with Store() as store:
        lock = store.locks.acquire(me, "link/f")
        link.unlink()
        link.symlink_to("two")
        assert store.locks.release(me, "link/f", "", lock.fence) == 1 and resolved == []


def test_a_path_that_was_locked_before_is_looked_at_again(ground: Ground):
    me, folder = ground.session("1"), Path(ground.scope, "folder")
    file = str(folder / "f")
    with Store() as store:

        def check() -> None:
            lock, key = store.locks.acquire(me, file), paths.key_of(file)
            store.locks.release(me, file, "", lock.fence)
            assert (lock.path_key, lock.base) == (key, key if os.path.isdir(file) else None)

        check()  # missing
        folder.mkdir()
        Path(file).touch()
        check()
        os.unlink(file)
        os.mkdir(file)
        check()
        folder.rename(f"{folder}.real")
        folder.symlink_to("folder.real")
        check()
        os.rmdir(file)
        Path(file).symlink_to(Path(ground.scope, "elsewhere"))
        check()


def test_letter_case_is_asked_of_the_disk_each_time(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    me, file = ground.session("1"), Path(ground.scope, "Name")
    file.touch()
    with Store() as store:
        for caseless in (False, True, False):
            monkeypatch.setattr(paths.PlainPath, "look", lambda _path, told=caseless: (False, told))
            lock = store.locks.acquire(me, str(file))
            store.locks.release(me, str(file), "", lock.fence)
            assert (lock.path_key or "").startswith(paths.NO_CASE) is caseless


def test_a_fence_of_another_file_or_holder_releases_nothing(ground: Ground):
    me, peer = ground.session("1"), ground.session("2")
    with Store() as store:
        lock, other = store.locks.acquire(me, "f"), store.locks.acquire(me, "g")
        for session, file in ((peer, "f"), (me, "g")):
            with pytest.raises(Refused):
                store.locks.release(session, file, "", lock.fence)
        assert {row.fence for row in store.locks.of(me.id)} == {lock.fence, other.fence}


def test_a_lock_that_another_process_has_renewed_is_found_by_its_path(ground: Ground, resolved: list[Call]):
    me = ground.session("1")
    with Store() as store, Store() as elsewhere:
        lock = store.locks.acquire(me, "f")
        assert elsewhere.locks.acquire(me, "f", "a new id, the same grant").fence == lock.fence
        assert store.locks.release(me, "f", "", lock.fence) == 1 and [call.given[1] for call in resolved] == ["f"]


def test_no_lock_statement_walks_through_all_locks(ground: Ground):
    me, peer = ground.session("1"), ground.session("2")
    other = os.path.join(ground.scope, "other")

    def deeds() -> None:
        with Store() as store:
            fence = store.locks.acquire(me, "f").fence
            store.locks.release(me, "f", "", fence)
            store.locks.acquire(me, "f")
            store.locks.release(me, "f")
            store.locks.acquire(peer, other)
            list(store.locks.held(ground.scope, ""))
            store.locks.on(other)
            store.locks.of(peer.id)
            store.locks.release_all(peer)

    with Store() as store:
        walks = [step for step, _ in scans(store, deeds) if step.startswith(("SCAN c ", "SCAN context"))]
    # An index of rows that are not there, or of their first row alone.
    assert [step for step in walks if "INDEX swarm_lock" not in step] == []
