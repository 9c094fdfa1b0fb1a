"""Tasks, messages and requests in a joined scope, by the team agent's answers; and sessions elsewhere."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.fixtures import Ground
from support.scripted_herdr import Herdr

from swarm_hook_core.state import state_dir
from swarm_mcp import panes
from swarm_mcp.agents.dispatch.dispatch import carry_out
from swarm_mcp.agents.dispatch.request import DispatchRequest
from swarm_mcp.domain import Session
from swarm_mcp.errors import NotConfirmed, Refused
from swarm_mcp.locking.acquisition import claim, claim_next, reserve
from swarm_mcp.store import Store, user_interface
from swarm_mcp.team import TeamUnreachable, talk
from swarm_mcp.team.parts import TeamRows

pytestmark = pytest.mark.thorough

LEAD = "identity:p mode:gateway role:planner"


class Agent:
    """A played team agent: its requests, and its answers. `first`: its action before the first answer."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answer: dict = {"answer": "granted"}
        self.first: Callable[[], object] = lambda: None
        self.pokes = 0

    def confirm_documents(self, documents: list[tuple[str, str]], seconds: float = 2.0) -> dict:
        self.asked += [key for kind, key in documents if kind == "task"]
        act, self.first = self.first, lambda: None
        act()
        answer, self.answer = self.answer, {"answer": "granted"}
        return answer

    def poke(self) -> None:
        self.pokes += 1


@pytest.fixture
def agent(ground: Ground, answering) -> Agent:
    """The checkout has joined."""
    os.makedirs(Path(state_dir(), "team", "clones"))
    with ground.store() as store, store.database.writing():
        TeamRows(store).set_trees({ground.scope: "example.org/app"})
    played = Agent()
    answering(played)
    return played


@pytest.fixture
def far(ground: Ground, agent: Agent) -> str:
    """Add a session on another machine that holds `f`; return its id."""
    come(ground, "s-far", "identity:p codex role:reviewer origin:codex session:5f0c2f6e")
    with ground.store() as store:
        session = store.instances.live("s-far")
        assert session is not None
        store.locks.acquire(session, f"{ground.scope}/f")
    ground.sql("UPDATE context SET machine = 'laptop-3fa9c1', team_fence = 812 WHERE instance_id = 's-far'")
    return "s-far"


def come(ground: Ground, session: str, label: str) -> None:
    with ground.store() as store, TeamRows(store).writing():
        TeamRows(store).add_session(session, "laptop-3fa9c1", label, ground.scope)


def ask(ground: Ground, who: dict, **given) -> str:
    with ground.store() as store:
        return store.tasks.request(Session(who), {"type": "fix", "title": "Mend it", **given})["task"]["id"]


def task(ground: Ground, task_id: str) -> tuple[str, str | None]:
    (row,) = ground.sql("SELECT status, assignee FROM tasks WHERE id = ?", task_id)
    return row["status"], row["assignee"]


def posted(ground: Ground) -> list[tuple[str, str | None]]:
    """Text and file of messages as other machines are told of them."""
    rows = ground.sql("SELECT body FROM swarm_team_documents WHERE kind = 'message' ORDER BY rowid")
    return [(body["content"], body.get("file")) for row in rows for body in [json.loads(row["body"])]]


def test_a_claim_is_confirmed(ground: Ground, agent: Agent, store: Store, ann: dict) -> None:
    one, other = ask(ground, ann), ask(ground, ann)
    assert claim(store, Session(ann), one)["prior_status"] == "open"
    assert claim_next(store, Session(ann))["task"].id == other
    assert agent.asked == [one, other] and task(ground, one) == task(ground, other) == ("in_progress", ann["id"])


def test_nobody_is_asked_where_no_clone_has_joined_nor_of_another_scope(ground: Ground, agent: Agent) -> None:
    ann = ground.session("ann")
    with ground.store() as store, store.database.writing():
        TeamRows(store).set_trees({ground.scope + "-beside": "example.org/app"})
    one = ask(ground, ann)
    with ground.store() as store:
        claim(store, Session(ann), one)
    assert agent.asked == []


def test_who_was_slower_is_told_who_has_it(ground: Ground, agent: Agent, far: str) -> None:
    ann = ground.session("ann", "identity:p")
    one = ask(ground, ann)
    agent.answer = {"answer": "held"}
    agent.first = lambda: ground.sql("UPDATE tasks SET status = 'in_progress', assignee = 's-far'")  # it has come over
    done = ground.swarm("claim", one, "--as", ann["id"])
    assert done.code == 1 and "already in_progress: codex 5f0c2f6e on laptop-3fa9c1 has it" in done.err
    assert agent.asked == [one] and task(ground, one) == ("in_progress", far)


