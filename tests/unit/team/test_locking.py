"""The answers to a lock in a joined work tree, by the team agent's answer about it."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.fixtures import Ground
from support.toolbox import Hands

from swarm_hook_core.state import state_dir
from swarm_mcp.domain import Session
from swarm_mcp.errors import LockRefused, Refused
from swarm_mcp.locking.acquisition import LockWait, acquire
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request
from swarm_mcp.team import agent_client
from swarm_mcp.team.parts import TeamRows


class Agent:
    """A played team agent: it gives `answer` to every request to confirm, and records the requests.

    `first`: its action before its first answer.
    """

    def __init__(self, ground: Ground):
        self.ground = ground
        self.answer: dict = {"answer": "granted", "settled": True}
        self.asked: list[list[str]] = []
        self.first = lambda: None

    def confirm(self, ids: list[str], **_seconds: float) -> dict:
        self.asked.append(ids)
        if len(self.asked) == 1:
            self.first()
        if self.answer["answer"] == "held":
            marks = ",".join("?" * len(ids))
            self.ground.sql(f"DELETE FROM context WHERE id IN ({marks})", *ids)
        return {**self.answer, "fences": {one: 800 + number for number, one in enumerate(ids)}}

    def poke(self) -> None:
        pass


@pytest.fixture
def agent(ground: Ground, answering) -> Agent:
    """The checkout has joined."""
    os.makedirs(Path(state_dir(), "team", "clones"))
    with ground.store() as store, store.database.writing():
        TeamRows(store).set_trees({ground.scope: "example.org/app"})
    played = Agent(ground)
    answering(played)
    return played


def take(ground: Ground, who: dict, *files: str, seconds: float | None = 0, **given):
    with ground.store() as store:
        return acquire(store, Session(who), request(who, files, **given), seconds)


def holders(ground: Ground) -> list[str]:
    return [
        row["instance_id"] for row in ground.sql("SELECT instance_id FROM context WHERE type = 'lock' ORDER BY rowid")
    ]


def test_nobody_is_asked_where_no_clone_has_joined(ground: Ground, answering) -> None:
    answering(SimpleNamespace(confirm=lambda *_: pytest.fail("asked")))
    assert take(ground, ground.session("ann"), "f").confirmation is None


def test_what_lies_outside_of_joined_work_trees_is_nobody_elses_business(
    ground: Ground, agent: Agent, tmp_path: Path, ann: dict
) -> None:
    for file in (str(tmp_path / "elsewhere"), ground.scope + "-beside/f", "/__swarm/mutex", str(tmp_path)):
        assert take(ground, ann, file).confirmation is None
    assert agent.asked == []


@pytest.mark.parametrize("wanted", ["f", "folder/", "*.py", "", "src/../f"])
def test_a_grant_says_where_it_holds(ground: Ground, agent: Agent, wanted: str) -> None:
    taken = take(ground, ground.session("ann"), wanted or ground.scope)
    assert taken.confirmation == agent_client.TeamGrant(agent_client.SETTLED, {taken[0].id: 800})
    assert agent.asked == [[taken[0].id]]


def test_the_answers_of_command_and_tool(ground: Ground, agent: Agent, ann: dict) -> None:
    (ground.repo / "g").touch()
    told = ground.swarm("lock", "f", "--as", ann["id"], "--json").json
    assert told["team"] == {"fence": 800, "settled": True} and told["fence"] != 800
    assert ground.swarm("lock", "g", "--as", ann["id"]).out == f"locked {ground.repo}/g on all machines\n"
    assert Hands(ground, ann).value("lock_file", file="h")["team"] == {"fence": 800, "settled": True}
    agent.answer = {"answer": "granted", "settled": False}
    assert Hands(ground, ann).value("lock_file", file="i")["team"] == {"fence": 800, "settled": False}
    assert "not every machine knows of it yet" in ground.swarm("lock", "j", "--as", ann["id"]).out
    agent.answer = {"answer": "local"}
    assert "team" not in ground.swarm("lock", "k", "--as", ann["id"], "--json").json


def test_a_lock_is_held_on_this_machine_where_the_server_cannot_be_reached(ground: Ground, agent: Agent) -> None:
    ann = ground.session("ann")
    agent.answer = {"answer": "unreachable", "error": "no route"}
    done = ground.swarm("lock", "f", "--as", ann["id"])
    assert done.code == 0 and "/f on this machine only: no route" in done.out
    told = Hands(ground, ann).value("lock_file", file="f")
    assert told["ok"] and told["team"] == {"reachable": False, "error": "no route"}
    done = ground.swarm("hold", "g", "--as", ann["id"], "--", "true")
    assert done.code == 0 and "on this machine only" in done.err
    assert holders(ground) == [ann["id"]]


def test_who_was_slower_than_another_machine_is_refused_by_what_is_known_here_then(
    ground: Ground, agent: Agent
) -> None:
    ann, bob = ground.session("ann"), ground.session("bob", "bob machine:laptop-3fa9c1")
    agent.answer = {"answer": "held"}
    agent.first = lambda: ground.sql("DELETE FROM context") or ground.lock(bob, f"{ground.scope}/f")  # it has come over
    with pytest.raises(LockRefused) as refusal:
        take(ground, ann, "f")
    assert refusal.value.active["instance_id"] == bob["id"]
    assert holders(ground) == [bob["id"]] and len(agent.asked) == 1


def test_who_is_always_slower_is_not_kept_for_ever(ground: Ground, agent: Agent) -> None:
    agent.answer = {"answer": "held"}
    with pytest.raises(Refused, match="wait in line"):
        take(ground, ground.session("ann"), "f")
    assert holders(ground) == []


def test_who_waits_and_was_slower_goes_on_waiting(ground: Ground, agent: Agent, store: Store) -> None:
    ann, bob = ground.session("ann"), ground.session("bob")
    agent.answer = {"answer": "held"}
    agent.first = lambda: ground.sql("DELETE FROM context") or ground.lock(bob, f"{ground.scope}/f")
    wait = LockWait(Session(ann), request(ann, ["f"]), 60)
    assert wait.advance(store) is None and holders(ground) == [bob["id"]]
    assert wait.advance(store) is None and [row.instance_id for row in store.queue.waiting()] == [ann["id"]]
    store.locks.release(Session(bob), "f")
    agent.answer = {"answer": "granted", "settled": True}
    taken = wait.advance(store)
    assert taken is not None and taken.confirmation is not None and taken.confirmation.is_everywhere
    assert holders(ground) == [ann["id"]] and store.queue.waiting() == []


def test_a_session_on_another_machine_is_named_with_it(ground: Ground, agent: Agent, ann: dict) -> None:
    with ground.store() as store, store.database.writing():
        TeamRows(store).add_session("s-far", "laptop-3fa9c1", "codex origin:codex session:5f0c2f6e", ground.scope)
    with Store(ground.database) as store:
        far = store.instances.live("s-far")
        assert far is not None
        store.locks.acquire(far, f"{ground.scope}/f", "renumbering")
    name = "codex 5f0c2f6e on laptop-3fa9c1"
    assert name in ground.swarm("lock", "f", "--as", ann["id"]).err
    assert name in ground.swarm("why", "f", "--as", ann["id"]).out
    assert name in ground.swarm("locks", "--as", ann["id"]).out
    assert name in ground.swarm("status", "--as", ann["id"]).out
    assert name in ground.swarm("instances", "--as", ann["id"]).out
    from swarm_mcp.locking.explaining import verdict

    with Store(ground.database) as store:
        denied = verdict(store, Session(ann), f"{ground.scope}/f")["reason"]
    assert name in denied and "message the holder (instance s-far)" in denied


@pytest.fixture
def far(ground: Ground, agent: Agent) -> str:
    """Add a session on another machine that holds `f`; return its id."""
    with ground.store() as store, TeamRows(store).writing():
        TeamRows(store).add_session(
            "s-far", "laptop-3fa9c1", "codex role:reviewer origin:codex session:5f0c2f6e", ground.scope
        )
    with ground.store() as store:
        session = store.instances.live("s-far")
        assert session is not None
        store.locks.acquire(session, f"{ground.scope}/f")
    ground.sql("UPDATE context SET machine = 'laptop-3fa9c1', team_fence = 812 WHERE instance_id = 's-far'")
    return "s-far"


def test_listings_say_what_holds_on_all_machines(ground: Ground, far: str, ann: dict) -> None:
    ground.lock(ann, f"{ground.scope}/mine")
    ground.sql("UPDATE context SET team_fence = 813, repository = 'x:mine' WHERE instance_id = ?", ann["id"])
    ground.lock(ann, f"{ground.scope}/unconfirmed")
    theirs, mine, unconfirmed = ground.swarm("locks", "--json", "--as", ann["id"]).json
    assert (theirs["machine"], theirs["team_fence"]) == ("laptop-3fa9c1", 812)
    assert mine["team_fence"] == 813 and "machine" not in mine and "team_fence" not in unconfirmed
    lines = ground.swarm("locks", "--as", ann["id"]).out.splitlines()
    assert ["[all machines]" in line for line in lines] == [True, True, False]


def test_nobody_here_acts_as_a_session_elsewhere(ground: Ground, far: str, monkeypatch: pytest.MonkeyPatch) -> None:
    done = ground.swarm("unlock", "f", "--as", far)
    assert done.code == 1 and "works on another machine" in done.err and holders(ground) == [far]
    monkeypatch.setenv("SWARM_MCP_INSTANCE_ID", far)
    assert "works on another machine" in ground.swarm("unlock", "f").err
    monkeypatch.delenv("SWARM_MCP_INSTANCE_ID")
    assert "no session is registered" in ground.swarm("whoami").err, "it is not taken for the only one here"


def test_stolen_locks_are_confirmed_too(ground: Ground, agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    ann, bob = ground.session("ann"), ground.session("bob")
    ground.lock(bob, f"{ground.scope}/f")
    monkeypatch.setenv("SWARM_MCP_ALLOW_SPAWN", "1")
    words = ["steal", "f", "--force", "--reason", "today", "--as", ann["id"], "--json"]
    assert ground.swarm(*words).json["team"] == {"fence": 800, "settled": True}
    agent.answer = {"answer": "held"}
    done = ground.swarm("steal", "f", "--force", "--reason", "today", "--as", bob["id"])
    assert done.code == 1 and "another machine was faster" in done.err
