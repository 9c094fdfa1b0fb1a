"""Runs of the real Codex through the runner: what is started, what it reports, what holds it, what it leaves."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from swarm_mcp.harness import registry
from swarm_mcp.harness.codex import hooks as codex_hooks
from swarm_mcp.harness.membership import Membership
from swarm_mcp.harness.outcome import RunResult
from swarm_mcp.harness.plugin import plugin_folder
from swarm_mcp.harness.query import HarnessQuery, McpServer
from swarm_mcp.harness.run import Run

from .checks import assert_untouched
from .clients import Codex
from .ground import Ground, wait_for
from .models import Step, play

SECRET = f"battery-{uuid.uuid4()}"
SECONDS = 60.0
codex = registry.get("codex")


@pytest.fixture(scope="module")
def stage() -> Iterator[Codex]:
    ground = Ground("harness-codex")
    agent = Codex(ground)
    agent.prepare()
    # A hook that the user has never looked at: our runs must not be what makes it run.
    with open(ground.home / ".codex/config.toml", "a") as settings:
        settings.write(f"\n[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\ntype = 'command'\n"
                       f"command = 'touch {ground.root}/untrusted-ran'\n")  # fmt: skip
    yield agent
    ground.close()


@pytest.fixture
def agent(stage: Codex, monkeypatch: pytest.MonkeyPatch) -> Iterator[Codex]:
    """Codex on a fresh checkout, in this process's environment."""
    stage.ground.renew()
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name, value in stage.ground.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SWARM_STATE_DIR", str(stage.ground.root / "state"))
    yield stage
    stage.ground.end_processes()
    assert not (stage.ground.root / "untrusted-ran").exists()


class Watched:
    """A run, and all that it told."""

    def __init__(self, agent: Codex, prompt: str, previous: dict | None = None, **wanted: Any) -> None:
        cwd = str(wanted.pop("cwd", agent.ground.checkout))
        self.membership = Membership({"scope": str(agent.ground.checkout), "harness": "codex", "cwd": cwd},
                                     label="identity:personal worker")  # fmt: skip
        known = {"model": agent.plain_model, "scope": str(agent.ground.checkout)}
        query = HarnessQuery(prompt, cwd, **{**known, **wanted})
        self.run = Run(codex, query, membership=self.membership, previous=previous)
        self.events: list[Any] = []
        self.run.on_event(self.events.append).start()

    def result(self, well: bool = True) -> RunResult:
        found = self.run.wait(SECONDS)
        assert found, f"no end within {SECONDS} s; so far: {self.events[-5:]}"
        told = [(event.kind, event.data) for event in self.events[-8:]]
        assert found.is_error is not well, f"{found.error_category}: {found.error_message}; {found}; {told}"
        return found

    def named(self, kind: str, name: str = "") -> list[dict]:
        return [e.data for e in self.events if e.kind == kind and (not name or e.data.get("name") == name)]


def ran(agent: Codex, script: str, *steps: Any, **wanted: Any) -> tuple[Watched, RunResult]:
    agent.models.script(script, *steps)
    watched = Watched(agent, play(script), **wanted)
    return watched, watched.result()


def command_lines() -> str:
    """The argv of every process of this machine."""
    listing = subprocess.run(["ps", "-axww", "-o", "command="], capture_output=True, check=True)
    return listing.stdout.decode(errors="replace")


