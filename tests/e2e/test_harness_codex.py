"""Runs of the real Codex through the runner: the start, the report, the limits, the leftovers."""

import base64
import json
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.requirement import requirement

from swarm_mcp.agents.harness import codex_overrides as overrides
from swarm_mcp.agents.harness import registry
from swarm_mcp.agents.harness.environment import plugin_folder
from swarm_mcp.agents.harness.outcome import RunResult
from swarm_mcp.agents.harness.query import McpServer
from swarm_mcp.harness import PermissionAsked, PermissionRequest, TextDelta
from swarm_mcp.play.models import Gate, Responses, Step, play

from .checks import assert_untouched
from .clients import Codex
from .ground import own_ground
from .supervised_runs import DOT, Supervised, as_own_environment, assert_abort_leaves_nothing, denials_shown

SECRET = f"battery-{uuid.uuid4()}"
codex = registry.get("codex")


@pytest.fixture(scope="module")
def stage() -> Iterator[Codex]:
    with own_ground("harness-codex") as ground:
        agent = Codex(ground)
        agent.prepare()
        # A hook that the user has never looked at: our runs must not make it run.
        with open(ground.home / ".codex/config.toml", "a") as settings:
            settings.write(f"\n[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\ntype = 'command'\n"
                           f"command = 'touch {ground.root}/untrusted-ran'\n")  # fmt: skip
        yield agent


@pytest.fixture
def agent(stage: Codex, monkeypatch: pytest.MonkeyPatch) -> Iterator[Codex]:
    with as_own_environment(stage.ground, monkeypatch):
        yield stage
    assert not (stage.ground.root / "untrusted-ran").exists()


def start(agent: Codex, script: str, *steps: Any, **wanted: Any) -> Supervised:
    return Supervised(agent, script, *steps, **{"model": agent.plain_model, **wanted})


def ran(agent: Codex, script: str, *steps: Any, **wanted: Any) -> tuple[Supervised, RunResult]:
    made = start(agent, script, *steps, **wanted)
    return made, made.well()


@pytest.mark.promise("a run's events and result")
@requirement("A-44", "A-49", "D-14")
def test_a_run_from_its_start_to_its_end(agent: Codex) -> None:
    """Patch, swarm's server, a Python function of ours; cost, record, skills; nothing secret where others look."""

    def double(number: int) -> int:
        """Twice the number."""
        return 2 * number

    calls = [*agent.swarm_tools(("whoami", {})),
             {"name": "double", "namespace": "mcp__client_tools", "arguments": {"number": 21}},
             agent.create("new.md", "new\n"),
             agent.shell("echo [$(env | grep -c battery)]; sleep 0.2")]  # fmt: skip
    gate, extra = Gate(), {"aside": McpServer("sleep", ("30",), {"ASIDE_TOKEN": SECRET})}
    calls[1] = Step(calls=(calls[1],), gate=gate)
    made = start(agent, "whole", *calls, prompt=f"{play('whole')} {SECRET}", client_tools=(double,), mcp_servers=extra,
                 append_system_prompt=f"Mark my words {'so many ' * 40_000}to the end", env={"X_TOKEN": SECRET})  # fmt: skip
    assert gate.wait_reached()
    lines = agent.ground.command_lines()
    argv = next(line for line in lines if "mcp_servers=" in line and str(agent.ground.checkout) in line)
    assert "--dangerously-" not in argv
    assert [line for line in lines if SECRET in line or "Mark my" in line or "- swarm-mcp: " in line] == []
    gate.open()
    result = made.well()
    assert (result.output, result.exit_code) == ("The script whole is over.", 0)
    ended = {data["tool_name"]: data for data in made.told("tool_end")}
    assert made.place.instance_id in ended["mcp__swarm__whoami"]["result"]
    assert ended["mcp__client_tools__double"]["result"].strip() == "42"
    assert not ended["apply_patch"]["is_error"]
    assert "[1]" in agent.last_result("whole")  # X_TOKEN was given to it, ASIDE_TOKEN to a server
    # Six answers of 50 and 5 tokens, at $5 and $30 for a million.
    assert (result.cost.input_tokens, result.cost.output_tokens, result.model) == (300, 30, "gpt-5.5")
    assert result.provider == "loopback"  # as its settings name it
    assert result.cost.total_cost_usd == pytest.approx((300 * 5 + 30 * 30) / 1e6)
    (usage,) = made.told("context_usage")
    assert usage["context_used_tokens"] == 55 and usage["context_total_tokens"] > 100_000
    assert codex.can_resume(result.session_id or "", str(agent.ground.checkout))
    context = agent.context("whole")
    assert "Mark my words so many" in context and "so many to the end" in context and "- swarm-mcp: " in context
    record = Path(result.record).read_text()
    assert SECRET not in record and "apply_patch" in record
    left = sorted(path.name for path in agent.ground.checkout.iterdir())
    assert left == [".git", "new.md", "notes.md", "other.md", "sub"]
    assert agent.ground.coordinator.sessions() == []


