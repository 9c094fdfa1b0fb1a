"""Work handed to a real agent that is started for it: done, denied, cancelled, killed, and nothing let slip.

The clients here have no plugin: the children of a dispatch bring their hooks along.
"""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.command_line import option
from support.requirement import requirement

from swarm_mcp.play.models import Step, play

from .checks import assert_text, assert_untouched
from .client import Client
from .coordinator import PATIENCE
from .ground import wait_for

LEAD = "identity:personal mode:gateway lead"
SECRET = "ghp_" + "Zq7" * 12
WAIT = "60"


class Lead:
    """A gateway session that hands out work through the command."""

    def __init__(self, client: Client) -> None:
        self.client, self.coordinator = client, client.ground.coordinator
        self.id = self.coordinator.register_peer(LEAD)

    def dispatch(self, script: str, *more: str, wait: str = WAIT) -> dict[str, Any]:
        words = ["dispatch", play(script), "--as", self.id, "--harness", self.client.harness, *more]
        return dict(self.coordinator.json(*words, *option("--completion-wait", wait)))

    def task(self, task_id: str) -> dict[str, Any]:
        return next(row for row in self.coordinator.json("tasks") if row["id"] == task_id)

    def history(self, task_id: str) -> list[str]:
        """The statuses that a task has had, in order."""
        rows = self.coordinator.query("SELECT type, payload FROM events WHERE subject = ? ORDER BY id", task_id)
        moves = {"task.created": "open", "task.reserved": "claimed", "task.claimed": "in_progress"}
        found = [moves.get(kind) or json.loads(payload or "{}").get("status") for kind, payload in rows]
        return [status for status in found if status]

    def run(self) -> dict[str, Any]:
        (row,) = self.coordinator.json("runs")
        return dict(row)


@pytest.fixture
def lead(newcomer: Client) -> Lead:
    if newcomer.name == "codex":
        newcomer.ground.env["CODEX_DEFAULT_MODEL"] = newcomer.plain_model  # type: ignore[attr-defined]
    else:
        newcomer.ground.env["SWARM_HARNESS_CLAUDE_ALLOW"] = "Bash"
    return Lead(newcomer)


@pytest.mark.promise("dispatched work is done", only=("claude-code",))
@requirement("A-29", "A-60")
def test_a_task_is_done_by_a_worker_that_was_started_for_it(lead: Lead) -> None:
    client = lead.client
    client.models.script("work", client.create("new.md", "made\n"), Step(text="It is made."))
    answer = lead.dispatch("work", "--idempotency-key", "one")
    assert answer["status"] == "spawned", answer
    assert answer["completion"]["task_status"] == "done", answer
    assert "It is made." in answer["completion"]["result"]
    assert_text(client, "new.md", "made\n")
    assert lead.history(answer["task_id"])[:4] == ["open", "claimed", "in_progress", "done"]
    run = lead.run()
    assert (run["state"], run["task_id"], run["harness"]) == ("ended", answer["task_id"], client.harness)
    assert run["session_id"]
    assert run["cost_usd"] > 0 or client.name == "codex"
    first, *rest = map(json.loads, Path(run["record"]).read_text(encoding="utf-8").splitlines())
    assert first["type"] == "metadata"
    assert [event["type"] for event in rest].count("result") == 1
    shown = lead.coordinator.text("logs", answer["task_id"])
    assert "It is made." in shown
    # No process and no file is left.
    assert wait_for(lambda: client.ground.own_processes() == [], 60)
    assert [row["id"] for row in lead.coordinator.json("instances")] == [lead.id]
    assert client.ground.run(["git", "status", "--porcelain"]).stdout.split() == ["??", "new.md"]
    # The same once more is the same task.
    assert lead.dispatch("work", "--idempotency-key", "one")["status"] == "already_terminal"


