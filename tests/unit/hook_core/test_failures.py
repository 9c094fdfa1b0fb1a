"""A test or a build that fails beside others' uncommitted lines: its agent is told of `swarm-mcp try`, once."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.world import Agent, World

from swarm_hook_core.hooks import SessionEvent, ToolCall
from swarm_hook_core.session_events import takes_turn
from swarm_hook_core.state import awaited_dir, config_path

pytestmark = pytest.mark.slow


@pytest.fixture
def world(tmp_path: Path, checks_have_time: None, no_faults: None) -> World:
    return World(tmp_path, "calc.py", "notes.md", "web/app.ts")


def failed(agent: Agent, command: str = "pytest", said: object = "Exit code 1", **more: Any) -> str:
    """Let a command pass the check and fail; return the words of the hook after it."""
    facts = {"cwd": str(agent.folder), "id": "call-1", **more}
    name = facts.pop("name", "PostToolUseFailure")
    assert not agent.ask("Bash", {"command": command}, id="call-1").denied
    call = ToolCall("Bash", {"command": command}, agent.session_id, name=name, response=said, **facts)
    return agent.core.words_after(call)


def test_a_failing_test_beside_others_lines_is_told_of_try_once_for_each_state(world: World) -> None:
    me, peer = world.session(), world.session("codex")
    assert failed(me) == "", "nobody has uncommitted lines"
    me.edit("calc.py", "alpha", "MINE")
    assert failed(me) == "", "they are all its own"
    peer.edit("calc.py", "gamma", "THEIRS")
    peer.write("new.py")
    told = failed(me)
    assert told.startswith("swarm: others have uncommitted lines here (codex"), told
    assert ": calc.py, new.py); `swarm-mcp try -- pytest` runs it with yours alone" in told, told
    assert failed(me) == "", "it knows"
    assert failed(me, "make") == ""
    peer.edit("calc.py", "THEIRS", "MORE")
    assert "calc.py" in failed(me, "make")
    assert "calc.py" in failed(peer), "the other is told of this one's lines"
    me.turn_ends()
    world.write("web/app.ts", "a person's\n")
    assert "; a person: web/app.ts)" in failed(me)
    world.commit()
    assert failed(me) == ""
    assert not os.path.lexists(awaited_dir())


def test_a_lone_session_is_told_of_a_person_s_lines(world: World) -> None:
    me = world.session()
    world.write("calc.py", "a person's\n")
    assert "(a person: calc.py)" in failed(me)


def test_nothing_is_said_where_no_line_of_others_can_matter(world: World) -> None:
    me, peer = world.session(), world.session("codex")
    peer.edit("notes.md")
    assert failed(me) == "", "no test reads prose"
    assert "notes.md" in failed(me, said="Exit code 1\ntest_docs.py: notes.md has a broken link")
    peer.edit("web/app.ts")
    for command in (
        "mypy .",
        "gcc calc.c",
        "ls make",
        "npm install",
        "git commit -m 'pytest'",
        "swarm-mcp try -- pytest",
    ):
        assert failed(me, command) == "", command
    assert "web/app.ts" in failed(me, "tsc --noEmit")
    assert failed(me, name="PostToolUse", said={"stdout": "1 failed", "stderr": ""}) == "", "it is green"
    assert failed(me, goes_on=True) == "", "it has only begun"
    Path(config_path()).parent.mkdir(parents=True, exist_ok=True)
    Path(config_path()).write_text(json.dumps({"protect": "off"}))
    assert failed(me) == ""
    assert not os.path.lexists(awaited_dir())


@pytest.mark.parametrize(
    ("command", "again"),
    [
        ("uv run pytest -q", "uv run pytest -q"),
        ("cd web && npm test 2>&1 | tail -5", "sh -c 'cd web && npm test 2>&1 | tail -5'"),
        ("CI=1 make", "sh -c 'CI=1 make'"),
        (f"pytest {'tests/' * 40}", "COMMAND"),
    ],
)
def test_the_line_repeats_the_command_as_try_takes_it(world: World, command: str, again: str) -> None:
    me = world.session()
    world.write("calc.py", "a person's\n")
    assert f"`swarm-mcp try -- {again}` runs" in failed(me, command)


@pytest.mark.parametrize(
    "output", ["2 failed, 3 passed in 1 s", "make: *** [Makefile:2: all] Error 1", "a.ts(1,2): error TS1: x"]
)
def test_a_pipeline_has_failed_if_its_output_says_so(world: World, output: str) -> None:
    me = world.session()
    world.write("calc.py", "a person's\n")
    piped = {"name": "PostToolUse", "command": "make test 2>&1 | tail -5"}
    assert failed(me, said={"stdout": "5 passed, 0 failed, no errors"}, **piped) == ""
    assert "calc.py" in failed(me, said={"stdout": output}, **piped)


def test_codex_has_the_exit_code_in_its_rollout(world: World, tmp_path: Path) -> None:
    me, rollout = world.session("codex"), tmp_path / "rollout.jsonl"
    rollout = rollout.with_name(f"rollout-{me.session_id}.jsonl")
    world.write("calc.py", "a person's\n")

    def run(code: int) -> str:
        item = {"type": "CommandExecution", "id": "call-1", "exit_code": code, "aggregated_output": "exit code 1"}
        lines = [{"payload": {"type": "item_completed", "item": item}}, {"payload": {"call_id": "call-1"}}]
        rollout.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return failed(me, said="exit code 1", name="PostToolUse", transcript=str(rollout))

    assert run(0) == ""
    assert "calc.py" in run(2)


@pytest.mark.parametrize("said", [{"exit_code": 1}, {"result": "<shellId: 0 completed with exit code 1>"}])
def test_other_clients_have_it_in_their_answer(world: World, said: object) -> None:
    me = world.session("grok")
    world.write("calc.py", "a person's\n")
    assert "calc.py" in failed(me, said=said, name="PostToolUse")


def test_a_mark_goes_with_its_turn(world: World) -> None:
    me = world.session()
    assert not me.ask("Bash", {"command": "pytest"}).denied
    assert os.listdir(awaited_dir())
    takes_turn(me.core, SessionEvent(me.session_id, str(me.folder), "Stop"))
    assert not os.path.lexists(awaited_dir())