def test_a_run_from_its_start_to_its_end(agent: Codex) -> None:
    """Patch, swarm's server, a Python function of ours; cost, record, skills; nothing secret where others look."""

    def double(number: int) -> int:
        """Twice the number."""
        return 2 * number

    calls = [*agent.swarm_tools(("whoami", {})),
             {"name": "double", "namespace": "mcp__client_tools", "arguments": {"number": 21}},
             agent.create("new.md", "new\n"),
             agent.shell("echo [$(env | grep -c battery)]; sleep 0.2")]  # fmt: skip
    agent.models.script("whole", *calls)
    gate = agent.hold("whole", 1)
    extra = {"aside": McpServer("sleep", ("30",), {"ASIDE_TOKEN": SECRET})}
    watched = Watched(agent, f"{play('whole')} {SECRET}", client_tools=(double,), mcp_servers=extra,
                      append_system_prompt="Mark my words", env={"X_TOKEN": SECRET})  # fmt: skip
    assert gate.wait_reached()
    lines = command_lines().splitlines()
    argv = next(line for line in lines if "mcp_servers=" in line and str(agent.ground.checkout) in line)
    assert "--dangerously-" not in argv
    assert [line for line in lines if SECRET in line] == []
    gate.open()
    result = watched.result()
    assert (result.output, result.exit_code) == ("The script whole is over.", 0)
    ended = {data["tool_name"]: data for data in watched.named("tool_end")}
    assert watched.membership.instance_id in ended["mcp__swarm__whoami"]["result"]
    assert ended["mcp__client_tools__double"]["result"].strip() == "42"
    assert not ended["apply_patch"]["is_error"]
    assert "[1]" in agent.last_result("whole")  # X_TOKEN was given to it, ASIDE_TOKEN to a server
    # Six answers of 50 and 5 tokens, at $5 and $30 for a million.
    assert (result.cost.input_tokens, result.cost.output_tokens, result.model) == (300, 30, "gpt-5.5")
    assert result.cost.total_cost_usd == pytest.approx((300 * 5 + 30 * 30) / 1e6)
    (usage,) = watched.named("context_usage")
    assert usage["context_used_tokens"] == 55 and usage["context_total_tokens"] > 100_000
    assert codex.can_resume(result.session_id or "", str(agent.ground.checkout))
    context = agent.context("whole")
    assert "Mark my words" in context and "- swarm-mcp: " in context
    record = Path(result.record).read_text()
    assert SECRET not in record and "apply_patch" in record
    left = sorted(path.name for path in agent.ground.checkout.iterdir())
    assert left == [".git", "new.md", "notes.md", "other.md", "sub"]
    assert agent.ground.coordinator.sessions() == []


def test_a_lock_holds_and_the_run_goes_on(agent: Codex) -> None:
    agent.ground.coordinator.peer_lock("notes.md", note="mine until noon")
    heredoc = "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: notes.md\n@@\n-line one\n+x\n*** End Patch\nEOF\n"
    watched, result = ran(agent, "denied", agent.replace("notes.md", "line one", "line two"), agent.shell(heredoc),
                          agent.create("free.md", "free\n"), mode="yolo")  # fmt: skip
    denied = [data["data"]["message"] for data in watched.named("custom", "lock_denied")]
    assert len(denied) == 2 and all("mine until noon" in words for words in denied)
    assert_untouched(agent, "notes.md")
    assert (agent.ground.checkout / "free.md").read_text() == "free\n"


def test_sessions_are_continued_or_it_is_said_why_not(agent: Codex, tmp_path: Path) -> None:
    _, first = ran(agent, "one", agent.create("one.md", "1\n"))
    watched, again = ran(agent, "two", previous=first.session_params)
    assert (again.session_id, again.clear_session, again.attempts) == (first.session_id, False, 1)
    # Codex counts the whole session; the run's own part is what came after.
    assert (again.session_cost.input_tokens, again.cost.input_tokens) == (150, 50)
    assert len(agent.dialect.results(agent.exchanges("two")[-1].body)) == 1  # it remembers the first
    watched, copy = ran(agent, "copy", previous=again.session_params, fork_session=True)
    assert copy.session_id != first.session_id and not copy.clear_session

    refusals = {"name": ({**(first.session_params or {}), "session_id": "not-a-session"}, {}),
                "elsewhere": (first.session_params, {"cwd": tmp_path})}  # fmt: skip
    for script, (previous, wanted) in refusals.items():
        watched, fresh = ran(agent, script, previous=previous, **wanted)
        assert fresh.session_id not in (first.session_id, (previous or {})["session_id"])
        assert fresh.clear_session is (script != "elsewhere")
        assert watched.named("error")[0]["category"] == "session_not_found"