def test_what_changed_elsewhere_and_is_free_all_the_same_is_claimed(ground: Ground, agent: Agent, store: Store) -> None:
    ann = ground.session("ann")
    one = ask(ground, ann)
    agent.answer = {"answer": "held"}
    agent.first = lambda: ground.sql("UPDATE tasks SET status = 'open', assignee = NULL, priority = 7")
    assert claim(store, Session(ann), one)["task"].priority == 7
    assert agent.asked == [one, one]


def test_the_next_task_is_another_where_a_machine_was_faster(ground: Ground, agent: Agent, far: str) -> None:
    ann = ground.session("ann")
    one, other = ask(ground, ann, priority=5), ask(ground, ann)
    agent.answer = {"answer": "held"}
    agent.first = lambda: ground.sql("UPDATE tasks SET assignee = 's-far' WHERE id = ?", one)
    with ground.store() as store:
        assert claim_next(store, Session(ann))["task"].id == other
    assert agent.asked == [one, other] and task(ground, one)[1] == far


@pytest.mark.parametrize("assigned", [False, True])
def test_without_the_server_the_task_is_as_it_was(ground: Ground, agent: Agent, assigned: bool, ann: dict) -> None:
    one = ask(ground, ann, **({"assignee": ann["id"]} if assigned else {}))
    before = task(ground, one)
    agent.answer = {"answer": "unreachable", "error": "no route"}
    done = ground.swarm("claim", one, "--as", ann["id"], "--json")
    assert done.code == 1 and "nobody can know whether another machine has claimed it (no route)" in done.json["error"]
    assert task(ground, one) == before == (("claimed", ann["id"]) if assigned else ("open", None))
    assert ground.swarm("claim", one, "--as", ann["id"]).code == 0


def test_only_what_is_still_ours_is_taken_back(ground: Ground, agent: Agent, ann: dict) -> None:
    one = ask(ground, ann)
    agent.answer = {"answer": "unreachable"}
    agent.first = lambda: ground.sql("UPDATE tasks SET status = 'done'")
    with ground.store() as store, pytest.raises(NotConfirmed):
        claim(store, Session(ann), one)
    assert task(ground, one)[0] == "done"


def test_a_task_is_kept_for_a_worker_only_where_that_is_confirmed(ground: Ground, agent: Agent, store: Store) -> None:
    ann, bob = ground.session("ann"), ground.session("bob")
    one = ask(ground, ann)
    agent.answer = {"answer": "unreachable"}
    with pytest.raises(Refused):
        reserve(store, one, Session(bob))
    assert task(ground, one) == ("open", None)
    assert reserve(store, one, Session(bob)).assignee == bob["id"]


def test_a_session_elsewhere_is_written_to_like_one_here(ground: Ground, agent: Agent, far: str) -> None:
    ann = ground.session("ann", "identity:p")
    assert ground.swarm("send", "hello", "--to", "5f0c2f6e", "--as", ann["id"]).code == 0
    assert ground.swarm("broadcast", "frozen", "--as", ann["id"], "--json").json["count"] == 1
    done = ground.swarm("prompt-peer", "--to", far, "--message", "look", "--as", ann["id"], "--json").json
    assert "which wakes it where it can" in done["nudge_skipped"] and not done["nudged"]
    assert ground.mail(far) == ["hello", "frozen", "look"] and agent.pokes >= 3


def test_another_identity_elsewhere_hears_nothing(ground: Ground, agent: Agent, far: str) -> None:
    eve = ground.session("eve", "identity:q")
    assert "another identity" in ground.swarm("send", "hello", "--to", far, "--as", eve["id"]).err
    assert ground.swarm("broadcast", "frozen", "--as", eve["id"], "--json").json["count"] == 0
    assert ground.swarm("request-lock", "f", "--as", eve["id"]).code == 1
    assert ground.swarm("request-task", "review", "look", "--assignee", far, "--as", eve["id"]).code == 1
    assert ground.mail(far) == []


def test_a_holder_elsewhere_is_asked_in_words_that_mean_the_same_there(ground: Ground, far: str) -> None:
    ann = ground.session("ann", "identity:p")
    assert ground.swarm("request-lock", "f", "--reason", "one index", "--as", ann["id"]).code == 0
    ((asked, file),) = posted(ground)
    assert "asks for your lock on f:" in asked and "`swarm-mcp transfer f --to" in asked and "one index" in asked
    assert ground.scope not in asked and file == "f"


def test_what_is_asked_for_again_before_it_was_read_is_said_once(machines) -> None:
    here, mine, there, theirs = both(machines)
    there.take(theirs, "a.py")
    here.follow()
    for _ in range(2):
        here.store.transfers.request(mine, "a.py")
        here.follow()
        there.follow()
    (asked,) = there.store.messages.take(theirs)
    assert "asks for your lock on a.py." in asked.content
    there.store.messages.acknowledge([asked.id])
    here.store.transfers.request(mine, "a.py")
    here.follow()
    there.follow()
    assert len(there.mail(theirs)) == 1


