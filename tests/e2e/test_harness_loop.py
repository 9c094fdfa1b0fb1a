"""The harness `loop`, without any client: supervised and dispatched, with a scripted model on loopback."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.requirement import requirement

from swarm_mcp.agents.harness import registry
from swarm_mcp.agents.harness.outcome import RunResult
from swarm_mcp.agents.harness.query import Query
from swarm_mcp.agents.harness.record import events_in
from swarm_mcp.agents.harness.run import Run
from swarm_mcp.play.models import ModelServer, Step, play
from swarm_mcp.store import Store

from .ground import wait_for
from .supervised_runs import denials_shown

LOOP = registry.get("loop")
SWARM = [os.environ.get("SWARM_E2E_BIN") or os.path.join(os.path.dirname(sys.executable), "swarm-mcp")]
LIMIT = 60.0  # seconds for one run on a machine that is busy
KEPT = ("PATH", "LANG", "TERM", "TMPDIR")


@pytest.fixture
def models() -> Iterator[ModelServer]:
    server = ModelServer()
    yield server
    server.close()


@pytest.fixture
def checkout(models: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout, a home and a store of one's own; a model's endpoint is all that is set."""
    for name in list(os.environ):
        if name not in KEPT and not name.startswith("PYTEST"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SWARM_MCP_ALLOW_SPAWN", "1")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-mock")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{models.port}")
    monkeypatch.setenv("HARNESS_RETRIES", "0")
    folder = (tmp_path / "checkout").resolve()
    folder.mkdir()
    (tmp_path / "home").mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    monkeypatch.chdir(folder)
    return folder


def call(tool: str, **given: Any) -> dict[str, Any]:
    return {"name": tool, "input": given}


def swarm(*words: str) -> str:
    done = subprocess.run([*SWARM, *words], capture_output=True, text=True, timeout=LIMIT + 30)
    assert done.returncode == 0, done
    return done.stdout


def results(models: ModelServer) -> list[str]:
    return ModelServer.dialects["/messages"].results(models.exchanges("/messages")[-1].body)


def run(query: Query, previous: dict | None = None) -> tuple[RunResult, list]:
    seen: list = []
    made = Run(LOOP, query, previous=previous)
    made.on_event(seen.append)
    result = made.start().wait(LIMIT)
    assert result is not None
    return result, seen


def soon(condition: Callable[[], Any], what: str, seconds: float = 20.0) -> Any:
    found = wait_for(condition, seconds)
    assert found, f"not within {seconds} s: {what}"
    return found