def test_a_session_that_vanished_is_begun_anew_once(agent: Codex, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody could look beforehand: Codex is asked, says no, and is started again."""
    monkeypatch.setattr(type(codex), "can_resume", lambda *_: None)
    previous = {"harness": "codex", "session_id": "01a202bc-06da-7911-be41-5931d6aa0af3",
                "cwd": str(agent.ground.checkout), "cost": {}}  # fmt: skip
    _, result = ran(agent, "anew", previous=previous)
    assert (result.attempts, result.clear_session) == (2, True)
    assert len(agent.exchanges("anew")) == 1


def test_an_aborted_run_leaves_nothing(agent: Codex) -> None:
    nap = f"sleep {100_000 + os.getpid()}"  # nobody else's
    agent.models.script("endless", agent.shell(f"{nap} & {nap}"))
    watched = Watched(agent, play("endless"), grace_seconds=3.0)
    assert wait_for(lambda: nap in command_lines().splitlines(), 40)
    began = time.monotonic()
    watched.run.abort("enough")
    watched.run.abort("enough")
    assert watched.result(well=False).error_category == "aborted"
    assert time.monotonic() - began < 10
    assert nap not in command_lines() and agent.ground.own_processes() == []
    assert len(watched.named("result")) == 1
    assert {d["tool_call_id"] for d in watched.named("tool_start")} == {
        d["tool_call_id"] for d in watched.named("tool_end")}  # fmt: skip
    assert agent.ground.coordinator.sessions() == []


def test_reading_only_and_an_answer_by_schema(agent: Codex) -> None:
    schema = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"],
              "additionalProperties": False}  # fmt: skip
    watched, result = ran(agent, "look", agent.create("new.md", "x\n"), agent.shell("touch other.txt; sleep 0.2"),
                          mode="read-only", system_prompt="You only look.")  # fmt: skip
    assert not (agent.ground.checkout / "new.md").exists()
    assert not (agent.ground.checkout / "other.txt").exists()
    first = agent.exchanges("look")[0].body["input"][0]
    assert first["content"][0]["text"] == "You only look."
    result = Watched(agent, "Give it a title", output_schema=schema).result()  # the model server answers with one
    assert result.result_json == {"title": "As scripted"}
    (asked,) = [e.body for e in agent.models.exchanges("/responses") if agent.dialect.is_errand(e.body)]
    assert asked["text"]["format"]["schema"] == schema


@pytest.mark.thorough
def test_a_users_plugin_and_ours_are_not_both_there(agent: Codex) -> None:
    """Hooks and server of the run's own, the user's copy off for it; the newest models' code mode is denied too."""
    done = agent.ground.run(["swarm-mcp", "install", "--client", "codex"])
    assert done.returncode == 0, done.stderr
    agent.ground.coordinator.peer_lock("notes.md")
    agent.model = agent.code_model
    try:
        change = agent.replace("notes.md", "line one", "line two")
        watched, result = ran(agent, "doubled", Step(calls=(change,)), model=agent.code_model)
    finally:
        agent.model = agent.plain_model
    assert len(watched.named("custom", "lock_denied")) == 1
    assert agent.context("doubled").count("You are registered") <= 1
    assert agent.context("doubled").count(watched.membership.instance_id) >= 1
    assert_untouched(agent, "notes.md")


def test_this_codex_counts_trust_as_we_do(agent: Codex) -> None:
    program = shutil.which("codex")
    hooks = codex_hooks.plugin_hooks(plugin_folder())
    assert program and codex_hooks.hashes_from_codex(program, hooks) == codex_hooks.hashes(hooks)
    found = {check.code for check in codex.checks({"cwd": str(agent.ground.checkout)})}
    assert {"codex_hooks", "codex_provider_key"} <= found
    names = {entry["name"] for entry in codex.listed_models()}
    assert set(codex.models.values()) <= names
    assert json.dumps(codex.listed_models()[0])
