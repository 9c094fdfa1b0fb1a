"""Servers that one process has started: each connection is a session of its own, until hooks say otherwise."""

import os

import pytest
from support.fixtures import Ground
from support.serving import Server
from support.toolbox import Hands

from swarm_hook_core.process import start_time
from swarm_mcp.server.heartbeat import Heartbeat

pytestmark = pytest.mark.slow

ME = (os.getpid(), start_time(os.getpid()))
NOT_REGISTERED = "Not registered. Call register first."


def join(ground: Ground, server: Server, label: str) -> str:
    """The instance id of a server's connection that registers under `label`."""
    return server.value("register", {"directory": ground.scope, "label": label})["id"]


def kill(server: Server) -> None:
    server.process.kill()
    server.process.wait()


def holders(ground: Ground) -> list[str]:
    rows = ground.sql("SELECT instance_id FROM context WHERE type = 'lock' ORDER BY rowid")
    return [row["instance_id"] for row in rows]


# -- without hooks ------------------------------------------------------------------------------------


def test_two_agents_of_one_program(ground: Ground):
    with Server(ground) as first, Server(ground) as second:
        one = join(ground, first, "agentA")
        assert second.text("whoami") == NOT_REGISTERED
        two = join(ground, second, "agentB")
        assert one != two
        assert first.value("lock_file", {"file": "f"})["ok"] is True
        assert second.value("lock_file", {"file": "f"})["active"]["instance_id"] == one
        assert second.value("lock_file", {"file": "g"})["ok"] is True
        second.call("unlock_file", {"file": "f"})
        assert holders(ground) == [one, two]
        first.close_input()
        assert first.ended_within(60) == 0
        assert second.value("whoami")["id"] == two and holders(ground) == [two]
        kill(second)
    assert holders(ground) == [two], "the client lives"


def test_a_server_that_is_started_again_goes_on_with_what_its_own_label_names(ground: Ground):
    with Server(ground) as first, Server(ground) as second, Server(ground) as beside:
        ids = [join(ground, first, "agentA"), join(ground, second, "agentB")]
        assert first.value("lock_file", {"file": "f"})["ok"] is True
        kill(first)
        kill(second)
        assert beside.text("whoami") == NOT_REGISTERED
        with Server(ground) as again, Server(ground) as another:
            assert again.text("whoami") == NOT_REGISTERED, "it might be either"
            assert join(ground, another, "agentC") not in ids
            assert another.value("lock_file", {"file": "f"})["active"]["instance_id"] == ids[0]
            assert join(ground, again, "agentA") == ids[0]
            assert "Unlocked" in again.text("unlock_file", {"file": "f"})
            again.close_input()
            assert again.ended_within(60) == 0
        assert ground.sql("SELECT 1 FROM instances WHERE id = ?", ids[0]) == [], "it was its own to take along"


def test_a_server_beside_the_one_that_was_killed_does_not_take_its_place(ground: Ground):
    with Server(ground) as beside:
        assert beside.text("whoami") == NOT_REGISTERED
        with Server(ground) as killed:
            one = join(ground, killed, "agentA")
            assert killed.value("lock_file", {"file": "f"})["ok"] is True
            kill(killed)
        ground.sql("UPDATE swarm_sessions SET last_seen = last_seen + 1")  # signs of life are known to the second
        assert beside.text("whoami") == NOT_REGISTERED
        assert join(ground, beside, "agentB") != one
        assert beside.value("lock_file", {"file": "f"})["active"]["instance_id"] == one


def test_what_a_server_inherits_is_kept_until_it_is_called(ground: Ground):
    with Server(ground) as killed:
        one = join(ground, killed, "agent")
        assert killed.value("lock_file", {"file": "f", "ttl_seconds": 60})["ok"] is True
        kill(killed)
    next_one = Hands(ground, client=ME)
    ground.sql("UPDATE context SET renewed = renewed - 50, wall_until = wall_until - 50")
    (before,) = ground.sql("SELECT renewed FROM context")
    (seen,) = ground.sql("UPDATE swarm_sessions SET last_seen = last_seen - 5 RETURNING last_seen")
    Heartbeat(next_one.session).beat()
    (after,) = ground.sql("SELECT renewed FROM context")
    assert after["renewed"] > before["renewed"] + 49
    assert ground.sql("SELECT last_seen FROM swarm_sessions") == [seen]
    assert next_one.value("whoami")["id"] == one and holders(ground) == [one]


def test_of_two_that_would_go_on_with_it_one_does(ground: Ground):
    with Server(ground) as killed:
        one = join(ground, killed, "agent")
        kill(killed)
    hands = [Hands(ground, client=ME), Hands(ground, client=ME)]
    found = [one_of.value("register", directory=ground.scope, label="agent")["id"] for one_of in hands]
    assert found.count(one) == 1


def test_an_instance_that_was_reserved_is_one_servers(ground: Ground, monkeypatch):
    monkeypatch.setenv("SWARM_MCP_INSTANCE_ID", "reserved")
    with Server(ground) as first, Server(ground) as second:
        assert first.value("whoami")["id"] == "reserved"
        assert second.text("whoami") == NOT_REGISTERED
        assert join(ground, second, "other") != "reserved"
        kill(first)
        kill(second)
    with Server(ground) as again:
        assert again.value("whoami")["id"] == "reserved"


def test_only_its_own_leases_are_kept_by_a_server(ground: Ground):
    mine, theirs = Hands(ground, client=ME), Hands(ground, client=ME)
    for name, hands in (("a", mine), ("b", theirs)):
        row = hands.value("register", directory=ground.scope, label=name)
        with ground.store() as store:
            assert hands.session.vouched(store) == [row["id"]]


# -- with hooks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["before", "after"])
def test_hooks_of_the_client_make_it_one_session(ground: Ground, when: str):
    with Server(ground) as first, Server(ground) as second:
        if when == "after":
            one = join(ground, first, "agent")
            assert first.value("lock_file", {"file": "f"})["ok"] is True
        session = ground.session("s", "hooked", client=ME)
        assert when == "before" or session["id"] == one
        for server in (first, second):
            assert server.value("whoami")["id"] == session["id"]
            assert server.value("lock_file", {"file": "f"})["ok"] is True
        assert holders(ground) == [session["id"]]


def test_a_command_that_holds_is_no_session_of_a_server_that_it_runs(ground: Ground):
    ground.lock(ground.session("h", "origin:hold", runtime="hold", client=ME, lease_seconds=0), "f")
    with Server(ground) as server:
        assert server.text("whoami") == NOT_REGISTERED


# -- many, killed at random ---------------------------------------------------------------------------
