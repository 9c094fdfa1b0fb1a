"""The team agent over its socket: elected once, confirming, following, ending itself."""

import os
import threading
import time
from pathlib import Path

import pytest
from support.fake_team import FakeServer, FakeTeam
from support.fixtures import Ground, wait_for
from support.team_machines import REPOSITORY, Machine

from swarm_hook_core import clock
from swarm_hook_core.repository import tree_at
from swarm_mcp import panes
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request
from swarm_mcp.team import TeamRefused, agent_client, memberships, talk
from swarm_mcp.team.agent import Agent
from swarm_mcp.team.parts import TeamRows
from swarm_mcp.team.protocol import want

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

PATIENCE = 30.0  # seconds: where it is not asked how long it takes, it may take long


class Running:
    """An agent in a thread of this process, for the clone of `ground`, with the environment's store."""

    def __init__(self, ground: Ground, team: FakeTeam):
        tree = tree_at(str(ground.repo))
        assert tree is not None
        self.membership = memberships.Membership(
            tree.common, tree.top, REPOSITORY, "given", "service=fake", int(time.time())
        )
        self.ground, self.team = ground, team
        ground.store().close()
        memberships.remember(self.membership)
        self.agent = Agent(lambda server, name: team.server(name), idle_seconds=3600)
        self.thread = threading.Thread(target=self.agent.serve)
        self.thread.start()
        wait_for(agent_client.is_there)

    def end(self) -> None:
        self.agent.stop()
        self.thread.join(60)
        assert not self.thread.is_alive()

    def lock(self, session, *files: str, **given):
        with self.ground.store() as store:
            return store.locks.acquire_all(session, request(session, list(files), **given))


@pytest.fixture
def running(ground: Ground, team: FakeTeam):
    one = Running(ground, team)
    yield one
    one.end()


@pytest.fixture
def peer(tmp_path: Path, team: FakeTeam):
    folder = tmp_path / "peers"
    one = Machine(folder, "peer", team)
    one.follow()
    yield one
    one.close()


def test_a_lock_is_confirmed_over_the_socket(running, peer):
    session = running.ground.session("one")
    rows = running.lock(session, "a.py", "b.py")
    is_over = threading.Event()

    def keep_following() -> None:
        while not is_over.wait(0.2):
            peer.follow()

    follower = threading.Thread(target=keep_following)
    follower.start()
    answer = agent_client.confirm([row.id for row in rows], PATIENCE, PATIENCE)
    is_over.set()
    follower.join()
    assert answer["answer"] == "granted" and answer["settled"]
    assert set(answer["fences"]) == {row.id for row in rows}
    peer.follow()
    assert {place for place, _ in peer.held()} == {"a.py", "b.py"}


def test_a_lock_that_is_lost_after_its_asker_has_given_up_is_told_to_its_holder(running, team, monkeypatch):
    session = running.ground.session("one")
    wait_for(lambda: agent_client.status()["servers"][0]["state"] == "following")
    far = team.server("far")
    far.hello(REPOSITORY)
    far.beat(REPOSITORY, 0, 0, [{"session": "far-1", "label": "far", "lease": 60.0}])
    has_given_up, confirmed = threading.Event(), talk.Following._confirmed

    def slowly(*given):
        assert has_given_up.is_set() or far.acquire(REPOSITORY, "far-1", [want("late.py")], 0, 0)["ok"]
        answer = confirmed(*given)
        has_given_up.wait(PATIENCE)
        return answer

    monkeypatch.setattr(talk.Following, "_confirmed", slowly)
    with Store(running.ground.database, tells=False) as store:
        rows = store.locks.acquire_all(session, request(session, ["late.py"]))
        assert agent_client.confirm([rows[0].id], 0.5, 0)["answer"] == "unreachable"
        has_given_up.set()
        (told,) = wait_for(lambda: store.messages.take(session))
    assert "late.py" in told.content and "holds no longer" in told.content


def test_one_that_settles_at_once_is_said_to_be_settled(running, peer):
    """The settling thread may be done before the asking one looks."""
    session = running.ground.session("one")
    wait_for(lambda: agent_client.status()["servers"][0]["state"] == "following")
    (talk,) = running.agent._talks.values()
    take = talk._unsettled

    class Settled(list):
        def append(self, request) -> None:
            request.version.clear()
            request.settled.set()

    talk._unsettled = Settled(take)
    rows = running.lock(session, "a.py")
    answer = agent_client.confirm([rows[0].id], PATIENCE)
    assert (answer["answer"], answer["settled"]) == ("granted", True)