def test_a_standing_worker_does_the_tasks_as_they_come_until_it_is_ended(lead: Lead) -> None:
    client, coordinator = lead.client, lead.coordinator
    client.models.script("first", client.create("first.md", "made\n"), Step(text="It is made."))
    client.models.script("second", client.create("second.md", "made too\n"), Step(text="So is this."))
    words = ["worker", "poll", "--as", lead.id, "--harness", client.harness, "--type", "implement", "--json"]
    worker = subprocess.Popen(
        [str(coordinator.executable), *words], cwd=coordinator.checkout, env=coordinator.env,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        for script, words_of_it in (("first", "It is made."), ("second", "So is this.")):
            request = ["request-task", "implement", play(script), "--as", lead.id]
            task = coordinator.json(*request)["id"]
            assert wait_for(lambda task=task: lead.task(task)["status"] == "done", PATIENCE), lead.task(task)
            assert words_of_it in coordinator.json("task", task)["task"]["result"]
        worker.terminate()
        out, _ = worker.communicate(timeout=PATIENCE)
    finally:
        worker.kill()
        worker.communicate()
    assert worker.returncode == 0 and json.loads(out) == {"counts": {"done": 2}, "stopped": None}
    assert_text(client, "first.md", "made\n")
    assert_text(client, "second.md", "made too\n")
    assert wait_for(lambda: client.ground.own_processes() == [], 60)


def test_a_worker_asks_a_person_ends_its_turn_and_goes_on_with_the_answer(lead: Lead) -> None:
    client, coordinator = lead.client, lead.coordinator
    client.models.words["task"] = lambda: coordinator.json("tasks")[0]["id"]
    if client.name != "codex":
        client._server = "mcp__swarm"  # type: ignore[attr-defined]  # a worker's server is no plugin's
    question = {"task_id": "«task»", "question": "Which database?", "wait_seconds": 0}
    client.models.script("work", *client.swarm_tools(("request_human_input", question)), Step(text="I wait."))
    task = lead.dispatch("work", wait="")["task_id"]

    def waits() -> bool:
        return lead.run()["state"] == "queued" and lead.task(task).get("question") == "Which database?"

    assert wait_for(waits, PATIENCE), (lead.task(task), lead.run())
    assert any("No answer yet" in result for result in client.results("work")), client.results("work")
    coordinator.text("task", "answer", task, "the newer one")
    assert wait_for(lambda: lead.task(task)["status"] == "done", PATIENCE), lead.task(task)
    told = [json.dumps(exchange.body) for exchange in client.models.exchanges()]
    assert any("Their answer: the newer one" in text for text in told)
    assert wait_for(lambda: client.ground.own_processes() == [], 60)
    assert "question" not in lead.task(task)


def test_a_worker_is_denied_what_the_lead_holds_and_goes_on(lead: Lead) -> None:
    client = lead.client
    lead.coordinator.lock(lead.id, "notes.md", "careful surgery")
    client.models.script(
        "work",
        client.replace("notes.md", "line one", "line two")
        if client.name == "codex"
        else client.shell("echo x > notes.md"),
        client.create("new.md", "made\n"),
    )
    answer = lead.dispatch("work")
    assert answer["completion"]["task_status"] == "done", answer
    assert_untouched(client, "notes.md")
    assert_text(client, "new.md", "made\n")
    told = client.results("work")[0]
    assert "swarm lock blocked" in told and "careful surgery" in told, told
    shown = lead.coordinator.text("logs", answer["task_id"])
    assert shown.count("denied: notes.md, held by ") == 1 and "(careful surgery)" in shown, shown
    assert "swarm lock blocked" not in shown and "changed new.md" in shown


def tails(client: Client) -> list[str]:
    """Return the processes that run ``tail``, to be ended with their starter."""
    return [line for line in client.ground.command_lines() if line.startswith("tail ")]


@requirement("A-35", "A-60")
def test_a_cancelled_task_ends_its_worker_with_all_it_started(lead: Lead) -> None:
    client = lead.client
    client.models.script("work", client.shell("tail -f /dev/null & tail -f other.md"))
    answer = lead.dispatch("work", wait="")
    assert wait_for(lambda: tails(client), 40), "the worker never ran its command"
    lead.coordinator.text("cancel", answer["task_id"], "--as", lead.id)
    assert wait_for(lambda: client.ground.own_processes() == [], 25), client.ground.own_processes()
    assert lead.task(answer["task_id"])["status"] == "cancelled"
    assert lead.run()["result"]["error_category"] == "aborted"


@pytest.mark.promise("a run leaves no process behind", only=("codex",))
def test_a_killed_supervisor_leaves_no_worker_and_no_lock(lead: Lead) -> None:
    client = lead.client
    client.models.script("work", client.shell("swarm-mcp lock notes.md --note mine; tail -f other.md"))
    answer = lead.dispatch("work", wait="")
    assert wait_for(lambda: tails(client), 40), "the worker never ran its command"
    run = lead.run()
    if client.name == "claude-code":  # Codex's sandboxed commands cannot write the store
        assert [row["instance_id"] for row in lead.coordinator.locks()] == [run["instance_id"]]
    os.kill(run["supervisor_pid"], signal.SIGKILL)
    assert wait_for(lambda: client.ground.own_processes() == [], 15), client.ground.own_processes()
    lead.coordinator.lock(lead.id, "notes.md", "free again")
    assert [row["id"] for row in lead.coordinator.json("instances")] == [lead.id]
    lead.coordinator.text("cleanup")
    assert lead.task(answer["task_id"])["status"] == "open"
    assert lead.run()["state"] == "ended"


@requirement("A-40")
def test_a_secret_gets_nowhere(lead: Lead) -> None:
    client = lead.client
    other = "sk-ant-" + "k3Y" * 12
    client.ground.env["DEPLOY_TOKEN"] = token = "plain-looking-value-0815"
    (client.ground.checkout / "config.txt").write_text(f"{SECRET}\n{token}\n")
    client.models.script(
        "work",
        client.shell("cat config.txt; echo $DEPLOY_TOKEN >&2; sleep 3"),
        Step(text=f"The token is {SECRET} and {other} and {token}."),
    )
    answer = lead.dispatch("work", "--message", f"{play('work')} with {SECRET}", wait="")
    seen = set()

    def ended() -> bool:
        seen.update(client.ground.command_lines())
        return lead.task(answer["task_id"])["status"] == "done"

    assert wait_for(ended, 60, pause=0.02)
    run = lead.run()
    told = client.results("work")[0]
    assert SECRET in told, "the worker itself works with what it reads"
    texts = [Path(run["record"]).read_text(encoding="utf-8"), lead.coordinator.text("logs", answer["task_id"])]
    texts += [json.dumps(run), *(line for line in seen if "cat config.txt" not in line)]
    state = client.ground.home / ".local/state"
    texts += [file.read_bytes().decode("utf-8", "replace") for file in state.rglob("*") if file.is_file()]
    own = "SELECT result, progress_summary FROM tasks UNION ALL SELECT content, sender FROM messages WHERE sender <> ?"
    texts += [str(row) for row in lead.coordinator.query(own, lead.id)]
    for secret in (SECRET, other, token):
        assert not [text[max(0, text.find(secret) - 200) :][:400] for text in texts if secret in text], secret[:8]
