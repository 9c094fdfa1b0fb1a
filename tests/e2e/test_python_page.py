"""The programs of docs/dev/python.md on the real clients; only their prompts are changed, to name a script."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.python_page import programs

from .client import Client
from .models import Step, play
from .supervised_runs import LIMIT
from .test_harness_faces import agent, calls_of, ground

__all__ = ["agent", "ground"]
PROGRAMS = programs()


def printed(agent: Client, name: str, prompt: str) -> str:
    """Return the output of a program with the script of its name as prompt."""
    assert prompt in PROGRAMS[name]
    path = agent.ground.root / f"{name}.py"
    path.write_text(PROGRAMS[name].replace(prompt, f"{prompt} {play(name)}"))
    done = subprocess.run([sys.executable, str(path), agent.harness], cwd=agent.ground.checkout, env=agent.ground.env,
                          capture_output=True, text=True, timeout=LIMIT)  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def test_a_client_tool(agent: Client) -> None:
    agent.models.script("shop", *calls_of(agent, ("price_of", {"item": "lamp", "count": 2})), Step(text="They are 70."))
    assert printed(agent, "shop", "How much are two lamps?") == "They are 70.\n"
    assert "70.0" in agent.results("shop")[-1]


@pytest.mark.parametrize("agent", ["claude-code"], indirect=True)
def test_an_answer_by_a_schema(agent: Client) -> None:
    """The scripted model of Codex has one answer for all schemas; ``test_harness_codex`` asks for that one."""
    answer = {"name": "StructuredOutput", "input": {"name": "lamp", "price": 35}}
    agent.models.script("schema", Step(calls=(answer,)))
    assert printed(agent, "schema", "Which item is the cheapest?") == "lamp for 35.00\n"


def test_several_at_once(agent: Client) -> None:
    agent.models.script("several", Step(text="It is fine."))
    assert printed(agent, "several", "What is slow?").splitlines()[0] == "It is fine."
