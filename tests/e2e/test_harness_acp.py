"""The harness `acp`: supervised runs of real agents that speak the protocol, none of them with a plugin of ours."""

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from swarm_mcp.agents.harness.adapter import PermissionRequest
from swarm_mcp.agents.harness.query import YOLO

from .more import OtherClient, prepared
from .supervised_runs import Supervised, as_own_environment, assert_abort_leaves_nothing, denials_shown, porcelain
from .test_acp import AGENTS

NAMES = ("gemini", "qwen")


@pytest.fixture(
    scope="module", params=[pytest.param(n, marks=pytest.mark.xdist_group(f"harness-acp-{n}"), id=n) for n in NAMES]
)
def shared(request: pytest.FixtureRequest) -> Iterator[OtherClient]:
    with prepared(request.param) as client:
        client.harness = "acp"  # type: ignore[misc]  # of this one alone
        yield client


@pytest.fixture
def agent(shared: OtherClient, monkeypatch: pytest.MonkeyPatch) -> Iterator[OtherClient]:
    with as_own_environment(shared.ground, monkeypatch):
        yield shared


def weigh(what: str) -> str:
    """Weigh something."""
    return f"{what}: 7 kg"


def start(agent: OtherClient, script: str, *steps: Any, **wanted: Any) -> Supervised:
    trusting = ("--skip-trust",) if agent.name == "gemini" else ()  # without it Gemini leaves MCP servers out
    command = (agent.executable, *AGENTS[agent.name], *trusting)
    return Supervised(agent, script, *steps, **{"command": command, **wanted})


def test_a_locked_file_is_not_written_and_the_session_is_the_workers(agent: OtherClient) -> None:
    ground = agent.ground
    ground.coordinator.peer_lock("notes.md")
    made = start(agent, "work", *agent.change("notes.md", "line one", "mine"))
    made.result()  # an agent may end its turn at a refusal
    assert (ground.checkout / "notes.md").read_text() == "line one\n"
    assert [line for line in denials_shown(made.events, ground.checkout) if "notes.md, held by night-shift " in line]
    assert ground.coordinator.sessions() == [] and porcelain(ground) == []


def test_a_free_file_is_written_and_its_events_are_told(agent: OtherClient) -> None:
    made = start(agent, "work", agent.create("free.md", "free\n"))
    result = made.well()
    assert (agent.ground.checkout / "free.md").read_text() == "free\n"
    assert (result.exit_code, result.output.strip()) == (0, "The script work is over."), result
    kinds = made.kinds()
    assert kinds.count("session_init") == kinds.count("result") == kinds.count("tool_start") == 1, kinds
    assert kinds.count("tool_end") == 1 and "acp.text_delta" in kinds
    assert result.changes.files == ("free.md",)


def test_tools_of_its_servers_are_called_unasked(agent: OtherClient) -> None:
    calls = [*agent.swarm_tools(("whoami", {})), *agent.server_tool("client_tools", "weigh", {"what": "anchor"})]
    # Qwen Code begins its turn before it has the tools of all servers, unless it is told to wait.
    made = start(agent, "tools", *calls, client_tools=(weigh,), env={"QWEN_CODE_LEGACY_MCP_BLOCKING": "1"})
    made.well()
    who, weighed = made.ends()
    assert made.place.instance_id in who["result"] and "anchor: 7 kg" in weighed["result"]
    assert weighed["tool_name"] == "mcp__client_tools__weigh"


def test_commands_are_refused_unless_somebody_allows_them(agent: OtherClient) -> None:
    start(agent, "none", agent.shell("echo x > none.md")).result()
    asked: list[PermissionRequest] = []

    def decide(request: PermissionRequest) -> bool:
        asked.append(request)
        return "yes.md" in str(request)

    start(agent, "some", agent.shell("echo x > yes.md"), agent.shell("echo x > no.md"), on_permission=decide).result()
    assert porcelain(agent.ground) == ["?? yes.md"]
    assert [one for one in asked if "yes.md" in str(one)] and [one for one in asked if "no.md" in str(one)], asked


def test_a_session_is_continued_and_one_that_is_gone_is_noticed(agent: OtherClient) -> None:
    first = start(agent, "one").well()
    for file in agent.ground.home.glob(".gemini/tmp/*/chats/session-*"):
        # Gemini 0.61 loses a session that it loads within the minute in which it began: this one began long ago.
        file.rename(file.with_name(f"session-2026-01-01T00-00-{file.name[-14:]}"))
    again = start(agent, "two", previous=first.session_params).well()
    assert again.session_id == first.session_id and not again.clear_session
    assert "The script one is over." in json.dumps(agent.exchanges("two")[-1].body)
    assert again.output.strip() == "The script two is over.", "the words of before are told again"
    made = start(agent, "three", resume_session_id=str(uuid.uuid4()))
    unknown = made.well()
    assert unknown.clear_session and unknown.attempts == 2 and unknown.session_id != first.session_id
    assert [data["category"] for data in made.told("error")] == ["session_not_found"]


def test_locks_hold_in_mode_yolo(agent: OtherClient) -> None:
    agent.ground.coordinator.peer_lock("notes.md")
    start(agent, "free", agent.shell("echo x > free.md"), mode=YOLO).well()
    start(agent, "work", agent.shell("echo x > notes.md"), mode=YOLO).result()
    assert porcelain(agent.ground) == ["?? free.md"]


def test_abort_leaves_nothing(agent: OtherClient) -> None:
    made = start(agent, "work", agent.shell("sleep 301 & exec sleep 300"), mode=YOLO, grace_seconds=3)
    assert_abort_leaves_nothing(made, agent.ground)