def test_servers_that_do_not_start_are_named(agent: Codex) -> None:
    servers = {"missing": McpServer("/no/such/program"), "quits": McpServer("/bin/sh", ("-c", "exit 3"))}
    watched, _ = ran(agent, "without", agent.create("without.md", "x\n"), mcp_servers=servers)
    failed = [
        server for data in watched.told("custom") if data["name"] == "codex.mcp_failed" for server in data["data"]
    ]
    assert {server["name"] for server in failed} == {"missing", "quits"}
    assert all(server["status"] == "failed" and server["error"] for server in failed)


@pytest.mark.promise("a worker obeys locks")
def test_a_lock_holds_and_the_run_goes_on(agent: Codex) -> None:
    agent.ground.coordinator.peer_lock("notes.md", note="mine until noon")
    heredoc = "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: notes.md\n@@\n-line one\n+x\n*** End Patch\nEOF\n"
    watched, result = ran(agent, "denied", agent.replace("notes.md", "line one", "line two"), agent.shell(heredoc),
                          agent.create("free.md", "free\n"), mode="yolo")  # fmt: skip
    denied = [data["data"]["message"] for data in watched.told("lock_denied")]
    assert len(denied) == 2 and all("mine until noon" in words for words in denied)
    shown = denials_shown(watched.events, agent.ground.checkout)
    assert len(shown) == 2 and all(line.startswith("denied: notes.md, held by night-shift ") for line in shown)
    assert all(line.endswith(" (mine until noon)") for line in shown)
    assert_untouched(agent, "notes.md")
    assert (agent.ground.checkout / "free.md").read_text() == "free\n"


@requirement("C-54")
def test_sessions_are_continued_or_it_is_said_why_not(agent: Codex, tmp_path: Path) -> None:
    _, first = ran(agent, "one", agent.create("one.md", "1\n"))
    watched, again = ran(agent, "two", previous=first.session_params)
    assert (again.session_id, again.clear_session, again.attempts) == (first.session_id, False, 1)
    # Codex counts the whole session; the run's own part is the rest.
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
        assert watched.told("error")[0]["category"] == "session_not_found"