def test_what_was_written_here_all_the_same_is_told_there_without_commands_for_here(ground: Ground, far: str) -> None:
    ann = ground.session("ann", "identity:p")
    change = {"file": f"{ground.scope}/f", "holder_id": far, "kind": "changed", "kept": "/kept/7", "at": time.time()}
    with ground.store() as store:
        assert store.breaches.report(Session(ann), "Bash", "make", [change])
    ((said, _),) = posted(ground)
    assert said.startswith("[auto] f, which you hold,") and "in a clone on another machine" in said
    assert "restore" not in said and "/kept" not in said


def test_a_task_is_handed_to_a_session_elsewhere(ground: Ground, agent: Agent, far: str) -> None:
    ann = ground.session("ann", "identity:p")
    done = ground.swarm("request-task", "review", "look", "--assignee", far, "--as", ann["id"], "--json").json
    assert task(ground, done["id"]) == ("claimed", far) and "look" in ground.mail(far)[0]
    assert ground.swarm("claim", done["id"], "--as", ann["id"]).err.rstrip().endswith("on laptop-3fa9c1 has it")


def dispatch(ground: Ground, lead: dict, spawn: bool = False, **given) -> dict:
    with ground.store() as store:
        return carry_out(store, Session(lead), DispatchRequest("Read it", spawn=spawn, **given))


def test_a_worker_elsewhere_gets_what_is_dispatched(ground: Ground, agent: Agent, far: str) -> None:
    lead = ground.session("lead", LEAD)
    answer = dispatch(ground, lead, role="reviewer", message="the importer")
    assert (answer["status"], answer["recipient"]) == ("dispatched", far)
    assert task(ground, answer["task_id"]) == ("claimed", far)
    assert ground.mail(far) == [f"[task:{answer['task_id']}] the importer"]


def test_workers_here_come_first_but_for_the_role(ground: Ground, agent: Agent, far: str) -> None:
    lead = ground.session("lead", LEAD)
    ground.session("all", "identity:p role:generalist")
    assert dispatch(ground, lead, role="reviewer")["recipient"] == far
    near = ground.session("near", "identity:p role:reviewer")
    assert dispatch(ground, lead, role="reviewer", idempotency_key="2")["recipient"] == near["id"]


@pytest.mark.parametrize(
    "label",
    ["codex origin:codex", "role:implementer detached origin:terminal", "role:implementer origin:terminal",
     "role:implementer run:12ab34cd", "identity:q role:implementer"],
)  # fmt: skip
def test_who_elsewhere_is_no_worker(ground: Ground, agent: Agent, label: str) -> None:
    come(ground, "s-other", label if "identity" in label else f"identity:p {label}")
    assert dispatch(ground, ground.session("lead", LEAD))["status"] == "no_worker"


def test_equal_dispatches_are_one_task_on_all_machines(ground: Ground, agent: Agent) -> None:
    lead = Session(ground.session("lead", LEAD))
    request = DispatchRequest("Read it")
    key = request.key(lead, "example.org/app")
    assert key == request.key(lead.replace(scope="/elsewhere"), "example.org/app") != request.key(lead)
    answer = dispatch(ground, lead)
    assert ground.sql("SELECT idempotency_key FROM tasks WHERE id = ?", answer["task_id"])[0] == {
        "idempotency_key": key
    }


def test_an_open_task_goes_to_no_worker_while_the_server_is_away(ground: Ground, agent: Agent) -> None:
    lead = ground.session("lead", LEAD)
    first = dispatch(ground, lead)
    worker = ground.session("worker", "identity:p role:implementer")
    agent.answer = {"answer": "unreachable"}
    answer = dispatch(ground, lead, spawn=True)
    assert answer["status"] == "no_worker" and "nobody can know" in answer["warnings"][0]
    assert task(ground, first["task_id"]) == ("open", None)
    assert dispatch(ground, lead)["recipient"] == worker["id"]


