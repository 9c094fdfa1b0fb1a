"""`deregister`: one's own session goes when told to; another live one only when that is meant."""

import json

import pytest
from support.fixtures import Ground, Sleeper


@pytest.fixture
def pair(ground: Ground) -> tuple[dict, dict]:
    """Two sessions of one scope; the first holds a file."""
    mine, peer = ground.session("mine", "identity:p one"), ground.session("theirs", "identity:p two")
    ground.lock(peer, "f")
    return mine, peer


def left(ground: Ground) -> set[str]:
    return {row["id"] for row in ground.sql("SELECT id FROM instances")}


def as_session(monkeypatch, way: str, row: dict, name: str) -> None:
    """Make this process one that works for session `row`."""
    if way == "shell":
        monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", name)
    if way == "variable":
        monkeypatch.setenv("SWARM_MCP_INSTANCE_ID", row["id"])


@pytest.mark.parametrize("caller", ["shell", "variable", "nobody"])
@pytest.mark.parametrize("reference", ["id", "prefix", "label"])
def test_a_live_peer_stays_without_force(ground: Ground, pair, monkeypatch, caller: str, reference: str):
    mine, peer = pair
    as_session(monkeypatch, caller, mine, "mine")
    named = {"id": peer["id"], "prefix": peer["id"][:13], "label": "identity:p two"}[reference]
    told = ground.swarm("deregister", "--as", named)
    assert (told.code, told.out) == (1, "") and told.err.count("\n") == 1, told
    why = "only a person" if caller == "shell" else "--force"
    assert told.err.startswith("deregister failed: ") and why in told.err
    refused = ground.swarm("deregister", "--as", named, "--json")
    assert refused.code == 1 and refused.err == "" and list(refused.json) == ["error"] and why in refused.json["error"]
    assert left(ground) == {mine["id"], peer["id"]}
    assert len(ground.sql("SELECT id FROM context")) == 1
    monkeypatch.delenv("CLAUDE_CODE_SESSION_ID", raising=False)  # a person's
    assert ground.swarm("deregister", "--as", named, "--force", "--json").json["id"] == peer["id"]
    assert left(ground) == {mine["id"]} and ground.sql("SELECT id FROM context") == []


@pytest.mark.parametrize("caller", ["shell", "variable"])
@pytest.mark.parametrize("named", [True, False])
def test_ones_own_session_needs_no_force(ground: Ground, pair, monkeypatch, caller: str, named: bool):
    mine, peer = pair
    as_session(monkeypatch, caller, mine, "mine")
    argv = ["--as", mine["id"]] if named else []
    assert ground.swarm("deregister", *argv).out == f"deregistered {mine['id']}\n"
    assert left(ground) == {peer["id"]}


def test_the_only_session_of_a_scope_is_the_one_that_is_meant(ground: Ground):
    row = ground.plain()
    assert ground.swarm("deregister", "--as", row["id"][:8], "--json").json == {
        "ok": True,
        "id": row["id"],
        "scope": ground.scope,
    }
    assert left(ground) == set()


def test_a_dead_peer_needs_no_force(ground: Ground, pair):
    with Sleeper() as client:
        dead = ground.session("dead", "gone", client=client.identity)
        ground.lock(dead, "g")
    done = ground.swarm("deregister", "--as", dead["id"])
    assert done.code == 0 and dead["id"] not in left(ground)
    assert len(ground.sql("SELECT id FROM context")) == 1
    assert ground.swarm("deregister", "--as", dead["id"]).code == 1, "it is not on record any more"


def test_hooks_end_their_own_session_as_ever(ground: Ground, pair):
    mine, peer = pair
    done = ground.swarm("deregister", "--runtime", "claude-code", "--session-id", "theirs", "--json")
    assert done.json == {"ok": True, "id": peer["id"], "scope": ground.scope} and left(ground) == {mine["id"]}


# -- and the other way: a pane comes with the registration ------------------------------------------


def test_a_plain_registration_publishes_the_pane_it_is_made_in(ground: Ground, monkeypatch):
    monkeypatch.setenv("HERDR_PANE_ID", "p_3")
    row = ground.swarm("register", "--label", "session:x", "--json").json
    key = f"identity/workspace/herdr/{row['id']}"
    assert json.loads(ground.sql("SELECT value FROM kv WHERE key = ?", key)[0]["value"])["handle"] == "p_3"
    monkeypatch.setenv("HERDR_PANE_ID", "p_4")
    assert ground.swarm("register", "--label", "session:x", "--json").json["id"] == row["id"]
    assert json.loads(ground.sql("SELECT value FROM kv WHERE key = ?", key)[0]["value"])["handle"] == "p_4"


def test_what_is_registered_for_others_does_not_get_this_pane(ground: Ground, monkeypatch):
    monkeypatch.setenv("HERDR_PANE_ID", "p_3")
    ground.swarm("register", "--lease-seconds", "600")
    ground.swarm("register", "--runtime", "codex", "--session-id", "s")
    assert ground.sql("SELECT key FROM kv") == []