def test_one_that_a_sleeping_machine_has_not_heard_of_is_not_settled(running, peer):
    rows = running.lock(running.ground.session("one"), "a.py")
    answer = agent_client.confirm([rows[0].id], PATIENCE, 0.3)
    assert (answer["answer"], answer["settled"]) == ("granted", False)


def test_what_another_machine_locks_arrives_by_itself(running, peer):
    other = peer.session("other")
    peer.take(other, "theirs.py")
    wait_for(lambda: running.ground.sql("SELECT 1 FROM context WHERE machine = 'peer'"))
    session = running.ground.session("one")
    rows = running.lock(session, "mine.py")
    assert agent_client.confirm([rows[0].id], PATIENCE, 0)["answer"] == "granted"
    peer.store.locks.release(other, "theirs.py")
    peer.follow()
    wait_for(lambda: not running.ground.sql("SELECT 1 FROM context WHERE machine = 'peer'"))


def test_a_release_is_posted_once_it_is_poked(running, peer):
    session = running.ground.session("one")
    rows = running.lock(session, "a.py")
    agent_client.confirm([rows[0].id], PATIENCE, 0)
    peer.follow()
    with running.ground.store() as store:
        store.locks.release(session, "a.py")
    agent_client.poke()
    wait_for(lambda: not running.team.repositories[REPOSITORY].locks)


def test_which_machines_there_are_is_looked_at_while_somebody_asks(running, peer, team, limits):
    limits(talk, MACHINES_SECONDS=0.1)
    wait_for(lambda: agent_client.status()["servers"][0]["state"] == "following")

    def known(machines: bool) -> dict:
        return agent_client.status(machines=machines)["servers"][0]["repositories"][0]

    assert known(False)["looked"] is None and "machines" not in team.calls
    found = wait_for(lambda: known(True)["machines"] and known(True))  # the first question may be answered before
    assert {row["machine"] for row in found["machines"]} == {"peer", running.agent.status()["machine"]}
    assert found["looked"] >= 0 and found["round_trip"] > 0
    asked = team.calls.count("machines")
    wait_for(lambda: team.calls.count("machines") > asked + 1)
    limits(talk, LOOKED_SECONDS=0.0)

    def is_over() -> bool:
        asked = team.calls.count("machines")
        time.sleep(0.5)
        return team.calls.count("machines") == asked

    wait_for(is_over)  # no viewer is present any more


def test_who_is_to_be_woken_is_woken_in_its_pane(running, peer, herdr):
    herdr.pane("w1:p1")
    session = running.ground.session("one", "claude-code session:one", pane={"pane_id": "w1:p1"})
    other = peer.session("other")
    wait_for(lambda: peer.follow() or peer.store.instances.live(session["id"]))
    panes.prompt(peer.store, other, session["id"], "look", force=True)
    peer.follow()
    wait_for(lambda: any(words[:2] == ["pane", "send-text"] for words in herdr.calls()))
    assert [row["content"] for row in running.ground.sql("SELECT content FROM messages")] == ["look"]


def test_not_reached_it_says_so_and_confirms_later(running, team):
    session = running.ground.session("one")
    wait_for(lambda: agent_client.status()["servers"][0]["state"] == "following")
    team.down = True
    rows = running.lock(session, "a.py")
    answer = agent_client.confirm([rows[0].id])
    assert answer["answer"] == "unreachable" and answer["error"]
    wait_for(lambda: agent_client.status()["servers"][0]["state"] == "unreachable")
    (known,) = running.ground.sql("SELECT state FROM swarm_team_repositories")
    assert known["state"] == "unreachable"
    team.down = False
    wait_for(lambda: running.ground.sql("SELECT 1 FROM context WHERE team_fence IS NOT NULL"))


def test_a_machine_that_the_server_has_forgotten_greets_it_at_once(running, monkeypatch):
    beat, refused, beaten = FakeServer.beat, threading.Event(), threading.Event()

    def refuse_once(self, *values, **given):
        if refused.is_set():
            beaten.set()
            return beat(self, *values, **given)
        refused.set()
        raise TeamRefused("this machine has not said hello", code="hello_first")

    monkeypatch.setattr(FakeServer, "beat", refuse_once)
    assert refused.wait(60)
    assert beaten.wait(60)  # an agent without access waits for half a minute


