"""Work that goes from session to session: asked for in one client, done in the other, reviewed, taken over."""

import pytest

from .checks import assert_text
from .client import Client
from .clients import CLIENTS
from .models import Step

PAIRS = [(lead, worker) for lead in CLIENTS for worker in CLIENTS if lead != worker]
pytestmark = pytest.mark.ways("install")


def tasks(client: Client) -> dict[str, dict]:
    """The scope's tasks by title."""
    return {row["title"]: row for row in client.ground.coordinator.json("tasks")}


def name_tasks(client: Client, *titles: str) -> None:
    """Let «title» in a script stand for the id of the task with that title."""
    client.models.words.update({title: lambda title=title: tasks(client)[title]["id"] for title in titles})


@pytest.mark.promise("no task is lost")
@pytest.mark.parametrize(("lead", "worker"), PAIRS, ids=lambda name: name)
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


@pytest.mark.parametrize(("lead", "worker"), PAIRS, ids=lambda name: name)
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
