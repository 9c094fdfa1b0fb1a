"""The tools about locks: the contract's answers, and sessions that must not block others."""

from __future__ import annotations

import pytest
from support.fixtures import Ground
from support.toolbox import Hands

ACTIVE = ["id", "instance_id", "file", "type", "content", "created_at", "owner", "active_tasks", "fence"]
OWNER = ["id", "label", "heartbeat", "heartbeat_age_seconds", "stale", "reclaimable", "active"]


@pytest.fixture
def hands(ground: Ground) -> tuple[Hands, Hands, Hands]:
    """Two sessions of identity p and one of q."""
    labels = (("1", "identity:p one"), ("2", "identity:p two"), ("3", "identity:q secret-name"))
    return tuple(Hands(ground, ground.session(name, label)) for name, label in labels)


def test_lock_relock_conflict_and_release(ground: Ground, hands):
    mine, peer, _ = hands
    first = mine.value("lock_file", file="src/a.py", reason="refactor")
    assert list(first) == ["ok", "id", "fence"] and first["ok"] is True
    again = mine.value("lock_file", file="src/a.py")
    assert again["id"] != first["id"]
    own = mine.value("lock_file", file="src/a.py", exclusive=True)
    refused = peer.value("lock_file", file="src/a.py", reason="mine")
    look = peer.value("get_file_lock", file=f"{ground.scope}/src/../src/a.py")
    assert list(refused) == list(own) == ["error", "active", "queue"] and refused["error"] == "File is already locked"
    assert list(look) == ["file", "active"] and look["file"] == f"{ground.scope}/src/a.py"
    for active in (own["active"], refused["active"], look["active"]):
        assert list(active) == ACTIVE and list(active["owner"]) == OWNER
        assert (active["id"], active["instance_id"]) == (again["id"], mine.row["id"])
        assert (active["content"], active["file"]) == ("actively editing", f"{ground.scope}/src/a.py")
        assert active["active_tasks"] == [] and active["owner"]["label"] == "identity:p one"
    assert peer.text("unlock_file", file="src/a.py").startswith("Unlocked src/a.py")
    assert mine.value("get_file_lock", file="src/a.py")["active"] is not None, "only one's own lock goes"
    assert mine.text("unlock_file", file="src/a.py") == "Unlocked src/a.py"
    assert peer.value("get_file_lock", file="src/a.py")["active"] is None
    assert peer.value("lock_file", file="src/a.py")["ok"] is True


def test_the_holders_work_is_shown(ground: Ground, hands):
    mine, peer, _ = hands
    ground.add("tasks", id="t1", scope=ground.scope, type="test", title="T two", requester="x", assignee=mine.row["id"],
               status="claimed")  # fmt: skip
    mine.value("lock_file", file="f", task_id="t1")
    active = peer.value("lock_file", file="f")["active"]
    assert active["active_tasks"] == [{"id": "t1", "type": "test", "title": "T two", "status": "claimed"}]
    assert ground.sql("SELECT task_id FROM context") == [{"task_id": "t1"}]


def test_the_pane_of_the_holder_is_shown_where_it_published_one(ground: Ground, hands):
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
        assert list(active) == [*ACTIVE[:-2], "workspace", *ACTIVE[-2:]]
        assert list(active["owner"]) == [*OWNER, "workspace_backend", "workspace_handle", "pane_id"]
        assert (active["owner"]["workspace_backend"], active["owner"]["pane_id"]) == ("herdr", "p_5")
        workspace = active["workspace"]
        assert workspace["key"] == f"identity/workspace/herdr/{holder['id']}"
        assert (workspace["backend"], workspace["handle_kind"], workspace["handle"]) == ("herdr", "pane", "p_5")
    assert "p_5" not in str(stranger.answer("get_file_lock", file="f").value)


def test_another_identity_learns_that_and_nothing_else(ground: Ground, hands):
    mine, _, stranger = hands
    stranger.value("lock_file", file=f"{ground.scope}/f", reason="secret-note")
    hidden = {"hidden": True, "reason": "cross_identity", "file": f"{ground.scope}/f"}
    queue = {"waiting": 0, "join": "lock_file with wait_seconds"}
    assert mine.value("lock_file", file="f") == {"error": "File is already locked", "active": hidden, "queue": queue}
    assert mine.value("get_file_lock", file="f") == {"file": f"{ground.scope}/f", "active": hidden}


@pytest.mark.parametrize("label", ["identity:q", "", None])
@pytest.mark.parametrize("where", ["/", "above", "here"])
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


@pytest.mark.parametrize("file", ["", "   ", "a\0b", "\udcff"])
def test_what_names_no_file_is_an_error(ground: Ground, hands, file: str):
    mine, *_ = hands
    assert all(mine.answer(tool, file=file).is_error for tool in ("lock_file", "unlock_file", "get_file_lock"))
    assert ground.sql("SELECT id FROM context") == []