def asked(ground: Ground, session, title: str = "Tidy up") -> str:
    with ground.store() as store:
        return store.tasks.request(session, {"type": "fix", "title": title})["task"].id


def test_a_claim_is_confirmed_over_the_socket_and_the_slower_one_is_told_so(running, peer):
    session, other = running.ground.session("one"), peer.session("other")
    known = asked(running.ground, session)
    agent_client.poke()
    wait_for(lambda: running.team.repositories[REPOSITORY].documents)
    peer.follow()
    peer.store.tasks.claim(other, known)
    assert agent_client.confirm_documents([("task", known)], PATIENCE) == {
        "answer": "granted"
    }  # nothing was changed here
    with running.ground.store() as store:
        store.tasks.claim(session, known)
    assert agent_client.confirm_documents([("task", known)], PATIENCE) == {"answer": "granted"}
    assert peer.following.confirm_documents([("task", known)], clock.now() + 2.0)["answer"] == "held"
    assert agent_client.confirm_documents([("task", "of nobody")], PATIENCE) == {"answer": "local"}


def test_what_is_claimed_while_the_server_is_away_is_known_to_be_open(running, team):
    session = running.ground.session("one")
    known = asked(running.ground, session)
    agent_client.poke()
    wait_for(lambda: REPOSITORY in team.repositories and team.repositories[REPOSITORY].documents)
    team.down = True
    with running.ground.store() as store:
        store.tasks.claim(session, known)
    answer = agent_client.confirm_documents([("task", known)])
    assert answer["answer"] == "unreachable" and answer["error"]
    team.down = False
    documents = running.team.repositories[REPOSITORY].documents
    wait_for(lambda: documents["task", known]["body"]["assignee"] == session["id"])


def test_a_message_goes_from_one_agent_to_the_other_by_itself(running, peer):
    session, other = running.ground.session("one"), peer.session("other")
    peer.follow()
    wait_for(lambda: running.ground.sql("SELECT 1 FROM instances WHERE id = ?", other["id"]))
    with running.ground.store() as store:
        store.messages.send(session, other["id"], "over there")
    agent_client.poke()
    wait_for(lambda: running.team.repositories[REPOSITORY].documents)
    peer.follow()
    assert peer.mail(other) == ["over there"]
    wait_for(lambda: peer.follow() or peer.store.instances.live(session["id"]))  # the next beat tells
    peer.store.messages.send(other, session["id"], "and back")
    peer.follow()
    with running.ground.store() as store:
        wait_for(lambda: store.messages.unread_count(session))


def test_status_says_what_the_server_does_not_take(running, team):
    session = running.ground.session("one")
    with running.ground.store() as store:
        store.kv.put(session, "large", "x" * 200_000)
    agent_client.poke()

    def told() -> dict:
        return agent_client.status()["servers"][0]["repositories"][0]

    wait_for(lambda: agent_client.status()["servers"][0]["repositories"] and told()["not_shared"])
    assert told()["shares"] is True
    ((kind, key, why),) = told()["not_shared"]
    assert (kind, key) == ("value", "large") and "bytes" in why


def test_leaving_removes_what_others_hold(running, peer, team):
    peer.take(peer.session("other"), "theirs.py")
    session = running.ground.session("one")
    rows = running.lock(session, "mine.py")
    agent_client.confirm([rows[0].id], PATIENCE, 0)
    wait_for(lambda: running.ground.sql("SELECT 1 FROM context WHERE machine = 'peer'"))
    memberships.forget(running.membership)
    agent_client.poke()
    wait_for(lambda: not running.ground.sql("SELECT 1 FROM swarm_team_trees"))
    assert running.ground.sql("SELECT team_fence, machine FROM context") == [{"team_fence": None, "machine": None}]
    running.thread.join(60)
    assert not running.thread.is_alive() and not os.path.exists(agent_client.team_socket())
    repository = team.repositories[REPOSITORY]
    assert [row["machine"] for row in repository.locks.values()] == ["peer"] and "peer" in repository.mirrors


def test_without_any_session_it_ends_after_a_while(ground: Ground, team):
    one = Running(ground, team)
    wait_for(lambda: agent_client.status()["servers"][0]["state"] == "following")
    one.agent._idle_seconds = 0.1
    agent_client.poke()
    one.thread.join(60)
    assert not one.thread.is_alive()
    assert TeamRows(Store(ground.database)).repositories()[REPOSITORY].fresh_until is None
