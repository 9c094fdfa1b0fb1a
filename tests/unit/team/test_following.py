"""Two machines of a team follow the server in memory: the cases of all servers, and those that only it can play."""

import pytest
from support.following_cases import *  # noqa: F403
from support.team_machines import REPOSITORY

from swarm_hook_core import clock
from swarm_mcp.team import protocol
from swarm_mcp.team.errors import TeamUnreachable
from swarm_mcp.team.parts import TeamRows

pytestmark = pytest.mark.thorough


def test_after_a_failover_grants_are_confirmed_anew_and_what_others_have_is_given_up(machines, team):
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    laptop.take(one, "kept.py")
    version = team.repositories[REPOSITORY].version
    laptop.take(one, "lost.py")
    sandbox.follow()
    team.restore(REPOSITORY, version)
    sandbox.follow()
    assert sandbox.take(other, "lost.py")["answer"] == "granted"
    laptop.follow()
    sandbox.follow()
    assert sorted(laptop.held()) == [("kept.py", "here"), ("lost.py", "sandbox")]
    assert sorted(sandbox.held()) == [("kept.py", "laptop"), ("lost.py", "here")]
    assert laptop.row("kept.py")["team_fence"] == sandbox.row("kept.py")["team_fence"]
    first, second = laptop.mail(one)
    assert "failover" in first and "lost.py" in second


def test_a_server_that_loses_grants_once_more_while_it_is_greeted_is_greeted_again(machines, team):
    laptop, _ = machines
    one = laptop.session("one")
    laptop.take(one, "a.py")
    version, after = team.repositories[REPOSITORY].version, laptop.server.after
    team.restore(REPOSITORY, version)
    after["hello"] = lambda: after.update(hello=lambda: team.restore(REPOSITORY, version))  # after the second one
    with pytest.raises(TeamUnreachable):
        laptop.follow()
    laptop.follow()
    assert laptop.row("a.py")["team_fence"]


def test_after_a_loss_nothing_is_fresh_before_all_who_were_there_have_been_heard(machines, team):
    """A machine that has not heard of it yet goes on with earlier grants, unknown here by now."""
    laptop, _ = machines

    def fresh_until():
        return TeamRows(laptop.store).repositories()[REPOSITORY].fresh_until

    laptop.follow()
    assert fresh_until() > clock.now()
    team.restore(REPOSITORY, team.repositories[REPOSITORY].version)
    team.grace = 5.0
    laptop.follow()
    assert fresh_until() is None
    laptop.follow()
    assert fresh_until() is None
    team.grace = 0.0
    laptop.follow()
    assert fresh_until() > clock.now()


def test_a_session_that_comes_back_late_does_not_believe_its_grants(machines, team):
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    laptop.take(one, "a.py")
    laptop.take(one, "b.py")
    sandbox.session("other")
    team.clock += protocol.SESSION_LEASE + 1
    sandbox.follow()
    sandbox.server.reap(REPOSITORY)
    sandbox.follow()
    assert sandbox.held() == []
    assert sandbox.take(other, "a.py")["answer"] == "granted"
    laptop.follow()
    assert sorted(laptop.held()) == [("a.py", "sandbox"), ("b.py", "here")]
    assert laptop.row("b.py")["team_fence"]
    (told,) = laptop.mail(one)
    assert "a.py" in told


def test_a_replica_that_was_away_too_long_takes_everything(machines, team):
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    laptop.take(one, "old.py")
    sandbox.take(other, "mine.py")
    laptop.store.locks.release(one, "old.py")
    laptop.take(one, "new.py")
    team.kept = 0
    laptop.follow()
    sandbox.follow()
    assert sorted(sandbox.held()) == [("mine.py", "here"), ("new.py", "laptop")]
    sandbox.begin()
    sandbox.ground.sql("UPDATE swarm_team_repositories SET version = 0")
    sandbox.begin()
    sandbox.follow()
    assert sorted(sandbox.held()) == [("mine.py", "here"), ("new.py", "laptop")]
    assert sandbox.row("mine.py")["team_fence"]
