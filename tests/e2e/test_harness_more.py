"""The harnesses `gemini` and `opencode`: supervised runs of the real clients, without our plugin in their settings."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.requirement import requirement

from swarm_mcp.agents.harness import registry
from swarm_mcp.agents.harness.query import READ_ONLY, YOLO
from swarm_mcp.play.models import Step

from .marketplace import Marketplace
from .more import OtherClient, prepared
from .more.gemini import MODEL
from .supervised_runs import (
    Supervised,
    as_own_environment,
    assert_abort_leaves_nothing,
    play_a_worker,
    porcelain,
)

MODELS = {"gemini": MODEL, "opencode": "loopback/scripted"}


@pytest.fixture(
    scope="module", params=[pytest.param(n, marks=pytest.mark.xdist_group(f"harness-{n}"), id=n) for n in MODELS]
)
def shared(request: pytest.FixtureRequest) -> Iterator[OtherClient]:
    with prepared(request.param) as client:
        yield client


@pytest.fixture
def agent(shared: OtherClient, monkeypatch: pytest.MonkeyPatch) -> Iterator[OtherClient]:
    with as_own_environment(shared.ground, monkeypatch):
        yield shared


def start(agent: OtherClient, script: str, *steps: Any, **wanted: Any) -> Supervised:
    return Supervised(agent, script, *steps, **{"model": MODELS[agent.name], **wanted})


@requirement("A-44")
def test_a_worker_reaches_the_swarm_and_is_held_back_by_a_lock(agent: OtherClient, tmp_path: Path) -> None:
    calls = [*agent.swarm_tools(("whoami", {})), *agent.server_tool("client_tools", "weigh", {"what": "anchor"})]
    write = agent.create("notes.md", "mine\n")
    made, result = play_a_worker(agent, tmp_path, calls, write, model=MODELS[agent.name])
    assert made.kinds().count("lock_denied") == 1 and result.cost.total_cost_usd is None


def test_a_plugin_that_the_user_has_acts_once(agent: OtherClient) -> None:
    Marketplace(agent.ground, "install").install(agent.name)
    try:
        agent.ground.coordinator.peer_lock("notes.md")
        start(agent, "work", agent.create("notes.md", "mine\n")).well()
        assert agent.results("work")[0].count("careful surgery") == 1
        assert agent.context("work").count("this session is registered as") == 1
    finally:
        agent.ground.coordinator.text("uninstall", "--client", agent.name)


def test_sessions_are_continued_and_one_that_is_gone_is_noticed(agent: OtherClient) -> None:
    first = start(agent, "one").well()
    again = start(agent, "two", previous=first.session_params, system_prompt="ALL OF IT").well()
    assert again.session_id == first.session_id and not again.clear_session
    seen = json.dumps(agent.exchanges("two")[-1].body)
    assert "The script one is over." in seen and "ALL OF IT" in seen
    assert again.cost.input_tokens == first.cost.input_tokens, "not this run's alone"
    lost = {"gemini": str(uuid.uuid4()), "opencode": "ses_dff8d2488ffe123FlN7NnwSNjX"}[agent.name]
    made = start(agent, "three", resume_session_id=lost)
    unknown = made.well()
    assert unknown.clear_session and unknown.attempts == 2 and unknown.session_id not in (lost, first.session_id)
    assert [data["category"] for data in made.told("error")] == ["session_not_found"]


@requirement("D-22")
def test_a_reader_writes_nothing(agent: OtherClient) -> None:
    steps = [agent.create("a.md", "x"), agent.shell("echo x > b.md"), *agent.swarm_tools(("whoami", {}))]
    steps += agent.swarm_tools(("dispatch", {"title": "write it for me"}))
    made = start(agent, "read", *steps, mode=READ_ONLY)
    made.well()
    assert porcelain(agent.ground) == [], "it has written"
    ends = made.ends()
    assert made.place.instance_id in next(end["result"] for end in ends if end["tool_name"].endswith("whoami"))
    assert not [end for end in ends if not end["is_error"] and not end["tool_name"].endswith("whoami")], ends


def test_commands_run_in_mode_yolo(agent: OtherClient) -> None:
    agent.ground.coordinator.peer_lock("notes.md")
    made = start(agent, "work", agent.shell("echo x > free.md"), agent.shell("echo x > notes.md"), mode=YOLO)
    made.well()
    assert porcelain(agent.ground) == ["?? free.md"] and len(made.told("lock_denied")) == 1


def test_turns_are_limited(agent: OtherClient) -> None:
    steps = [agent.create(f"{number}.md", "x") for number in range(6)]
    result = start(agent, "work", *steps, max_turns=2).result()
    assert (result.is_error, result.error_category) == (True, "budget"), result
    assert len(porcelain(agent.ground)) <= 2


def test_a_further_directory_may_be_written(agent: OtherClient, tmp_path: Path) -> None:
    target = tmp_path / "beside"
    target.mkdir()
    start(agent, "work", agent.create(str(target / "a.md"), "x\n"), additional_directories=(str(target),)).well()
    assert (target / "a.md").read_text() == "x\n"


@requirement("D-04")
def test_what_the_model_refuses_has_a_code(agent: OtherClient) -> None:
    result = start(agent, "work", Step(error="Incorrect API key provided: sk-x"), grace_seconds=2).result()
    assert (result.is_error, result.error_category) == (True, "auth_failed"), result


@requirement("A-08")
def test_abort_leaves_nothing(agent: OtherClient) -> None:
    made = start(agent, "work", agent.shell("sleep 301 & exec sleep 300"), mode=YOLO, grace_seconds=3)
    assert_abort_leaves_nothing(made, agent.ground)


def test_a_fork_leaves_the_first_as_it_was(agent: OtherClient) -> None:
    can = registry.get(agent.name).capabilities
    first = start(agent, "one").well()
    if not can.fork:
        with pytest.raises(Exception, match="cannot be given a copy of a session"):
            start(agent, "two", previous=first.session_params, fork_session=True)
        return
    fork = start(agent, "two", previous=first.session_params, fork_session=True).well()
    assert fork.session_id != first.session_id and "The script one is over." in json.dumps(
        agent.exchanges("two")[-1].body
    )
