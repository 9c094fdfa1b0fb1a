"""The tools about locks: the holder's pane, and sessions that must not block others.

The contract's answers are in test_conformance_mcp, whole conversations in test_server.
"""

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