@pytest.mark.parametrize("state", ["idle", "working", "read already"])
def test_a_session_is_woken_by_its_own_machine(machines, herdr: Herdr, monkeypatch, state: str) -> None:
    here, mine, there, theirs = both(machines)
    herdr.pane("w1:p1", status="working" if state == "working" else "idle")
    with there.store.database.writing():
        user_interface.publish(there.store.database, theirs, {"pane_id": "w1:p1"})
    answer = panes.prompt(here.store, mine, theirs.id, "read the importer", task_id="t-1")
    assert not answer["nudged"] and "which wakes it where it can" in answer["nudge_skipped"]
    here.follow()
    there.follow()
    if state == "read already":
        assert there.mail(theirs) == ["[task:t-1] read the importer"]
    (wake,) = there.replica.documents.wakes
    assert wake == (theirs.id, mine.id, "t-1", False)
    monkeypatch.setattr(talk, "Store", lambda **_: there.ground.store())
    talk._wake([wake])
    typed = [words for words in herdr.calls() if words[:2] == ["pane", "send-text"]]
    assert len(typed) == (state == "idle") and all("about task t-1. Call poll_messages" in str(one) for one in typed)
    there.follow()
    assert there.store.messages.unread_count(theirs) == (state != "read already"), "to be woken is no mail"


def test_what_ended_while_no_agent_ran_is_known_elsewhere_as_soon_as_one_does(machines) -> None:
    here, mine, there, theirs = both(machines)
    there.take(theirs, "a.py")
    here.follow()
    asked = there.store.tasks.request(theirs, {"type": "fix", "title": "Mend it"})["task"]["id"]
    there.store.tasks.claim(theirs, asked)
    there.follow()
    here.follow()
    assert task(here.ground, asked) == ("in_progress", theirs.id)
    there.store.instances.remove(theirs.id)
    there.begin()  # another agent that never knew that session
    there.follow()
    here.follow()
    assert here.store.instances.live(theirs.id) is None and here.held() == []
    assert task(here.ground, asked) == ("open", None)


def both(machines) -> tuple:
    """Two machines with a session each that know each other."""
    here, there = machines
    mine, theirs = here.session("mine"), there.session("theirs")
    for one in (here, there, here):
        one.follow()
    return here, mine, there, theirs


def test_a_lock_is_handed_to_a_session_on_another_machine(machines) -> None:
    here, mine, there, theirs = both(machines)
    here.take(mine, "a.py", note="renumbering")
    fence = here.row("a.py")["team_fence"]
    there.follow()
    here.store.transfers.transfer(mine, "a.py", theirs.id, note="your turn")
    assert here.row("a.py")["instance_id"] == theirs.id, "at once it is this session's no more"
    here.follow()
    here.follow()
    there.follow()
    assert here.held() == [("a.py", there.name)] and there.held() == [("a.py", "here")]
    row = there.row("a.py")
    assert (row["instance_id"], row["content"]) == (theirs.id, "renumbering") and row["team_fence"] > fence
    assert any("You have been handed the lock on" in text for text in there.mail(theirs))
    with pytest.raises(Refused, match="holds no lock"):
        here.store.transfers.transfer(mine, "a.py", theirs.id)


def test_a_lease_goes_along(machines) -> None:
    here, mine, there, theirs = both(machines)
    here.take(mine, "a.py", ttl=300)
    here.store.transfers.transfer(mine, "a.py", theirs.id)
    here.follow()
    there.follow()
    row = there.row("a.py")
    assert row["ttl"] == 300 and row["renewed"] is not None and row["wall_until"] is not None
    assert len(TeamRows(there.store).live(TeamRows(there.store).of_ids([row["id"]]))) == 1


def test_what_the_team_has_not_granted_is_not_handed_to_another_machine(machines) -> None:
    here, mine, _, theirs = both(machines)
    here.lock(mine, "a.py")
    with pytest.raises(Refused, match="the team has not granted"):
        here.store.transfers.transfer(mine, "a.py", theirs.id)
    assert here.row("a.py")["instance_id"] == mine.id


def test_what_was_handed_over_without_the_server_is_so_once_it_is_back(machines) -> None:
    here, mine, there, theirs = both(machines)
    here.take(mine, "a.py")
    there.follow()
    here.server.cut = True
    here.store.transfers.transfer(mine, "a.py", theirs.id)
    with pytest.raises(TeamUnreachable):
        here.follow()
    here.server.cut = False
    here.follow()
    there.follow()
    assert there.held() == [("a.py", "here")]


def test_a_lock_for_a_session_that_has_gone_meanwhile_is_free(machines) -> None:
    here, mine, there, theirs = both(machines)
    here.take(mine, "a.py")
    there.follow()
    here.store.transfers.transfer(mine, "a.py", theirs.id)
    here.server.before["transfer"] = lambda: (there.store.instances.remove(theirs.id), there.follow())
    for one in (here, here, there):
        one.follow()
    assert here.held() == there.held() == [] and here.there() == []


def test_a_lock_that_was_being_handed_over_when_all_became_void_is_free(machines, team) -> None:
    here, mine, there, theirs = both(machines)
    here.take(mine, "a.py")
    there.follow()
    here.store.transfers.transfer(mine, "a.py", theirs.id)
    here.replica.void_grants()
    for one in (here, here, there):
        one.follow()
    assert here.held() == there.held() == here.there() == []
