"""docs/dev/python.md: each program keeps the promise of the page, with the loop and a scripted model on loopback."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.loop_fixtures import Fail, Model, Say, settings
from support.python_page import PAGE, SECRET, programs, write

from swarm_mcp.agents import harness

pytestmark = pytest.mark.slow
PROGRAMS = programs()


@pytest.fixture
def model() -> Iterator[Model]:
    served = Model()
    yield served
    served.close()


class Ground:
    """A folder with a program in it, and an environment with its model."""

    def __init__(self, folder: Path, model: Model):
        self.folder = folder
        self.environment = {
            **os.environ,
            **settings(model, folder),
            "STOCK_TOKEN": SECRET,
            "SWARM_HARNESS_PROJECT_SERVERS": "0",
        }
        del self.environment["SWARM_LOOP_CONFIG"]  # each run has its own
        write(folder)

    def run(self, name: str, *words: str) -> subprocess.CompletedProcess[str]:
        path = self.folder / f"{name}.py"
        path.write_text(PROGRAMS[name])
        return subprocess.run([sys.executable, str(path), *words], cwd=self.folder, env=self.environment,
                              capture_output=True, text=True, timeout=90)  # fmt: skip

    def printed(self, name: str, *words: str) -> str:
        done = self.run(name, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def ground(tmp_path: Path, model: Model) -> Ground:
    return Ground(tmp_path, model)


def test_the_page_has_a_program_for_each_use() -> None:
    assert set(PROGRAMS) == {"shop", "server", "schema", "talk"}
    assert all(len(text.splitlines()) <= 25 for text in PROGRAMS.values())
    named = [name for name in harness.__all__ if f"`{name}" in PAGE.read_text() or name in "".join(PROGRAMS.values())]
    assert {"Run", "Query", "McpServer", "HarnessError", "Price", "priced", "events_in", "to_envelope"} <= set(named)


def test_a_client_tool(ground: Ground, model: Model) -> None:
    call = ("mcp__client_tools__price_of", {"item": "lamp", "count": 2})
    model.script = [Say(calls=(call,)), Say("They are 70.")]
    assert ground.printed("shop", "loop") == "They are 70.\n"
    assert model.told() == ["70.0"]


def test_a_failure(ground: Ground, model: Model) -> None:
    model.script = [Fail(401, {"type": "authentication_error", "message": "invalid x-api-key"})]
    done = ground.run("shop", "loop")
    assert done.returncode == 1 and done.stderr.startswith("auth_failed: loop: ")


def test_a_server_with_a_secret(ground: Ground, model: Model) -> None:
    model.script = [Say(calls=(("mcp__stock__count", {}),)), Say("There are some.")]
    told = f"{len(SECRET)} lamps"
    assert ground.printed("server", "loop") == f"mcp__stock__count: {told}\nThere are some.\n"
    assert model.told() == [told]


def test_an_answer_by_a_schema(ground: Ground, model: Model) -> None:
    model.script = [Say('{"name": "lamp", "price": 35}')]
    assert ground.printed("schema", "loop") == "lamp for 35.00\n"
    model.script = [Say('{"name": "lamp"}')]
    done = ground.run("schema", "loop")
    assert done.returncode == 1 and "schema" in done.stderr


def test_a_conversation(ground: Ground, model: Model) -> None:
    model.script = [Say("It is fine.")]
    assert ground.printed("talk", "loop") == "It is fine.\nIt is fine.\nIt is fine.\n200\n"