@requirement("A-34")
def test_a_session_that_vanished_is_begun_anew_once(agent: Codex, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that could not be checked beforehand: Codex is asked, says no, and is started again."""
    monkeypatch.setattr(type(codex), "can_resume", lambda *_: None)
    previous = {"harness": "codex", "session_id": "01a202bc-06da-7911-be41-5931d6aa0af3",
                "cwd": str(agent.ground.checkout), "cost": {}}  # fmt: skip
    _, result = ran(agent, "anew", previous=previous)
    assert (result.attempts, result.clear_session) == (2, True)
    assert len(agent.exchanges("anew")) == 1


@requirement("A-08")
def test_an_aborted_run_leaves_nothing(agent: Codex) -> None:
    made = start(agent, "endless", agent.shell("sleep 301 & sleep 300"), grace_seconds=3.0)
    assert_abort_leaves_nothing(made, agent.ground)
    begun, ended = ([data["tool_call_id"] for data in made.told(kind)] for kind in ("tool_start", "tool_end"))
    assert set(begun) == set(ended)


@requirement("D-18", "D-22")
def test_reading_only_and_an_answer_by_schema(agent: Codex) -> None:
    schema = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"],
              "additionalProperties": False}  # fmt: skip
    watched, result = ran(agent, "look", agent.create("new.md", "x\n"), agent.shell("touch other.txt; sleep 0.2"),
                          mode="read-only", system_prompt="You only look.")  # fmt: skip
    assert not (agent.ground.checkout / "new.md").exists()
    assert not (agent.ground.checkout / "other.txt").exists()
    first = agent.exchanges("look")[0].body["input"][0]
    assert first["content"][0]["text"] == "You only look."
    # The model server answers with one.
    result = start(agent, "titled", prompt="Give it a title", output_schema=schema).well()
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
    assert len(watched.told("lock_denied")) == 1
    assert agent.context("doubled").count("You are registered") <= 1
    assert agent.context("doubled").count(watched.place.instance_id) >= 1
    assert_untouched(agent, "notes.md")


def test_this_codex_counts_trust_as_we_do(agent: Codex) -> None:
    program = shutil.which("codex")
    hooks = overrides.with_words(overrides.plugin_hooks(plugin_folder()))
    assert program and overrides.hashes_from_codex(program, hooks) == overrides.hashes(hooks)
    found = {check.code for check in codex.checks({"cwd": str(agent.ground.checkout)})}
    assert {"codex_hooks", "codex_provider_key"} <= found
    names = {entry["name"] for entry in codex.listed_models()}
    assert set(codex.models.values()) <= names
    assert json.dumps(codex.listed_models()[0])


def test_an_approval_is_asked_and_text_comes_in_pieces(agent: Codex, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that wants out of the sandbox: it runs, or is refused; the same thread is resumed by `codex exec`."""
    monkeypatch.setattr(Responses, "in_pieces", True)
    asked: list[PermissionRequest] = []

    def decide(request: PermissionRequest) -> bool:
        asked.append(request)
        return "yes.md" in request.args["command"]

    def outside(name: str) -> dict[str, Any]:
        call = agent.shell(f"touch {agent.ground.root}/{name}; sleep 0.2")
        more = {"sandbox_permissions": "require_escalated", "justification": "it lies outside"}
        return {**call, "arguments": {**call["arguments"], **more}}

    steps = [agent.create("new.md", "new\n"), outside("yes.md"), outside("no.md")]
    made, result = ran(agent, "ask", *steps, on_permission=decide, stream_text=True)
    assert [one.tool_name for one in asked] == ["Bash", "Bash"]
    assert (agent.ground.root / "yes.md").exists() and not (agent.ground.root / "no.md").exists()
    assert (agent.ground.checkout / "new.md").read_text() == "new\n"
    pieces = [event.text for event in made.events if isinstance(event, TextDelta)]
    assert len(pieces) > 1 and "".join(pieces) == result.output == "The script ask is over."
    assert [end["is_error"] for end in made.ends("Bash")] == [False, True]
    told = [event for event in made.events if isinstance(event, PermissionAsked)]
    assert [(one.tool_name, one.reason, one.is_allowed) for one in told] == [
        ("Bash", "it lies outside", True), ("Bash", "it lies outside", False),
    ]  # fmt: skip
    ends = [index for index, event in enumerate(made.events) if event.kind == "tool_end" and event.tool_name == "Bash"]
    assert made.events.index(told[0]) < ends[0] < made.events.index(told[1]) < ends[1]
    assert result.cost.output_tokens and made.ends("apply_patch")
    _, again = ran(agent, "again", previous=result)
    assert again.session_id == result.session_id
    _, third = ran(agent, "third", previous=again, stream_text=True)
    assert third.session_id == result.session_id and third.cost.output_tokens == again.cost.output_tokens
    assert "The script ask is over." in json.dumps(agent.exchanges("third")[-1].body)


def test_locks_hold_behind_the_app_server(agent: Codex) -> None:
    agent.ground.coordinator.peer_lock("notes.md")
    made, _ = ran(agent, "held", agent.replace("notes.md", "line one", "line two"), on_permission=lambda _: True)
    assert_untouched(agent, "notes.md")
    assert len(made.told("lock_denied")) == 1


def test_an_image_reaches_the_model(agent: Codex) -> None:
    (agent.ground.checkout / "dot.png").write_bytes(base64.b64decode(DOT))
    for more in ({}, {"stream_text": True}):
        ran(agent, f"look{len(more)}", images=["dot.png"], **more)
        assert "data:image/png;base64," in json.dumps(agent.exchanges(f"look{len(more)}")[-1].body["input"])
