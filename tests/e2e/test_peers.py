"""Sessions side by side in both clients: locked files, work that is handed over, and edits without locks."""

import json

import pytest
from support.requirement import requirement

from swarm_mcp.play.models import Step, play

from .busy_agents import Outcome, work_together
from .checks import assert_denied, assert_text
from .client import Client
from .clients import CLIENTS

# Tests that do not depend on the way of installing run in one of them; a few in both, as a sample.
pytestmark = pytest.mark.ways("install")


PAIRS = [(holder, writer) for holder in CLIENTS for writer in CLIENTS if holder != writer]


@pytest.mark.promise("locks hold between clients", only=("claude-code-codex",))
@pytest.mark.parametrize(("holder", "writer"), PAIRS, ids=lambda name: name)
@requirement("P-23")
def test_each_other_s_locks(both: dict[str, Client], holder: str, writer: str) -> None:
    coordinator = both[holder].ground.coordinator
    lock = both[holder].swarm_tools(("lock_file", {"file": "notes.md", "reason": "from the other kind"}))
    with both[holder].held("holding", *lock, at=len(lock)) as live:
        assert len(coordinator.locks()) == 1, both[holder].results("holding")
        both[writer].run("writing", both[writer].replace("notes.md", "line one", "line two"))
        assert_denied(both[writer], "writing", "notes.md", holder=f"held by {holder} ", note="from the other kind")
        both[writer].run("elsewhere", both[writer].create("free.md", "free\n"))
        assert_text(both[writer], "free.md", "free\n")
        live.go_on()
    both[writer].run("afterwards", both[writer].replace("notes.md", "line one", "line two"))
    assert_text(both[writer], "notes.md", "line two\n")


@pytest.mark.parametrize(("holder", "writer"), PAIRS, ids=lambda name: name)
def test_a_killed_peer_of_the_other_kind(both: dict[str, Client], holder: str, writer: str) -> None:
    coordinator = both[holder].ground.coordinator
    with both[holder].held("holding", both[holder].create("new.md", "new\n")) as live:
        (own,) = coordinator.sessions()
        coordinator.lock(own["id"], "notes.md", "never to be released")
        live.kill()
    both[writer].run("writing", both[writer].replace("notes.md", "line one", "line two"))
    assert_text(both[writer], "notes.md", "line two\n")


@pytest.mark.promise("mail reaches models", only=("claude-code",))
def test_a_model_hears_of_its_mail_at_its_next_prompt_and_at_its_next_call(client: Client) -> None:
    coordinator = client.ground.coordinator
    peer = coordinator.register_peer("night-shift")

    def send(words: str) -> None:
        coordinator.text("send", "--to", own["id"], words, "--as", peer)

    with client.interactive() as terminal:
        client.turn(terminal, "one", client.shell("ls"))
        (own,) = (row for row in coordinator.sessions() if row["id"] != peer)
        send("before a prompt")
        client.turn(terminal, "two", client.shell("ls"), client.shell("ls -a"))
        assert _times_told(client, "two", "before a prompt") == 1, client.said("two")
        assert "before a prompt" in client.context("two")
        client.models.script("three", client.shell("ls"), client.shell("ls -a"))
        gate = client.hold("three", 0)
        terminal.enter(play("three"))
        assert gate.wait_reached()
        send("before a call")
        gate.open()
        terminal.wait_for("The script three is over", 60)
        assert "before a call" not in client.context("three")
        assert _times_told(client, "three", "before a call") == 1, client.said("three")
        unread = [row["content"] for row in coordinator.json("messages", "--to", own["id"]) if not row["read"]]
        assert unread == ["before a prompt", "before a call"], "a line is no delivery"


def _times_told(client: Client, script: str, words: str) -> int:
    """Return the number of times that the newest request of `script` has a message with these words."""
    body = json.dumps(client.exchanges(script)[-1].body)
    return body.count(f"It says: {json.dumps(json.dumps(words))[1:-1]}")


HANDOVER_PAIRS = [(lead, worker) for lead in CLIENTS for worker in CLIENTS if lead != worker]


def tasks(client: Client) -> dict[str, dict]:
    """The scope's tasks by title."""
    return {row["title"]: row for row in client.ground.coordinator.json("tasks")}


