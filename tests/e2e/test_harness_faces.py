"""`swarm-mcp worker run` and client tools on the real clients: a Python function is called, the run can be looked up."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.requirement import requirement

from swarm_mcp.harness import Session
from swarm_mcp.play.models import play

from .client import Call, Client
from .clients import CLIENTS, SERVER_START
from .ground import Ground, own_ground
from .supervised_runs import LIMIT, Supervised, as_own_environment

TOOLS = "client_tools"


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    with own_ground("faces") as made:
        for kind in CLIENTS.values():
            kind(made).prepare()
        yield made


@pytest.fixture(params=sorted(CLIENTS))
def agent(request: pytest.FixtureRequest, ground: Ground, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """A client without our plugin."""
    with as_own_environment(ground, monkeypatch):
        yield CLIENTS[request.param](ground)


def calls_of(agent: Client, *calls: tuple[str, dict]) -> list[Call]:
    """Calls of our tools, as the client's model would make them."""
    if agent.name == "codex":
        wait = agent.shell(f"sleep {SERVER_START}")  # it does not wait for servers
        return [wait, *({"name": tool, "namespace": f"mcp__{TOOLS}", "arguments": given} for tool, given in calls)]
    made = [{"name": f"mcp__{TOOLS}__{tool}", "input": given} for tool, given in calls]
    query = "select:" + ",".join(call["name"] for call in made)
    return [{"name": "ToolSearch", "input": {"query": query}}, *made]


@requirement("D-16")
def test_a_python_function_is_called(agent: Client) -> None:
    asked: list[str] = []

    def price_of(item: str) -> dict:
        """Return an item's price.

        item: its name
        """
        asked.append(item)
        return {"item": item, "price": 42}

    def refuse(number: int) -> str:
        """Always fails."""
        raise ValueError(f"no item has number {number}")

    calls = calls_of(agent, ("price_of", {"item": "lamp"}), ("refuse", {"number": 7}))
    made = Supervised(agent, "tools", *calls, client_tools=(price_of, refuse))
    result = made.well()
    assert asked == ["lamp"]
    seen = "\n".join(agent.dialect.results(agent.models.exchanges(agent.requests)[-1].body))
    assert '"price": 42' in seen and "ValueError: no item has number 7" in seen
    ends = [end for end in made.ends() if end["tool_name"].endswith(("price_of", "refuse"))]
    assert [end["is_error"] for end in ends] == [False, True]
    token = [line for line in Path(result.record).read_text().splitlines() if "Bearer " in line]
    assert not token


@pytest.mark.thorough
def test_run_prints_the_answer_and_leaves_a_record(agent: Client) -> None:
    ground = agent.ground
    agent.models.script("write", agent.create("made.txt", "hello\n"))
    swarm = str(ground.bin / "swarm-mcp")
    argv = [swarm, "run", "--harness", agent.harness, "--watch", play("write")]
    done = ground.run(argv, seconds=LIMIT)
    assert done.returncode == 0, done.stderr + done.stdout
    assert (ground.checkout / "made.txt").read_text() == "hello\n"
    assert "The script write is over." in done.stdout and "session " in done.stdout and "#1 " in done.stdout
    (row,) = json.loads(ground.run([swarm, "runs", "--json"]).stdout)
    assert row["state"] == "ended" and row["harness"] == agent.harness and not row["result"]["is_error"]
    shown = ground.run([swarm, "logs", row["id"][:8]]).stdout
    assert "The script write is over." in shown and row["record"] in shown
    # Its place among the others is gone with it, and so are all its assignments.
    assert json.loads(ground.run([swarm, "instances", "--json"]).stdout) == []
    assert not list(Path(row["record"]).parents[2].glob("running/run-*"))
    again = [swarm, "run", "--harness", agent.harness, "--resume", row["id"], "--json", play("again")]
    agent.models.script("again")
    result = json.loads(ground.run(again, seconds=LIMIT).stdout)
    assert result["session_id"] == row["session_id"] and not result["clear_session"]
    assert result["output"] == "The script again is over."


def test_a_conversation_and_its_fork(agent: Client) -> None:
    """Each prompt knows the ones before, also after a start of a new process's `Session`; a fork has an id of its own."""

    async def main() -> None:
        async with Session(agent.harness, cwd=agent.ground.checkout, **options) as session:
            first = await session.ask(play("one"))
            second = await session.ask(play("two"))
            assert second.session_id == first.session_id == session.session_id
            async with session.fork() as other:
                third = await other.ask(play("three"))
            assert third.session_id not in (None, first.session_id)
            async with Session(agent.harness, cwd=agent.ground.checkout, previous=session.previous, **options) as later:
                fourth = await later.ask(play("four"))
            assert fourth.session_id == first.session_id and not fourth.clear_session
        assert [result.output for result in session.results] == ["The script one is over.", "The script two is over."]
        tokens = [result.cost.output_tokens for result in session.results]
        assert all(tokens) and session.cost.output_tokens == sum(filter(None, tokens))

    options = {"model": agent.model} if agent.model else {}
    for name in ("one", "two", "three", "four"):
        agent.models.script(name)
    asyncio.run(main())
    for name, before in {"two": ["one"], "three": ["one", "two"], "four": ["one", "two"]}.items():
        asked = json.dumps(agent.exchanges(name)[-1].body)
        assert [other for other in ("one", "two", "three") if f"The script {other} is over." in asked] == before