def is_running(pid: int) -> bool:
    state = subprocess.run(["ps", "-o", "state=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return bool(state) and not state.startswith("Z")


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != ".git")


@pytest.mark.promise("the loop of our own")
@requirement("A-03", "A-44")
def test_run_resume_and_fork(models: ModelServer, checkout: Path) -> None:
    locking = call("mcp__swarm__lock_file", file="a.txt", reason="mine")
    writing = call("write_file", path="a.txt", content="x")
    models.script("one", Step((locking,)), Step((writing,), "Writing."), Step(text="One."))
    models.script("two", Step(text="Two."))
    query = Query(play("one"), str(checkout), append_system_prompt="EXTRA WORDS")
    first, seen = run(query)
    assert (first.is_error, first.output, first.exit_code) == (False, "One.", 0), first
    assert (checkout / "a.txt").read_text() == "x" and files(checkout) == ["a.txt"]
    kinds = [event.kind for event in seen]
    assert kinds.count("session_init") == kinds.count("result") == 1
    assert kinds.count("tool_start") == kinds.count("tool_end") == 2
    assert json.loads(results(models)[0])["ok"] is True, "the swarm's own tools are the model's"
    assert "EXTRA WORDS" in models.exchanges("/messages")[0].body["system"]
    assert first.cost.output_tokens == 15 and first.cost.total_cost_usd == pytest.approx((150 * 2 + 15 * 10) / 1e6)
    assert LOOP.can_resume(first.session_id or "", str(checkout)) is True
    assert LOOP.can_resume(first.session_id or "", str(checkout.parent)) is False
    assert LOOP.can_resume("20990101-000000-1", str(checkout)) is False
    again = query._replace(prompt=play("two"), resume_session_id=first.session_id or "")
    second, _ = run(again, first.session_params)
    assert (second.session_id, second.output, second.cost.num_turns) == (first.session_id, "Two.", 1)
    assert len(results(models)) == 2, "what came before is still there"
    third, _ = run(again._replace(fork_session=True), first.session_params)
    assert third.output == "Two." and third.session_id not in (None, first.session_id)
    gone = query._replace(prompt=play("two"), resume_session_id="20990101-000000-1")
    looking, _ = run(Query(play("two"), str(checkout), mode="read-only"))
    offered = {tool["name"] for tool in models.exchanges("/messages")[-1].body["tools"]}
    assert not looking.is_error and not offered & {"bash", "write_file", "mcp__swarm__dispatch"}
    assert {"read_file", "mcp__swarm__send_message"} <= offered
    fresh, _ = run(gone, {"harness": "loop", "session_id": "20990101-000000-1", "cwd": str(checkout)})
    assert fresh.clear_session and fresh.output == "Two." and fresh.session_id != "20990101-000000-1"


def dispatch(*more: str) -> dict:
    prompt = play("work")
    words = ("dispatch", prompt, "--harness", "loop", "--role", "implementer", "--force-spawn", "--json", *more)
    return json.loads(swarm(*words))


@requirement("A-29")
def test_a_dispatched_task_is_done_around_a_leads_lock(models: ModelServer, checkout: Path) -> None:
    lead = json.loads(swarm("register", ".", "--label", "lead mode:gateway", "--lease-seconds", "600", "--json"))["id"]
    (checkout / "held.txt").write_text("theirs")
    swarm("lock", "held.txt", "--as", lead, "--note", "in the middle of it")
    writes = [call("write_file", path=name, content="mine") for name in ("held.txt", "free.txt")]
    models.script("work", Step((*writes, call("bash", command="echo mine >> held.txt"))), Step(text="free is done"))
    answer = dispatch("--as", lead, "--completion-wait", str(int(LIMIT)))
    assert answer["completion"]["task_status"] == "done" and answer["completion"]["result"] == "free is done"
    denied, wrote, shell = results(models)
    assert denied.startswith("swarm lock blocked write_file") and "in the middle of it" in denied
    assert shell.startswith("swarm lock blocked") and wrote.startswith("wrote 4 bytes")
    assert (checkout / "held.txt").read_text() == "theirs" and files(checkout) == ["free.txt", "held.txt"]
    with Store() as store:
        (made,) = store.runs.of_task(answer["completion"]["task"]["scope"], answer["task_id"])
        shown = denials_shown(list(events_in(made["record"])), checkout)
        assert shown == [f"denied: held.txt, held by lead {lead[:8]} (in the middle of it)"] * 2
        assert made["state"] == "ended" and os.path.getsize(made["record"]) > 500
        soon(lambda: [row["id"] for row in store.instances.in_scope(made["scope"])] == [lead], "the worker has left")


@pytest.mark.parametrize("how", ["cancel", "kill"])
@requirement("C-21")
def test_no_command_outlives_its_run(models: ModelServer, checkout: Path, how: str) -> None:
    sleeping = call("bash", command="swarm-mcp lock mine.txt; sleep 300 & echo $! > pid; wait")
    models.script("work", Step((sleeping,)), Step(text="never"))
    lead = json.loads(swarm("register", ".", "--label", "lead mode:gateway", "--lease-seconds", "600", "--json"))["id"]
    task = dispatch("--as", lead)["task_id"]
    pid = int(soon(lambda: (checkout / "pid").exists() and (checkout / "pid").read_text().strip(), "the command runs"))
    with Store() as store:
        (made,) = store.runs.of_task(str(checkout), task)
        (lock,) = store.database.rows("SELECT instance_id FROM context WHERE type = 'lock'")
        assert lock["instance_id"] == made["instance_id"]
        if how == "cancel":
            swarm("cancel", task, "--as", lead)
        else:
            os.kill(made["supervisor_pid"], signal.SIGKILL)
        soon(lambda: not is_running(pid), "the command is gone", 25.0)
        soon(lambda: not is_running(made["client_pid"] or store.runs.get(made["id"])["client_pid"]), "the loop is gone")
        swarm("cleanup")
        soon(lambda: [row["id"] for row in store.instances.in_scope(str(checkout))] == [lead], "the worker has left")
        assert store.database.rows("SELECT * FROM context WHERE type = 'lock'") == []