def name_tasks(client: Client, *titles: str) -> None:
    """Let «title» in a script stand for the id of the task with that title."""
    client.models.words.update({title: lambda title=title: tasks(client)[title]["id"] for title in titles})


@pytest.mark.promise("no task is lost", only=("codex-claude-code",))
@pytest.mark.parametrize(("lead", "worker"), HANDOVER_PAIRS, ids=lambda name: name)
def test_a_task_from_request_to_review(both: dict[str, Client], lead: str, worker: str) -> None:
    first, second = both[lead], both[worker]
    name_tasks(first, "build", "look", "mend")
    ask = first.swarm_tools(
        ("request_task", {"type": "implement", "title": "build", "files": ["notes.md"]}),
        ("wait_for_activity", {"timeout_seconds": 20}),
        ("request_task", {"type": "review", "title": "look", "review_of_task_id": "«build»"}),
        ("wait_for_activity", {"timeout_seconds": 20}),
        ("swarm_status", {}),
    )
    before_wait, before_last_wait = (at for at, call in enumerate(ask) if call["name"].endswith("wait_for_activity"))
    work = second.swarm_tools(("claim_next_task", {"types": ["implement"]}), ("lock_file", {"file": "notes.md"}))
    done = ("complete_task", {"task_id": "«build»", "summary": "line two now", "files_changed": ["notes.md"]})
    review = second.swarm_tools(
        ("claim_next_task", {"types": ["review"]}),
        ("complete_task", {"task_id": "«look»", "summary": "reads well", "followups": ["none"]}),
    )
    with first.held("leading", *ask, at=before_wait) as live:
        assert tasks(first)["build"]["status"] == "open"
        later = first.hold("leading", before_last_wait)
        second.run("working", *work, second.replace("notes.md", "line one", "line two"), second.swarm_tools(done)[-1])
        assert_text(second, "notes.md", "line two\n")
        assert tasks(first)["build"]["status"] == "done", second.results("working")
        assert first.ground.coordinator.locks() == [], "the task's end released the lock"
        live.gate.open()
        assert later.wait_reached()
        second.run("reviewing", *review)
        later.open()
        assert live.process.wait(60) == 0
    ended = tasks(first)
    assert {title: row["status"] for title, row in ended.items()} == {"build": "done", "look": "done"}
    told = "\n".join(first.results("leading"))
    assert "line two now" in told and "reads well" in told, told


@pytest.mark.parametrize(("lead", "worker"), HANDOVER_PAIRS, ids=lambda name: name)
def test_a_third_takes_over_what_a_killed_one_had(both: dict[str, Client], lead: str, worker: str) -> None:
    first, second = both[lead], both[worker]
    name_tasks(first, "build")
    first.run("asking", *first.swarm_tools(("request_task", {"type": "implement", "title": "build"})))
    claim = second.swarm_tools(("claim_next_task", {}), ("lock_file", {"file": "notes.md", "reason": "mine"}))
    with second.held("claiming", *claim, Step(text="never said"), at=len(claim)) as live:
        assert tasks(first)["build"]["status"] == "in_progress"
        assert len(first.ground.coordinator.locks()) == 1
        live.kill()
    take_over = first.swarm_tools(("claim_next_task", {}), ("lock_file", {"file": "notes.md"}))
    end = first.swarm_tools(("complete_task", {"task_id": "«build»", "summary": "after all"}))[-1]
    first.run("takeover", *take_over, first.replace("notes.md", "line one", "line two"), end)
    assert_text(first, "notes.md", "line two\n")
    assert tasks(first)["build"]["status"] == "done", first.results("takeover")


EDITS = 40


def work(both: dict[str, Client], level: str, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    """Return the result of two agents' work at this level."""
    ground = both["codex"].ground
    monkeypatch.setitem(ground.env, "SWARM_AUTO", level)
    came = work_together(ground, 2, EDITS)
    assert (came.edits, came.given_up) == (EDITS, 0), came
    return came


def test_at_keep_only_who_was_told_takes_an_edit_away(both: dict[str, Client], monkeypatch: pytest.MonkeyPatch) -> None:
    came = work(both, "keep", monkeypatch)
    assert [loss for loss in came.losses if not loss.told] == []


def test_at_turn_nothing_is_lost(both: dict[str, Client], monkeypatch: pytest.MonkeyPatch) -> None:
    assert work(both, "turn", monkeypatch).losses == []
